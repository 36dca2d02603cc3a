"""KS401: messages without a partner, or with one that expects another tile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.messages import describe_faults, fault_groups
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _unmatched(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for the messages of one line that lack a partner, and for each pair of lines that do not fit."""
    for group in fault_groups(context.graph, context.message_faults):
        text = describe_faults(context.graph, group)
        yield Finding(
            message=f"{text.message}{times(len(group))}",
            places=context.places(*((role, context.stack_of(node)) for role, node in text.places)),
            nodes=tuple(sorted({node for fault in group for node in fault.nodes})),
            help=text.help,
        )


RULE = Rule(
    code="KS401",
    name="unmatched-message",
    severity="error",
    summary="there is a send without recv, a recv without send, or shapes or dtypes that differ",
    what="""
On each channel the i-th send meets the i-th recv, each side counted in its own program order. Reports sends and recvs
that are left over, and pairs whose shapes or dtypes differ.
""",
    why="""
A recv without a send never ends, and everything that needs its tile waits with it. A send without a recv fills a slot
of the channel for good, until a later one finds no slot free. A shape that differs means that the two ranks do not
mean the same message.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("ring", ranks=4, x=ks.hbm((512, 64), "f32"), o=ks.hbm((384, 64), "f32"))
@ks.kernel
def shift(x, o):
    rank = tl.program_id(0)
    rows = slice(rank * 128, (rank + 1) * 128)
    tl.send("next", tl.load(x[rows, :]))
    if rank > 0:
        tl.store(o[(rank - 1) * 128 : rank * 128, :], tl.recv("prev", (128, 64), tl.float32))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("ring", ranks=4, x=ks.hbm((512, 64), "f32"), o=ks.hbm((384, 64), "f32"))
@ks.kernel
def shift(x, o):
    rank = tl.program_id(0)
    rows = slice(rank * 128, (rank + 1) * 128)
    if rank < tl.num_programs(0) - 1:
        tl.send("next", tl.load(x[rows, :]))
    if rank > 0:
        tl.store(o[(rank - 1) * 128 : rank * 128, :], tl.recv("prev", (128, 64), tl.float32))
""",
    check=_unmatched,
)
