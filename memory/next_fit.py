"""Addresses that reuse bytes as late as there is room: next fit around a ring.

Where bytes are reused, the next owner waits for the last user. The least peak (:mod:`kernscope.memory.placement`)
reuses as early as it can and so puts in turn what could run side by side; going on behind the last block that was put
down leaves the most time between two owners (next fit: Knuth, TAOCP vol. 1, 2.5).
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from ..ir.tables import IntArray

__all__ = ["next_fit"]


def next_fit(start: IntArray, stop: IntArray, nbytes: IntArray, room: int) -> IntArray | None:
    """Addresses below ``room`` for blocks that live from ``start`` up to but not including ``stop``: those that live at
    one time share no byte. None where a block does not find a gap."""
    address = np.zeros(len(start), dtype=np.int64)
    live: list[tuple[int, int, int]] = []  # (first byte, end, stop), ascending
    ending: list[tuple[int, tuple[int, int, int]]] = []
    cursor = 0
    for block in np.lexsort((-nbytes, start)).tolist():
        now, size = int(start[block]), int(nbytes[block])
        while ending and ending[0][0] <= now:
            _, gone = ending.pop(0)
            del live[bisect_left(live, gone)]
        found = _gap(live, cursor, size, room)
        if found is None:
            return None
        address[block] = found
        entry = (found, found + size, int(stop[block]))
        insort(live, entry)
        insort(ending, (entry[2], entry))
        cursor = found + size
    return address


def _gap(live: list[tuple[int, int, int]], cursor: int, size: int, room: int) -> int | None:
    """The first gap from the cursor on, or else from the beginning."""
    first: int | None = None
    begin = 0
    for low, high in [*((low, high) for low, high, _ in live), (room, room)]:
        if low - max(begin, cursor) >= size:
            return max(begin, cursor)
        if first is None and low - begin >= size:
            first = begin
        begin = max(begin, high)
    return first
