"""The rule on memory: accesses to the same bytes, one of them writing, keep program order.

For each cell of memory (:mod:`.cells`) the accesses stand in program order. A running maximum of the ends of the
writers so far, and one of the ends of all so far, say at once for every access which earlier one it must wait for
longest: near-linear, whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.tables import IntArray, Mode
from .cells import Meetings, between_allocations, element_offsets, is_solid, within_storages

__all__ = ["Wait", "memory_waits"]


@attrs.frozen
class Wait:
    """``node`` needs ``earlier`` to have ended, for what it does to ``storage``, and that has not."""

    earlier: int
    node: int
    storage: int


@attrs.frozen(eq=False)
class _Question:
    """Which accesses come too early: each needs those before it to end by ``due_ps`` of its node. Accesses of one
    ``group`` (by node) never wait for each other. ``asks`` (by access): for which ones the question is asked.
    ``by_end`` lists the nodes by their end, ``place`` says which is where in it, counted from 1."""

    graph: Graph
    due_ps: IntArray
    end_ps: IntArray
    group: IntArray
    asks: IntArray
    by_end: IntArray
    place: IntArray


def memory_waits(
    graph: Graph, due_ps: IntArray, end_ps: IntArray, group: IntArray, *, asks: IntArray | None = None
) -> Iterator[Wait]:
    """The nodes whose ``due_ps`` lies before the end of an earlier node that they conflict with, each with the latest
    such node per storage. ``group`` numbers what counts as one node (a command's nodes, or each its own); ``asks`` says
    of each access whether it is to be judged (all, where it is not given)."""
    asks = np.ones(len(graph.accesses), dtype=np.bool_) if asks is None else asks
    by_end = np.lexsort((np.arange(len(end_ps)), end_ps))
    place = np.empty(len(by_end), dtype=np.int64)
    place[by_end] = np.arange(1, len(by_end) + 1)
    question = _Question(graph, due_ps, end_ps, group, asks, by_end, place)
    seen: set[Wait] = set()
    yield from _new(_answer(question, within_storages(graph), across=False), seen)
    for rank in range(graph.ranks):
        for memory in np.unique(graph.storages.memory[graph.storages.rank == rank]).tolist():
            yield from _new(iter(_across(question, rank, memory)), seen)


def _across(question: _Question, rank: int, memory: int) -> list[Wait]:
    """The waits between allocations of a rank in one of its memories. Where no use is stale, an allocation's accesses
    to some bytes all come before the next owner's, and four of them say whether any is late; only if one is are all of
    them looked at."""
    accesses, storages = question.graph.accesses, question.graph.storages
    rows = np.flatnonzero(((storages.rank == rank) & (storages.memory == memory))[accesses.storage])
    freed = storages.freed[accesses.storage[rows]]
    if not np.any((freed >= 0) & (accesses.node[rows] > freed)):
        extremes = _extremes(question, rows)
        if not list(_answer(question, between_allocations(question.graph, extremes), across=True)):
            return []
    return list(_answer(question, between_allocations(question.graph, rows), across=True))


def _extremes(question: _Question, rows: IntArray) -> IntArray:
    """Of the accesses to one view of an allocation: the write and the access that end last, and of those that ask the
    read and the write that are due first."""
    accesses = question.graph.accesses
    view = accesses.layout[rows].astype(np.int64)
    for column in (accesses.offset[rows], accesses.storage[rows]):
        _, renumbered = np.unique(column, return_inverse=True)
        _, view = np.unique(view * (len(rows) + 1) + renumbered, return_inverse=True)
    node, write, asks = accesses.node[rows], accesses.mode[rows] == Mode.WRITE, question.asks[rows]
    due, end = question.due_ps[node], question.end_ps[node]
    chosen = [_first_of_each(view, -end), _first_kept(view, -end, write)]
    chosen += [_first_kept(view, due, write & asks), _first_kept(view, due, ~write & asks)]
    found: IntArray = rows[np.unique(np.concatenate(chosen))]
    return found


def _first_of_each(group: IntArray, order: IntArray) -> IntArray:
    """For each group its member that is first in this order."""
    by_group = np.lexsort((order, group))
    return by_group[_starts(group[by_group])]


def _first_kept(group: IntArray, order: IntArray, kept: IntArray) -> IntArray:
    """As :func:`_first_of_each`, among the members that are kept."""
    members = np.flatnonzero(kept)
    return members[_first_of_each(group[members], order[members])]


def _new(waits: Iterator[Wait], seen: set[Wait]) -> Iterator[Wait]:
    for wait in waits:
        if wait not in seen:
            seen.add(wait)
            yield wait


def _answer(question: _Question, met: Meetings, *, across: bool) -> Iterator[Wait]:
    """The waits in these cells: between accesses of one storage, or (``across``) of different ones."""
    size = len(met.cell)
    if not size:
        return
    accesses = question.graph.accesses
    node, storage = accesses.node[met.access].astype(np.int64), accesses.storage[met.access].astype(np.int64)
    write = accesses.mode[met.access] == Mode.WRITE
    value = question.place[node]
    opens = _starts(met.cell)
    unit = storage if across else question.group[node]
    first_of_unit = np.maximum.accumulate(np.where(opens | _starts(unit), np.arange(size), 0))
    first_of_cell = np.maximum.accumulate(np.where(opens, np.arange(size), 0))
    of_writers = _latest(value * write, opens, first_of_unit, first_of_cell)
    of_all = _latest(value, opens, first_of_unit, first_of_cell)
    if across:
        for begin, end in _interleaved(met.cell, storage, first_of_unit, first_of_cell):
            _two_owners(storage, value, write, begin, end, of_writers, of_all)
    latest = np.where(write, of_all, of_writers)
    latest[~question.asks[met.access]] = 0
    ends = np.append(0, question.end_ps[question.by_end])  # by place; 0: nobody
    late = np.flatnonzero((latest > 0) & (ends[latest] > question.due_ps[node]))
    for at in late.tolist():
        earlier = int(question.by_end[latest[at] - 1])
        if across and not _surely(question, earlier, int(met.access[at])):
            earlier = _sharing(question, met.access[int(first_of_cell[at]) : at + 1])
        if earlier >= 0:
            yield Wait(earlier, int(node[at]), int(storage[at]))


def _starts(values: IntArray) -> IntArray:
    """Where a run of equal values begins."""
    begins = np.ones(len(values), dtype=np.bool_)
    begins[1:] = values[1:] != values[:-1]
    return begins


def _latest(value: IntArray, opens: IntArray, first_of_unit: IntArray, first_of_cell: IntArray) -> IntArray:
    """For each access the largest value in its cell before its unit began; 0 where there is none."""
    # Raised by cell, a running maximum over everything never looks back into the cell before.
    step = np.cumsum(opens) * np.int64(int(value.max()) + 1)
    running = np.maximum.accumulate(value + step) - step
    found: IntArray = running[first_of_unit - 1]
    found[first_of_unit == first_of_cell] = 0
    return found


def _interleaved(
    cell: IntArray, storage: IntArray, first_of_unit: IntArray, first_of_cell: IntArray
) -> Iterator[tuple[int, int]]:
    """The cells (as slices) in which an allocation is used again after another took its bytes: stale uses."""
    runs = np.flatnonzero(first_of_unit == np.arange(len(cell)))
    key = cell[runs] * np.int64(int(storage.max()) + 1) + storage[runs]
    kinds, counts = np.unique(key, return_counts=True)
    again = np.unique(kinds[counts > 1] // np.int64(int(storage.max()) + 1))
    for number in again.tolist():
        yield int(np.searchsorted(cell, number)), int(np.searchsorted(cell, number, side="right"))


def _two_owners(
    storage: IntArray, value: IntArray, write: IntArray, begin: int, end: int, of_writers: IntArray, of_all: IntArray
) -> None:
    """Fill in the latest values of *other* storages where storages take turns: the best, and the best of another."""
    best: list[tuple[int, int, int]] = [(0, -1, 0), (0, -1, 0)]  # writers, all: best, its storage, best of another
    rows = zip(storage[begin:end].tolist(), value[begin:end].tolist(), write[begin:end].tolist(), strict=True)
    for at, (owner, number, writes) in enumerate(rows, begin):
        for which, found in enumerate((of_writers, of_all)):
            top, holder, other = best[which]
            found[at] = other if holder == owner else top
            if which == 0 and not writes:
                continue
            if holder == owner:
                best[which] = (max(top, number), owner, other)
            elif number > top:
                best[which] = (number, owner, top)
            else:
                best[which] = (top, holder, max(other, number))


def _surely(question: _Question, earlier: int, row: int) -> bool:
    """Whether a node that meets an access in a cell shares a byte with it for certain. A view with gaps covers bytes
    that it does not touch, and a node does not wait for itself."""
    graph = question.graph
    rows = range(int(graph.access_start[earlier]), int(graph.access_start[earlier + 1]))
    node = int(graph.accesses.node[row])
    return bool(question.group[earlier] != question.group[node]) and all(_is_solid(graph, r) for r in (row, *rows))


def _sharing(question: _Question, accesses: IntArray) -> int:
    """Of the accesses before the last one of these: the node with the latest end that lies too late for the last one,
    belongs to another storage, and truly shares a byte with it; -1: none."""
    table = question.graph.accesses
    row = int(accesses[-1])
    before = accesses[:-1]
    node, mine = int(table.node[row]), int(table.storage[row])
    writes = table.mode[before] == Mode.WRITE
    rivals = before[
        (table.storage[before] != mine)
        & (writes | (table.mode[row] == Mode.WRITE))
        & (question.group[table.node[before]] != question.group[node])
        & (question.end_ps[table.node[before]] > question.due_ps[node])
    ]
    order = np.lexsort((table.node[rivals], -question.end_ps[table.node[rivals]]))
    own: IntArray | None = None
    for rival in rivals[order].tolist():
        if _is_solid(question.graph, rival) and _is_solid(question.graph, row):
            return int(table.node[rival])
        own = _bytes(question.graph, row) if own is None else own
        if len(np.intersect1d(own, _bytes(question.graph, rival), assume_unique=True)):
            return int(table.node[rival])
    return -1


def _is_solid(graph: Graph, row: int) -> bool:
    layout = graph.layouts[graph.accesses.layout[row]]
    return is_solid(layout)


def _bytes(graph: Graph, row: int) -> IntArray:
    """The bytes of a rank's scratch that an access touches."""
    layout = graph.layouts[graph.accesses.layout[row]]
    first = int(graph.storages.address[graph.accesses.storage[row]])
    elements = element_offsets(layout) + int(graph.accesses.offset[row])
    itemsize = layout.dtype.itemsize
    found: IntArray = (first + elements[:, None] * itemsize + np.arange(itemsize)).ravel()
    return found
