"""The tracks of a timeline, and the order of what happens on them: the same for every format."""

from __future__ import annotations

import enum

import attrs
import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.forms.text import quote
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray
from ...scheduler.result.schedule import Schedule
from ...scheduler.search.lanes import placement_order

__all__ = ["Moments", "Phase", "Track", "TrackPlan", "moments_of", "plan_tracks", "schedule_title", "shown_nodes"]


@attrs.frozen
class Track:
    """A row of the timeline: a lane of an engine, or a rank's instants without an engine."""

    rank: int
    name: str


@attrs.frozen(eq=False)
class TrackPlan:
    """The tracks from top to bottom, rank by rank, and by node the index of its track ``(n,)``."""

    tracks: tuple[Track, ...]
    of_node: IntArray


class Phase(enum.IntEnum):
    """What happens at a moment, in the order of one instant: what ends makes room for what happens then, and an instant
    (which other nodes may wait for at once) comes before what begins."""

    END = 0
    INSTANT = 1
    BEGIN = 2


@attrs.frozen(eq=False)
class Moments:
    """What happens, in order: ``node``, ``phase`` (a :class:`Phase`) and ``at_ps``, int64. A node that takes time has a
    BEGIN and an END, another one an INSTANT; along every edge the source's BEGIN or INSTANT comes first."""

    node: IntArray
    phase: IntArray
    at_ps: IntArray


def shown_nodes(schedule: Schedule) -> IntArray:
    """``(n,)`` bool: all nodes but the scope markers. Those take no time, wait for nothing and are waited for by
    nothing: where the policy lets them, all of them happen at time 0. Every other node tells its scope."""
    shown: IntArray = ~OPERATIONS.markers[schedule.graph.nodes.op]
    return shown


def plan_tracks(schedule: Schedule) -> TrackPlan:
    """Per rank its engines in their order (an engine of several channels has a track for each lane, so that slices of
    one track never overlap), then ``waits`` for receives and waits. Scope markers are on no track (-1)."""
    graph = schedule.graph
    unmarked = shown_nodes(schedule)
    tracks: list[Track] = []
    first = np.zeros(len(schedule.engines), dtype=np.int64)
    waits = np.full(graph.ranks, -1, dtype=np.int64)
    for rank in range(graph.ranks):
        for number, engine in enumerate(schedule.engines):
            if engine.rank != rank:
                continue
            first[number] = len(tracks)
            name = quote(engine.name)
            lanes = [name] if engine.channels == 1 else [f"{name} lane {lane}" for lane in range(engine.channels)]
            tracks += [Track(rank, lane) for lane in lanes]
        if ((graph.nodes.rank == rank) & (schedule.engine < 0) & unmarked).any():
            waits[rank] = len(tracks)
            tracks.append(Track(rank, "waits"))
    of_node = np.where(unmarked, waits[graph.nodes.rank], -1)
    busy = schedule.engine >= 0
    of_node[busy] = first[schedule.engine[busy]] + schedule.lane[busy]
    return TrackPlan(tuple(tracks), of_node)


def moments_of(schedule: Schedule) -> Moments:
    """Everything that a timeline shows of a schedule, in order."""
    start, end = schedule.start_ps, schedule.free_ps
    place = inverse_permutation(placement_order(schedule.problem.on_engines, start))
    shown = shown_nodes(schedule)
    long, short = np.flatnonzero(shown & (end > start)), np.flatnonzero(shown & (end == start))
    node = np.concatenate((long, short, long))
    phase = np.repeat((Phase.END, Phase.INSTANT, Phase.BEGIN), (len(long), len(short), len(long)))
    at = np.where(phase == Phase.END, end[node], start[node])
    order = np.lexsort((place[node], phase, at))
    return Moments(node[order], phase[order], at[order])


def schedule_title(schedule: Schedule) -> str:
    """Kernel, machine and policy."""
    return f"{quote(schedule.graph.kernel)} on {quote(schedule.machine.name)}, {schedule.policy}"
