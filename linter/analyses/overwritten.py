"""Loads whose bytes are all written over before anything reads them, and what was read in their place."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...ir.unstored import access_boxes, uncovered

__all__ = ["OverwrittenLoad", "find_overwritten_loads"]


@attrs.frozen
class OverwrittenLoad:
    """A load (node) that nothing reads before ``writer``, the last of those that write over its bytes.

    ``reader`` is the read that met other bytes in its place, and ``read_load`` the load that these came from: between
    the two the last read of another buffer that the same lines fill, or else the first read of what ``writer`` loaded.
    None where there is neither.
    """

    node: int
    writer: int
    reader: int | None
    read_load: int | None


def find_overwritten_loads(graph: Graph) -> list[OverwrittenLoad]:
    """All of them, in program order; those of composites, which have their own streams, left out."""
    loads = np.flatnonzero(OPERATIONS.loads[graph.nodes.op] & (graph.nodes.command == np.arange(len(graph))))
    edges, target = graph.edges, _target(graph)
    reads = (edges.reason == Reason.DATA) & ~OPERATIONS.waits[graph.nodes.op[edges.target]]
    is_read = np.zeros(len(graph), dtype=np.bool_)
    is_read[edges.source[reads]] = True
    unread = np.zeros(len(graph), dtype=np.bool_)
    unread[loads[~is_read[loads]]] = True
    over = np.flatnonzero(unread[edges.source] & (edges.reason == Reason.WAW))
    freed = graph.storages.freed[target[edges.source[over]]]
    own = target[edges.source[over]] == target[edges.target[over]]
    over = over[own & ((freed < 0) | (edges.target[over] < freed))]
    if not len(over):
        return []
    over = over[np.argsort(edges.source[over], kind="stable")]
    nodes, first = np.unique(edges.source[over], return_index=True)
    writers = np.split(edges.target[over].astype(np.int64), first[1:])
    lost = [(node, by) for node, by in zip(nodes.tolist(), writers, strict=True) if _covers(graph, node, np.sort(by))]
    seen = _Reads(graph, loads, target)
    return [seen.explained(node, int(by.max())) for node, by in lost]


def _target(graph: Graph) -> IntArray:
    """By node the storage that it writes; -1 for none."""
    found = np.full(len(graph), -1, dtype=np.int64)
    writes = np.flatnonzero((graph.accesses.mode == Mode.WRITE) & graph.in_scratch[graph.accesses.storage])
    found[graph.accesses.node[writes]] = graph.accesses.storage[writes]
    return found


def _covers(graph: Graph, node: int, writers: IntArray) -> bool:
    """Whether these nodes together write over all that a node wrote."""
    accesses = graph.accesses
    mine, others = graph.access_start[node + 1] - 1, graph.access_start[writers + 1] - 1
    same = (accesses.offset[others] == accesses.offset[mine]) & (accesses.layout[others] == accesses.layout[mine])
    if same.any():
        return True
    _, lower, upper = access_boxes(graph, np.array([mine]))
    _, lowers, uppers = access_boxes(graph, others)
    boxes = zip(lower.tolist(), upper.tolist(), strict=True)
    return not any(True for low, high in boxes for _ in uncovered(tuple(low), tuple(high), lowers, uppers))


class _Reads:
    """Which reads met the bytes of which loads, by the buffers that the same lines fill."""

    def __init__(self, graph: Graph, loads: IntArray, target: IntArray) -> None:
        edges = graph.edges
        is_load = np.zeros(len(graph), dtype=np.bool_)
        is_load[loads] = True
        rows = np.flatnonzero((edges.reason == Reason.DATA) & is_load[edges.source])
        rows = rows[~OPERATIONS.waits[graph.nodes.op[edges.target[rows]]]]
        reader, load = edges.target[rows].astype(np.int64), edges.source[rows].astype(np.int64)
        self._first_reader = np.full(len(graph), len(graph), dtype=np.int64)
        np.minimum.at(self._first_reader, load, reader)
        self._nodes, self._target = len(graph), target
        self._family = _families(graph, loads, target)
        # By family, then in program order: one number says both.
        key = self._family[target[load]] * self._nodes + reader
        order = np.argsort(key, kind="stable")
        self._key, self._reader, self._load = key[order], reader[order], load[order]
        self._storage = target[self._load]
        # For each read the last one before it that met another storage; whoever uses it checks that it is his family's.
        changes = np.ones(len(order), dtype=np.bool_)
        changes[1:] = self._storage[1:] != self._storage[:-1]
        self._before = np.maximum.accumulate(np.where(changes, np.arange(len(order)), 0)) - 1

    def explained(self, node: int, writer: int) -> OverwrittenLoad:
        """What was read in the place of a load that ``writer`` wrote over."""
        mine = self._target[node]
        base = self._family[mine] * self._nodes
        begin, end = np.searchsorted(self._key, [base + node, base + writer]).tolist()
        row = end - 1
        if row >= begin and self._storage[row] == mine:
            row = int(self._before[row])
        if row >= begin:
            return OverwrittenLoad(node, writer, int(self._reader[row]), int(self._load[row]))
        reader = int(self._first_reader[writer])
        return OverwrittenLoad(node, writer, *((reader, writer) if reader < self._nodes else (None, None)))


def _families(graph: Graph, loads: IntArray, target: IntArray) -> IntArray:
    """A number for each storage, the same for those of one layout and rank that a line of loads fills in turn, and for
    all that are joined so by several lines."""
    storages = graph.storages
    number = np.arange(len(storages), dtype=np.int64)
    key = np.column_stack((graph.nodes.stack[loads], storages.layout[target[loads]], graph.nodes.rank[loads]))
    _, line = np.unique(key, axis=0, return_inverse=True)
    line = line.reshape(-1)
    while True:
        least = np.full(int(line.max(initial=-1)) + 1, len(storages), dtype=np.int64)
        np.minimum.at(least, line, number[target[loads]])
        before = number.copy()
        np.minimum.at(number, target[loads], least[line])
        if np.array_equal(number, before):
            return number
