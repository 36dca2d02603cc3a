"""Liveness: how much scratch a traced kernel holds, how much of that it still needs, and whether it reuses it safely.

From the graph alone, in program order; no machine runs. *Held* bytes are what the bump allocator has given out and not
yet rewound, *live* bytes those of them that will be accessed again. In a graph without scopes lifetimes are automatic:
what is held is live.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from ..ir.columns import GraphColumns, expect_graph
from ..ir.errors import OptionError, did_you_mean
from ..ir.forms.html_table import html_table
from ..ir.forms.text import quote
from ..ir.source.location import Location
from ..ir.tables import AccessTable, IntArray, Mode
from .growth import Growth, find_growth
from .placement import ScratchPlacement, place_groups
from .violations import Violation, ViolationColumns, ViolationKind, find_violations, rank_bounds

__all__ = ["Growth", "Holder", "LineHolder", "Liveness", "Violation", "ViolationColumns", "ViolationKind", "liveness"]


@attrs.frozen
class Holder:
    """An allocation that is held at the peak: a row of the storage table, its name (empty: unknown), its bytes, those
    rounded up to the target's alignment, and the line that made it."""

    allocation: int
    name: str
    nbytes: int
    held_bytes: int
    location: Location | None


@attrs.frozen
class LineHolder:
    """What one source line (a call stack) holds at the peak: how many allocations, the name of the first, their bytes
    together, rounded up; of these the bytes that are dead, that is, no longer accessed at or after the peak."""

    location: Location | None
    name: str
    count: int
    held_bytes: int
    dead_bytes: int


@attrs.frozen(eq=False, repr=False, slots=False)
class Liveness:
    """The liveness of a graph's allocations in one memory of its ranks (``memory``, a place among the target's); made
    by :func:`liveness`. Sizes are bytes, instants are node ids. Violations are those of all memories.

    By storage (rows as in ``graph.storages``; those that lie elsewhere hold -1, or 0 bytes):

    - ``first_write``, ``last_access``: nodes, -1 where there is none. All accesses count, stale ones too.
    - ``held_bytes``: what it takes of the memory, rounded up to its alignment (see ``graph.held_bytes``).

    By node:

    - ``cursor``: bytes held after the node. An exit's bytes are gone after it. (In a graph without scopes: bytes held
      while the node runs, wherever they lie.)
    - ``live_bytes``: rounded bytes of the allocations that are live at the node: from the first access to the last one,
      both included, as one interval without holes; an access after the allocation's scope does not prolong it. Never
      more than ``cursor``.

    By rank: ``peak_bytes_by_rank``, the high-water mark of rounded allocation ends; ``peak_node_by_rank``, the node at
    which it is first reached (the last one before it, where an ``empty`` after all nodes reaches it; -1 for a rank
    without nodes). Without scopes, the node at which the most is held, which the gaps of a placement can keep below the
    high-water mark.
    """

    graph: GraphColumns
    memory: int
    first_write: IntArray
    last_access: IntArray
    held_bytes: IntArray
    cursor: IntArray
    live_bytes: IntArray
    peak_bytes_by_rank: tuple[int, ...]
    peak_node_by_rank: tuple[int, ...]
    _peak_allocation: tuple[int, ...]
    _live_start: IntArray
    _live_stop: IntArray

    @property
    def budget_bytes(self) -> int:
        """What a rank has of the memory."""
        return self.graph.target.memories[self.memory].bytes

    @property
    def fits(self) -> bool:
        """Whether every memory of every rank is large enough for its peak."""
        return not bool(self.graph.overflows.any())

    def in_memory(self, memory: int | str) -> Liveness:
        """The liveness of another memory of the ranks, by place or name. Raises ``OptionError`` for no such one."""
        return self if memory == self.memory else liveness(self.graph, memory)

    def in_every_memory(self) -> tuple[Liveness, ...]:
        """That of each memory that the ranks have of their own, in the target's order."""
        return tuple(self.in_memory(place) for place in self.graph.target.scratch_memories)

    @property
    def fullest_rank(self) -> int:
        """The rank with the highest peak; of equal ones the first."""
        return max(range(self.graph.ranks), key=lambda rank: (self.peak_bytes_by_rank[rank], -rank))

    @property
    def peak_bytes(self) -> int:
        """The peak of the fullest rank."""
        return self.peak_bytes_by_rank[self.fullest_rank]

    @property
    def peak_node(self) -> int:
        """The node at which the fullest rank reaches its peak; -1 in a graph without nodes."""
        return self.peak_node_by_rank[self.fullest_rank]

    @property
    def peak_bound_bytes(self) -> int:
        """The largest sum of live bytes at one time: no placement has a lower peak (in program order). A bound; it need
        not be achievable."""
        return int(self.live_bytes.max(initial=0))

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """Every use after scope, write after scope, read before write and overflow, in program order."""
        return self.violation_columns.records()

    @cached_property
    def violation_columns(self) -> ViolationColumns:
        """The same as columns: no object for each."""
        return find_violations(self.graph)

    def peak_allocation(self, rank: int | None = None) -> int:
        """The allocation (storage row) with which a rank (by default the fullest) comes to its peak; -1: none."""
        return self._peak_allocation[self.fullest_rank if rank is None else rank]

    def held_at_peak(self, rank: int | None = None) -> IntArray:
        """The allocations (storage rows) that a rank, by default the fullest, holds at its peak, in order of making."""
        chosen = self.fullest_rank if rank is None else rank
        top = self.peak_allocation(chosen)
        if top < 0:
            return np.zeros(0, dtype=np.int64)
        graph, storages = self.graph, self.graph.storages
        # The cursor has not come to what is made later; without scopes, what is accessed first may be made later.
        stop = top + 1 if graph.is_scoped else len(storages)
        rows = np.flatnonzero((storages.rank[:stop] == chosen) & (storages.memory[:stop] == self.memory))
        instant = graph.acquired[top]
        held: IntArray = rows[(graph.acquired[rows] <= instant) & (instant <= graph.released[rows])]
        return held

    def peak_holders(self, rank: int | None = None) -> tuple[Holder, ...]:
        """The same allocations, the largest first; equal ones in order of making."""
        rows = self.held_at_peak(rank)
        rows = rows[np.argsort(-self.held_bytes[rows], kind="stable")]
        storages, names = self.graph.storages, self.graph.names
        return tuple(
            Holder(
                allocation=row,
                name=names[storages.name[row]],
                nbytes=int(storages.nbytes[row]),
                held_bytes=int(self.held_bytes[row]),
                location=self.graph.location(int(storages.stack[row])),
            )
            for row in rows.tolist()
        )

    def peak_by_line(self, rank: int | None = None) -> tuple[LineHolder, ...]:
        """What the lines hold at a rank's peak (by default the fullest rank's), the most first; their bytes sum to the
        bytes of all :meth:`peak_holders`."""
        rows = self.held_at_peak(rank)
        if not len(rows):
            return ()
        storages, names = self.graph.storages, self.graph.names
        top = self.peak_allocation(rank)
        dead = self.last_access[rows] < self.graph.acquired[top]
        stacks, first, which = np.unique(storages.stack[rows], return_index=True, return_inverse=True)
        held = np.zeros((2, len(stacks)), dtype=np.int64)
        np.add.at(held[0], which.reshape(-1), self.held_bytes[rows])
        np.add.at(held[1], which.reshape(-1)[dead], self.held_bytes[rows[dead]])
        return tuple(
            LineHolder(
                location=self.graph.location(int(stacks[line])),
                name=names[storages.name[rows[first[line]]]],
                count=int(np.count_nonzero(which.reshape(-1) == line)),
                held_bytes=int(held[0, line]),
                dead_bytes=int(held[1, line]),
            )
            for line in np.lexsort((first, -held[0])).tolist()
        )

    @cached_property
    def _placement(self) -> ScratchPlacement:
        return _placement_of(self)

    def placement(self) -> ScratchPlacement:
        """Where the allocations could lie if each held its bytes only while it is live (as in ``live_bytes``), with a
        peak near ``peak_bound_bytes``: see :mod:`kernscope.memory.placement`. Near-linear in allocations; for large
        ranks fewer orders are tried, and ``limited_ranks`` says so."""
        return self._placement

    def growth(self, rank: int | None = None) -> tuple[Growth, ...]:
        """The loops whose every iteration makes the peak of a rank (by default the fullest) grow; in program order."""
        chosen = self.fullest_rank if rank is None else rank
        return find_growth(self.graph, self.held_at_peak(chosen), chosen)

    def __repr__(self) -> str:
        return (
            f"<Liveness {quote(self.graph.kernel)}: peak {self.peak_bytes:,} of {self.budget_bytes:,} B, "
            f"bound {self.peak_bound_bytes:,} B, violations={len(self.violation_columns)}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("peak", f"{self.peak_bytes:,} B of {self.budget_bytes:,} B"),
            ("largest sum of live bytes", f"{self.peak_bound_bytes:,} B"),
            ("violations", f"{len(self.violation_columns):,}"),
            *((growth.location.short if growth.location else "growth", str(growth)) for growth in self.growth()),
        ]
        rows += [
            (holder.name or f"#{holder.allocation}", f"{holder.held_bytes:,} B" + _place(holder.location))
            for holder in self.peak_holders()[:10]
        ]
        return html_table(f"{self.graph.kernel}: liveness", rows, row_heads=True)


def _place(location: Location | None) -> str:
    return f" at {location.short}" if location else ""


def liveness(graph: GraphColumns, memory: int | str | None = None) -> Liveness:
    """The liveness of a graph's allocations in a memory of its ranks, in program order. Linear in nodes and accesses.

    ``memory`` is a place among the target's memories or a name (``None``: the one where results go). Raises
    ``OptionError`` for none of the ranks' own.

    In program order a node ends before the next one starts, so what an asynchronous operation uses is live at its own
    node; what a ``recv_async`` fills stays live up to its ``wait``, which accesses it.

    Raises ``ArgumentError`` for what is no graph.
    """
    expect_graph(graph, "liveness")
    storages, accesses = graph.storages, graph.accesses
    count = len(graph.nodes)
    bounds = rank_bounds(graph)
    place = _place_of(graph, memory)
    here = storages.memory == place
    held = np.where(here, graph.held_bytes, 0)
    scratch = np.flatnonzero(here)

    of_scratch = here[accesses.storage]
    first_write = _first(accesses, of_scratch & (accesses.mode == Mode.WRITE), len(storages))
    last_access = _last(accesses, of_scratch, len(storages))

    # A kernel's own scope is never closed by a marker: its bytes are held to the end of its rank.
    gone = graph.released[scratch] + (0 if graph.is_scoped else 1)
    cursor = _sum_over(
        count, graph.acquired[scratch], np.minimum(gone, bounds[storages.rank[scratch] + 1]), held[scratch]
    )

    freed_of_access = storages.freed[accesses.storage]
    alive = of_scratch & ((freed_of_access < 0) | (accesses.node < freed_of_access))
    first_alive = _first(accesses, alive, len(storages))
    last_alive = _last(accesses, alive, len(storages))
    used = np.flatnonzero(first_alive >= 0)
    live = _sum_over(count, first_alive[used], last_alive[used] + 1, held[used])

    peak = np.zeros(graph.ranks, dtype=np.int64)
    np.maximum.at(peak, storages.rank[scratch], storages.address[scratch] + held[scratch])
    top = _highest(graph, scratch, held) if graph.is_scoped else _fullest(graph, scratch, held, cursor, bounds)
    return Liveness(
        graph=graph,
        memory=place,
        first_write=_sealed(first_write),
        last_access=_sealed(last_access),
        held_bytes=_sealed(held),
        cursor=_sealed(cursor),
        live_bytes=_sealed(live),
        peak_bytes_by_rank=tuple(peak.tolist()),
        peak_node_by_rank=tuple(
            min(int(graph.acquired[row]) if row >= 0 else first, stop - 1) if stop > first else -1
            for row, first, stop in zip(top, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ),
        peak_allocation=top,
        live_start=first_alive,
        live_stop=last_alive + 1,
    )


def _place_of(graph: GraphColumns, memory: int | str | None) -> int:
    target = graph.target
    if memory is None:
        return target.results_memory
    places = target.scratch_memories
    names = [target.memory_names[place] for place in places]
    if isinstance(memory, str):
        if memory not in names:
            raise OptionError(f"no memory {memory!r} of a rank", help=did_you_mean(memory, names, what="memories"))
        return places[names.index(memory)]
    if memory not in places:
        raise OptionError(f"no memory {memory} of a rank", help=f"the ranks' own are {', '.join(names)}")
    return memory


def _placement_of(live: Liveness) -> ScratchPlacement:
    storages = live.graph.storages
    start, stop = live._live_start, live._live_stop
    address = np.full(len(storages), -1, dtype=np.int64)
    used = np.flatnonzero(start >= 0)
    address[used], placed = place_groups(
        storages.rank[used], live.graph.ranks, start[used], stop[used], live.held_bytes[used]
    )
    return ScratchPlacement(
        address=_sealed(address),
        start=start,
        stop=stop,
        peak_bytes_by_rank=tuple(p.peak_bytes for p in placed),
        bound_bytes_by_rank=tuple(p.bound_bytes for p in placed),
        tried=sum(p.tried for p in {id(p): p for p in placed}.values()),
        limited_ranks=tuple(rank for rank, p in enumerate(placed) if p.limited),
    )


def _first(accesses: AccessTable, chosen: IntArray, storages: int) -> IntArray:
    """By storage the first node of the chosen accesses, -1 where there is none."""
    rows = np.flatnonzero(chosen)[::-1]
    nodes = np.full(storages, -1, dtype=np.int64)
    nodes[accesses.storage[rows]] = accesses.node[rows]
    return nodes


def _last(accesses: AccessTable, chosen: IntArray, storages: int) -> IntArray:
    """By storage the last node of the chosen accesses, -1 where there is none."""
    rows = np.flatnonzero(chosen)
    nodes = np.full(storages, -1, dtype=np.int64)
    nodes[accesses.storage[rows]] = accesses.node[rows]
    return nodes


def _sum_over(count: int, start: IntArray, stop: IntArray, amount: IntArray) -> IntArray:
    """By node the sum of the amounts whose interval [start, stop) holds the node."""
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, start, amount)
    np.subtract.at(change, stop, amount)
    return np.cumsum(change)[:count]


def _highest(graph: GraphColumns, scratch: IntArray, held: IntArray) -> tuple[int, ...]:
    """By rank the first allocation that ends highest, -1 for a rank that allocates nothing."""
    storages = graph.storages
    ends = storages.address[scratch] + held[scratch]
    order = np.lexsort((scratch, -ends, storages.rank[scratch]))
    ranks, first = np.unique(storages.rank[scratch][order], return_index=True)
    top = np.full(graph.ranks, -1, dtype=np.int64)
    top[ranks] = scratch[order[first]]
    return tuple(top.tolist())


def _fullest(
    graph: GraphColumns, scratch: IntArray, held: IntArray, cursor: IntArray, bounds: IntArray
) -> tuple[int, ...]:
    """By rank the first allocation that is acquired at the first node at which the most is held; -1 as above. Where
    lifetimes are automatic, the highest end tells of no such instant: what lies highest may lie there long before."""
    scratch = scratch[held[scratch] > 0]
    acquired = graph.acquired[scratch]
    order = np.lexsort((scratch, acquired))
    top = []
    for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        node = first + int(cursor[first:stop].argmax()) if stop > first else -1
        place = int(np.searchsorted(acquired[order], node))
        found = place < len(order) and acquired[order[place]] == node
        top.append(int(scratch[order[place]]) if found else -1)
    return tuple(top)


def _sealed(column: IntArray) -> IntArray:
    column.flags.writeable = False
    return column
