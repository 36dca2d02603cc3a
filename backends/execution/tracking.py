"""Whose bytes are whose: owner and written marks in program order, and the poisoning of rewound bytes in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray
from .memory import POISON, Memory
from .plan import Plan, Plans
from .views import View

__all__ = ["OrderTracker", "ProgramTracker", "Tracker"]

_NOBODY = -1
Nodes = tuple[int, ...]


class Tracker:
    """What happens around the execution of each node. This one does nothing: a run without poison."""

    @property
    def found(self) -> tuple[Nodes, Nodes, Nodes]:
        """Sorted ids of the nodes with a stale read, with a stale write, with a read of unwritten bytes."""
        return (), (), ()

    def before(self, node: int) -> None:
        """A node is about to run."""

    def after(self, node: int, plan: Plan) -> None:
        """A node has run."""


class _Poisoner(Tracker):
    """Counts down what an allocation that will be released still waits for; at zero its bytes are due for poison."""

    def __init__(self, graph: Graph, plans: Plans, memory: Memory) -> None:
        self._plans, self._memory = plans, memory
        storages = graph.storages
        held = graph.held_bytes
        self._is_hbm = plans.is_hbm
        self._arena: list[int] = graph.arena.tolist()
        self._begin: list[int] = storages.address.tolist()
        self._end: list[int] = (storages.address + held).tolist()
        self._released: list[int] = graph.released.tolist()
        self._is_released: list[bool] = (graph.released < len(graph)).tolist()
        self._pending: list[int] = self._count(graph).tolist()

    def _count(self, graph: Graph) -> IntArray:
        """For each storage how many accesses have to run before its bytes are due."""
        raise NotImplementedError

    def _ran(self, storage: int) -> None:
        self._pending[storage] -= 1
        if not self._pending[storage] and self._is_released[storage]:
            self._poison(storage)

    def _poison(self, storage: int) -> None:
        """Fill the bytes that still belong to an allocation."""
        raise NotImplementedError

    def _fill(self, storage: int, belongs: IntArray) -> None:
        begin, end = self._begin[storage], self._end[storage]
        memory = self._memory.scratch[self._arena[storage]]
        if belongs.all():
            memory[begin:end] = POISON
        else:
            memory[begin:end][belongs] = POISON


class OrderTracker(_Poisoner):
    """Any order but program order: an allocation's bytes are poisoned as soon as its last access has run, where it was
    the last to write them. (Bytes it never wrote may still be needed by their previous owner, or hold nothing.)"""

    def __init__(self, graph: Graph, plans: Plans, memory: Memory) -> None:
        super().__init__(graph, plans, memory)
        self._writer = [np.full(len(scratch), _NOBODY, dtype=np.int32) for scratch in memory.scratch]

    def _count(self, graph: Graph) -> IntArray:
        return np.bincount(graph.accesses.storage, minlength=len(graph.storages))

    def after(self, node: int, plan: Plan) -> None:
        plans = self._plans
        first, last = plans.access_start[node], plans.access_start[node + 1]
        for row, view in zip(range(first + len(plan.reads), last), plan.writes, strict=True):
            storage = plans.storage[row]
            if not self._is_hbm[storage]:
                view.marks(self._writer[self._arena[storage]], plans.byte_start[row])[...] = storage
        for storage in plans.storage[first:last]:
            self._ran(storage)

    def _poison(self, storage: int) -> None:
        last_writer = self._writer[self._arena[storage]][self._begin[storage] : self._end[storage]]
        self._fill(storage, last_writer == storage)


class ProgramTracker(_Poisoner):
    """Program order: an owner for every unit of allocation and a written mark for every byte.

    An allocation owns its bytes from its birth to its scope's exit (with an automatic lifetime: from its first access
    to its last one); only writes through views of the owner mark bytes as written. Nodes are judged at their place in
    their rank's program, also where an asynchronous one runs later. Bytes are poisoned when they are released (or when
    the last asynchronous access from before that has run).
    """

    def __init__(self, graph: Graph, plans: Plans, memory: Memory) -> None:
        super().__init__(graph, plans, memory)
        # Allocations begin and end at multiples of the alignment, so one owner for that many bytes is exact.
        places = graph.target.scratch_memories
        self._align = [graph.target.memories[place].align for place in places] * graph.ranks  # by arena
        self._owner = [
            np.full(len(scratch) // align, _NOBODY, dtype=np.int32)
            for scratch, align in zip(memory.scratch, self._align, strict=True)
        ]
        self._written = [np.zeros(len(scratch), dtype=np.bool_) for scratch in memory.scratch]
        storages = graph.storages
        # What is made after a rank's last node is never used, and the next id is another rank's.
        ranks = np.append(graph.nodes.rank, _NOBODY)
        scratch = np.flatnonzero(graph.in_scratch & (ranks[graph.acquired] == storages.rank) & (graph.held_bytes > 0))
        self._acquired = _rows_by_key(scratch, graph.acquired, len(graph))
        self._given_back = _rows_by_key(scratch, graph.released, len(graph))
        bounds = np.searchsorted(graph.nodes.rank, np.arange(graph.ranks))
        self._node_rank: list[int] = graph.nodes.rank.tolist()
        self._next: list[int] = bounds.tolist()
        self._stale_reads: list[int] = []
        self._stale_writes: list[int] = []
        self._unwritten_reads: list[int] = []

    def _count(self, graph: Graph) -> IntArray:
        accesses, released = graph.accesses, graph.released
        in_time = accesses.storage[accesses.node <= released[accesses.storage]]
        return np.bincount(in_time, minlength=len(released)) + 1  # the release counts as one more

    def before(self, node: int) -> None:
        rank = self._node_rank[node]
        while self._next[rank] <= node:
            self._reach(self._next[rank])
            self._next[rank] += 1

    def after(self, node: int, plan: Plan) -> None:
        plans = self._plans
        for storage in plans.storage[plans.access_start[node] : plans.access_start[node + 1]]:
            if node <= self._released[storage]:
                self._ran(storage)
        for storage in self._given_back.get(node, ()):
            self._ran(storage)

    def _poison(self, storage: int) -> None:
        owner = self._owner_of(storage)
        self._fill(storage, np.repeat(owner == _NOBODY, self._align[self._arena[storage]]))

    def _owner_of(self, storage: int) -> IntArray:
        arena = self._arena[storage]
        align = self._align[arena]
        return self._owner[arena][self._begin[storage] // align : self._end[storage] // align]

    def _reach(self, node: int) -> None:
        """A rank's program comes to a node: bytes change owner, and the node's accesses are judged."""
        for storage in self._acquired.get(node, ()):
            self._owner_of(storage)[...] = storage
            self._written[self._arena[storage]][self._begin[storage] : self._end[storage]] = False
        plan = self._plans.plan(node)
        first, last = self._plans.access_start[node], self._plans.access_start[node + 1]
        middle = first + len(plan.reads)
        for row, view in zip(range(first, middle), plan.reads, strict=True):
            if isinstance(view, View):  # the others are of global memory
                self._judge_read(node, row, view)
        for row, view in zip(range(middle, last), plan.writes, strict=True):
            if isinstance(view, View):
                self._judge_write(node, row, view)
        for storage in self._given_back.get(node, ()):
            self._owner_of(storage)[...] = _NOBODY

    def _judge_read(self, node: int, row: int, view: View) -> None:
        storage = self._plans.storage[row]
        if self._is_hbm[storage]:
            return
        if not self._owns(storage, row, view):
            self._stale_reads.append(node)
        elif not view.marks(self._written[self._arena[storage]], self._plans.byte_start[row]).all():
            self._unwritten_reads.append(node)

    def _judge_write(self, node: int, row: int, view: View) -> None:
        storage = self._plans.storage[row]
        if self._is_hbm[storage]:
            return
        if self._owns(storage, row, view):
            view.marks(self._written[self._arena[storage]], self._plans.byte_start[row])[...] = True
        else:
            self._stale_writes.append(node)

    def _owns(self, storage: int, row: int, view: View) -> bool:
        start = self._plans.byte_start[row]
        span = view.itemsize + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
        arena = self._arena[storage]
        align = self._align[arena]
        owner = self._owner[arena][start // align : -(-(start + span) // align)]
        return bool((owner == storage).all())

    @property
    def found(self) -> tuple[Nodes, Nodes, Nodes]:
        return _ids(self._stale_reads), _ids(self._stale_writes), _ids(self._unwritten_reads)


def _ids(nodes: Sequence[int]) -> Nodes:
    return tuple(sorted(set(nodes)))


def _rows_by_key(rows: IntArray, key: IntArray, stop: int) -> dict[int, list[int]]:
    """The rows under each value of their key (below ``stop``), in order."""
    grouped: dict[int, list[int]] = {}
    for row, value in zip(rows.tolist(), key[rows].tolist(), strict=True):
        if value < stop:
            grouped.setdefault(value, []).append(row)
    return grouped
