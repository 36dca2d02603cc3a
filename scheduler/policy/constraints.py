"""What waits for what under an in-order policy, as weighted arcs between events.

The events are the start of each node (numbered as the node) and the end of each command's issue (``len(problem)`` + the
command's number). An arc says: the target happens no earlier than the source plus the weight. Each policy is a set of
arcs; everything else (times, causes, slack, deadlocks) follows from them in one way for all.
"""

from __future__ import annotations

import enum
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ...ir.arrays.permutations import group_starts
from ...ir.tables import IntArray
from ..search.dag import topological_order
from .problem import Problem
from .registry import Holds, Policy

__all__ = ["ArcKind", "Constraints", "make_constraints"]


#: Columns: source, target, weight and kind of some arcs.
_Arcs = tuple[IntArray, IntArray, IntArray, IntArray]


class ArcKind(enum.IntEnum):
    """Why an event waits for another. Below ``ENGINE`` the numbers are those of :class:`Reason`: an edge of the
    graph."""

    ENGINE = 16
    """In-order: a node starts no earlier than the one before it in its engine's queue; with one lane, than its end."""
    ISSUE = 17
    """A node waits for the issue of its command."""
    PROGRAM = 18
    """The CPU goes on after the command before: after its issue, or after its end."""


@attrs.frozen(eq=False, slots=False)
class Constraints:
    """``base_ps`` by event: it happens no earlier. The arcs are sorted by target. ``lanes`` by event: the engine whose
    lanes have to be counted, -1 where the arcs say it all. ``preferred``: the events in program order, rank by rank."""

    nodes: int
    base_ps: IntArray
    source: IntArray
    target: IntArray
    weight_ps: IntArray
    kind: IntArray
    lanes: IntArray
    preferred: IntArray

    @cached_property
    def order(self) -> IntArray:
        """Events so that all arcs go forward; shorter than all events on a deadlock."""
        return topological_order(self.preferred, self.source, self.target)

    @property
    def has_deadlock(self) -> bool:
        return len(self.order) < len(self.base_ps)

    @cached_property
    def arc_start(self) -> IntArray:
        """The arcs into event e are ``arc_start[e]`` up to ``arc_start[e + 1]``."""
        return group_starts(self.target, len(self.base_ps))


def make_constraints(problem: Problem, policy: Policy) -> Constraints:
    """The arcs of an in-order policy (``machine-and-schedule`` of the design: wait, issue, start).

    The CPU (1) waits for the ends of the commands before that hold it, and of the edges that the policy names; (2) pays
    the issue; (3) the node starts when its edges and its engine let it.
    """
    n, dag = len(problem), problem.dag
    commands = len(problem.first_node)
    edge_weight = dag.duration_ps[dag.source]
    waited = _waited_edges(problem, policy)
    cost = problem.cost_ps

    arcs: list[_Arcs] = [
        _engine_order(problem),
        (dag.source[~waited], dag.target[~waited], edge_weight[~waited], problem.reason[~waited]),
    ]
    base = np.zeros(n + commands, dtype=np.int64)
    if not policy.holds_cpu:
        # Nothing holds the CPU: every issue ends at a time known beforehand.
        base[:n] = dag.release_ps
        base[n:] = dag.release_ps[problem.first_node]
    else:
        base[n:] = cost
        arcs.append((n + problem.command, np.arange(n), np.zeros(n, dtype=np.int64), _all(n, ArcKind.ISSUE)))
        waiting = problem.command[dag.target[waited]]
        arcs.append((dag.source[waited], n + waiting, edge_weight[waited] + cost[waiting], problem.reason[waited]))
        arcs += _program_order(problem, policy)
    source, target, weight, kind = _by_target(arcs, n + commands)
    lanes = np.full(n + commands, -1, dtype=np.int64)
    several = (dag.engine >= 0) & (dag.channels[dag.engine] > 1) if len(dag.channels) else np.zeros(n, dtype=np.bool_)
    lanes[:n][several] = dag.engine[several]
    return Constraints(
        nodes=n,
        base_ps=base,
        source=source,
        target=target,
        weight_ps=weight,
        kind=kind,
        lanes=lanes,
        # An issue comes before its command's first node.
        preferred=np.argsort(np.concatenate((2 * np.arange(n) + 1, 2 * problem.first_node)), kind="stable"),
    )


def _by_target(arcs: list[_Arcs], events: int) -> _Arcs:
    """All arcs, sorted by target. There are several times as many of them as of nodes: each column is put together by
    itself, its parts let go, and events are numbered no wider than they need."""
    sources, targets, weights, kinds = map(list, zip(*arcs, strict=True))
    arcs.clear()
    narrow = np.int32 if events <= np.iinfo(np.int32).max else np.int64
    target = _joined(targets, narrow)
    by_target = np.argsort(target, kind="stable")
    target = target[by_target]
    source = _joined(sources, narrow)[by_target]
    weight = _joined(weights, np.int64)[by_target]
    return source, target, weight, _joined(kinds, np.uint8)[by_target]


def _joined(parts: list[IntArray], dtype: Any) -> IntArray:
    """The parts as one column; the list is emptied."""
    whole = np.concatenate(parts, dtype=dtype, casting="same_kind")
    parts.clear()
    return whole


def _all(count: int, kind: ArcKind) -> IntArray:
    return np.full(count, kind, dtype=np.uint8)


def _waited_edges(problem: Problem, policy: Policy) -> IntArray:
    """The edges that the CPU itself waits for before it issues the command: they need no arc of their own to the
    node."""
    dag = problem.dag
    between = problem.command[dag.source] != problem.command[dag.target]
    waited: IntArray = between & np.isin(problem.reason, sorted(policy.waits_for))
    return waited


def _engine_order(problem: Problem) -> _Arcs:
    """Each node of an engine after the one before it in program order: when it is let go of with one lane, its
    start with several."""
    dag = problem.dag
    on_engine = np.flatnonzero(dag.engine >= 0)
    queue = on_engine[np.argsort(dag.engine[on_engine], kind="stable")]
    same = dag.engine[queue[:-1]] == dag.engine[queue[1:]]
    before, after = queue[:-1][same], queue[1:][same]
    weight = np.where(dag.channels[dag.engine[before]] == 1, problem.occupancy_ps[before], 0) if len(before) else before
    return before, after, weight, _all(len(before), ArcKind.ENGINE)


def _program_order(problem: Problem, policy: Policy) -> list[_Arcs]:
    """Each command's issue after the command before it on its rank: after its issue, or after all its nodes' ends."""
    n = len(problem)
    rank = problem.command_rank
    following = np.flatnonzero(rank[:-1] == rank[1:]) + 1
    cost = problem.cost_ps[following]
    after_issue = (n + following - 1, n + following, cost, _all(len(following), ArcKind.PROGRAM))
    holds = np.full(len(rank), policy.holds is not Holds.NONE)
    if policy.holds is Holds.SYNCHRONOUS:
        holds &= ~problem.asynchronous
    has_next = np.zeros(len(rank), dtype=np.bool_)
    has_next[following - 1] = True
    nodes = np.flatnonzero((holds & has_next)[problem.command])
    held = problem.command[nodes] + 1
    weight = problem.dag.duration_ps[nodes] + problem.cost_ps[held]
    return [after_issue, (nodes, n + held, weight, _all(len(nodes), ArcKind.PROGRAM))]
