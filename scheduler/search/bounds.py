"""Lower bounds on the makespan of a problem on plain arrays. No schedule is looked at.

Heads are the earliest starts, tails what must follow a node's end at the least; both count the longest paths and what
engines have to do before or after (:mod:`.heads`).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...ir.arrays.compiling import number_loop
from ...ir.arrays.permutations import group_starts
from ...ir.tables import IntArray
from .dag import Dag
from .heads import HeadsAndTails, heads_and_tails

__all__ = ["best_bound_ps", "engine_bounds", "loaded_path_ps", "preemptive_one_machine"]


def best_bound_ps(dag: Dag) -> int:
    """The largest of the same bounds, of a problem without names. The edges must close no cycle."""
    known = heads_and_tails(dag)
    return max(loaded_path_ps(dag, known), *(bound for _, bound in engine_bounds(dag, known)), 0)


def loaded_path_ps(dag: Dag, known: HeadsAndTails) -> int:
    """The longest path on which a node also waits for what its engines have to do before."""
    return int((known.head_ps + dag.duration_ps + known.tail_ps).max(initial=0))


def engine_bounds(dag: Dag, known: HeadsAndTails) -> Iterator[tuple[int, int]]:
    """Each engine that has something to do, and its bound."""
    by_engine = np.argsort(dag.engine, kind="stable")
    borders = group_starts(dag.engine[by_engine], len(dag.channels))
    for engine, channels in enumerate(dag.channels.tolist()):
        nodes = by_engine[borders[engine] : borders[engine + 1]]
        if not len(nodes):
            continue
        head, load, tail = known.head_ps[nodes], dag.duration_ps[nodes], known.tail_ps[nodes]
        if channels == 1:
            yield engine, preemptive_one_machine(head, load, tail, among=len(dag))
        else:
            yield engine, int(head.min()) + -(-int(load.sum()) // channels) + int(tail.min())


def preemptive_one_machine(head: IntArray, load: IntArray, tail: IntArray, *, among: int = 0) -> int:
    """The makespan of the optimal preemptive schedule of one machine with heads and tails: Jackson's preemptive
    schedule, the available job of the longest tail at any time (Carlier 1982, section 2). O(n log n).

    ``among``: how many nodes the graph has whose engine this is; it decides, as elsewhere, on whether the loop is
    compiled: what the start-up costs is paid once for all of the graph's loops."""
    order = np.lexsort((np.arange(len(head)), head))
    return number_loop(_jackson_pass, max(among, len(head)), head[order], load[order], tail[order])


def _jackson_pass(heads: Any, loads: Any, tails: Any) -> int:
    """The loop of :func:`preemptive_one_machine`, on jobs sorted by head."""
    # Jobs in work, as (-tail, what is left): only how much work of each tail is left matters.
    ready = [(0, 0) for _ in range(0)]
    now = 0
    longest = 0
    count = len(heads)
    for place in range(count):
        if len(ready) == 0 and heads[place] > now:
            now = heads[place]
        heappush(ready, (-tails[place], loads[place]))
        last = place + 1 == count
        while len(ready) > 0 and (last or now < heads[place + 1]):
            minus_tail, left = heappop(ready)
            if not last and now + left > heads[place + 1]:
                heappush(ready, (minus_tail, left - (heads[place + 1] - now)))
                now = heads[place + 1]
            else:
                now += left
                longest = max(longest, now - minus_tail)
    return longest
