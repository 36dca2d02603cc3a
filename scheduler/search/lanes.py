"""Which lane of its engine each node runs on, from the times alone."""

from __future__ import annotations

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["assign_lanes", "lane_predecessors", "placement_order"]


def placement_order(dag: Dag, start: IntArray) -> IntArray:
    """All nodes by start, then by end, then so that edges go forward: what takes no time comes before what starts
    then."""
    return np.lexsort((inverse_permutation(dag.order), start + dag.duration_ps, start))


def assign_lanes(dag: Dag, start: IntArray) -> IntArray:
    """``(n,)`` int32: the lowest lane that is free at the node's start; -1 without an engine. No two nodes overlap on
    one lane, as no engine has more nodes at once than lanes (which the start times must satisfy)."""
    lane = np.where(dag.engine >= 0, 0, -1).astype(np.int32)
    several = np.flatnonzero(dag.channels > 1)
    if not len(several):
        return lane
    order = placement_order(dag, start)
    order = order[np.isin(dag.engine[order], several)]
    free = {int(engine): [0] * int(dag.channels[engine]) for engine in several}
    rows = zip(*(c[order].tolist() for c in (dag.engine, start, dag.duration_ps)), strict=True)
    for node, (engine, at, duration) in zip(order.tolist(), rows, strict=True):
        ends = free[engine]
        chosen = next(number for number, end in enumerate(ends) if end <= at)
        ends[chosen] = at + duration
        lane[node] = chosen
    return lane


def lane_predecessors(dag: Dag, start: IntArray, lane: IntArray) -> IntArray:
    """``(n,)``: the node before on the same lane, -1 for the first of a lane and for what has no engine."""
    order = placement_order(dag, start)
    order = order[dag.engine[order] >= 0]
    order = order[np.lexsort((np.arange(len(order)), lane[order], dag.engine[order]))]
    before = np.full(len(dag), -1, dtype=np.int64)
    same = (dag.engine[order][1:] == dag.engine[order][:-1]) & (lane[order][1:] == lane[order][:-1])
    before[order[1:][same]] = order[:-1][same]
    return before
