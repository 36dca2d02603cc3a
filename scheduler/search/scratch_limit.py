"""List scheduling under a limit of scratch: what does not fit has to wait.

A node's result holds bytes from the node's start until the last of its readers (the targets of its edges) has ended, or
the node itself where nothing reads it. Such a pass can come to a dead end: everything that is ready waits for bytes
that only something else could free. Taking the nodes in one order, each no earlier than the one before, meets none
where running them one after another would fit.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import attrs
import numpy as np

from ...ir.arrays.compiling import LARGEST_COMPILED, run_loop
from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["ScratchNeed", "in_order", "need_in_order", "within_scratch"]

#: How many ready nodes of an engine are looked at for one that fits: a bound on the work of a start, chosen by hand.
_LOOK = 8


@attrs.frozen
class ScratchNeed:
    """``nbytes``: what the nodes in an order, one after another, hold at most, and that while ``node`` runs."""

    nbytes: int
    node: int


def within_scratch(dag: Dag, rank: IntArray, nbytes: IntArray, limit: int) -> IntArray | None:
    """Start times by priority (``rank``: a permutation, 0 the first), int64 ``(n,)``; None at a dead end."""
    engines = len(dag.channels)
    queue = np.where(dag.engine >= 0, dag.engine, engines)
    return _pass(dag, rank, queue, nbytes, limit, engines + 1, strict=False)


def in_order(dag: Dag, order: IntArray, nbytes: IntArray, limit: int) -> IntArray | None:
    """Start times of the nodes in an ``order`` in which every edge goes forward, each no earlier than the one before;
    None exactly where one after another they do not fit."""
    return _pass(dag, inverse_permutation(order), np.zeros(len(dag), dtype=np.int64), nbytes, limit, 1, strict=True)


def need_in_order(dag: Dag, order: IntArray, nbytes: IntArray) -> ScratchNeed:
    """The scratch that makes :func:`in_order` possible."""
    n = len(dag)
    place = inverse_permutation(order)
    last = place.copy()
    np.maximum.at(last, dag.source, place[dag.target])
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, place, nbytes)
    np.add.at(change, last + 1, -nbytes)
    held = np.cumsum(change)[:n]
    worst = int(np.argmax(held))
    return ScratchNeed(int(held[worst]), int(order[worst]))


def _pass(
    dag: Dag, rank: IntArray, queue: IntArray, nbytes: IntArray, limit: int, queues: int, *, strict: bool
) -> IntArray | None:
    n = len(dag)
    bits = (2 * n).bit_length()
    start = run_loop(
        _scratch_pass,
        n,
        np.full(n, -1, dtype=np.int64),
        dag.columns,
        _Turns(inverse_permutation(rank), rank, queue),
        _Left(np.bincount(dag.target, minlength=n), np.bincount(dag.source, minlength=n), dag.channels.copy()),
        nbytes,
        limit,
        queues,
        int(strict),
        bits,
        exact=dag.horizon_ps <= LARGEST_COMPILED >> bits,
    )
    return None if np.any(start < 0) else start


class _Turns(NamedTuple):
    """Whose turn it is: the node of each place by priority, and by node its place and the queue that it waits in."""

    node_at: Any
    place: Any
    queue: Any


class _Left(NamedTuple):
    """What is left, written to: by node the predecessors and the readers that have not ended, by engine the lanes."""

    missing: Any
    unread: Any
    free: Any


def _scratch_pass(
    start: Any, dag: Any, turns: Any, left: Any, nbytes: Any, limit: int, queues: int, strict: int, bits: int
) -> Any:
    """The loop: event-driven. At a dead end some of ``start`` stay -1."""
    duration, release, engine, pred_start, source, succ_start, succ = dag
    node_at, place, queue = turns
    missing, unread, free = left
    n = len(start)
    mask = (1 << bits) - 1
    room = limit
    started = 0
    ready = [[0 for _ in range(0)] for _ in range(queues)]
    # In program order nobody is passed over.
    look = _LOOK if strict == 0 else 1
    aside = [0 for _ in range(_LOOK)]
    # An event below n: that node ends; n + node: it is released.
    events = [(release[node] << bits) | (n + node) for node in range(n) if missing[node] == 0]
    heapify(events)
    while len(events) > 0:
        now = events[0] >> bits
        while len(events) > 0 and events[0] >> bits == now:
            event = heappop(events) & mask
            if event >= n:
                heappush(ready[queue[event - n]], place[event - n])
                continue
            if engine[event] >= 0:
                free[engine[event]] += 1
            room += _freed_at_end(event, nbytes, unread, pred_start, source)
            for arc in range(succ_start[event], succ_start[event + 1]):
                after = succ[arc]
                missing[after] -= 1
                if missing[after] == 0:
                    if release[after] > now:
                        heappush(events, (release[after] << bits) | (n + after))
                    else:
                        heappush(ready[queue[after]], place[after])
        # Whoever comes first by priority among all queues starts, until nothing fits.
        while True:
            best = n
            best_queue = -1
            for number in range(queues):
                waiting = ready[number]
                looked = 0
                while len(waiting) > 0 and looked < look and (strict == 0 or waiting[0] == started):
                    node = node_at[waiting[0]]
                    if engine[node] >= 0 and free[engine[node]] == 0:
                        break
                    if nbytes[node] <= room:
                        if waiting[0] < best:
                            best = waiting[0]
                            best_queue = number
                        break
                    aside[looked] = heappop(waiting)
                    looked += 1
                if looked > 0:
                    _put_back(waiting, aside, looked)
            if best_queue < 0:
                break
            _take_out(ready[best_queue], best, aside)
            node = node_at[best]
            room -= nbytes[node]
            started += 1
            start[node] = now
            if engine[node] >= 0:
                free[engine[node]] -= 1
            heappush(events, ((now + duration[node]) << bits) | node)
    return start


def _freed_at_end(node: int, nbytes: Any, unread: Any, pred_start: Any, source: Any) -> int:
    """The bytes that nobody needs any more when a node has ended: its own, and those that it was the last to read."""
    freed = 0
    if unread[node] == 0:
        freed += nbytes[node]
    for arc in range(pred_start[node], pred_start[node + 1]):
        before = source[arc]
        unread[before] -= 1
        if unread[before] == 0:
            freed += nbytes[before]
    return freed


def _put_back(waiting: Any, aside: Any, count: int) -> None:
    for back in range(count):
        heappush(waiting, aside[back])


def _take_out(waiting: Any, wanted: int, aside: Any) -> None:
    """Takes a place out of a queue. It need not be the first: what is before it does not fit."""
    looked = 0
    while waiting[0] != wanted:
        aside[looked] = heappop(waiting)
        looked += 1
    heappop(waiting)
    _put_back(waiting, aside, looked)
