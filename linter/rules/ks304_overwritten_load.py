"""KS304: loads that are written over before anything reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ..analyses.hbm_boxes import region_text
from ..analyses.overwritten import OverwrittenLoad
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _overwritten_load(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for each pair of lines: the one that loads, and the one that writes over it."""
    graph = context.graph
    groups: dict[tuple[int, int], list[OverwrittenLoad]] = {}
    for lost in context.overwritten_loads:
        groups.setdefault((context.stack_of(lost.node), context.stack_of(lost.writer)), []).append(lost)
    for (loaded, writer), group in groups.items():
        first = group[0]
        target = graph[first.node].writes[0].storage.row
        told = next((lost for lost in group if lost.reader is not None), first)
        places = [(f"loads {_source(graph, first.node)} here", loaded)]
        if writer != loaded:
            places.append(("written over here", writer))
        places += _reader_place(context, told)
        yield Finding(
            message=f"{context.name_of(target)} is loaded from {_source(graph, first.node)} and written over before "
            f"anything reads it{times(len(group))}",
            places=context.places(*places),
            nodes=tuple(lost.node for lost in group),
            help=_help(context, told, loaded),
        )


def _reader_place(context: LintContext, lost: OverwrittenLoad) -> list[tuple[str, int]]:
    if lost.reader is None or lost.read_load is None:
        return []
    graph = context.graph
    of_which = "" if graph.nodes.stack[lost.read_load] < 0 else f" of {context.line(context.stack_of(lost.read_load))}"
    return [
        (
            f"{graph[lost.reader].op} reads {_source(graph, lost.read_load)} here, the load{of_which}, in the place of "
            f"{_source(graph, lost.node)}",
            context.stack_of(lost.reader),
        )
    ]


def _source(graph: Graph, load: int) -> str:
    """The region that a load reads; a padded one may lie outside of its tensor altogether."""
    reads = graph[load].reads
    return region_text(reads[0]) if reads else "what lies outside its tensor"


def _help(context: LintContext, lost: OverwrittenLoad, loaded: int) -> str:
    graph = context.graph
    if lost.reader is None or not OPERATIONS.loads[graph.nodes.op[lost.writer]]:
        return f"delete the load of {context.line(loaded)}, or read its result before these bytes are written again"
    return (
        f"of several buffers that are filled in turn, read at {context.line(context.stack_of(lost.reader))} the one "
        "that was filled for this iteration, and load the next tile into another; leave out a load that no line needs"
    )


RULE = Rule(
    code="KS304",
    name="overwritten-load",
    severity="warning",
    summary="all bytes of a load are written again before anything reads them",
    what="""
Looks, element by element, for a reader of every load; where there is none, for the writes that take its bytes. Names
the read that met other bytes in its place: between the load and the write over it the last read of another buffer that
the same lines fill in turn, or else the first read of what was loaded over it. The loads of composites are left alone.
""",
    why="""
The DMA moved bytes for nothing; and where buffers are filled in turn, it is how a wrong slot shows: some iteration has
read another one's tile. No scope is involved and every byte is owned, so that nothing else speaks of it.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 64), "f32"), o=ks.hbm((512, 64), "f32"))
@ks.kernel
def double(x, o):
    slots = [tl.empty((128, 64), tl.float32), tl.empty((128, 64), tl.float32)]
    tl.load(x[0:128, :], out=slots[0])
    for i in range(4):
        with tl.scratch_scope():
            if i < 3:
                tl.load(x[(i + 1) * 128 : (i + 2) * 128, :], out=slots[(i + 1) % 2])
            tl.store(o[i * 128 : (i + 1) * 128, :], slots[0] * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 64), "f32"), o=ks.hbm((512, 64), "f32"))
@ks.kernel
def double(x, o):
    slots = [tl.empty((128, 64), tl.float32), tl.empty((128, 64), tl.float32)]
    tl.load(x[0:128, :], out=slots[0])
    for i in range(4):
        with tl.scratch_scope():
            if i < 3:
                tl.load(x[(i + 1) * 128 : (i + 2) * 128, :], out=slots[(i + 1) % 2])
            tl.store(o[i * 128 : (i + 1) * 128, :], slots[i % 2] * 2.0)
""",
    check=_overwritten_load,
)
