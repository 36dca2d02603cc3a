"""The verifier on graphs whose allocations have automatic lifetimes: what lives at the same time shares no byte."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from ..arrays.permutations import group_starts
from ..graph import Graph
from ..tables import IntArray

__all__ = ["badly_placed"]


def badly_placed(graph: Graph, rows: IntArray) -> Iterator[str]:
    """What a placement did wrong, a message each. ``rows``: the graph's allocations, which follow its HBM tensors.
    Indices must be sound."""
    storages = graph.storages
    if graph.buffers:
        yield f"a graph without scopes, of buffers={graph.buffers}"
    first = group_starts(graph.nodes.rank, graph.ranks)
    rank, born = storages.rank[rows], storages.born[rows].astype(np.int64)
    for row in rows[(born < first[rank]) | (born > first[rank + 1])].tolist():
        yield f"storage {row} is made outside its rank's nodes"
    for row in rows[1:][np.diff(rank * np.int64(len(graph.nodes) + 2) + born) < 0].tolist():
        yield f"storage {row} comes after one that is made later"
    address, held, arena = storages.address[rows], graph.held_bytes[rows], graph.arena[rows]
    align = np.array([memory.align for memory in graph.target.memories], dtype=np.int64)[storages.memory[rows]]
    for row in rows[address % align != 0].tolist():
        yield f"storage {row} is at {int(storages.address[row]):#x}, which is no address of its memory"
    # One behind the other they would still end within this, if not within the memory.
    together = np.zeros(graph.arenas, dtype=np.int64)
    np.add.at(together, arena, held)
    reach = np.maximum(together[arena], graph.target.capacities[storages.memory[rows]])
    for row in rows[address > reach - held].tolist():
        yield f"storage {row} is at {int(storages.address[row]):#x}, beyond its memory and all that lies in it"
    yield from _shared_while_live(graph, rows[held > 0])


def _shared_while_live(graph: Graph, rows: IntArray) -> Iterator[str]:
    """A sweep over time; by arena what is live lies sorted by address, and what comes meets only its neighbours."""
    # What is released after a node makes room for what is acquired at a later one.
    events = [(node, 1, row) for node, row in zip(graph.acquired[rows].tolist(), rows.tolist(), strict=True)]
    events += [(node + 1, 0, row) for node, row in zip(graph.released[rows].tolist(), rows.tolist(), strict=True)]
    arena, begin = graph.arena.tolist(), graph.storages.address.tolist()
    end = (graph.storages.address + graph.held_bytes).tolist()
    live: list[list[tuple[int, int]]] = [[] for _ in range(graph.arenas)]  # by arena: (address, row)
    for _, opens, row in sorted(events):
        here, own = live[arena[row]], (begin[row], row)
        place = bisect_left(here, own)
        if not opens:
            del here[place]
            continue
        for _, other in here[max(place - 1, 0) : place + 1]:
            if begin[other] < end[row] and begin[row] < end[other]:
                yield f"storages {other} and {row} share bytes while both are live"
        insort(here, own)
