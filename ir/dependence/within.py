"""Edges within one storage: accesses meet element by element.

A storage is cut into cells at the bounds of the boxes that are accessed, and the rule of :mod:`.edges` is applied
to all cells of all storages at once.
"""

from __future__ import annotations

import numpy as np

from ..arrays.distinct import distinct
from ..arrays.ramps import ramp
from ..columns import GraphColumns
from ..tables import AccessKind, IntArray, Mode, Reason
from .edge_rows import EdgeRows, edge_rows
from .regions import boxes, flat_range_boxes

__all__ = ["find_within_storages"]


def find_within_storages(graph: GraphColumns, rows: EdgeRows) -> IntArray:
    """Add the edges within each storage. Returns, for each access, bit 1 where it is the first writer (or reads before
    any writer) of one of its elements within its storage, bit 2 where nothing writes one of its elements after it and,
    if it writes, nothing reads it either: the accesses by which an allocation meets its neighbours in time."""
    accesses = graph.accesses
    flags = np.zeros(len(accesses), dtype=np.uint8)
    if not len(accesses):
        return flags
    cell, access, closing, opening = _storage_cells(graph)
    order = np.argsort(cell, kind="stable")  # accesses are in program order already, reads of a node before its writes
    cell, access, closing, opening = cell[order], access[order], closing[order], opening[order]
    node = accesses.node[access].astype(np.int64)
    write = accesses.mode[access] == Mode.WRITE
    size = len(cell)
    first = np.ones(size, dtype=np.bool_)
    first[1:] = cell[1:] != cell[:-1]
    position = np.arange(size)
    segment = np.maximum.accumulate(np.where(first, position, 0))
    # The last write at or before each position, then strictly before it; -1 where the cell has none.
    at_or_before = np.maximum.accumulate(np.where(write, position, -1))
    before = np.empty(size, dtype=np.int64)
    before[0] = -1
    before[1:] = at_or_before[:-1]
    before[before < segment] = -1
    # The next write strictly after each position; size where the cell has none.
    last = np.ones(size, dtype=np.bool_)
    last[:-1] = first[1:]
    segment_end = np.minimum.accumulate(np.where(last, position, size)[::-1])[::-1]
    at_or_after = np.minimum.accumulate(np.where(write, position, size)[::-1])[::-1]
    after = np.full(size, size, dtype=np.int64)
    after[:-1] = at_or_after[1:]
    after[after > segment_end] = size

    reads = ~write
    data = reads & (before >= 0)
    rows.append(edge_rows(node[before[data]], node[data], Reason.DATA))
    war = reads & (after < size)
    rows.append(edge_rows(node[war], node[after[np.flatnonzero(war)]], Reason.WAR))
    previous_is_write = np.zeros(size, dtype=np.bool_)
    previous_is_write[1:] = write[:-1] & ~first[1:]
    waw = np.flatnonzero(write & previous_is_write)
    rows.append(edge_rows(node[waw - 1], node[waw], Reason.WAW))

    next_in_cell = np.zeros(size, dtype=np.bool_)
    next_in_cell[:-1] = ~first[1:]
    initial = (before < 0) & ~opening
    frontier = np.where(write, ~next_in_cell, after == size) & ~closing
    np.bitwise_or.at(flags, access[initial], np.uint8(1))
    np.bitwise_or.at(flags, access[frontier], np.uint8(2))
    return flags


def _storage_cells(graph: GraphColumns) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(cell, access) pairs: which cells of its own storage each access covers; and for each pair whether it is the
    closing or the opening one of a write that divides the storage's life (see :func:`_epochs`).

    Per dimension the bounds that occur cut a storage into intervals; a cell is one interval in each dimension. The
    bounds of all storages are numbered together, on one line per dimension on which the storages lie side by side.
    """
    accesses, storages = graph.accesses, graph.storages
    lower, extents, _ = boxes(accesses, storages, graph.layouts)
    row = np.arange(len(accesses))
    ranges = np.flatnonzero(accesses.kind != AccessKind.BOX)
    if len(ranges):
        row, lower, extents = _split_ranges(graph, ranges, lower, extents)
    place = _places(graph)[row]
    alike = _covered_alike(place, lower, extents)
    whole, cut = np.flatnonzero(alike), np.flatnonzero(~alike)
    cell, access, closing, opening = _cut(graph, row[cut], place[cut], lower[cut], extents[cut])
    once = np.zeros(len(whole), dtype=np.bool_)
    return (
        np.concatenate((place[whole], cell + int(place.max()) + 1)),
        np.concatenate((row[whole], access)),
        np.concatenate((once, closing)),
        np.concatenate((once, opening)),
    )


def _covered_alike(place: IntArray, lower: IntArray, extents: IntArray) -> IntArray:
    """Which boxes lie in a place all of whose accesses cover one and the same box, which is one cell: most
    allocations, of which nothing is ever seen but the whole."""
    sample = np.empty(int(place.max()) + 1, dtype=np.int64)
    sample[place] = np.arange(len(place))
    differs = np.zeros(len(place), dtype=np.bool_)
    for axis in range(lower.shape[1]):
        differs |= lower[:, axis] != lower[sample[place], axis]
        differs |= extents[:, axis] != extents[sample[place], axis]
    is_cut = np.zeros(len(sample), dtype=np.bool_)
    is_cut[place[differs]] = True
    return ~is_cut[place]


def _cut(
    graph: GraphColumns, row: IntArray, place: IntArray, lower: IntArray, extents: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The cells of places whose accesses cover different boxes; results as of :func:`_storage_cells`."""
    if not len(row):
        return row, row, row != row, row != row
    entry, place, closing, opening = _epochs(graph, row, place, lower, extents)
    row, lower, extents = row[entry], lower[entry], extents[entry]
    cell = place.astype(np.int64)
    pair = np.arange(len(row))
    for axis in range(lower.shape[1]):
        low, high = lower[:, axis], lower[:, axis] + extents[:, axis]
        # Side by side: a place's line is as long as its largest bound.
        length = np.zeros(int(place.max()) + 1, dtype=np.int64)
        np.maximum.at(length, place, high)
        base = (np.cumsum(length + 1) - (length + 1))[place]
        low, high = low + base, high + base
        bounds = distinct(np.concatenate([low, high]))
        first, stop = np.searchsorted(bounds, low), np.searchsorted(bounds, high)
        cell, pair, lower, extents, place, interval = _expand(cell, pair, lower, extents, place, first, stop)
        # Number the pairs anew so that the product of many dimensions cannot overflow.
        _, cell = np.unique(cell * (len(bounds) + 1) + interval, return_inverse=True)
    # _expand keeps an access's cells together, and accesses in program order.
    return cell, row[pair], closing[pair], opening[pair]


def _epochs(
    graph: GraphColumns, row: IntArray, place: IntArray, lower: IntArray, extents: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Divide each place's life at the writes that cover all of it that is ever accessed: nothing before one meets
    anything after it, so that bounds of one epoch need not cut another (slices written, the whole written, the whole
    read many times). Such a write closes one epoch and opens the next: it is entered twice.

    ``row`` are accesses in program order, ``place`` where they meet. Returns the entries as indices into ``row``, each
    one's place and epoch as one number, and whether it is a closing or an opening entry of a write entered twice.
    """
    count = int(place.max()) + 1
    whole = (graph.accesses.mode[row] == Mode.WRITE) & (graph.accesses.kind[row] == AccessKind.BOX)
    for axis in range(lower.shape[1]):
        low, high = lower[:, axis], lower[:, axis] + extents[:, axis]
        lowest = np.full(count, np.iinfo(np.int64).max)
        highest = np.zeros(count, dtype=np.int64)
        np.minimum.at(lowest, place, low)
        np.maximum.at(highest, place, high)
        whole &= (low == lowest[place]) & (high == highest[place])
    order = np.argsort(place, kind="stable")
    starts = np.ones(len(row), dtype=np.bool_)
    starts[1:] = place[order[1:]] != place[order[:-1]]
    first = np.empty(len(row), dtype=np.bool_)
    first[order] = starts
    # How many dividing writes of its place lie before each row; a place's first access divides nothing.
    divides = whole & ~first
    passed = np.cumsum(divides[order]) - divides[order]
    epoch = np.empty(len(row), dtype=np.int64)
    epoch[order] = passed - np.maximum.accumulate(np.where(starts, passed, 0))
    entry = np.repeat(np.arange(len(row)), 1 + divides)
    again = np.zeros(len(entry), dtype=np.bool_)
    again[1:] = entry[1:] == entry[:-1]
    number = place[entry].astype(np.int64) * (int(epoch.max()) + 2) + epoch[entry] + again
    return entry, np.unique(number, return_inverse=True)[1], divides[entry] & ~again, again


def _expand(
    cell: IntArray,
    access: IntArray,
    lower: IntArray,
    extents: IntArray,
    place: IntArray,
    first: IntArray,
    stop: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Repeat each row once for each interval in [first, stop); the last result is the interval."""
    counts = stop - first
    if np.all(counts == 1):
        return cell, access, lower, extents, place, first
    repeat = np.repeat(np.arange(len(counts)), counts)
    interval = first[repeat] + ramp(counts)
    return cell[repeat], access[repeat], lower[repeat], extents[repeat], place[repeat], interval


def _places(graph: GraphColumns) -> IntArray:
    """For each access the number of the memory it meets others in: its allocation, or its tensor as its rank sees
    it."""
    accesses = graph.accesses
    storage = accesses.storage.astype(np.int64)
    tensors = int(np.count_nonzero(~graph.in_scratch))  # the first rows
    rank = graph.nodes.rank[accesses.node].astype(np.int64)
    place: IntArray = storage + np.where(storage < tensors, rank, graph.ranks - 1) * tensors
    return place


def _split_ranges(
    graph: GraphColumns, ranges: IntArray, lower: IntArray, extents: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Replace the rows of accesses that no box can express by the boxes of their covering range."""
    accesses, width = graph.accesses, lower.shape[1]
    rows, lows, sizes = [], [], []
    for row in ranges.tolist():
        shape = graph.layouts[graph.storages.layout[accesses.storage[row]]].shape
        start = int(accesses.offset[row])
        stop = start + graph.layouts[accesses.layout[row]].span
        for corner, extent in flat_range_boxes(shape, start, stop):
            pad = width - len(shape)
            rows.append(row)
            lows.append((0,) * pad + corner)
            sizes.append((1,) * pad + extent)
    kept = np.flatnonzero(accesses.kind == AccessKind.BOX)
    row = np.concatenate([kept, np.array(rows, dtype=np.int64)])
    lower = np.concatenate([lower[kept], np.array(lows, dtype=np.int64).reshape(-1, width)])
    extents = np.concatenate([extents[kept], np.array(sizes, dtype=np.int64).reshape(-1, width)])
    order = np.argsort(row, kind="stable")
    return row[order], lower[order], extents[order]
