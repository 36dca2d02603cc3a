"""KS301: loads that nobody reads before their scope exits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ..analyses.unread import destination, find_unread
from ..fixes.deleting import delete_lines
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times
from ..wording.deletions import deletion

__all__ = ["RULE"]


def _load_outlives_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    loads = find_unread(context.graph, context.liveness, context.overwritten_loads, messages=False).loads
    target = destination(graph, loads)
    for group in distinct_rows(graph.nodes.stack[loads], graph.storages.stack[target]).in_order_met():
        node, storage = int(loads[group[0]]), int(target[group[0]])
        loaded, made = context.stack_of(node), int(graph.storages.stack[storage])
        every = _loads_at(graph, loaded)
        places = [("loaded here", loaded)]
        if made != loaded:
            places.append(("into what is made here", made))
        places.append(("scope closed here", context.stack_of(int(graph.storages.freed[storage]))))
        fix = None if every > len(group) else delete_lines(context, [loaded], deletion(context, loaded, "load"))
        some = f"{len(group):,} of the {every:,} loads here are lost: " if every > len(group) else ""
        yield Finding(
            message=f"{some}nothing reads {context.name_of(storage)} before the exit of its scope"
            f"{times(len(group)) if not some else ''}",
            places=context.places(*places),
            nodes=tuple(loads[group].tolist()),
            help=_load_help(context, loaded, some=bool(some)),
            fixes=() if fix is None else (fix,),
        )


def _loads_at(graph: Graph, stack: int) -> int:
    return int(np.count_nonzero((graph.nodes.stack == stack) & OPERATIONS.loads[graph.nodes.op]))


def _load_help(context: LintContext, stack: int, *, some: bool) -> str:
    line = context.line(stack)
    if some:
        return (
            f"put {line} under an `if` that leaves out the loads that no later line needs (of a loop that loads one "
            "tile ahead, the last one)"
        )
    deleted = deletion(context, stack, "load")
    return f"{deleted}, or read its result before the scope exits: who writes these bytes next waits for the load"


RULE = Rule(
    code="KS301",
    name="load-outlives-scope",
    severity="warning",
    summary="a load has no reader when its scope exits: its result is lost, and the next writer of its bytes has "
    "to wait for it",
    what="""
Looks, element by element, for a reader of every load before the exit of the scope that frees its destination. Of the
loads of one line only those without a reader are reported. Silent where KS201 or KS202 speaks of the same handle.
""",
    why="""
The DMA engine moves bytes for nothing. And the exit does not wait for it: whoever takes these bytes next does, so that
a load that nobody needs holds up one that somebody does.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tile = tl.load(x[rows, :])
            tl.load(x[0:128, :])
            tl.store(o[rows, :], tile * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tile = tl.load(x[rows, :])
            tl.store(o[rows, :], tile * 2.0)
""",
    check=_load_outlives_scope,
)
