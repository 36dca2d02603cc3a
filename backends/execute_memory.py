"""The memory of a run: one byte array per rank for scratch, one per HBM tensor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

import numpy as np

from ..ir.errors import MemoryLimitError
from ..ir.graph import Graph
from ..ir.tables import IntArray, Mode, StorageKind
from .execute_views import Array, View

__all__ = ["Memory", "memory_limit"]


class Memory:
    """Bytes at their traced addresses. ``of_storage[s]`` is the byte array that storage s lies in, ``scratch[r]`` that
    of rank r, as large as its highest rounded allocation end (``high_water_bytes``)."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Array]) -> None:
        self._graph = graph
        storages = graph.storages
        scratch = storages.kind == StorageKind.SCRATCH
        ends = np.zeros(graph.ranks, dtype=np.int64)
        np.maximum.at(ends, storages.rank[scratch], (storages.address + graph.held_bytes)[scratch])
        self.high_water_bytes: tuple[int, ...] = tuple(ends.tolist())
        self.scratch: list[IntArray] = [np.zeros(size, dtype=np.uint8) for size in self.high_water_bytes]
        self._hbm = {row: self._tensor(row, inputs.get(name)) for name, row in graph.tensors.items()}
        ranks = storages.rank.tolist()
        self.of_storage: list[IntArray] = [
            self._hbm[row] if row in self._hbm else self.scratch[rank] for row, rank in enumerate(ranks)
        ]

    def _tensor(self, row: int, value: Array | None) -> IntArray:
        memory = np.zeros(int(self._graph.storages.nbytes[row]), dtype=np.uint8)
        if value is not None:
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
    needed, present = sum(sizes), _physical_bytes()
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


def _physical_bytes() -> int | None:
    """None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
