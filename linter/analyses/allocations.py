"""Which allocations a line makes: those of one line are compared with one another, whatever iteration made them."""

from __future__ import annotations

import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray

__all__ = ["call_parts", "line_numbers"]


def _made_by_composites(graph: Graph) -> IntArray:
    """By storage: whether a composite made it. ``(len(storages),)`` bool."""
    storages, nodes = graph.storages, graph.nodes
    made = np.zeros(len(storages), dtype=np.bool_)
    first = np.append(np.asarray(nodes.command[1:]) == nodes.command[:-1], False) if len(nodes) else made[:0]
    first &= nodes.command == np.arange(len(nodes))
    inside = np.flatnonzero(graph.in_scratch & (storages.born < len(nodes)))
    born = storages.born[inside]
    made[inside] = first[born] & (nodes.stack[born] == storages.stack[inside]) & (storages.stack[inside] >= 0)
    return made


def call_parts(graph: Graph) -> IntArray:
    """By storage which of its call's allocations it is: a composite makes several, the result (0) first."""
    storages = graph.storages
    part = np.zeros(len(storages), dtype=np.int64)
    composite = np.flatnonzero(_made_by_composites(graph))
    # Those of one call follow each other and were made before the same node.
    if len(composite):
        starts = np.ones(len(composite), dtype=np.bool_)
        starts[1:] = (storages.born[composite[1:]] != storages.born[composite[:-1]]) | (np.diff(composite) != 1)
        position = np.arange(len(composite))
        part[composite] = position - np.maximum.accumulate(np.where(starts, position, 0))
    return part


def line_numbers(graph: Graph) -> IntArray:
    """By storage a number, the same for allocations that play the same part at the same call stack, on any rank: of a
    composite's allocations each has a part of its own. -1 for HBM tensors and for allocations of unknown lines."""
    storages, part = graph.storages, call_parts(graph)
    known = graph.in_scratch & (storages.stack >= 0)
    width = int(part.max(initial=0)) + 1
    return np.where(known, storages.stack.astype(np.int64) * width + part, -1)
