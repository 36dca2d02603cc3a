"""A scheduling problem on plain arrays: nodes with a duration and an engine, and edges between them.

What loops over nodes and edges is written as :mod:`kernscope.ir.arrays.compiling` describes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import attrs
import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.arrays.permutations import group_starts, inverse_permutation
from ...ir.tables import IntArray

__all__ = ["Dag", "DagColumns", "find_cycle", "longest_from_start", "longest_to_end", "topological_order"]


class DagColumns(NamedTuple):
    """What a loop reads of a problem, by node and by edge (see :class:`Dag`)."""

    duration: IntArray
    release: IntArray
    engine: IntArray
    pred_start: IntArray
    source: IntArray
    succ_start: IntArray
    succ: IntArray


@attrs.frozen(eq=False, slots=False)
class Dag:
    """``duration_ps`` ``(n,)`` int64; ``engine`` ``(n,)``: which engine works on the node, -1 for none; ``channels``
    ``(E,)``: how many nodes an engine works on at once; ``source`` and ``target`` ``(m,)``: the edges, sorted by
    target, then by source; ``release_ps`` ``(n,)``: no node starts before."""

    duration_ps: IntArray
    engine: IntArray
    channels: IntArray
    source: IntArray
    target: IntArray
    release_ps: IntArray

    def __len__(self) -> int:
        return len(self.duration_ps)

    @cached_property
    def pred_start(self) -> IntArray:
        """``(n + 1,)``: the edges into node i are ``pred_start[i]`` up to ``pred_start[i + 1]``."""
        return group_starts(self.target, len(self))

    @cached_property
    def successors(self) -> tuple[IntArray, IntArray]:
        """``(n + 1,)`` starts, and the targets of the edges sorted by source, then by target."""
        order = np.argsort(self.source, kind="stable")
        return group_starts(self.source[order], len(self)), self.target[order]

    @property
    def columns(self) -> DagColumns:
        return DagColumns(
            self.duration_ps, self.release_ps, self.engine, self.pred_start, self.source, *self.successors
        )

    @cached_property
    def order(self) -> IntArray:
        """Nodes so that every edge goes forward; shorter than ``(n,)`` where the edges close a cycle: then without the
        nodes on cycles and those behind them."""
        return topological_order(np.arange(len(self)), self.source, self.target)

    @cached_property
    def has_cycle(self) -> bool:
        return len(self.order) < len(self)

    @cached_property
    def horizon_ps(self) -> int:
        """No schedule without needless waits is longer: the last release and all durations in a row."""
        return int(self.release_ps.max(initial=0)) + int(self.duration_ps.sum(dtype=object) if len(self) else 0)

    def reversed(self) -> Dag:
        """The same problem with time running backwards, without releases."""
        order = np.lexsort((self.target, self.source))
        return attrs.evolve(
            self, source=self.target[order], target=self.source[order], release_ps=np.zeros_like(self.release_ps)
        )


def topological_order(preferred: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """An order in which every arc goes forward: ``preferred`` (a permutation) where that does it, else one of Kahn's
    (1962), without what lies on cycles or behind them. ``target`` is sorted or not; deterministic either way."""
    count = len(preferred)
    place = inverse_permutation(preferred)
    if bool(np.all(place[source] < place[target])):
        return preferred
    by_source = np.argsort(source, kind="stable")
    order = run_loop(
        _kahn_pass,
        count,
        np.empty(count + 1, dtype=np.int64),
        preferred,
        group_starts(source[by_source], count),
        target[by_source],
        np.bincount(target, minlength=count),
    )
    return order[1 : 1 + int(order[0])]


def _kahn_pass(order: Any, preferred: Any, succ_start: Any, succ: Any, missing: Any) -> Any:
    """The loop of :func:`topological_order`: how many nodes there are in the order, then these."""
    count = len(preferred)
    ready = [0 for _ in range(count)]
    waiting = 0
    for number in range(count - 1, -1, -1):
        if missing[preferred[number]] == 0:
            ready[waiting] = preferred[number]
            waiting += 1
    placed = 0
    while waiting > 0:
        waiting -= 1
        node = ready[waiting]
        placed += 1
        order[placed] = node
        for arc in range(succ_start[node], succ_start[node + 1]):
            after = succ[arc]
            missing[after] -= 1
            if missing[after] == 0:
                ready[waiting] = after
                waiting += 1
    order[0] = placed
    return order


def find_cycle(count: int, order: IntArray, source: IntArray, target: IntArray) -> list[int]:
    """One cycle of arcs among what a topological order left out: rows of the arc arrays, each arc's source being the
    next arc's target. It is the one met first when walking back from the smallest number left out, always along the
    first arc from something that was left out as well."""
    left = np.ones(count, dtype=np.bool_)
    left[order] = False
    inside = np.flatnonzero(left[source] & left[target])
    inside = inside[np.argsort(target[inside], kind="stable")]
    targets, first = np.unique(target[inside], return_index=True)
    arc_into = dict(zip(targets.tolist(), inside[first].tolist(), strict=True))
    at = min(arc_into)
    seen: dict[int, int] = {}
    walk: list[int] = []
    while at not in seen:
        seen[at] = len(walk)
        walk.append(arc_into[at])
        at = int(source[walk[-1]])
    return walk[seen[at] :]


def longest_to_end(dag: Dag, weight: IntArray | None = None) -> IntArray:
    """For each node the length of the longest path from its start to the end of all, its own duration included, int64
    ``(n,)``; of other weights where given. The edges must close no cycle."""
    length = (dag.duration_ps if weight is None else weight).copy()
    return run_loop(_to_end_pass, len(dag), length, dag.order[::-1], *dag.successors)


def _to_end_pass(length: Any, order: Any, succ_start: Any, succ: Any) -> Any:
    for node in order:
        longest = 0
        for arc in range(succ_start[node], succ_start[node + 1]):
            after = length[succ[arc]]
            if after > longest:
                longest = after
        length[node] += longest
    return length


def longest_from_start(dag: Dag) -> IntArray:
    """For each node the earliest time at which it could start if engines were endless: its release, and the longest
    path to it, int64 ``(n,)``. The edges must close no cycle."""
    return run_loop(
        _from_start_pass, len(dag), dag.release_ps.copy(), dag.order, dag.duration_ps, dag.pred_start, dag.source
    )


def _from_start_pass(head: Any, order: Any, duration: Any, pred_start: Any, source: Any) -> Any:
    for node in order:
        earliest = head[node]
        for arc in range(pred_start[node], pred_start[node + 1]):
            before = source[arc]
            end = head[before] + duration[before]
            if end > earliest:
                earliest = end
        head[node] = earliest
    return head
