"""Putting blocks down one by one at the lowest free gap: in any order, or in that of time by a sweep."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence

import attrs
import numpy as np

from ..ir.tables import IntArray

__all__ = ["Conflicts", "find_conflicts", "first_fit", "sweep_fit"]


@attrs.frozen(eq=False)
class Conflicts:
    """By block the blocks that are live at some time when it is: ``of[i]`` is ascending."""

    of: list[list[int]]


def find_conflicts(start: IntArray, stop: IntArray) -> Conflicts:
    """The blocks whose ranges [start, stop) overlap: each with those that begin in it, and the other way around."""
    count = len(start)
    order = np.argsort(start, kind="stable")
    begun = start[order]
    until = np.searchsorted(begun, stop[order])
    after = until - np.arange(1, count + 1)
    first = np.repeat(np.arange(count), after)
    second = np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after) + first + 1
    a = np.concatenate((order[first], order[second]))
    b = np.concatenate((order[second], order[first]))
    by_block = np.lexsort((b, a))
    bounds = np.searchsorted(a[by_block], np.arange(count + 1)).tolist()
    others: list[int] = b[by_block].tolist()
    return Conflicts([others[bounds[i] : bounds[i + 1]] for i in range(count)])


def first_fit(order: Sequence[int], conflicts: Conflicts, nbytes: IntArray) -> IntArray:
    """By block its address: each in turn at the lowest address at which it meets none of those put down before it."""
    sizes: list[int] = nbytes.tolist()
    address = [-1] * len(sizes)
    for block in order:
        size, at = sizes[block], 0
        taken = [(address[other], sizes[other]) for other in conflicts.of[block] if address[other] >= 0]
        taken.sort()
        for base, length in taken:
            if base - at >= size:
                break
            if base + length > at:
                at = base + length
        address[block] = at
    return np.array(address, dtype=np.int64)


def sweep_fit(start: IntArray, stop: IntArray, nbytes: IntArray) -> IntArray:
    """By block its address, put down in the order of their starts (of equal ones the longest-lived first). What is live
    is kept sorted by address, so that a block costs no more than what is live beside it."""
    sizes: list[int] = nbytes.tolist()
    ends: list[int] = stop.tolist()
    starts: list[int] = start.tolist()
    address = [0] * len(sizes)
    live: list[tuple[int, int]] = []  # (address, size), sorted
    leaving: list[tuple[int, int]] = []  # (stop, block)
    for block in np.lexsort((np.arange(len(sizes)), -nbytes, -stop, start)).tolist():
        while leaving and leaving[0][0] <= starts[block]:
            gone = heapq.heappop(leaving)[1]
            del live[bisect_left(live, (address[gone], sizes[gone]))]
        size, at = sizes[block], 0
        for base, length in live:
            if base - at >= size:
                break
            at = base + length
        address[block] = at
        insort(live, (at, size))
        heapq.heappush(leaving, (ends[block], block))
    return np.array(address, dtype=np.int64)
