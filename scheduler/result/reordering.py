"""What reordering gains: which nodes one schedule starts sooner than another, by source line."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS, Family
from ...ir.source.location import Location
from ...ir.tables import IntArray
from ...machine.units import format_ps

__all__ = ["Moved", "moved_nodes"]


@attrs.frozen
class Moved:
    """The nodes of one operation at one place in the source, in one schedule beside another.

    ``mean_places``: how many nodes of its rank a node overtakes, on average: its place among the starts in the other
    schedule less its place in this one. (What merely starts sooner because all before it ends sooner overtakes nobody.)
    ``mean_ps`` and ``most_ps``: how much earlier they start, on average (rounded to the nearest) and at most. Negative
    numbers: later. ``node`` is the one that overtakes most, ``name`` that of what it writes (empty: unknown, nothing).
    """

    location: Location | None
    op: str
    name: str
    count: int
    mean_places: float
    mean_ps: int
    most_ps: int
    node: int

    def __str__(self) -> str:
        place = self.location.short if self.location else "?"
        places = f"{abs(self.mean_places):.1f} places {'sooner' if self.mean_places >= 0 else 'later'}"
        times = f"{format_ps(abs(self.mean_ps))} {'earlier' if self.mean_ps >= 0 else 'later'}"
        what = f"{self.op} {quote(self.name)}".strip()
        return f"{place}: {what} x {self.count:,}: {places}, {times} on average"


def moved_nodes(graph: Graph, start_ps: IntArray, other_ps: IntArray) -> tuple[Moved, ...]:
    """All places and operations but scope markers, those that overtake most first; ties by node.

    ``start_ps`` and ``other_ps`` are the starts of the graph's nodes in the two schedules, int64 ``(n,)``.
    """
    nodes = np.flatnonzero(~OPERATIONS.mask(lambda op: op.family is Family.MARKER)[graph.nodes.op])
    if not len(nodes):
        return ()
    places = _places(graph, nodes, other_ps) - _places(graph, nodes, start_ps)
    earlier = (other_ps - start_ps)[nodes]
    key = graph.nodes.stack[nodes].astype(np.int64) * len(OPERATIONS) + graph.nodes.op[nodes]
    _, group = np.unique(key, return_inverse=True)
    count = np.bincount(group)
    total_places, total_ps = np.zeros(len(count), dtype=np.int64), np.zeros(len(count), dtype=np.int64)
    np.add.at(total_places, group, places)
    np.add.at(total_ps, group, earlier)
    most_ps = np.full(len(count), np.iinfo(np.int64).min)
    np.maximum.at(most_ps, group, earlier)
    by_places = np.lexsort((nodes, -places, group))
    foremost = nodes[by_places[np.unique(group[by_places], return_index=True)[1]]]
    order = np.lexsort((foremost, -total_places / count))
    return tuple(
        Moved(
            location=graph.location(int(graph.nodes.stack[foremost[row]])),
            op=OPERATIONS.by_code(int(graph.nodes.op[foremost[row]])).name,
            name=next((access.storage.name for access in graph[int(foremost[row])].writes), ""),
            count=int(count[row]),
            mean_places=float(total_places[row] / count[row]),
            mean_ps=round(int(total_ps[row]) / int(count[row])),
            most_ps=int(most_ps[row]),
            node=int(foremost[row]),
        )
        for row in order.tolist()
    )


def _places(graph: Graph, nodes: IntArray, start: IntArray) -> IntArray:
    """For each of the nodes its place among all of them by rank, then by start, then by id."""
    place = inverse_permutation(np.lexsort((nodes, start[nodes], graph.nodes.rank[nodes])))
    return place
