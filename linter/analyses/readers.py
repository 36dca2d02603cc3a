"""Which nodes access a storage: the accesses of a graph, looked up by storage."""

from __future__ import annotations

import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray, Mode

__all__ = ["Readers"]


class Readers:
    """The accesses of a graph in order of their storages."""

    def __init__(self, graph: Graph) -> None:
        accesses = graph.accesses
        order = np.argsort(accesses.storage, kind="stable")
        self._node = accesses.node[order]
        self._reads = accesses.mode[order] == Mode.READ
        self._start = np.searchsorted(accesses.storage[order], np.arange(len(graph.storages) + 1))

    def of(self, storage: int) -> IntArray:
        """The nodes that read a storage, ascending."""
        rows = slice(int(self._start[storage]), int(self._start[storage + 1]))
        found: IntArray = self._node[rows][self._reads[rows]]
        return found

    def writers(self, storage: int) -> IntArray:
        """The nodes that write a storage, ascending."""
        rows = slice(int(self._start[storage]), int(self._start[storage + 1]))
        found: IntArray = self._node[rows][~self._reads[rows]]
        return found

    def last_access(self, storage: int) -> int:
        """The last node that reads or writes a storage; -1 for none."""
        start, stop = int(self._start[storage]), int(self._start[storage + 1])
        return int(self._node[stop - 1]) if stop > start else -1
