"""KS4xx: messages between ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.messages import describe_faults, fault_groups
from ...machine.units import format_ps
from ..analyses.lazy_messages import HeldSend
from ..findings import Place
from ..rule import Finding, LintContext, Rule, times

__all__ = ["RULES"]


# --- KS401 ------------------------------------------------------------------------------------------------------------


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


# --- KS402, KS403 -----------------------------------------------------------------------------------------------------


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


def _overrun(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    if context.lazy is None:
        return
    graph = context.graph
    groups: dict[tuple[int, int], list[HeldSend]] = {}
    for held in context.lazy.held_sends:
        groups.setdefault((context.stack_of(held.node), context.stack_of(held.freed_by)), []).append(held)
    for group in groups.values():
        first = graph[group[0].node]
        receiver = graph[group[0].freed_by].rank
        direction = graph.target.directions[graph.channels.direction[first.channel]]
        arrival = graph.target.directions[graph.channels.arrival[first.channel]]
        slots = graph.target.slots
        waited = format_ps(sum(held.held_ps for held in group))
        yield Finding(
            message=f'send to "{direction}" of rank {first.rank} is held back by a full channel '
            f"({slots} slot{'' if slots == 1 else 's'}){times(len(group))}, {waited} in all",
            places=context.places(
                (f"rank {first.rank} waits here", context.stack_of(first.id)),
                (f"rank {receiver} frees the slot here", context.stack_of(group[0].freed_by)),
            ),
            nodes=tuple(sorted(held.node for held in group)),
            help=f'receive earlier on rank {receiver}: post `tl.recv_async("{arrival}", ...)` before the work in '
            "between and tl.wait for it after; or give links more slots (`link.slots` of the machine)",
        )


# --- declarations -----------------------------------------------------------------------------------------------------

RULES = (
    Rule(
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
    ),
    Rule(
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
    ),
    Rule(
        code="KS403",
        name="channel-overrun",
        severity="info",
        summary="a sender is held back by a full channel under the `lazy` policy",
        what="""
A channel has a fixed number of slots; a send needs a free one, and a recv frees one. Reports the sends for which the
slot came later than everything else they wait for, and by how much. """,
        why="""
The sender's rank stands still in the meantime: the receiver falls behind, or takes messages in bursts. It is no fault
as long as the ranks are meant to run in step. """,
        example="""
import kernscope as ks
from kernscope import tl


@ks.launch("two", ranks=2, x=ks.hbm((1, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def stream(x, o):
    if tl.program_id(0) == 0:
        tile = tl.load(x[:, :])
        for _ in range(4):
            tl.send("next", tile)
    else:
        work = tl.zeros((128, 64), tl.float32)
        for _ in range(4):
            with tl.scratch_scope():
                tl.copy_to(work, tl.exp(work) + tl.sin(work))
                tl.copy_to(work, work + tl.recv("prev", (1, 64), tl.float32))
        tl.store(o[:, :], work)
""",
        fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("two", ranks=2, x=ks.hbm((1, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def stream(x, o):
    if tl.program_id(0) == 0:
        tile = tl.load(x[:, :])
        for _ in range(4):
            tl.send("next", tile)
    else:
        work = tl.zeros((128, 64), tl.float32)
        tiles = [tl.recv_async("prev", (1, 64), tl.float32) for _ in range(4)]
        for tile in tiles:
            with tl.scratch_scope():
                tl.copy_to(work, tl.exp(work) + tl.sin(work))
                tl.copy_to(work, work + tl.wait(tile))
        tl.store(o[:, :], work)
""",
        check=_overrun,
    ),
)
