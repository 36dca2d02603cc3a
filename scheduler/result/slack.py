"""How much later each node could start without a later end of the whole, everything else staying in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.arrays.permutations import group_starts
from ...ir.tables import IntArray
from ..policy.constraints import make_constraints
from ..policy.problem import Problem
from ..policy.registry import Policy
from ..search.lanes import lane_predecessors, placement_order

__all__ = ["slack_ps"]


def slack_ps(problem: Problem, policy: Policy, start: IntArray, lane: IntArray) -> IntArray:
    """Slack by node, int64 ``(n,)`` in picoseconds: 0 on every critical chain. The order on each lane, and under the
    in-order policies that of the queues and of the CPU, is kept."""
    n, dag = len(problem), problem.dag
    if not n:
        return np.zeros(0, dtype=np.int64)
    held = problem.occupancy_ps
    before = lane_predecessors(problem.on_engines, start, lane)
    # What takes no time holds no lane.
    after = np.flatnonzero(before >= 0)
    after = after[held[before[after]] > 0]
    lane_arcs = (before[after], after, held[before[after]])
    makespan = int((start + dag.duration_ps).max())
    if not policy.in_order:
        arcs = [lane_arcs, (dag.source, dag.target, dag.duration_ps[dag.source])]
        order, events = placement_order(problem.on_engines, start), n
    else:
        constraints = make_constraints(problem, policy)
        arcs = [lane_arcs, (constraints.source, constraints.target, constraints.weight_ps)]
        order, events = constraints.order, len(constraints.base_ps)
    source, target, weight = (np.concatenate(column) for column in zip(*arcs, strict=True))
    by_source = np.argsort(source, kind="stable")
    first = group_starts(source[by_source], events)
    latest: IntArray = np.full(events, makespan, dtype=np.int64)
    latest[:n] = makespan - dag.duration_ps
    latest = run_loop(_latest_starts, n, order, first, target[by_source], weight[by_source], latest)
    return latest[:n] - start


def _latest_starts(order: Any, first: Any, target: Any, weight: Any, latest: Any) -> Any:
    """Back from the last event: how late each may be, so that none behind it is later than it may be."""
    for at in range(len(order) - 1, -1, -1):
        event = order[at]
        bound = latest[event]
        for arc in range(first[event], first[event + 1]):
            other = latest[target[arc]] - weight[arc]
            if other < bound:
                bound = other
        latest[event] = bound
    return latest
