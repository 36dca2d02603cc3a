"""Edges between accesses of global memory and what orders them: a signal to another rank, and the wait for one.

A notification leaves when all accesses of global memory before it on its rank have ended; those after a wait for one
begin when it has come. Each access is joined to the next notification and to the last wait only: the notifications of a
rank follow each other, and so do its waits.
"""

from __future__ import annotations

import numpy as np

from ..arrays.distinct import distinct
from ..columns import GraphColumns
from ..ops import OPERATIONS, Orders
from ..tables import IntArray, Reason
from .edge_rows import EdgeRows, edge_rows

__all__ = ["find_order"]


def find_order(graph: GraphColumns, rows: EdgeRows) -> None:
    """Add them. Nothing is looked at where no operation orders anything."""
    nodes = graph.nodes
    before = np.flatnonzero(OPERATIONS.mask(lambda op: op.orders is Orders.BEFORE)[nodes.op])
    after = np.flatnonzero(OPERATIONS.mask(lambda op: op.orders is Orders.AFTER)[nodes.op])
    if not len(before) and not len(after):
        return
    accesses = graph.accesses
    touching = distinct(accesses.node[~graph.in_scratch[accesses.storage]]).astype(np.int64)
    rank = nodes.rank

    def add(source: IntArray, target: IntArray) -> None:
        same = rank[source] == rank[target]
        rows.append(edge_rows(source[same], target[same], Reason.ORDER))

    add(before[:-1], before[1:])
    add(after[:-1], after[1:])
    following = np.searchsorted(before, touching)
    there = following < len(before)
    add(touching[there], before[following[there]])
    for targets in (touching, before):
        last = np.searchsorted(after, targets) - 1
        there = last >= 0
        add(after[last[there]], targets[there])
