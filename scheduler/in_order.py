"""The in-order policies: ``blocking``, ``lazy`` and ``queued``, as one longest-path pass over their constraints."""

from __future__ import annotations

import heapq

import attrs
import numpy as np

from ..ir.tables import IntArray
from .constraints import Constraints
from .problem import Problem

__all__ = ["Times", "run_in_order"]


@attrs.frozen(eq=False)
class Times:
    """By node, int64 ``(n,)`` in picoseconds: when its command's issue ends, and when it starts."""

    issue_ps: IntArray
    start_ps: IntArray


def run_in_order(problem: Problem, constraints: Constraints) -> Times:
    """The earliest times that the constraints allow. They must hold no deadlock.

    An engine with several lanes serves its queue in order: a node starts when a lane is free, and no earlier than the
    one before it. Every time is a maximum over a subset of what a stricter policy takes it over, and such queues are
    monotone in their arrivals (Kiefer and Wolfowitz 1955), so that a policy with fewer constraints is never slower.
    """
    time: list[int] = constraints.base_ps.tolist()
    starts: list[int] = constraints.arc_start.tolist()
    sources: list[int] = constraints.source.tolist()
    weights: list[int] = constraints.weight_ps.tolist()
    lanes: list[int] = constraints.lanes.tolist()
    duration: list[int] = problem.dag.duration_ps.tolist()
    # By engine: when each of its lanes falls free, as a heap.
    free = [[0] * int(count) for count in problem.dag.channels.tolist()]
    for event in constraints.order.tolist():
        at = time[event]
        for arc in range(starts[event], starts[event + 1]):
            other = time[sources[arc]] + weights[arc]
            if other > at:
                at = other
        engine = lanes[event]
        if engine >= 0:
            heap = free[engine]
            if heap[0] > at:
                at = heap[0]
            heapq.heapreplace(heap, at + duration[event])
        time[event] = at
    times = np.array(time, dtype=np.int64)
    n = len(problem)
    return Times(issue_ps=times[n:][problem.command], start_ps=times[:n])
