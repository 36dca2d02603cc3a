"""Results that nobody reads. Where a result also escapes its scope, the rules of that (KS201, KS202) speak."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...memory.liveness import Liveness, ViolationKind
from .allocations import call_parts, line_numbers
from .overwritten import OverwrittenLoad

__all__ = ["Unread", "destination", "find_unread"]

_POSTED = OPERATIONS.mask(lambda op: op.asynchronous)
#: Large enough for any node.
_NEVER = np.iinfo(np.int64).max


@attrs.frozen(eq=False)
class Unread:
    """What nobody reads. ``copies``: the copies (nodes) that KS203 speaks of; ``loads``: the loads of KS301;
    ``allocations``: the storage rows of KS302."""

    copies: IntArray
    loads: IntArray
    allocations: IntArray


def find_unread(graph: Graph, live: Liveness, overwritten_loads: list[OverwrittenLoad], *, messages: bool) -> Unread:
    """All of it; of received messages only those that were posted and never waited for, unless ``messages`` asks for
    them. What is written over before anything reads
    it is left to ``overwritten_loads``."""
    storages, accesses = graph.storages, graph.accesses
    reading = np.flatnonzero((accesses.mode == Mode.READ) & ~OPERATIONS.waits[_ops(graph, accesses.node)])
    last_read = np.full(len(storages), -1, dtype=np.int64)
    last_read[accesses.storage[reading]] = accesses.node[reading]  # rows are in program order: the last one stays
    freed = np.where(storages.freed >= 0, storages.freed, _NEVER).astype(np.int64)
    escaped = _escaped(graph, live)

    overwritten = np.array([lost.node for lost in overwritten_loads], dtype=np.int64)
    copies = _dead_copies(graph, last_read, freed, escaped)
    loads = np.setdiff1d(_dead_loads(graph, freed, escaped), overwritten)
    blamed = escaped.copy()
    for nodes in (copies, loads, overwritten):
        blamed[destination(graph, nodes)] = True
    # A composite's buffers are its own business, of which it may need one only.
    unread = (graph.held_bytes > 0) & (last_read < 0) & ~blamed & (call_parts(graph) == 0)
    if not messages:
        ops = _ops(graph, accesses.node)
        received = (accesses.mode == Mode.WRITE) & OPERATIONS.receives[ops]
        # A receive that was posted orders nothing as long as nobody waits for it.
        waited = np.zeros(len(storages), dtype=np.bool_)
        waited[accesses.storage[OPERATIONS.waits[ops]]] = True
        unread[accesses.storage[received & ~_POSTED[ops]]] = False
        blamed |= waited
        unread &= ~waited
    # A line whose result is read in some iteration, or on some rank, cannot be left out.
    line = line_numbers(graph)
    used = np.unique(line[(last_read >= 0) | blamed])
    return Unread(copies, loads, np.flatnonzero(unread & ~np.isin(line, used[used >= 0])))


def _ops(graph: Graph, nodes: IntArray) -> IntArray:
    codes: IntArray = graph.nodes.op[nodes]
    return codes


def _escaped(graph: Graph, live: Liveness) -> IntArray:
    """By storage whether KS201 or KS202 speaks of it."""
    escaped = np.zeros(len(graph.storages), dtype=np.bool_)
    for kind in (ViolationKind.USE_AFTER_SCOPE, ViolationKind.WRITE_AFTER_SCOPE):
        escaped[live.violation_columns.of(kind).allocation] = True
    return escaped


def destination(graph: Graph, nodes: IntArray) -> IntArray:
    """The storage that each of these nodes writes: its last access."""
    storage: IntArray = graph.accesses.storage[graph.access_start[nodes + 1] - 1]
    return storage


def _dead_loads(graph: Graph, freed: IntArray, escaped: IntArray) -> IntArray:
    """Loads of which no element is read before their destination's scope exits."""
    loads = np.flatnonzero(OPERATIONS.loads[graph.nodes.op])
    target = destination(graph, loads)
    loads = loads[(freed[target] < _NEVER) & (freed[target] > loads) & ~escaped[target]]
    return _without_reader(graph, loads, freed, Reason.DATA)


def _dead_copies(graph: Graph, last_read: IntArray, freed: IntArray, escaped: IntArray) -> IntArray:
    """Copies made in the very scope that frees their destination, after which nothing reads it; of a line that once
    copies what is read later (in all iterations but the last, say) none."""
    nodes, storages = graph.nodes, graph.storages
    every = np.flatnonzero(OPERATIONS.copies[nodes.op])
    every = every[nodes.command[every] == every]
    target = destination(graph, every)
    own = (nodes.scope[every] == storages.scope[target]) & (freed[target] < _NEVER) & (freed[target] > every)
    candidates = every[own & ~escaped[target]]
    unread = np.intersect1d(
        _without_reader(graph, candidates, freed, Reason.DATA),
        np.union1d(
            candidates[last_read[destination(graph, candidates)] <= candidates],
            _without_reader(graph, candidates, freed, Reason.WAW),
        ),
    )
    useful = np.setdiff1d(every, unread)
    line = line_numbers(graph)
    pairs = _pairs(nodes.stack[every], line[target])
    useful_pairs = pairs[np.searchsorted(every, useful)]
    return unread[~np.isin(pairs[np.searchsorted(every, unread)], useful_pairs)]


def _pairs(a: IntArray, b: IntArray) -> IntArray:
    width = int(b.max(initial=0)) + 2
    return a.astype(np.int64) * width + b


def _without_reader(graph: Graph, nodes: IntArray, freed: IntArray, reason: Reason) -> IntArray:
    """Those of the nodes from which no edge of a reason leads to a node before their destination's scope exits."""
    if not len(nodes):
        return nodes
    edges = graph.edges
    until = np.full(len(graph.nodes), -1, dtype=np.int64)
    until[nodes] = freed[destination(graph, nodes)]
    has = np.zeros(len(graph.nodes), dtype=np.bool_)
    # A `wait` reads nothing itself.
    chosen = (edges.reason == reason) & (edges.target < until[edges.source])
    chosen &= ~OPERATIONS.waits[_ops(graph, edges.target)]
    has[edges.source[chosen]] = True
    return nodes[~has[nodes]]
