"""KS402: ranks that wait for each other in a cycle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..findings import Place
from ..rule import Finding, LintContext, Rule

__all__ = ["RULE"]


def _deadlock(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """Silent where KS401 speaks of a channel of the cycle: that fault is the cause, or hides it."""
    if context.lazy is None or context.lazy.deadlock is None:
        return
    error = context.lazy.deadlock
    faulty = {fault.channel for fault in context.message_faults}
    if any(int(context.graph.nodes.channel[node]) in faulty for node in error.nodes):
        return
    yield Finding(
        message=error.message,
        places=tuple(Place(role, location) for role, location in error.places),
        nodes=tuple(sorted(error.nodes)),
        help=error.help,
    )


RULE = Rule(
    code="KS402",
    name="deadlock",
    severity="error",
    summary="ranks wait for each other in a cycle under the `lazy` policy",
    what="""
Runs the graph under the `lazy` policy, in which a recv holds up its rank until the message is there, and a send until
the channel has a free slot. Where ranks wait for each other in a cycle it names every line of that cycle. Silent where
KS401 speaks of a channel of the cycle. """,
    why="""
The kernel never ends. It can do so with one number of ranks or slots and pass with another.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("ring", ranks=2, x=ks.hbm((256, 64), "f32"), o=ks.hbm((256, 64), "f32"))
@ks.kernel
def swap(x, o):
    rank = tl.program_id(0)
    rows = slice(rank * 128, (rank + 1) * 128)
    theirs = tl.recv("prev", (128, 64), tl.float32)
    tl.send("next", tl.load(x[rows, :]))
    tl.store(o[rows, :], theirs)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("ring", ranks=2, x=ks.hbm((256, 64), "f32"), o=ks.hbm((256, 64), "f32"))
@ks.kernel
def swap(x, o):
    rank = tl.program_id(0)
    rows = slice(rank * 128, (rank + 1) * 128)
    tl.send("next", tl.load(x[rows, :]))
    theirs = tl.recv("prev", (128, 64), tl.float32)
    tl.store(o[rows, :], theirs)
""",
    check=_deadlock,
)
