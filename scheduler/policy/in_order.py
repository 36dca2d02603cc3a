"""The in-order policies: ``blocking``, ``lazy`` and ``queued``, as one longest-path pass over their constraints."""

from __future__ import annotations

from heapq import heapreplace
from typing import Any

import attrs
import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.tables import IntArray
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
    n = len(problem)
    occupancy = np.zeros(len(constraints.base_ps), dtype=np.int64)
    occupancy[:n] = problem.occupancy_ps
    times = run_loop(
        _in_order_pass,
        n,
        constraints.base_ps.copy(),
        constraints.order,
        occupancy,
        constraints.lanes,
        problem.dag.channels,
        constraints.arc_start,
        constraints.source,
        constraints.weight_ps,
    )
    return Times(issue_ps=times[n:][problem.command], start_ps=times[:n])


def _in_order_pass(
    time: Any, order: Any, occupancy: Any, lanes: Any, channels: Any, arc_start: Any, source: Any, weight: Any
) -> Any:
    """The loop of :func:`run_in_order`; ``time`` comes in as each event's earliest time."""
    # By engine: when each of its lanes falls free, as a heap.
    free = [[0 for _ in range(channels[on])] for on in range(len(channels))]
    for event in order:
        at = time[event]
        for arc in range(arc_start[event], arc_start[event + 1]):
            other = time[source[arc]] + weight[arc]
            if other > at:
                at = other
        on = lanes[event]
        if on >= 0:
            ends = free[on]
            if ends[0] > at:
                at = ends[0]
            heapreplace(ends, at + occupancy[event])
        time[event] = at
    return time
