"""Addresses for allocations of automatic lifetime, in a pass after the trace."""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.tables import IntArray, StorageTable
from .next_fit import next_fit
from .placement import place_groups

__all__ = ["placed", "spread"]


def placed(graph: Graph, acquired: IntArray | None = None) -> Graph:
    """The graph with addresses: allocations that live at the same time share no byte, and the peaks are low (see
    :mod:`kernscope.memory.placement`). A new graph; addresses that it had already are forgotten. ``acquired``: by
    storage an earlier node than its first access from which on its bytes are kept for it.

    For a graph without scopes. Alignments differ from memory to memory, and all sizes of one are rounded up to its own,
    so that every address is aligned. Addresses may pass a memory's capacity, which liveness and the linter report.
    """
    assert not graph.is_scoped, "the addresses of a graph with scopes are those of its bump allocation"
    rows = np.flatnonzero(graph.held_bytes > 0)
    start = graph.acquired if acquired is None else np.minimum(acquired, graph.acquired)
    address = np.zeros(len(graph.storages), dtype=np.int64)
    address[rows], _ = place_groups(
        graph.arena[rows], graph.arenas, start[rows], graph.released[rows] + 1, graph.held_bytes[rows]
    )
    return _at(graph, address)


def spread(graph: Graph, acquired: IntArray | None = None) -> Graph | None:
    """The graph with addresses that reuse bytes as late as each memory has room (:mod:`kernscope.memory.next_fit`), so
    that little waits for bytes alone; None where they do not fit so. ``acquired`` as of :func:`placed`."""
    assert not graph.is_scoped, "the addresses of a graph with scopes are those of its bump allocation"
    start = graph.acquired if acquired is None else np.minimum(acquired, graph.acquired)
    address = np.zeros(len(graph.storages), dtype=np.int64)
    for arena in range(graph.arenas):
        rows = np.flatnonzero((graph.arena == arena) & (graph.held_bytes > 0))
        if not len(rows):
            continue
        room = int(graph.target.capacities[graph.storages.memory[rows[0]]])
        found = next_fit(start[rows], graph.released[rows] + 1, graph.held_bytes[rows], room)
        if found is None:
            return None
        address[rows] = found
    return _at(graph, address)


def _at(graph: Graph, address: IntArray) -> Graph:
    storages: StorageTable = StorageTable.make(**{**graph.storages.columns(), "address": address})
    return attrs.evolve(graph, storages=storages)
