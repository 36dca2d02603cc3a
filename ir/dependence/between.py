"""Edges between allocations of a rank that share bytes, by the covering byte ranges of their accesses."""

from __future__ import annotations

import numpy as np

from ..arrays.distinct import distinct
from ..arrays.ramps import ramp
from ..columns import GraphColumns
from ..tables import IntArray, Mode, Reason
from .edge_rows import EdgeRows
from .regions import byte_ranges

__all__ = ["find_between_allocations"]


def find_between_allocations(graph: GraphColumns, flags: IntArray, rows: EdgeRows) -> None:
    """Add the edges between allocations of a rank that share bytes.

    Where every write is contiguous and every use in time, an allocation takes a byte over with one first write, which
    waits for the last accesses of the one before: those are found for all bytes at once. Cells that something less
    regular touches (first writes with gaps, stale uses, reads of unwritten bytes) go through the rule step by step.
    """
    accesses, storages = graph.accesses, graph.storages
    is_scratch = graph.in_scratch[accesses.storage]
    if not is_scratch.any():
        return
    start, stop, solid = byte_ranges(accesses, storages, graph.layouts)
    storage = accesses.storage
    write = accesses.mode == Mode.WRITE
    freed = storages.freed[storage]
    stale = (freed >= 0) & (accesses.node > freed)
    early = ~write & ((flags & 1) != 0)
    takes_over = write & ((flags & 1) != 0)
    irregular = stale | early | (takes_over & ~solid)
    # The arenas lie side by side on one line of bytes.
    length = int(stop[is_scratch].max()) + 1
    base = graph.arena[storage] * length
    low, high = _shared_bytes(start + base, stop + base, np.where(is_scratch, storage, -1), len(storages))
    scratch = np.flatnonzero(is_scratch & (low < high))
    if not len(scratch):
        return
    irregular &= is_scratch & (low < high)
    # What has gaps covers bytes that it does not access. Where nothing of its allocation wrote them before, it would
    # stand for the write that takes them over.
    gaps = ~takes_over & ~solid
    if gaps[scratch[flags[scratch] != 0]].any():
        leading = _leading(graph, low, high, scratch[flags[scratch] != 0])
        irregular[leading[gaps[leading]]] = True

    meets = np.zeros(len(accesses), dtype=np.bool_)
    meets[scratch] = True
    meets &= (flags != 0) | irregular
    chosen = np.flatnonzero(meets)
    bounds = distinct(np.concatenate([low[scratch], high[scratch]])) if irregular.any() else None
    if bounds is None:
        bounds = distinct(np.concatenate([low[chosen], high[chosen]]))
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


def _shared_bytes(low: IntArray, high: IntArray, storage: IntArray, storages: int) -> tuple[IntArray, IntArray]:
    """The byte ranges of accesses on a line from which all bytes are taken out that a sole allocation ever covers: no
    one meets another there, however many its accesses and however finely they cut it. ``storage`` is -1 for accesses
    that have no part in this."""
    begin = np.full(storages, np.iinfo(np.int64).max)
    end = np.full(storages, -1, dtype=np.int64)
    mine = np.flatnonzero(storage >= 0)
    np.minimum.at(begin, storage[mine], low[mine])
    np.maximum.at(end, storage[mine], high[mine])
    begin, end = np.sort(begin[end >= 0]), np.sort(end[end >= 0])
    bounds = distinct(np.concatenate((begin, end)))
    # By stretch between bounds, how many allocations cover it: those begun and not yet ended.
    cover = np.searchsorted(begin, bounds, side="right") - np.searchsorted(end, bounds, side="right")
    length = np.where(cover[:-1] > 1, np.diff(bounds), 0)
    kept = np.append(0, np.cumsum(length))

    def squeezed(place: IntArray) -> IntArray:
        stretch = np.clip(np.searchsorted(bounds, place, side="right") - 1, 0, len(length) - 1)
        rest: IntArray = kept[stretch] + np.minimum(place - bounds[stretch], length[stretch])
        return rest

    return squeezed(low), squeezed(high)


def _leading(graph: GraphColumns, low: IntArray, high: IntArray, chosen: IntArray) -> IntArray:
    """The accesses that come first among their allocation's to some cell of the bytes."""
    cell, access = _byte_cells(distinct(np.concatenate([low[chosen], high[chosen]])), low, high, chosen)
    order = np.argsort(cell, kind="stable")
    cell, access = cell[order], access[order]
    storage = graph.accesses.storage[access]
    leads = np.ones(len(cell), dtype=np.bool_)
    leads[1:] = (cell[1:] != cell[:-1]) | (storage[1:] != storage[:-1])
    return distinct(access[leads])


def _byte_cells(bounds: IntArray, low: IntArray, high: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    first, stop = np.searchsorted(bounds, low[chosen]), np.searchsorted(bounds, high[chosen])
    counts = stop - first
    return np.repeat(first, counts) + ramp(counts), np.repeat(chosen, counts)


def _handovers(graph: GraphColumns, cell: IntArray, access: IntArray, flags: IntArray, rows: EdgeRows) -> None:
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


def _step_by_step(graph: GraphColumns, cell: IntArray, access: IntArray, solid: IntArray, rows: EdgeRows) -> None:
    """The rule itself, access by access, for the cells of irregular accesses; only edges between different storages are
    kept. A write with gaps does not end the readers and writers before it: what it leaves out is still theirs. And only
    between two accesses without gaps is it certain that the reader read what the writer wrote, so that who waits for
    the reader need not wait for the writer.

    A write with gaps waits for all accesses of the other storages. Once writes of two storages have done so for a third
    one, whoever comes next waits for one of the two, and through it for the third one, which is forgotten: a loop whose
    iterations write with gaps into the same bytes joins each to the one or two before it, not to all."""
    accesses = graph.accesses
    columns = (cell, accesses.node[access], accesses.storage[access], accesses.mode[access] == Mode.READ, solid[access])
    found: dict[tuple[int, int], int] = {}
    # Nodes by storage: a storage's own, of which there may be many, are passed over as one.
    writers: dict[int, list[int]] = {}
    readers: dict[int, list[int]] = {}
    gappy_writers: dict[int, list[int]] = {}
    solid_readers: set[int] = set()
    waited_by: dict[int, int] = {}  # by storage, the other one whose write with gaps has waited for all of it
    previous = -1

    def wait(earlier: dict[int, list[int]], node: int, storage: int, reason: Reason) -> None:
        for its_storage, others in earlier.items():
            if its_storage == storage:
                continue
            for other in others:
                if other != node:
                    pair = (other, node)
                    found[pair] = min(found.get(pair, 7), reason)

    def forget(storage: int) -> None:
        for other in [s for s in {**writers, **readers} if s != storage]:
            if waited_by.setdefault(other, storage) != storage:
                for known in (writers, readers, gappy_writers, waited_by):
                    known.pop(other, None)

    for at, node, storage, reads, is_solid in zip(*(column.tolist() for column in columns), strict=True):
        if at != previous:
            writers, readers, gappy_writers, solid_readers, waited_by, previous = {}, {}, {}, set(), {}, at
        waited_by.pop(storage, None)
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
            writers, readers, gappy_writers, solid_readers, waited_by = {}, {}, {}, set(), {}
        else:
            forget(storage)
            gappy_writers.setdefault(storage, []).append(node)
        writers.setdefault(storage, []).append(node)
    pairs = np.array(list(found), dtype=np.int64).reshape(-1, 2)
    reasons = np.array(list(found.values()), dtype=np.int64)
    rows.append((pairs[:, 0], pairs[:, 1], reasons, np.ones(len(pairs), dtype=np.bool_)))
