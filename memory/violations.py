"""Faults in how a kernel uses its scratch: stale reads and writes, reads of unwritten elements, and overflow.

Everything is decided in program order. What is reported here is exactly what a poisoned run in program order catches:
an access is stale when its allocation no longer owns its bytes, that is, when it comes after the ``scope_exit`` that
frees the allocation; and an element counts as written only by a write through a view of its own allocation.
"""

from __future__ import annotations

import enum
from bisect import bisect_left

import attrs
import numpy as np

from ..ir.arrays.permutations import group_starts
from ..ir.columns import GraphColumns
from ..ir.layout import Layout
from ..ir.tables import IntArray, Mode

__all__ = ["Violation", "ViolationColumns", "ViolationKind", "find_violations", "rank_bounds"]


class ViolationKind(enum.StrEnum):
    """What is wrong. The members are strings: ``violation.kind == "use_after_scope"``."""

    USE_AFTER_SCOPE = "use_after_scope"
    WRITE_AFTER_SCOPE = "write_after_scope"
    READ_BEFORE_WRITE = "read_before_write"
    OVERFLOW = "overflow"


_KINDS = tuple(ViolationKind)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


@attrs.frozen
class Violation:
    """One fault: ``node`` does it to ``allocation`` (a row of the storage table), on ``rank``.

    ``node`` is None only for an overflow by an allocation after which the rank has no node at all.

    After a scope: ``scope_exit`` is the marker node that freed the allocation, ``reused_by`` the first allocation that
    took some of its bytes before ``node`` (None: nobody did). Read before write: ``written_by`` is the later node that
    writes the last of the missing elements (None: nothing ever does). Overflow: ``end_bytes`` is where the allocation
    ends, rounded up.
    """

    kind: ViolationKind
    node: int | None
    allocation: int
    rank: int
    scope_exit: int | None = None
    reused_by: int | None = None
    written_by: int | None = None
    end_bytes: int | None = None


@attrs.frozen(eq=False)
class ViolationColumns:
    """Violations as columns, a row each, in the order of :func:`find_violations`. ``kind`` is the kind's place in
    :class:`ViolationKind`; the others are as in :class:`Violation`, with -1 for None."""

    kind: IntArray
    node: IntArray
    allocation: IntArray
    rank: IntArray
    scope_exit: IntArray
    reused_by: IntArray
    written_by: IntArray
    end_bytes: IntArray

    def __len__(self) -> int:
        return len(self.kind)

    def of(self, kind: ViolationKind) -> ViolationColumns:
        """Those of one kind."""
        return self.take(np.flatnonzero(self.kind == _NUMBER[kind]))

    def take(self, rows: IntArray) -> ViolationColumns:
        """Some of them, in the order given."""
        return ViolationColumns(*(getattr(self, field.name)[rows] for field in attrs.fields(ViolationColumns)))

    def records(self) -> tuple[Violation, ...]:
        """An object for each."""
        columns = (getattr(self, field.name).tolist() for field in attrs.fields(ViolationColumns))
        return tuple(
            Violation(_KINDS[kind], _some(node), allocation, rank, *map(_some, others))
            for kind, node, allocation, rank, *others in zip(*columns, strict=True)
        )


def _some(value: int) -> int | None:
    return None if value < 0 else value


def _columns(kind: ViolationKind, **columns: IntArray) -> ViolationColumns:
    count = len(columns["node"])
    names = [field.name for field in attrs.fields(ViolationColumns)]
    filled = {name: np.asarray(columns.get(name, np.full(count, -1)), dtype=np.int64) for name in names}
    return ViolationColumns(**{**filled, "kind": np.full(count, _NUMBER[kind], dtype=np.int64)})


def rank_bounds(graph: GraphColumns) -> IntArray:
    """``(ranks + 1,)``: the nodes of rank r are ``bounds[r]`` up to ``bounds[r + 1]``."""
    return group_starts(graph.nodes.rank, graph.ranks)


def find_violations(graph: GraphColumns) -> ViolationColumns:
    """All faults, ordered by node, then by kind (in the order of :class:`ViolationKind`), then by allocation."""
    parts = [*_stale_accesses(graph), _unwritten_reads(graph), _overflows(graph)]
    names = [field.name for field in attrs.fields(ViolationColumns)]
    found = ViolationColumns(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    node = np.where(found.node < 0, len(graph.nodes), found.node)
    return found.take(np.lexsort((found.allocation, found.kind, node)))


# --- after the scope --------------------------------------------------------------------------------------------------


def _stale_accesses(graph: GraphColumns) -> tuple[ViolationColumns, ViolationColumns]:
    """Reads, then writes."""
    accesses, storages = graph.accesses, graph.storages
    freed = storages.freed[accesses.storage]
    rows = np.flatnonzero((freed >= 0) & (accesses.node > freed))
    # One fault a node and allocation, however many of the node's operands are views of it.
    faults = np.unique(
        np.column_stack((accesses.node[rows], accesses.storage[rows], accesses.mode[rows])).astype(np.int64), axis=0
    )
    node, allocation, mode = faults.T
    owner = _next_owner(graph, np.unique(allocation))[allocation]
    owner = np.where(storages.born[owner] < node, owner, -1)
    columns = {
        "node": node,
        "allocation": allocation,
        "rank": storages.rank[allocation],
        "scope_exit": storages.freed[allocation],
        "reused_by": owner,
    }
    reads, writes = ({name: column[mode == m] for name, column in columns.items()} for m in (Mode.READ, Mode.WRITE))
    return _columns(ViolationKind.USE_AFTER_SCOPE, **reads), _columns(ViolationKind.WRITE_AFTER_SCOPE, **writes)


def _next_owner(graph: GraphColumns, allocations: IntArray) -> IntArray:
    """By storage, for the given freed allocations: the first allocation that took some of their bytes afterwards; -1
    where there is none.

    The exit rewinds the cursor to at or below the allocation's address, and allocations fill scratch from the cursor
    upward: the first later one that ends beyond the address is the first to overlap. That is the classical search for
    the next greater element, from the right with a monotone stack.
    """
    storages = graph.storages
    found = np.full(len(storages), -1, dtype=np.int64)
    if not len(allocations):
        return found
    ends = (storages.address + graph.held_bytes).tolist()
    arena, address = graph.arena.tolist(), storages.address.tolist()
    # The first row made after the exit: births never decrease, as ranks follow one another (and HBM comes before all).
    queries: dict[int, list[int]] = {}
    after = np.searchsorted(storages.born, storages.freed[allocations], side="right")
    for allocation, row in zip(allocations.tolist(), after.tolist(), strict=True):
        queries.setdefault(row, []).append(allocation)
    # By arena, the candidates: from the bottom to the top, rows fall and so do ends. Beside them the same rows' ends,
    # negated, so that they rise.
    stacks: list[tuple[list[int], list[int]]] = [([], []) for _ in range(graph.arenas)]
    for row in range(len(ends) - 1, min(queries) - 1, -1):
        stack_rows, stack_ends = stacks[arena[row]]
        while stack_ends and -stack_ends[-1] <= ends[row]:
            stack_rows.pop()
            stack_ends.pop()
        stack_rows.append(row)
        stack_ends.append(-ends[row])
        for allocation in queries.get(row, ()):
            rows_of, ends_of = stacks[arena[allocation]]
            beyond = bisect_left(ends_of, -address[allocation])
            if beyond:
                found[allocation] = rows_of[beyond - 1]
    return found


# --- before anything was written --------------------------------------------------------------------------------------


def _unwritten_reads(graph: GraphColumns) -> ViolationColumns:
    accesses, storages = graph.accesses, graph.storages
    count = len(storages)
    distinct = np.array([_elements_shown(layout) for layout in graph.layouts], dtype=np.int64)
    size = np.array([layout.size for layout in graph.layouts], dtype=np.int64)
    freed = storages.freed[accesses.storage]
    alive = graph.in_scratch[accesses.storage] & ((freed < 0) | (accesses.node < freed))
    writes = accesses.mode == Mode.WRITE
    whole = alive & writes & (distinct[accesses.layout] == size[storages.layout[accesses.storage]])

    # Rows of accesses are in program order, a node's reads before its writes: "before" is a smaller row.
    first_whole = np.full(count, len(accesses), dtype=np.int64)
    rows = np.flatnonzero(whole)[::-1]
    first_whole[accesses.storage[rows]] = rows
    early = alive & (np.arange(len(accesses)) < first_whole[accesses.storage])
    suspects = np.unique(accesses.storage[early & ~writes])
    suspected = np.zeros(count, dtype=np.bool_)
    suspected[suspects] = True
    # All that matters of the suspects: their accesses up to and including the first write of the whole.
    within = alive & suspected[accesses.storage] & (np.arange(len(accesses)) <= first_whole[accesses.storage])
    rows = np.flatnonzero(within)
    rows = rows[np.argsort(accesses.storage[rows], kind="stable")]
    events = np.column_stack((accesses.mode[rows], accesses.offset[rows], accesses.layout[rows])).astype(np.int64)
    starts = np.searchsorted(accesses.storage[rows], suspects)
    stops = np.append(starts, len(rows))[1:]
    # A loop does the same to fresh bytes again and again: what one sequence of views leads to is found once.
    known: dict[tuple[int, bytes], IntArray] = {}
    reads, latest, of = [], [], []
    layouts = storages.layout[suspects].tolist()
    for number, (layout, start, stop) in enumerate(zip(layouts, starts.tolist(), stops.tolist(), strict=True)):
        key = (layout, events[start:stop].tobytes())
        if key not in known:
            known[key] = _missing(graph.layouts[layout].size, events[start:stop], graph.layouts)
        early_reads = known[key]
        if len(early_reads):
            reads.append(early_reads[:, 0] + start)
            latest.append(np.where(early_reads[:, 1] < 0, -1, early_reads[:, 1] + start))
            of.append(np.full(len(early_reads), number))
    if not reads:
        return _columns(ViolationKind.READ_BEFORE_WRITE, node=suspects[:0])
    read, write, allocation = np.concatenate(reads), np.concatenate(latest), suspects[np.concatenate(of)]
    node = accesses.node[rows[read]]
    # One fault a node and allocation: that of its first operand.
    first = np.ones(len(node), dtype=np.bool_)
    first[1:] = (node[1:] != node[:-1]) | (allocation[1:] != allocation[:-1])
    node, write, allocation = node[first], write[first], allocation[first]
    return _columns(
        ViolationKind.READ_BEFORE_WRITE,
        node=node,
        allocation=allocation,
        rank=storages.rank[allocation],
        written_by=np.where(write < 0, -1, accesses.node[rows[write]]),
    )


def _missing(size: int, events: IntArray, layouts: tuple[Layout, ...]) -> IntArray:
    """``(reads, 2)``: the reads that find an unwritten element, as pairs: the read's place in ``events`` (rows of mode,
    offset, layout, in program order), and the place of the write that supplies the last missing element, -1 where none
    does.

    By element the place of its first write; a read is too early when the latest of its elements comes after it. Equal
    views are looked at once, so the work is bounded by the distinct views, not by the reads.
    """
    never = len(events)
    first_write = np.full(size, never, dtype=np.int64)
    written: set[tuple[int, int]] = set()
    for place, (mode, offset, layout) in enumerate(events.tolist()):
        if mode == Mode.WRITE and (offset, layout) not in written:
            written.add((offset, layout))
            target = _view(first_write, offset, layouts[layout], writeable=True)
            np.minimum(target, place, out=target)
    complete: dict[tuple[int, int], int] = {}
    found: list[tuple[int, int]] = []
    for place, (mode, offset, layout) in enumerate(events.tolist()):
        if mode != Mode.READ:
            continue
        if (offset, layout) not in complete:
            complete[offset, layout] = int(_view(first_write, offset, layouts[layout], writeable=False).max())
        latest = complete[offset, layout]
        if latest > place:
            found.append((place, -1 if latest == never else latest))
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _view(elements: IntArray, offset: int, layout: Layout, *, writeable: bool) -> IntArray:
    """The view of a storage's elements that an access shows, a repeated (broadcast) element once."""
    shape = tuple(n if s else 1 for n, s in zip(layout.shape, layout.strides, strict=True))
    strides = tuple(s * elements.itemsize for s in layout.strides)
    return np.lib.stride_tricks.as_strided(elements[offset:], shape, strides, writeable=writeable)


def _elements_shown(layout: Layout) -> int:
    """How many different elements a view shows."""
    count = 1
    for n, s in zip(layout.shape, layout.strides, strict=True):
        count *= n if s else 1
    return count


# --- past the budget --------------------------------------------------------------------------------------------------


def _overflows(graph: GraphColumns) -> ViolationColumns:
    storages = graph.storages
    ends = storages.address + graph.held_bytes
    rows = np.flatnonzero(graph.overflows)
    rank = storages.rank[rows]
    bounds = rank_bounds(graph)
    first, stop = bounds[rank], bounds[rank + 1]
    return _columns(
        ViolationKind.OVERFLOW,
        # An `empty` at a kernel's very end has no node after it: the last one before it stands for the place.
        node=np.where(first == stop, -1, np.minimum(storages.born[rows], stop - 1)),
        allocation=rows,
        rank=rank,
        end_bytes=ends[rows],
    )
