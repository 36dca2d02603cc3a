"""Edges from accesses and channels.

Within one storage accesses meet element by element; between allocations that share bytes, by their covering byte
ranges. The rule is the same for each element (or byte), in program order:

* the state is the last writer and the readers since;
* a read waits for the last writer (``data``);
* a write waits for the readers since the last write (``war``), or where there are none for the last writer (``waw``);
* a node that reads and writes reads first, and never waits for itself.

Both levels cut their space into cells at the bounds that occur, list for each cell the accesses that cover it in
program order, and find the edges of all cells at once. The work is proportional to the number of (access, cell) pairs.

HBM is shared by the ranks but joins none of them: a rank's accesses to a tensor are a storage of their own. What orders
them between ranks are messages without bytes (:mod:`kernscope.ir.dependence.order`).
"""

from __future__ import annotations

import numpy as np

from ..columns import GraphColumns
from ..ops import OPERATIONS
from ..tables import EdgeTable, Reason
from .between import find_between_allocations
from .edge_rows import EdgeRows, edge_rows
from .order import find_order
from .within import find_within_storages

__all__ = ["find_edges"]


def find_edges(graph: GraphColumns) -> EdgeTable:
    """All edges of a graph, each pair once, with the first reason of :class:`Reason` that holds."""
    rows: EdgeRows = []
    first_last = find_within_storages(graph, rows)
    find_between_allocations(graph, first_last, rows)
    _messages(graph, rows)
    find_order(graph, rows)
    _decisions(graph, rows)
    return _merge(rows, len(graph.nodes))


def _merge(rows: EdgeRows, count: int) -> EdgeTable:
    """Sort by target, source and reason; keep the first of each pair. A pair is recycled if any of its edges is."""
    if not rows:
        empty = np.zeros(0, dtype=np.int64)
        table: EdgeTable = EdgeTable.make(source=empty, target=empty, reason=empty, recycled=empty)
        return table
    source, target, reason, recycled = (
        np.concatenate([np.asarray(row[i], dtype=np.int64) for row in rows]) for i in range(4)
    )
    # One integer per edge: pair, then reason, then not recycled; so that sorting once orders everything.
    key = ((target * count + source) * 8 + reason) * 2 + (1 - recycled)
    key.sort()
    pair = key >> 4
    keep = np.ones(len(key), dtype=np.bool_)
    keep[1:] = pair[1:] != pair[:-1]
    chosen = key[keep]
    made: EdgeTable = EdgeTable.make(
        source=pair[keep] % count,
        target=pair[keep] // count,
        reason=(chosen >> 1) & 7,
        recycled=(chosen & 1) == 0,
    )
    return made


def _decisions(graph: GraphColumns, rows: EdgeRows) -> None:
    """What follows a decision in its rank, up to the next one, waits for it; through the edges among them, all but the
    nodes that none of them comes before."""
    nodes = graph.nodes
    decisions = np.flatnonzero(nodes.op == OPERATIONS.code("decide"))
    if not len(decisions):
        return
    node = np.arange(len(nodes))
    place = np.searchsorted(decisions, node) - 1  # the last one before each node
    last = decisions[np.maximum(place, 0)]
    follows = (place >= 0) & (nodes.rank[last] == nodes.rank)
    # A node that waits for another one behind the decision waits for it, too.
    behind = np.zeros(len(nodes), dtype=np.bool_)
    for source, target, _, _ in rows:
        own = follows[target] & (source > last[target])
        behind[target[own]] = True
    targets = np.flatnonzero(follows & ~behind)
    rows.append(edge_rows(last[targets], targets, Reason.CONTROL))


def _messages(graph: GraphColumns, rows: EdgeRows) -> None:
    """Per channel: the i-th receive waits for the i-th send, the send that needs a slot for the receive that frees it,
    and sends and receives each keep their order."""
    nodes = graph.nodes
    sends = np.flatnonzero(OPERATIONS.sends[nodes.op])
    recvs = np.flatnonzero(OPERATIONS.receives[nodes.op])
    for channel in range(len(graph.channels)):
        sent = sends[nodes.channel[sends] == channel]
        received = recvs[nodes.channel[recvs] == channel]
        matched = min(len(sent), len(received))
        slots = graph.target.slots
        rows.append(edge_rows(sent[:matched], received[:matched], Reason.MESSAGE))
        credited = min(len(received), max(len(sent) - slots, 0))
        rows.append(edge_rows(received[:credited], sent[slots : slots + credited], Reason.CREDIT))
        rows.append(edge_rows(sent[:-1], sent[1:], Reason.FIFO))
        rows.append(edge_rows(received[:-1], received[1:], Reason.FIFO))
