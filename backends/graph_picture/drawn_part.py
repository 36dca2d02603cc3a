"""Drawing a part of a graph: one rank, or the neighbourhood of a node."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.errors import OptionError, shown
from ...ir.forms.counts import plural
from ...ir.graph import Graph
from ...ir.tables import IntArray

__all__ = ["Selection", "select"]


@attrs.frozen(eq=False)
class Selection:
    """Which nodes are drawn: the mask ``keep``, shape ``(n,)`` (None: all), the node in ``focus`` (-1: none), and what
    there is to say about what is left out."""

    keep: IntArray | None = None
    focus: int = -1
    notes: tuple[str, ...] = ()


def select(graph: Graph, *, rank: int | None = None, around: int | None = None, hops: int = 2) -> Selection:
    """The nodes of a ``rank``; or those at most ``hops`` edges, in either direction, away from the node ``around``; or
    those of both.

    Raises ``OptionError`` for a rank or node that the graph does not have, and for fewer than 0 hops.
    """
    for name, value in (("rank", rank), ("around", around), ("hops", hops)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
            raise OptionError(f"{name}={shown(value)}", help="pass a whole number")
    if rank is None and around is None:
        return Selection()
    keep: IntArray = np.ones(len(graph), dtype=np.bool_)
    said = []
    if rank is not None:
        if not 0 <= rank < graph.ranks:
            raise OptionError(f"no rank {rank}", help=f"the graph has the ranks 0 to {graph.ranks - 1}")
        keep = graph.nodes.rank == rank
        said.append(f"rank {rank} of {graph.ranks}")
    focus = -1
    if around is not None:
        focus = _focus(graph, around, hops, keep)
        keep = keep & _near(graph, focus, hops)
        said.append(f"up to {plural(hops, 'edge')} from node %{focus}")
    edges = graph.edges
    crossing = int(np.count_nonzero(keep[edges.source] != keep[edges.target]))
    left = f"; {crossing:,} edges to what is left out are not drawn" if crossing else ""
    return Selection(keep, focus, (f"{', '.join(said)}{left}",))


def _focus(graph: Graph, around: int, hops: int, keep: IntArray) -> int:
    if not 0 <= around < len(graph):
        known = f"the ids are 0 to {len(graph) - 1:,}" if len(graph) else "the graph has no nodes"
        raise OptionError(f"no node {around}", help=f"{known}; kernscope trace prints them")
    if hops < 0:
        raise OptionError(f"{hops} hops", help="give 0 or more edges to follow from the node")
    if not keep[around]:
        rank = int(graph.nodes.rank[around])
        raise OptionError(f"node {around} is on rank {rank}", help="leave the rank out, or give that one")
    return around


def _near(graph: Graph, node: int, hops: int) -> IntArray:
    """A mask of what is reached by so many edges. Linear in the edges for each hop."""
    edges = graph.edges
    near: IntArray = np.zeros(len(graph), dtype=np.bool_)
    near[node] = True
    for _ in range(hops):
        before = near.copy()
        near[edges.target[before[edges.source]]] = True
        near[edges.source[before[edges.target]]] = True
        if np.array_equal(before, near):
            break
    return near
