"""The order in which nodes are executed: program order, a schedule's, or any list of ids; checked against the edges."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.errors import DeadlockError, OrderError
from ...ir.graph import Graph, Node
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Reason

__all__ = ["Order", "TimedNodes", "execution_order", "program_order"]


@runtime_checkable
class TimedNodes(Protocol):
    """What an order needs of a schedule: for each node when it starts and when it ends, in picoseconds."""

    @property
    def start_ps(self) -> IntArray: ...

    @property
    def end_ps(self) -> IntArray: ...


Order = str | TimedNodes | Sequence[int] | IntArray


def execution_order(graph: Graph, order: Order) -> IntArray:
    """The ids of all nodes, each once, in an order that keeps every edge.

    ``order`` is ``"program"``, a schedule (by start, then end, then id; nodes of no duration at one instant by their
    edges), or the ids themselves. Raises ``OrderError`` where it is none of these, names no permutation of the nodes
    or breaks an edge, and ``DeadlockError`` where program order cannot go on.
    """
    if isinstance(order, str):
        if order != "program":
            raise OrderError(f"unknown order {order!r}", help='use "program", a schedule, or a list of node ids')
        return program_order(graph)
    if isinstance(order, TimedNodes):
        return _order_of_schedule(graph, np.asarray(order.start_ps), np.asarray(order.end_ps))
    return _order_of_ids(graph, order)


def _order_of_ids(graph: Graph, order: Sequence[int] | IntArray) -> IntArray:
    n = len(graph)
    ids = np.asarray(order)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise OrderError(
            f"an order is a list of node ids, not {type(order).__name__} of {ids.dtype}", help=_PERMUTATION
        )
    if len(ids) != n:
        raise OrderError(f"the order has {len(ids)} ids, the graph {n} nodes", help=_PERMUTATION)
    outside = ids[(ids < 0) | (ids >= n)]
    if len(outside):
        raise OrderError(f"the order names node {outside[0]}, the graph has nodes 0 to {n - 1}", help=_PERMUTATION)
    ids = ids.astype(np.int64)
    times = np.bincount(ids, minlength=n)
    if n and times.max() > 1:
        raise OrderError(f"the order names node {int(times.argmax())} {times.max()} times", help=_PERMUTATION)
    position = inverse_permutation(ids)
    broken = np.flatnonzero(position[graph.edges.source] > position[graph.edges.target])
    if len(broken):
        raise _broken_edge(graph, int(broken[0]), "the order runs it first")
    return ids


_PERMUTATION = "give every node's id exactly once, each after the nodes it waits for"


def _order_of_schedule(graph: Graph, start: IntArray, end: IntArray) -> IntArray:
    n = len(graph)
    if start.shape != (n,) or end.shape != (n,):
        raise OrderError(
            f"the schedule times {start.shape} and {end.shape} nodes, the graph has {n}",
            help="execute in the order of a schedule of this very graph",
        )
    edges = graph.edges
    early = np.flatnonzero(end[edges.source] > start[edges.target])
    if len(early):
        row = int(early[0])
        times = f"it starts at {start[edges.target[row]]} ps, before {end[edges.source[row]]} ps"
        raise _broken_edge(graph, row, times)
    ids = np.lexsort((np.arange(n), end, start))
    position = inverse_permutation(ids)
    if np.all(position[edges.source] < position[edges.target]):
        return ids
    # Only nodes without duration at one instant can still stand the wrong way round: let their edges decide.
    return _topological(graph, position)


def _topological(graph: Graph, priority: IntArray) -> IntArray:
    """All nodes so that edges hold, the least ``priority`` first among those that are ready."""
    n, edges = len(graph), graph.edges
    waiting = np.bincount(edges.target, minlength=n).tolist()
    by_source = np.argsort(edges.source, kind="stable")
    targets = edges.target[by_source].tolist()
    first = np.searchsorted(edges.source[by_source], np.arange(n + 1)).tolist()
    rank_of = priority.tolist()
    ready = [(rank_of[node], node) for node in range(n) if not waiting[node]]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, node = heapq.heappop(ready)
        done.append(node)
        for target in targets[first[node] : first[node + 1]]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, (rank_of[target], target))
    if len(done) < n:
        raise OrderError(
            f"{n - len(done)} nodes wait for each other at one instant", help="the graph's edges close a cycle"
        )
    return np.array(done, dtype=np.int64)


def _broken_edge(graph: Graph, row: int, how: str) -> OrderError:
    source, target = Node(graph, int(graph.edges.source[row])), Node(graph, int(graph.edges.target[row]))
    reason = Reason(graph.edges.reason[row]).label
    error = OrderError(
        f"the order breaks the {reason} edge %{source.id} {source.op} -> %{target.id} {target.op}: {how}",
        help="every node must come after the nodes it waits for (graph.edges)",
    )
    error.at(source.location, "waited for")
    error.at(target.location, "waits")
    return error


# --- program order --------------------------------------------------------------------------------------------------


def program_order(graph: Graph) -> IntArray:
    """Program order: always the smallest id whose edges are satisfied, in program order within a rank.

    As under the ``lazy`` policy, an asynchronous command whose data is there but which otherwise has to wait (a
    ``recv_async`` for its message) lets its rank go on and runs as soon as its edges are satisfied; everything else
    holds its rank. Raises ``DeadlockError`` with the cycle where all ranks are held.
    """
    if not len(graph.channels):
        return np.arange(len(graph), dtype=np.int64)
    return np.array(_Walk(graph).run(), dtype=np.int64)


class _Walk:
    """All ranks side by side. A candidate that has to wait is filed under one node that it waits for."""

    def __init__(self, graph: Graph) -> None:
        n, edges, nodes = len(graph), graph.edges, graph.nodes
        self._graph = graph
        self._edge_start: list[int] = graph.edge_start.tolist()
        self._source: list[int] = edges.source.tolist()
        blocking = (edges.reason == Reason.DATA) | (edges.reason == Reason.CREDIT)
        # Within a command (a composite) its own nodes wait for each other, its rank does not.
        inner = nodes.command[edges.source] == nodes.command[edges.target]
        self._holds_rank: list[bool] = (blocking & ~inner).tolist()
        across = nodes.rank[edges.source] != nodes.rank[edges.target]
        self._waits_across = np.zeros(n, dtype=np.bool_)
        self._waits_across[edges.target[across]] = True
        composite = np.bincount(nodes.command, minlength=n)[nodes.command] > 1
        asynchronous = OPERATIONS.mask(lambda op: op.asynchronous)[nodes.op]
        self._asynchronous: list[bool] = (asynchronous | composite).tolist()
        self._rank: list[int] = nodes.rank.tolist()
        bounds = np.searchsorted(nodes.rank, np.arange(graph.ranks + 1))
        self._head: list[int] = bounds[:-1].tolist()
        self._stop: list[int] = bounds[1:].tolist()
        self._deferred = [0] * graph.ranks
        self._waiting_for: dict[int, list[int]] = {}
        self._ready: list[int] = []
        self._done = bytearray(n)

    def run(self) -> list[int]:
        """The ids in program order."""
        order: list[int] = []
        for rank in range(self._graph.ranks):
            self._advance(rank)
        while self._ready:
            node = heapq.heappop(self._ready)
            rank = self._rank[node]
            order.append(node)
            self._done[node] = True
            if node == self._head[rank]:
                self._head[rank] += 1
                self._advance(rank)
            else:
                self._deferred[rank] -= 1
            for candidate in self._waiting_for.pop(node, ()):
                if candidate == self._head[self._rank[candidate]]:
                    self._advance(self._rank[candidate])
                else:
                    self._file(candidate)
        if len(order) < len(self._done):
            raise self._deadlock()
        return order

    def _advance(self, rank: int) -> None:
        """Let a rank's program go on to the next node that it has to run or wait for."""
        while (node := self._head[rank]) < self._stop[rank]:
            if self._file(node) or not self._may_defer(node):
                return
            self._deferred[rank] += 1
            self._head[rank] += 1

    def _file(self, node: int) -> bool:
        """Whether a node is ready; if not it is filed under the first node it still waits for."""
        source = self._missing(node)
        if source < 0:
            heapq.heappush(self._ready, node)
            return True
        self._waiting_for.setdefault(source, []).append(node)
        return False

    def _missing(self, node: int) -> int:
        """A node that has to run before this one and has not; -1: none."""
        if not self._waits_across[node] and not self._deferred[self._rank[node]]:
            return -1  # all that it waits for lies before it in its own rank
        missing = -1
        for row in range(self._edge_start[node], self._edge_start[node + 1]):
            if not self._done[self._source[row]]:
                if self._holds_rank[row]:
                    return self._source[row]  # first what holds the rank: after it the node may be deferred
                missing = self._source[row] if missing < 0 else missing
        return missing

    def _may_defer(self, node: int) -> bool:
        """Whether the rank goes on although the node has to wait."""
        rows = range(self._edge_start[node], self._edge_start[node + 1])
        return self._asynchronous[node] and not any(
            self._holds_rank[row] and not self._done[self._source[row]] for row in rows
        )

    def _deadlock(self) -> DeadlockError:
        held = next(rank for rank in range(self._graph.ranks) if self._head[rank] < self._stop[rank])
        node, seen = self._head[held], list[int]()
        while node not in seen:
            seen.append(node)
            source = self._missing(node)
            # A node that its rank has not come to waits for what holds the rank.
            head = self._head[self._rank[source]]
            node = source if source <= head else head
        cycle = [Node(self._graph, i) for i in seen[seen.index(node) :]]
        error = DeadlockError(
            "program order comes to a stop: " + " waits for ".join(f"%{i.id} {i.op} (rank {i.rank})" for i in cycle),
            help="let one rank send before it receives, post the receive first (recv_async), or add slots",
            cycle=[place for i in cycle if (place := i.location)],
            nodes=[i.id for i in cycle],
        )
        for node_ in cycle:
            error.at(node_.location, f"rank {node_.rank} waits")
        return error
