"""Addresses for allocations of automatic lifetime, in a pass after the trace."""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.tables import StorageTable
from .placement import place_groups

__all__ = ["placed"]


def placed(graph: Graph) -> Graph:
    """The graph with addresses: allocations that live at the same time share no byte, and the peaks are low (see
    :mod:`kernscope.memory.placement`). A new graph; addresses that it had already are forgotten.

    For a graph without scopes. Alignments differ from memory to memory, and all sizes of one are rounded up to its own,
    so that every address is aligned. Addresses may pass a memory's capacity, which liveness and the linter report.
    """
    assert not graph.is_scoped, "the addresses of a graph with scopes are those of its bump allocation"
    rows = np.flatnonzero(graph.held_bytes > 0)
    address = np.zeros(len(graph.storages), dtype=np.int64)
    address[rows], _ = place_groups(
        graph.arena[rows], graph.arenas, graph.acquired[rows], graph.released[rows] + 1, graph.held_bytes[rows]
    )
    storages: StorageTable = StorageTable.make(**{**graph.storages.columns(), "address": address})
    return attrs.evolve(graph, storages=storages)
