"""Loads that the ``lazy`` policy issues later than they could start, and that somebody then waits for."""

from __future__ import annotations

import heapq

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Reason
from ...scheduler.policy.in_order import Times
from ...scheduler.policy.problem import Problem
from .lazy_messages import LazyRun, cpu_free_ps

__all__ = ["LateLoads", "find_late_loads"]


@attrs.frozen(eq=False)
class LateLoads:
    """A row each, by node: ``node`` the load; ``late_ps`` how much later it starts than its edges and its engine would
    have let it; ``reader`` the node that the CPU waits with, and ``waited_ps`` how long for this load; ``before`` the
    first node (no marker) that is issued no earlier than the load could have started: perhaps the load itself."""

    node: IntArray
    late_ps: IntArray
    reader: IntArray
    waited_ps: IntArray
    before: IntArray

    @property
    def lost_ps(self) -> IntArray:
        """What an earlier issue could spare at most."""
        return np.minimum(self.late_ps, self.waited_ps)


def find_late_loads(graph: Graph, run: LazyRun) -> LateLoads:
    """All loads outside of composites that the CPU alone held back, and that hold the CPU up in turn."""
    problem, times = run.problem, run.times
    nothing = np.zeros(0, dtype=np.int64)
    if times is None:
        return LateLoads(*(nothing,) * 5)
    dag = problem.dag
    end = times.start_ps + dag.duration_ps
    first = np.diff(problem.command, prepend=-1) > 0
    single = first & np.append(first[1:], True)
    loads = np.flatnonzero(OPERATIONS.loads[graph.nodes.op] & single)
    ready = _ready_ps(problem, times, end)
    # Without an edge to wait for, the issue itself still takes its time.
    ready = np.maximum(ready, problem.cost_ps[problem.command])
    if graph.grid:  # no earlier than its program, whose author cannot put it there
        ready = np.maximum(ready, times.issue_ps[_program_starts(graph)])
    late = (times.start_ps - ready)[loads]
    held = (late > 0) & (times.start_ps[loads] == times.issue_ps[loads])
    loads, late = loads[held], late[held]
    reader, waited = _readers(problem, times, end)
    kept = waited[loads] > 0
    loads, late = loads[kept], late[kept]
    return LateLoads(
        node=loads,
        late_ps=late,
        reader=reader[loads],
        waited_ps=waited[loads],
        before=_issued_after(graph, problem, times, loads, ready[loads]),
    )


def _program_starts(graph: Graph) -> IntArray:
    """By node the marker that opens the scope of its program."""
    scopes = graph.scopes
    outermost = (scopes.parent >= 0) & (np.append(scopes.parent, 0)[scopes.parent] < 0)
    opens = np.zeros(int(graph.program_of_scope.max(initial=0)) + 1, dtype=np.int64)
    opens[graph.program_of_scope[outermost]] = scopes.enter[outermost]
    starts: IntArray = opens[graph.program]
    return starts


def _ready_ps(problem: Problem, times: Times, end: IntArray) -> IntArray:
    """By node when its edges have ended and a lane of its engine is free for it, in the order of its queue."""
    dag = problem.dag
    ready = np.zeros(len(problem), dtype=np.int64)
    np.maximum.at(ready, dag.target, end[dag.source])
    on_engine = np.flatnonzero(dag.engine >= 0)
    queue = on_engine[np.argsort(dag.engine[on_engine], kind="stable")]
    engine = dag.engine[queue]
    alone = dag.channels[engine] == 1
    follows = np.flatnonzero((engine[1:] == engine[:-1]) & alone[1:]) + 1
    ready[queue[follows]] = np.maximum(ready[queue[follows]], end[queue[follows - 1]])
    free: dict[int, list[int]] = {}
    for node, number in zip(queue[~alone].tolist(), engine[~alone].tolist(), strict=True):
        lanes = free.setdefault(number, [0] * int(dag.channels[number]))
        ready[node] = max(int(ready[node]), lanes[0])
        heapq.heapreplace(lanes, int(end[node]))
    return ready


def _readers(problem: Problem, times: Times, end: IntArray) -> tuple[IntArray, IntArray]:
    """By node the reader whose command the CPU holds back the longest for it, and for how long; -1 and 0: none."""
    dag = problem.dag
    data = np.flatnonzero(
        (problem.reason == Reason.DATA) & (problem.command[dag.source] != problem.command[dag.target])
    )
    free = cpu_free_ps(problem, times.issue_ps, end)
    source, target = dag.source[data], dag.target[data]
    wait = end[source] - free[problem.command[target]]
    order = np.lexsort((target, -wait, source))
    nodes, first = np.unique(source[order], return_index=True)
    reader = np.full(len(problem), -1, dtype=np.int64)
    waited = np.zeros(len(problem), dtype=np.int64)
    reader[nodes] = target[order[first]]
    waited[nodes] = np.maximum(wait[order[first]], 0)
    return reader, waited


def _issued_after(graph: Graph, problem: Problem, times: Times, loads: IntArray, ready: IntArray) -> IntArray:
    """By load the first node of its rank whose command's issue does not end before ``ready``. (Along a rank, issues
    never go back in time.)"""
    found = np.empty(len(loads), dtype=np.int64)
    issue = times.issue_ps[problem.first_node]
    bounds = np.searchsorted(problem.command_rank, np.arange(int(problem.command_rank.max(initial=0)) + 2))
    # By command the first one from there on that is no scope marker.
    numbers = np.arange(len(issue))
    real = ~OPERATIONS.markers[graph.nodes.op[problem.first_node]]
    onward = np.minimum.accumulate(np.where(real, numbers, len(issue))[::-1])[::-1]
    rank = problem.command_rank[problem.command[loads]]
    for number in np.unique(rank).tolist():
        here = np.flatnonzero(rank == number)
        start, stop = int(bounds[number]), int(bounds[number + 1])
        place = start + np.searchsorted(issue[start:stop], ready[here])
        found[here] = problem.first_node[onward[np.minimum(place, problem.command[loads[here]])]]
    return found
