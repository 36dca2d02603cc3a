"""What each node waited for last, read off a schedule's times."""

from __future__ import annotations

import enum

import attrs
import numpy as np

from ...ir.tables import IntArray, Reason
from ..policy.constraints import ArcKind, make_constraints
from ..policy.problem import Problem
from ..policy.registry import Policy
from ..search.lanes import lane_predecessors

__all__ = ["Cause", "CauseColumns", "WaitedFor", "find_causes"]


class Cause(enum.StrEnum):
    """What kind of thing a node waited for last, in the order in which ties are decided."""

    EDGE = "edge"
    ENGINE = "engine"
    ISSUE = "issue"
    PROGRAM = "program order"
    NOTHING = "nothing"


@attrs.frozen
class WaitedFor:
    """What a node waited for last, and the node behind it.

    ``edge``: the end of ``node``, for ``reason``. ``engine``: that ``node`` let go of its lane (or, on an engine with
    several lanes that serves in order, its start). ``issue``: the CPU, which was issuing ever since ``node`` ended
    (None: since the start). ``program order``: the CPU, which waited for the end of ``node``.
    """

    cause: Cause
    node: int | None
    reason: str | None = None


@attrs.frozen(eq=False)
class CauseColumns:
    """By node: ``cause`` (a :class:`Reason` for an edge, else an :class:`ArcKind`, else ``NOTHING``) and ``node`` (-1:
    none). A node that starts at 0 waited for nothing; so did one that starts later than it had to."""

    cause: IntArray
    node: IntArray

    NOTHING = 255

    def __getitem__(self, index: int) -> WaitedFor | None:
        """What a node waited for last; None where it did not wait."""
        cause, node = int(self.cause[index]), int(self.node[index])
        behind = node if node >= 0 else None
        if cause == self.NOTHING:
            return None
        if cause < ArcKind.ENGINE:
            return WaitedFor(Cause.EDGE, behind, Reason(cause).label)
        return WaitedFor(_OTHERS[cause], behind)

    def __len__(self) -> int:
        return len(self.cause)


_OTHERS = {int(ArcKind.ENGINE): Cause.ENGINE, int(ArcKind.ISSUE): Cause.ISSUE, int(ArcKind.PROGRAM): Cause.PROGRAM}


def find_causes(problem: Problem, policy: Policy, issue: IntArray, start: IntArray, lane: IntArray) -> CauseColumns:
    """The causes of all nodes: an edge before the engine before the issue before program order; then the smallest
    id."""
    n, dag = len(problem), problem.dag
    end = start + dag.duration_ps
    cause = np.full(n, CauseColumns.NOTHING, dtype=np.uint8)
    node = np.full(n, -1, dtype=np.int64)

    def claim(which: IntArray, kind: IntArray | int, behind: IntArray) -> None:
        open_ = cause[which] == CauseColumns.NOTHING
        node[which[open_]] = behind[open_]
        cause[which[open_]] = kind[open_] if isinstance(kind, np.ndarray) else kind

    tight = np.flatnonzero((end[dag.source] == start[dag.target]) & (start[dag.target] > 0))
    # Edges are sorted by target, then by source: the first of each target has the smallest id.
    targets, first = np.unique(dag.target[tight], return_index=True)
    claim(targets, problem.reason[tight[first]], dag.source[tight[first]])

    before = lane_predecessors(problem.on_engines, start, lane)
    free = start + problem.occupancy_ps
    held = np.flatnonzero((before >= 0) & (start > 0))
    held = held[free[before[held]] == start[held]]
    claim(held, ArcKind.ENGINE, before[held])
    if policy.in_order:
        following, previous = _queued_behind(problem)
        late = (start[previous] == start[following]) & (start[following] > 0)
        claim(following[late], ArcKind.ENGINE, previous[late])

    on_time = np.flatnonzero((start == issue) & (start > 0))
    holder = _held_cpu(problem, policy, issue, end)[problem.command[on_time]]
    since = np.where(holder >= 0, end[holder], 0)
    claim(on_time, np.where(since == start[on_time], ArcKind.PROGRAM, ArcKind.ISSUE).astype(np.uint8), holder)
    return CauseColumns(cause, node)


def _queued_behind(problem: Problem) -> tuple[IntArray, IntArray]:
    """Nodes on engines with several lanes, each with the one before it in its engine's queue."""
    dag = problem.dag
    nodes = np.flatnonzero(dag.engine >= 0)
    nodes = nodes[dag.channels[dag.engine[nodes]] > 1] if len(nodes) else nodes
    queue = nodes[np.argsort(dag.engine[nodes], kind="stable")]
    same = dag.engine[queue[1:]] == dag.engine[queue[:-1]]
    return queue[1:][same], queue[:-1][same]


def _held_cpu(problem: Problem, policy: Policy, issue: IntArray, end: IntArray) -> IntArray:
    """By command: the node whose end the CPU waited for last, before it or before one of the commands it issued without
    a wait up to this one; -1: none."""
    commands = len(problem.first_node)
    holder = np.full(commands, -1, dtype=np.int64)
    if not policy.holds_cpu:
        return holder
    constraints = make_constraints(problem, policy)
    n = constraints.nodes
    arcs = np.flatnonzero((constraints.target >= n) & (constraints.source < n))
    command = constraints.target[arcs] - n
    at = issue[problem.first_node[command]]
    tight = (end[constraints.source[arcs]] + problem.cost_ps[command] == at) & (end[constraints.source[arcs]] > 0)
    arcs, command = arcs[tight], command[tight]
    by_id = np.lexsort((constraints.source[arcs], command))
    arcs, command = arcs[by_id], command[by_id]
    waiting, first = np.unique(command, return_index=True)
    holder[waiting] = constraints.source[arcs[first]]
    # A command without a wait of its own goes on from the one before it on its rank.
    own = np.zeros(commands, dtype=np.bool_)
    own[waiting] = True
    own[:1] = True
    own[1:] |= problem.command_rank[1:] != problem.command_rank[:-1]
    return holder[np.maximum.accumulate(np.where(own, np.arange(commands), 0))] if commands else holder
