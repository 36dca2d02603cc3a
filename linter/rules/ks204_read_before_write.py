"""KS204: bytes of a handle that are read before anything wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...memory.liveness import Violation, ViolationKind
from ..analyses.violations_by_line import violations_by_line
from ..edits import Fix
from ..fixes.filling import zeros_for_empty
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _read_before_write(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for fault, nodes in violations_by_line(context.graph, context.liveness, ViolationKind.READ_BEFORE_WRITE):
        graph = context.graph
        name = context.name_of(fault.allocation)
        made = int(graph.storages.stack[fault.allocation])
        places = [("read here", context.stack_of(fault.node)), ("made here, with nothing in it", made)]
        written = context.stack_of(fault.written_by)
        fix = None
        if fault.written_by is not None:
            places.append(("written only here, later", written))
        if fault.written_by is None or context.line(written) == context.line(context.stack_of(fault.node)):
            fix = zeros_for_empty(context.location(made))
        yield Finding(
            message=f"{name} is read by {context.op_of(fault.node)} before all of it was written{times(len(nodes))}",
            places=context.places(*places),
            nodes=nodes,
            help=_unwritten_help(context, fault, fix),
            fixes=() if fix is None else (fix,),
        )


def _unwritten_help(context: LintContext, fault: Violation, fix: Fix | None) -> str:
    graph = context.graph
    read, written = context.stack_of(fault.node), context.stack_of(fault.written_by)
    if fault.written_by is not None and context.line(read) != context.line(written):
        # Zeros would hide that the wrong bytes are read: an order of lines, or a slot of a buffer.
        return (
            f"write these bytes before {context.line(read)} reads them: {context.line(written)} comes too late, or "
            "belongs to another part of the handle"
        )
    layout = graph.layouts[graph.storages.layout[fault.allocation]]
    made = context.line(int(graph.storages.stack[fault.allocation]))
    zeros = fix.title if fix is not None else f"make it with `tl.zeros({layout.shape}, {layout.dtype!r})` at {made}"
    return f"fill it first, or {zeros}"


RULE = Rule(
    code="KS204",
    name="read-before-write",
    severity="error",
    summary="bytes of an `empty` handle are read before anything wrote them",
    what="""
`tl.empty` allocates and writes nothing. This rule follows, element by element, what has been written since through
the handle and its views, and reports every operation that reads an element before. Slices are told apart: writing one
half and reading that half is fine.
""",
    why="""
What is read is whatever an earlier allocation left in those bytes: another value with every change of the kernel, and
often zero in a first test.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def pad_below(x, o):
    both = tl.empty((256, 128), tl.float32)
    tl.load(x[:, :], out=both[0:128, :])
    tl.store(o[:, :], both)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def pad_below(x, o):
    both = tl.empty((256, 128), tl.float32)
    tl.load(x[:, :], out=both[0:128, :])
    tl.copy_to(both[128:256, :], tl.zeros((128, 128), tl.float32))
    tl.store(o[:, :], both)
""",
    check=_read_before_write,
)
