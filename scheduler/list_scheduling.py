"""One pass of event-driven list scheduling (the parallel scheme; Graham 1966, Kolisch 1996, section 3), and the shift
to the left of a schedule that exists.

Whenever an engine has a free lane, the ready node of the highest priority starts on it; no engine stays idle while it
has a ready node. About one heap operation an event, whatever the graph's shape.
"""

from __future__ import annotations

import heapq

import numpy as np

from ..ir.tables import IntArray
from .dag import Dag

__all__ = ["left_shifted", "list_schedule"]


def list_schedule(dag: Dag, rank: IntArray) -> IntArray:
    """Start times, int64 ``(n,)``. ``rank`` is a permutation: each node's place by priority, 0 the first.

    Every node starts as early as the nodes that were started before it allow. The edges must close no cycle.
    """
    n = len(dag)
    node_at = np.empty(n, dtype=np.int64)
    node_at[rank] = np.arange(n)
    nodes: list[int] = node_at.tolist()
    places: list[int] = rank.tolist()
    duration: list[int] = dag.duration_ps.tolist()
    release: list[int] = dag.release_ps.tolist()
    engine: list[int] = dag.engine.tolist()
    free: list[int] = dag.channels.tolist()
    succ_start, succ = (column.tolist() for column in dag.successors)
    missing: list[int] = np.bincount(dag.target, minlength=n).tolist()
    ready: list[list[int]] = [[] for _ in free]
    start = [0] * n
    # Events are (time, number): a node below n ends, n + node is released. One integer each, time in the high bits.
    shift = (2 * n).bit_length()
    mask = (1 << shift) - 1
    events = [(release[node] << shift) | (n + node) for node in range(n) if not missing[node]]
    heapq.heapify(events)
    push, pop = heapq.heappush, heapq.heappop
    while events:
        now = events[0] >> shift
        touched: list[int] = []
        while events and events[0] >> shift == now:
            event = pop(events) & mask
            if event >= n:
                arrived = [event - n]
            else:
                if engine[event] >= 0:
                    free[engine[event]] += 1
                    touched.append(engine[event])
                arrived = []
                for arc in range(succ_start[event], succ_start[event + 1]):
                    after = succ[arc]
                    missing[after] -= 1
                    if not missing[after]:
                        if release[after] > now:
                            push(events, (release[after] << shift) | (n + after))
                        else:
                            arrived.append(after)
            for node in arrived:
                if engine[node] < 0:
                    start[node] = now
                    push(events, ((now + duration[node]) << shift) | node)
                else:
                    push(ready[engine[node]], places[node])
                    touched.append(engine[node])
        for on in touched:
            waiting = ready[on]
            while waiting and free[on]:
                node = nodes[pop(waiting)]
                free[on] -= 1
                start[node] = now
                push(events, ((now + duration[node]) << shift) | node)
    return np.array(start, dtype=np.int64)


def left_shifted(dag: Dag, start: IntArray) -> IntArray:
    """The schedule with every node as early as its release, its edges and a free lane allow, taken in the order of
    their starts: no node starts later than before. The edges must close no cycle."""
    place = np.empty(len(dag), dtype=np.int64)
    place[dag.order] = np.arange(len(dag))
    end: list[int] = dag.release_ps.tolist()
    duration: list[int] = dag.duration_ps.tolist()
    engine: list[int] = dag.engine.tolist()
    starts: list[int] = dag.pred_start.tolist()
    sources: list[int] = dag.source.tolist()
    # By engine: when each of its lanes falls free, as a heap.
    free = [[0] * int(count) for count in dag.channels.tolist()]
    for node in np.lexsort((place, start + dag.duration_ps, start)).tolist():
        at = end[node]
        for arc in range(starts[node], starts[node + 1]):
            before = end[sources[arc]]
            if before > at:
                at = before
        if engine[node] >= 0:
            heap = free[engine[node]]
            if heap[0] > at:
                at = heap[0]
            heapq.heapreplace(heap, at + duration[node])
        end[node] = at + duration[node]
    return np.array(end, dtype=np.int64) - dag.duration_ps
