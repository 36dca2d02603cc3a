"""One pass of event-driven list scheduling (the parallel scheme; Graham 1966, Kolisch 1996, section 3), and the shift
to the left of a schedule that exists.

Whenever an engine has a free lane, the ready node of the highest priority starts on it; no engine stays idle while it
has a ready node. About one heap operation an event, whatever the graph's shape.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

import numpy as np

from ...ir.arrays.compiling import LARGEST_COMPILED, run_loop
from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["left_shifted", "list_schedule"]


def list_schedule(dag: Dag, rank: IntArray) -> IntArray:
    """Start times, int64 ``(n,)``. ``rank`` is a permutation: each node's place by priority, 0 the first.

    Every node starts as early as the nodes that were started before it allow. The edges must close no cycle.
    """
    n = len(dag)
    # Events are one integer each, time in the high bits; the low ones say what happens.
    bits = (2 * n).bit_length()
    return run_loop(
        _list_pass,
        n,
        np.zeros(n, dtype=np.int64),
        inverse_permutation(rank),
        rank,
        dag.duration_ps,
        dag.release_ps,
        dag.engine,
        dag.channels.copy(),
        *dag.successors,
        np.bincount(dag.target, minlength=n),
        bits,
        exact=dag.horizon_ps <= LARGEST_COMPILED >> bits,
    )


def _list_pass(
    start: Any,
    node_at: Any,
    place: Any,
    duration: Any,
    release: Any,
    engine: Any,
    free: Any,
    succ_start: Any,
    succ: Any,
    missing: Any,
    bits: int,
) -> Any:
    """The loop of :func:`list_schedule`; writes ``start``, ``free`` and ``missing``."""
    n = len(start)
    mask = (1 << bits) - 1
    ready = [[0 for _ in range(0)] for _ in range(len(free))]
    arrived = [0 for _ in range(n + 1)]
    touched = [0 for _ in range(len(free) + 1)]
    is_touched = [False for _ in range(len(free) + 1)]
    # An event below n: that node ends; n + node: it is released.
    events = [(release[node] << bits) | (n + node) for node in range(n) if missing[node] == 0]
    heapify(events)
    while len(events) > 0:
        now = events[0] >> bits
        changed = 0
        while len(events) > 0 and events[0] >> bits == now:
            event = heappop(events) & mask
            arrivals = 0
            if event >= n:
                arrived[0] = event - n
                arrivals = 1
            else:
                on = engine[event]
                if on >= 0:
                    free[on] += 1
                    if not is_touched[on]:
                        is_touched[on] = True
                        touched[changed] = on
                        changed += 1
                for arc in range(succ_start[event], succ_start[event + 1]):
                    after = succ[arc]
                    missing[after] -= 1
                    if missing[after] == 0:
                        if release[after] > now:
                            heappush(events, (release[after] << bits) | (n + after))
                        else:
                            arrived[arrivals] = after
                            arrivals += 1
            for number in range(arrivals):
                node = arrived[number]
                on = engine[node]
                if on < 0:
                    start[node] = now
                    heappush(events, ((now + duration[node]) << bits) | node)
                else:
                    heappush(ready[on], place[node])
                    if not is_touched[on]:
                        is_touched[on] = True
                        touched[changed] = on
                        changed += 1
        for number in range(changed):
            on = touched[number]
            is_touched[on] = False
            waiting = ready[on]
            while len(waiting) > 0 and free[on] > 0:
                node = node_at[heappop(waiting)]
                free[on] -= 1
                start[node] = now
                heappush(events, ((now + duration[node]) << bits) | node)
    return start


def left_shifted(dag: Dag, start: IntArray) -> IntArray:
    """The schedule with every node as early as its release, its edges and a free lane allow, taken in the order of
    their starts: no node starts later than before, and none could start earlier in the order that comes out. The edges
    must close no cycle."""
    shifted = _shifted_once(dag, start)
    # On several lanes a node may pass one that stood before it, and leave room for others: until nothing moves. (Times
    # only fall, so that it ends.) On one lane the order stays, and one pass is all.
    while np.any(dag.channels > 1) and not np.array_equal(shifted, start):
        start, shifted = shifted, _shifted_once(dag, shifted)
    return shifted


def _shifted_once(dag: Dag, start: IntArray) -> IntArray:
    # Of those that start at once: what takes no time, then what waited for a lane alone (it may find a better one now).
    ready = dag.release_ps.copy()
    np.maximum.at(ready, dag.target, (start + dag.duration_ps)[dag.source])
    order = np.lexsort(
        (inverse_permutation(dag.order), start + dag.duration_ps, ready == start, dag.duration_ps > 0, start)
    )
    end = run_loop(
        _left_shift_pass,
        len(dag),
        dag.release_ps.copy(),
        order,
        dag.duration_ps,
        dag.engine,
        dag.channels,
        dag.pred_start,
        dag.source,
    )
    return end - dag.duration_ps


def _left_shift_pass(
    end: Any, order: Any, duration: Any, engine: Any, channels: Any, pred_start: Any, source: Any
) -> Any:
    """The loop of :func:`left_shifted`; ``end`` comes in as the releases."""
    # By engine: when each of its lanes falls free, as a heap.
    free = [[0 for _ in range(channels[on])] for on in range(len(channels))]
    for node in order:
        at = end[node]
        for arc in range(pred_start[node], pred_start[node + 1]):
            before = end[source[arc]]
            if before > at:
                at = before
        on = engine[node]
        if on >= 0:
            lanes = free[on]
            if lanes[0] > at:
                at = lanes[0]
            heapreplace(lanes, at + duration[node])
        end[node] = at + duration[node]
    return end
