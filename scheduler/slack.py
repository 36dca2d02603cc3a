"""How much later each node could start without a later end of the whole, everything else staying in order."""

from __future__ import annotations

import numpy as np

from ..ir.tables import IntArray
from .constraints import make_constraints
from .lanes import lane_predecessors, placement_order
from .policy_registry import Policy
from .problem import Problem

__all__ = ["slack_ps"]


def slack_ps(problem: Problem, policy: Policy, start: IntArray, lane: IntArray) -> IntArray:
    """Slack by node, int64 ``(n,)`` in picoseconds: 0 on every critical chain. The order on each lane, and under the
    in-order policies that of the queues and of the CPU, is kept."""
    n, dag = len(problem), problem.dag
    if not n:
        return np.zeros(0, dtype=np.int64)
    before = lane_predecessors(dag, start, lane)
    # What takes no time holds no lane.
    after = np.flatnonzero(before >= 0)
    after = after[dag.duration_ps[before[after]] > 0]
    lane_arcs = (before[after], after, dag.duration_ps[before[after]])
    makespan = int((start + dag.duration_ps).max())
    if not policy.in_order:
        arcs = [lane_arcs, (dag.source, dag.target, dag.duration_ps[dag.source])]
        order, events = placement_order(dag, start), n
    else:
        constraints = make_constraints(problem, policy)
        arcs = [lane_arcs, (constraints.source, constraints.target, constraints.weight_ps)]
        order, events = constraints.order, len(constraints.base_ps)
    source, target, weight = (np.concatenate(column) for column in zip(*arcs, strict=True))
    by_source = np.argsort(source, kind="stable")
    starts: list[int] = np.searchsorted(source[by_source], np.arange(events + 1)).tolist()
    targets: list[int] = target[by_source].tolist()
    weights: list[int] = weight[by_source].tolist()
    latest = [makespan] * events
    latest[:n] = (makespan - dag.duration_ps).tolist()
    for event in order[::-1].tolist():
        at = latest[event]
        for arc in range(starts[event], starts[event + 1]):
            other = latest[targets[arc]] - weights[arc]
            if other < at:
                at = other
        latest[event] = at
    return np.array(latest[:n], dtype=np.int64) - start
