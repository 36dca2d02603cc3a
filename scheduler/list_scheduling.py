"""One pass of event-driven list scheduling (the parallel scheme; Graham 1966, Kolisch 1996, section 3).

Whenever an engine has a free lane, the ready node of the highest priority starts on it; no engine stays idle while it
has a ready node. About one heap operation an event, whatever the graph's shape.
"""

from __future__ import annotations

import heapq

import numpy as np

from ..ir.tables import IntArray
from .dag import Dag

__all__ = ["list_schedule"]


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
