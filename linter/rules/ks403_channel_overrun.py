"""KS403: senders that a full channel holds back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.forms.counts import plural
from ...machine.units import format_ps
from ..analyses.lazy_messages import HeldSend
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


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
            message=f'{first.op} to "{direction}" of rank {first.rank} is held back by a full channel '
            f"({plural(slots, 'slot')}){times(len(group))}, {waited} in all",
            places=context.places(
                (f"rank {first.rank} waits here", context.stack_of(first.id)),
                (f"rank {receiver} frees the slot here", context.stack_of(group[0].freed_by)),
            ),
            nodes=tuple(sorted(held.node for held in group)),
            help=f'wait earlier on rank {receiver}, with `tl.wait_for("{arrival}")` above the work in between; or give '
            "links more slots (`link.slots` of the machine)"
            if not first.reads
            else f'receive earlier on rank {receiver}: post `tl.recv_async("{arrival}", ...)` before the work in '
            "between and tl.wait for it after; or give links more slots (`link.slots` of the machine)",
        )


RULE = Rule(
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
)
