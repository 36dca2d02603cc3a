"""The memory of a run: one byte array for each memory of each rank, one for each tensor in global memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import numpy as np

from ...ir.arrays.physical import physical_bytes
from ...ir.errors import MemoryLimitError
from ...ir.graph import Graph
from ...ir.tables import IntArray, Mode
from .views import Array, View

__all__ = ["POISON", "Memory", "memory_limit"]

#: What outputs begin with, and rewound bytes are filled with: all bits set is NaN in every float dtype (f32, f16, bf16,
#: f8e4m3, f8e5m2), -1 in signed and the largest number in unsigned integers, and true.
POISON = 0xFF


class Memory:
    """Bytes at their traced addresses; a tensor without input starts as poison.

    ``of_storage[s]`` is the byte array that storage s lies in, ``scratch[a]`` that of arena a (``graph.arena``: with
    one memory a rank, the rank), as large as its highest rounded allocation end (``high_water_bytes``).
    """

    def __init__(self, graph: Graph, inputs: Mapping[str, Array], poison: int = POISON) -> None:
        self._graph, self._poison = graph, poison
        storages = graph.storages
        scratch = graph.in_scratch
        ends = np.zeros(graph.arenas, dtype=np.int64)
        np.maximum.at(ends, graph.arena[scratch], (storages.address + graph.held_bytes)[scratch])
        self.high_water_bytes: tuple[int, ...] = tuple(ends.tolist())
        self.scratch: list[IntArray] = [np.zeros(size, dtype=np.uint8) for size in self.high_water_bytes]
        self._hbm = {row: self._tensor(row, inputs.get(name)) for name, row in graph.tensors.items()}
        self.of_storage: list[IntArray] = [
            self._hbm[row] if row in self._hbm else self.scratch[arena]
            for row, arena in enumerate(graph.arena.tolist())
        ]

    def _tensor(self, row: int, value: Array | None) -> IntArray:
        nbytes = int(self._graph.storages.nbytes[row])
        if value is None:
            return np.full(nbytes, self._poison, dtype=np.uint8)
        memory = np.empty(nbytes, dtype=np.uint8)
        View.of(self._graph.layouts[self._graph.storages.layout[row]]).write(memory, 0, value)
        return memory

    def outputs(self) -> dict[str, Array]:
        """A copy of every tensor that is stored to, by name, in argument order."""
        accesses, graph = self._graph.accesses, self._graph
        written = set(accesses.storage[accesses.mode == Mode.WRITE].tolist())
        return {
            name: View.of(graph.layouts[graph.storages.layout[row]]).read(self._hbm[row], 0)
            for name, row in graph.tensors.items()
            if row in written
        }


@contextlib.contextmanager
def memory_limit(graph: Graph) -> Iterator[None]:
    """Raise ``MemoryLimitError`` where the HBM tensors alone take more than this machine's physical memory (the system
    may grant it all the same, and end the process when the bytes are touched), or where memory ends inside."""
    sizes = graph.storages.nbytes[list(graph.tensors.values())].tolist()
    needed, present = sum(sizes), physical_bytes()
    if present is not None and needed > present:
        raise _memory_error(graph, sizes, f"this machine has {present:,} B of memory")
    try:
        yield
    except MemoryError as error:
        raise _memory_error(graph, sizes, "memory ended while they were made or computed") from error


def _memory_error(graph: Graph, sizes: list[int], why: str) -> MemoryLimitError:
    largest = max(zip(sizes, graph.tensors, strict=True), default=(0, "none"))
    return MemoryLimitError(
        f"the HBM tensors of {graph.kernel} take {sum(sizes):,} B (the largest, {largest[1]!r}, {largest[0]:,} B), and "
        + why,
        help="execute a smaller launch; tracing, linting and scheduling need no tensor's memory",
    )
