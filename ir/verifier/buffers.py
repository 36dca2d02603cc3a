"""The verifier on graphs with buffers: scopes and allocations stand where rotating copies put them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays.permutations import group_starts
from ..errors import InfeasibleError
from ..graph import Graph
from ..rebuffer import place_rotating
from ..tables import IntArray

__all__ = ["misplaced"]


def misplaced(graph: Graph, rows: IntArray) -> Iterator[str]:
    """What does not stand where a graph's buffers put it, a message each. ``rows``: its allocations, which follow its
    HBM tensors. Indices must be sound."""
    storages, scopes = graph.storages, graph.scopes
    if graph.buffers < 0:
        yield f"a graph of buffers={graph.buffers}"
        return
    first = group_starts(graph.nodes.rank, graph.ranks)
    scope, rank = storages.scope[rows], storages.rank[rows]
    born = storages.born[rows].astype(np.int64)
    if np.any(np.minimum(scope, rank) < 0):
        yield "an allocation belongs to no scope or no rank"
        return
    # A kernel's own scope reaches from its rank's first node to behind the last one.
    opened = np.where(scopes.enter < 0, first[scopes.rank] - 1, scopes.enter)
    closed = np.where(scopes.exit < 0, first[scopes.rank + 1], scopes.exit)
    for row in rows[(born <= opened[scope]) | (born > closed[scope])].tolist():
        yield f"storage {row} is made outside its scope {int(storages.scope[row])}"
    for row in rows[1:][np.diff(rank * np.int64(len(graph.nodes) + 2) + born) < 0].tolist():
        yield f"storage {row} comes after one that is made later"
    try:
        expected = place_rotating(graph, graph.buffers)
    except InfeasibleError as error:
        yield error.message
        return
    for row in rows[storages.address[rows] != expected.address[rows]].tolist():
        at, right = int(storages.address[row]), int(expected.address[row])
        yield f"storage {row} is at {at:#x}, with buffers={graph.buffers} it belongs at {right:#x}"
    for row in np.flatnonzero(scopes.base != expected.base).tolist():
        at, right = int(scopes.base[row]), int(expected.base[row])
        yield f"scope {row} begins at {at}, with buffers={graph.buffers} it belongs at {right}"
    freed = storages.freed[graph.accesses.storage]
    for row in np.flatnonzero((freed >= 0) & (graph.accesses.node > freed)).tolist():
        yield f"access {row} of node %{int(graph.accesses.node[row])} comes after its allocation's scope"
