"""Leaving out data edges that other data edges imply."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.errors import OptionError
from ...ir.tables import IntArray, Reason
from .folding import Folded

__all__ = ["REDUCTION_LIMIT", "reduce_data_edges"]

#: The reduction's memory grows with the square of the boxes: 50 MB at this number.
REDUCTION_LIMIT = 20_000


def reduce_data_edges(folded: Folded) -> tuple[Folded, int]:
    """The transitive reduction of the data edges that lead forward, and how many lines of the picture it saves: one
    from a box to another is left out where a path of other data edges leads from the one to the other.

    Edges of other reasons, and those that lead back to an earlier box (the next iteration), stay as they are. What can
    be reached from where stays the same (Aho, Garey, Ullman, "The transitive reduction of a directed graph", SIAM J.
    Comput. 1 (1972): of an acyclic graph it is unique). Raises ``OptionError`` above 20,000 boxes.
    """
    boxes = len(folded.boxes)
    if boxes > REDUCTION_LIMIT:
        raise OptionError(
            f"{boxes:,} boxes are too many for a transitive reduction (at most {REDUCTION_LIMIT:,})",
            help="fold the graph, or draw one rank or the surroundings of one node",
        )
    edges = folded.edges
    forward = np.flatnonzero((edges.reason == Reason.DATA) & (edges.source < edges.target))
    implied = _implied(edges.source[forward], edges.target[forward], boxes)
    keep = np.ones(len(edges), dtype=np.bool_)
    keep[forward[implied]] = False
    kept = attrs.evolve(edges, **{field.name: getattr(edges, field.name)[keep] for field in attrs.fields(type(edges))})
    return attrs.evolve(folded, edges=kept), int(np.count_nonzero(implied))


def _implied(source: IntArray, target: IntArray, boxes: int) -> IntArray:
    """Which of the edges, all from a lower to a higher number, a path of two or more others implies."""
    order = np.lexsort((target, -source))  # sources downward, so that what targets reach is known; targets upward
    reach: list[int] = [0] * boxes  # bit sets
    implied = np.zeros(len(source), dtype=np.bool_)
    last = (-1, -1)  # of two edges between the same boxes neither implies the other
    for row, here, there in zip(order.tolist(), source[order].tolist(), target[order].tolist(), strict=True):
        if (here, there) == last:
            continue
        if reach[here] >> there & 1:
            implied[row] = True
        else:
            reach[here] |= reach[there] | 1 << there
            last = (here, there)
    return implied
