"""Lower bounds on every policy's makespan. No schedule is looked at.

Heads are the earliest starts (issue costs and longest paths), tails what must follow a node's end at the least. Under
every policy a command's issue ends no earlier than the sum of the issue costs up to it: the release that heads start
from.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from types import MappingProxyType

import attrs
import numpy as np

from ..ir.tables import IntArray
from .dag import longest_from_start, longest_to_end
from .problem import Problem

__all__ = ["LONGEST_PATH", "Bounds", "lower_bounds", "preemptive_one_machine"]

LONGEST_PATH = "longest path"


@attrs.frozen
class Bounds:
    """Lower bounds in picoseconds by name: ``"longest path"``, and each busy engine's (``"gemm"``, on several ranks
    ``"rank 1 gemm"``); under the policy ``optimal`` also what its solver proved, ``"solver"``."""

    each: Mapping[str, int]

    def with_bound(self, name: str, bound_ps: int) -> Bounds:
        """These bounds and one more."""
        return Bounds(MappingProxyType({**self.each, name: bound_ps}))

    @property
    def best_ps(self) -> int:
        """The largest of them: no schedule is shorter."""
        return max(self.each.values())

    @property
    def best(self) -> str:
        """The name of the largest, the first of equal ones."""
        return max(self.each, key=lambda name: self.each[name])


def lower_bounds(problem: Problem) -> Bounds:
    """All bounds of a problem, the longest path first, then the engines in their order. The edges must close no
    cycle."""
    dag = problem.dag
    head = longest_from_start(dag)
    to_end = longest_to_end(dag)
    each = {LONGEST_PATH: int((head + to_end).max()) if len(dag) else 0}
    several = len({engine.rank for engine in problem.engines}) > 1
    by_engine = np.argsort(dag.engine, kind="stable")
    borders = np.searchsorted(dag.engine[by_engine], np.arange(len(problem.engines) + 1))
    for number, engine in enumerate(problem.engines):
        nodes = by_engine[borders[number] : borders[number + 1]]
        if not len(nodes):
            continue
        load = dag.duration_ps[nodes]
        tail = to_end[nodes] - load
        if engine.channels == 1:
            bound = preemptive_one_machine(head[nodes], load, tail)
        else:
            bound = int(head[nodes].min()) + -(-int(load.sum()) // engine.channels) + int(tail.min())
        each[f"rank {engine.rank} {engine.name}" if several else engine.name] = bound
    return Bounds(MappingProxyType(each))


def preemptive_one_machine(head: IntArray, load: IntArray, tail: IntArray) -> int:
    """The makespan of the optimal preemptive schedule of one machine with heads and tails: Jackson's preemptive
    schedule, the available job of the longest tail at any time (Carlier 1982, section 2). O(n log n)."""
    order = np.lexsort((np.arange(len(head)), head))
    heads: list[int] = head[order].tolist()
    loads: list[int] = load[order].tolist()
    tails: list[int] = tail[order].tolist()
    # Jobs in work, as (-tail, what is left): only how much work of each tail is left matters.
    ready: list[tuple[int, int]] = []
    now, longest, count = 0, 0, len(heads)
    for place, arrival in enumerate(heads):
        if not ready:
            now = max(now, arrival)
        heapq.heappush(ready, (-tails[place], loads[place]))
        horizon = heads[place + 1] if place + 1 < count else None
        while ready and (horizon is None or now < horizon):
            minus_tail, left = heapq.heappop(ready)
            if horizon is not None and now + left > horizon:
                heapq.heappush(ready, (minus_tail, left - (horizon - now)))
                now = horizon
            else:
                now += left
                longest = max(longest, now - minus_tail)
    return longest
