"""Edges from accesses and channels.

Within one storage accesses meet element by element; between allocations that share bytes, by their covering byte
ranges. The rule is the same for each element (or byte), in program order:

* the state is the last writer and the readers since;
* a read waits for the last writer (``data``);
* a write waits for the readers since the last write (``war``), or where there are none for the last writer (``waw``);
* a node that reads and writes reads first, and never waits for itself.

Both levels cut their space into cells at the bounds that occur, list for each cell the accesses that cover it in
program order, and find the edges of all cells at once. The work is proportional to the number of (access, cell) pairs.

HBM is shared by the ranks but joins none of them: a rank's accesses to a tensor are a storage of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import GraphColumns
from .ops import OPERATIONS
from .regions import boxes, byte_ranges, flat_range_boxes
from .tables import AccessKind, EdgeTable, IntArray, Mode, Reason, StorageKind

__all__ = ["find_edges"]

#: Rows (source, target, reason, recycled).
_Rows = list[tuple[IntArray, IntArray, IntArray, IntArray]]


def find_edges(graph: GraphColumns) -> EdgeTable:
    """All edges of a graph, each pair once, with the first reason of :class:`Reason` that holds."""
    rows: _Rows = []
    first_last = _within_storages(graph, rows)
    _between_allocations(graph, first_last, rows)
    _messages(graph, rows)
    return _merge(rows, len(graph.nodes))


def _merge(rows: _Rows, count: int) -> EdgeTable:
    """Sort by target, source and reason; keep the first of each pair. A pair is recycled if any of its edges is."""
    if not rows:
        empty = np.zeros(0, dtype=np.int64)
        table: EdgeTable = EdgeTable.make(source=empty, target=empty, reason=empty, recycled=empty)
        return table
    source, target, reason, recycled = (
        np.concatenate([np.asarray(row[i], dtype=np.int64) for row in rows]) for i in range(4)
    )
    # One integer per edge: pair, then reason, then not recycled; so that sorting once orders everything.
    key = ((target * count + source) * 8 + reason) * 2 + (1 - recycled)
    key.sort()
    pair = key >> 4
    keep = np.ones(len(key), dtype=np.bool_)
    keep[1:] = pair[1:] != pair[:-1]
    chosen = key[keep]
    made: EdgeTable = EdgeTable.make(
        source=pair[keep] % count,
        target=pair[keep] // count,
        reason=(chosen >> 1) & 7,
        recycled=(chosen & 1) == 0,
    )
    return made


# --- within one storage ---------------------------------------------------------------------------------------------


def _within_storages(graph: GraphColumns, rows: _Rows) -> IntArray:
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
    rows.append(_edges(node[before[data]], node[data], Reason.DATA))
    war = reads & (after < size)
    rows.append(_edges(node[war], node[after[np.flatnonzero(war)]], Reason.WAR))
    previous_is_write = np.zeros(size, dtype=np.bool_)
    previous_is_write[1:] = write[:-1] & ~first[1:]
    waw = np.flatnonzero(write & previous_is_write)
    rows.append(_edges(node[waw - 1], node[waw], Reason.WAW))

    next_in_cell = np.zeros(size, dtype=np.bool_)
    next_in_cell[:-1] = ~first[1:]
    initial = (before < 0) & ~opening
    frontier = np.where(write, ~next_in_cell, after == size) & ~closing
    np.bitwise_or.at(flags, access[initial], np.uint8(1))
    np.bitwise_or.at(flags, access[frontier], np.uint8(2))
    return flags


def _edges(source: IntArray, target: IntArray, reason: Reason, recycled: bool = False) -> tuple[Any, Any, Any, Any]:
    keep = source != target
    source, target = source[keep], target[keep]
    return source, target, np.full(len(source), reason), np.full(len(source), recycled)


def _storage_cells(graph: GraphColumns) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """(cell, access) pairs: which cells of its own storage each access covers; and for each pair whether it is the
    closing or the opening one of a write that divides the storage's life (see :func:`_epochs`).

    Per dimension the bounds that occur cut a storage into intervals; a cell is one interval in each dimension. The
    bounds of all storages are numbered together, on one line per dimension on which the storages lie side by side.
    """
    accesses, storages = graph.accesses, graph.storages
    lower, extents, _ = boxes(accesses, storages, graph.layouts)
    row = np.arange(len(accesses))
    ranges = np.flatnonzero(accesses.kind == AccessKind.RANGE)
    if len(ranges):
        row, lower, extents = _split_ranges(graph, ranges, lower, extents)
    entry, place, closing, opening = _epochs(graph, row, _places(graph)[row], lower, extents)
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
        bounds = np.unique(np.concatenate([low, high]))
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
    interval = first[repeat] + _ramp(counts)
    return cell[repeat], access[repeat], lower[repeat], extents[repeat], place[repeat], interval


def _ramp(counts: IntArray) -> IntArray:
    """0, 1, .. count - 1 for each count in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    ramp: IntArray = np.arange(total) - np.repeat(ends - counts, counts)
    return ramp


def _places(graph: GraphColumns) -> IntArray:
    """For each access the number of the memory it meets others in: its allocation, or its tensor as its rank sees
    it."""
    accesses, storages = graph.accesses, graph.storages
    hbm = storages.kind[accesses.storage] == StorageKind.HBM
    rank = graph.nodes.rank[accesses.node].astype(np.int64)
    wide = accesses.storage.astype(np.int64) + np.where(hbm, rank * len(storages), 0)
    return np.asarray(np.unique(wide, return_inverse=True)[1])


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
    kept = np.flatnonzero(accesses.kind != AccessKind.RANGE)
    row = np.concatenate([kept, np.array(rows, dtype=np.int64)])
    lower = np.concatenate([lower[kept], np.array(lows, dtype=np.int64).reshape(-1, width)])
    extents = np.concatenate([extents[kept], np.array(sizes, dtype=np.int64).reshape(-1, width)])
    order = np.argsort(row, kind="stable")
    return row[order], lower[order], extents[order]


# --- between allocations --------------------------------------------------------------------------------------------


def _between_allocations(graph: GraphColumns, flags: IntArray, rows: _Rows) -> None:
    """Add the edges between allocations of a rank that share bytes.

    Where every write is contiguous and every use in time, an allocation takes a byte over with one first write, which
    waits for the last accesses of the one before: those are found for all bytes at once. Cells that something less
    regular touches (strided writes, stale uses, reads of unwritten bytes) go through the rule step by step.
    """
    accesses, storages, nodes = graph.accesses, graph.storages, graph.nodes
    scratch = np.flatnonzero(storages.kind[accesses.storage] == StorageKind.SCRATCH)
    if not len(scratch):
        return
    start, stop, solid = byte_ranges(accesses, storages, graph.layouts)
    storage = accesses.storage
    write = accesses.mode == Mode.WRITE
    freed = storages.freed[storage]
    stale = (freed >= 0) & (accesses.node > freed)
    early = ~write & ((flags & 1) != 0)
    irregular = stale | early | (write & ~solid)
    irregular &= storages.kind[storage] == StorageKind.SCRATCH
    # The scratches of the ranks lie side by side on one line of bytes.
    length = int(stop[scratch].max()) + 1
    base = nodes.rank[accesses.node].astype(np.int64) * length
    low, high = start + base, stop + base
    # A read with gaps covers bytes that it does not read. Where nothing of its allocation wrote them before, it would
    # stand for the write that takes them over.
    gaps = scratch[(~write & ~solid & (flags != 0))[scratch]]
    if len(gaps):
        irregular[_leading_reads(graph, low, high, scratch[flags[scratch] != 0])] = True

    meets = np.zeros(len(accesses), dtype=np.bool_)
    meets[scratch] = True
    meets &= (flags != 0) | irregular
    chosen = np.flatnonzero(meets)
    bounds = np.unique(np.concatenate([low[scratch], high[scratch]])) if irregular.any() else None
    if bounds is None:
        bounds = np.unique(np.concatenate([low[chosen], high[chosen]]))
    special = np.zeros(len(bounds), dtype=np.bool_)
    odd = np.flatnonzero(irregular)
    if len(odd):
        steps = np.zeros(len(bounds) + 1, dtype=np.int64)
        np.add.at(steps, np.searchsorted(bounds, low[odd]), 1)
        np.add.at(steps, np.searchsorted(bounds, high[odd]), -1)
        special = np.cumsum(steps)[:-1] > 0
    cell, access = _byte_cells(bounds, low, high, chosen)
    if len(odd):
        keep = ~special[cell]
        cell, access = cell[keep], access[keep]
    order = np.argsort(cell, kind="stable")
    _handovers(graph, cell[order], access[order], flags, rows)
    if len(odd):
        cell, access = _byte_cells(bounds, low, high, scratch)
        keep = special[cell]
        cell, access = cell[keep], access[keep]
        order = np.argsort(cell, kind="stable")
        _step_by_step(graph, cell[order], access[order], solid, rows)


def _leading_reads(graph: GraphColumns, low: IntArray, high: IntArray, chosen: IntArray) -> IntArray:
    """The reads that come first among their allocation's accesses to some cell of the bytes."""
    cell, access = _byte_cells(np.unique(np.concatenate([low[chosen], high[chosen]])), low, high, chosen)
    order = np.argsort(cell, kind="stable")
    cell, access = cell[order], access[order]
    storage = graph.accesses.storage[access]
    leads = np.ones(len(cell), dtype=np.bool_)
    leads[1:] = (cell[1:] != cell[:-1]) | (storage[1:] != storage[:-1])
    return np.unique(access[leads & (graph.accesses.mode[access] == Mode.READ)])


def _byte_cells(bounds: IntArray, low: IntArray, high: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    first, stop = np.searchsorted(bounds, low[chosen]), np.searchsorted(bounds, high[chosen])
    counts = stop - first
    return np.repeat(first, counts) + _ramp(counts), np.repeat(chosen, counts)


def _handovers(graph: GraphColumns, cell: IntArray, access: IntArray, flags: IntArray, rows: _Rows) -> None:
    """In each cell: the last accesses of each allocation are waited for by the first write of the next one."""
    if not len(cell):
        return
    storage = graph.accesses.storage[access]
    node = graph.accesses.node[access].astype(np.int64)
    size = len(cell)
    run = np.ones(size, dtype=np.bool_)
    run[1:] = (cell[1:] != cell[:-1]) | (storage[1:] != storage[:-1])
    starts = np.append(np.flatnonzero(run), size)
    number = np.cumsum(run) - 1
    following = starts[number + 1]
    same_cell = following < size
    same_cell[same_cell] = cell[following[same_cell]] == cell[same_cell]
    leaving = np.flatnonzero(same_cell & ((flags[access] & 2) != 0))
    target = following[leaving]
    written = graph.accesses.mode[access[leaving]] == Mode.WRITE
    source_node, target_node = node[leaving], node[target]
    reason = np.where(written, Reason.WAW, Reason.WAR)
    rows.append((source_node, target_node, reason, np.ones(len(leaving), dtype=np.bool_)))


def _step_by_step(graph: GraphColumns, cell: IntArray, access: IntArray, solid: IntArray, rows: _Rows) -> None:
    """The rule itself, access by access, for the cells of irregular accesses; only edges between different storages are
    kept. A write with gaps does not end the readers and writers before it: what it leaves out is still theirs. And only
    between two accesses without gaps is it certain that the reader read what the writer wrote, so that who waits for
    the reader need not wait for the writer."""
    accesses = graph.accesses
    columns = (cell, accesses.node[access], accesses.storage[access], accesses.mode[access] == Mode.READ, solid[access])
    found: dict[tuple[int, int], int] = {}
    # Nodes by storage: a storage's own, of which there may be many, are passed over as one.
    writers: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    gappy_writers: dict[int, list[int]] = {}
    solid_readers: set[int] = set()
    previous = -1

    def wait(earlier: dict[int, list[int]], node: int, storage: int, reason: Reason) -> None:
        for its_storage, others in earlier.items():
            if its_storage == storage:
                continue
            for other in others:
                if other != node:
                    pair = (other, node)
                    found[pair] = min(found.get(pair, 7), reason)

    for at, node, storage, reads, is_solid in zip(*(column.tolist() for column in columns), strict=True):
        if at != previous:
            writers, readers, gappy_writers, solid_readers, previous = {}, {}, {}, set(), at
        if reads:
            wait(writers, node, storage, Reason.DATA)
            readers.setdefault(storage, []).append(node)
            if is_solid:
                solid_readers.add(node)
            continue
        wait(readers, node, storage, Reason.WAR)
        read_for_certain = len(solid_readers) > (node in solid_readers)
        wait(gappy_writers if is_solid and read_for_certain else writers, node, storage, Reason.WAW)
        if is_solid:
            writers, readers, gappy_writers, solid_readers = {}, {}, {}, set()
        else:
            gappy_writers.setdefault(storage, []).append(node)
        writers.setdefault(storage, []).append(node)
    pairs = np.array(list(found), dtype=np.int64).reshape(-1, 2)
    reasons = np.array(list(found.values()), dtype=np.int64)
    rows.append((pairs[:, 0], pairs[:, 1], reasons, np.ones(len(pairs), dtype=np.bool_)))


# --- messages -------------------------------------------------------------------------------------------------------


def _messages(graph: GraphColumns, rows: _Rows) -> None:
    """Per channel: the i-th receive waits for the i-th send, the send that needs a slot for the receive that frees it,
    and sends and receives each keep their order."""
    nodes = graph.nodes
    sends = np.flatnonzero(nodes.op == OPERATIONS.code("send"))
    recvs = np.flatnonzero((nodes.op == OPERATIONS.code("recv")) | (nodes.op == OPERATIONS.code("recv_async")))
    for channel in range(len(graph.channels)):
        sent = sends[nodes.channel[sends] == channel]
        received = recvs[nodes.channel[recvs] == channel]
        matched = min(len(sent), len(received))
        slots = graph.target.slots
        rows.append(_edges(sent[:matched], received[:matched], Reason.MESSAGE))
        credited = min(len(received), max(len(sent) - slots, 0))
        rows.append(_edges(received[:credited], sent[slots : slots + credited], Reason.CREDIT))
        rows.append(_edges(sent[:-1], sent[1:], Reason.FIFO))
        rows.append(_edges(received[:-1], received[1:], Reason.FIFO))
