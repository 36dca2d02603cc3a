"""Putting blocks down one by one at the lowest free gap: in any order, or in that of time by a sweep."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Sequence

import attrs
import numpy as np

from ..ir.arrays.permutations import group_starts
from ..ir.tables import IntArray

__all__ = ["Conflicts", "find_conflicts", "first_fit", "sweep_fit"]

#: More than any address; and how many gaps are looked at one by one for the lowest one.
_ENDLESS = 1 << 60
_GAPS_SCANNED = 32


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
    bounds = group_starts(a[by_block], count).tolist()
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
    """By block its address, put down in the order of their starts (of equal ones the longest-lived first), while a heap
    of stops gives bytes back. The work for a block does not grow with what is live beside it."""
    sizes: list[int] = nbytes.tolist()
    ends: list[int] = stop.tolist()
    starts: list[int] = start.tolist()
    address = [0] * len(sizes)
    gaps = _Gaps()
    leaving: list[tuple[int, int]] = []  # (stop, block)
    for block in np.lexsort((np.arange(len(sizes)), -nbytes, -stop, start)).tolist():
        while leaving and leaving[0][0] <= starts[block]:
            gone = heapq.heappop(leaving)[1]
            gaps.give(address[gone], sizes[gone])
        address[block] = gaps.take(sizes[block])
        heapq.heappush(leaving, (ends[block], block))
    return np.array(address, dtype=np.int64)


class _Gaps:
    """The free bytes of a scratch without end, as gaps sorted by address and by size."""

    def __init__(self) -> None:
        self._bases = [0]
        self._end = {0: _ENDLESS}
        self._sized = [(_ENDLESS, 0)]

    def take(self, size: int) -> int:
        """The address of so many bytes: in the lowest of the first gaps that has them, else in the smallest that
        has."""
        for base in self._bases[:_GAPS_SCANNED]:
            if self._end[base] - base >= size:
                break
        else:
            base = self._sized[bisect_left(self._sized, (size, -1))][1]
        end = self._remove(base)
        if end - base > size:
            self._add(base + size, end)
        return base

    def give(self, address: int, size: int) -> None:
        """Free the bytes again; gaps that touch become one."""
        base, end = address, address + size
        place = bisect_left(self._bases, address)
        if place and self._end[self._bases[place - 1]] == address:
            base = self._bases[place - 1]
            self._remove(base)
        if end in self._end:
            end = self._remove(end)
        self._add(base, end)

    def _add(self, base: int, end: int) -> None:
        insort(self._bases, base)
        insort(self._sized, (end - base, base))
        self._end[base] = end

    def _remove(self, base: int) -> int:
        end = self._end.pop(base)
        del self._bases[bisect_left(self._bases, base)]
        del self._sized[bisect_left(self._sized, (end - base, base))]
        return end
