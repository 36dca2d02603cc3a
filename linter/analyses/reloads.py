"""Loads of what scratch already holds."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.dependence.regions import boxes
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode
from ...memory.violations import rank_bounds

__all__ = ["Reload", "find_reloads"]


@attrs.frozen
class Reload:
    """A load (node) of a region that the load ``held_by`` brought into a handle that still holds it unchanged."""

    node: int
    held_by: int


@attrs.frozen(eq=False)
class _Loads:
    """Loads by region (all that makes two of them read the same: rank, tensor, place, view, what is padded), within a
    region in program order. ``until``: the first node at which the handle no longer holds it."""

    node: IntArray
    region: IntArray
    until: IntArray


def find_reloads(graph: Graph) -> list[Reload]:
    """All of them, by node. Composites stream on purpose: their loads neither count nor are counted.

    A handle holds the region until its bytes are released, or written; or until its rank writes to the region in HBM. A
    tensor to whose region another rank writes is never held: nothing says when.
    """
    loads = _loads(graph)
    if not len(loads.node):
        return []
    # The load before, of the same region, whose handle holds it longest: a running maximum within each region.
    base = loads.region * (len(graph) + 2)
    longest = np.maximum.accumulate(base + loads.until)
    holder = np.maximum.accumulate(np.where(base + loads.until == longest, np.arange(len(base)), 0))
    same = loads.region[1:] == loads.region[:-1]
    again = np.flatnonzero(same & (longest[:-1] - base[1:] >= loads.node[1:])) + 1
    pairs = sorted(zip(loads.node[again].tolist(), loads.node[holder[again - 1]].tolist(), strict=True))
    return [Reload(node, held_by) for node, held_by in pairs]


def _loads(graph: Graph) -> _Loads:
    nodes, accesses = graph.nodes, graph.accesses
    first_row, last_row = graph.access_start[:-1], graph.access_start[1:] - 1
    composite = np.zeros(len(nodes), dtype=np.bool_)
    composite[1:] |= nodes.command[1:] != np.arange(1, len(nodes))
    composite[:-1] |= composite[1:] & (nodes.command[1:] != np.arange(1, len(nodes)))
    # One with a single access pads all it gives: it reads nothing.
    chosen = OPERATIONS.loads[nodes.op] & ~composite & (last_row == first_row + 1)
    node = np.flatnonzero(chosen)
    if not len(node):
        return _Loads(node, node, node)
    source = first_row[node]
    region = distinct_rows(
        nodes.rank[node],
        accesses.storage[source],
        accesses.offset[source],
        accesses.layout[source],
        nodes.attributes[node],
    ).which
    order = np.argsort(region, kind="stable")
    order = order[np.bincount(region)[region[order]] > 1]
    node, region, source = node[order], region[order], source[order]
    if not len(node):
        return _Loads(node, region, node)
    target = last_row[node]
    released = graph.released[accesses.storage[target]]
    until = np.minimum(released, _next_write(graph, target))
    until = np.minimum(until, _next_store(graph, source))
    until[node > released] = 0
    return _Loads(node, region, until)


def _next_write(graph: Graph, rows: IntArray) -> IntArray:
    """By write access (row) the next node that writes some of the same elements of its allocation; the number of nodes
    where there is none. Parts of an allocation count as apart where all that is ever written to it are such parts."""
    accesses = graph.accesses
    concerned = np.zeros(len(graph.storages), dtype=np.bool_)
    concerned[accesses.storage[rows]] = True
    writes = np.flatnonzero((accesses.mode == Mode.WRITE) & concerned[accesses.storage])
    part = _parts(graph, writes)
    order = np.lexsort((writes, part))
    following = np.full(len(writes), len(graph), dtype=np.int64)
    same = part[order[1:]] == part[order[:-1]]
    following[order[:-1][same]] = accesses.node[writes[order[1:][same]]]
    found: IntArray = following[np.searchsorted(writes, rows)]
    return found


def _parts(graph: Graph, writes: IntArray) -> IntArray:
    """A number for what each access writes: of an allocation that is written in views that never overlap its view, else
    its storage."""
    accesses = graph.accesses
    storage = accesses.storage[writes].astype(np.int64)
    lower, extents, exact = boxes(accesses, graph.storages, graph.layouts)
    lower, extents, exact = lower[writes], extents[writes], exact[writes]
    views = distinct_rows(storage, accesses.offset[writes], accesses.layout[writes])
    first = views.first
    # Different views of one storage lie apart if, in some dimension, each ends before the next one begins.
    apart = np.zeros(len(views), dtype=np.bool_)
    owner = storage[first]
    for axis in range(lower.shape[1]):
        begin, end = lower[first, axis], (lower + extents)[first, axis]
        order = np.lexsort((begin, owner))
        meets = (owner[order[1:]] == owner[order[:-1]]) & (begin[order[1:]] < end[order[:-1]])
        bad = np.isin(owner, owner[order[1:][meets]])
        apart |= ~bad
    apart &= ~np.isin(owner, owner[~exact[first]])
    mine: IntArray = np.where(apart, np.arange(len(views)) + len(graph.storages), owner)[views.which]
    return mine


def _next_store(graph: Graph, rows: IntArray) -> IntArray:
    """By access that reads HBM (row) the next node of its rank that writes to the same region; the number of nodes
    where there is none, 0 where another rank writes to it at some time."""
    accesses, nodes = graph.accesses, graph.nodes
    found = np.full(len(rows), len(graph), dtype=np.int64)
    stores = np.flatnonzero((accesses.mode == Mode.WRITE) & ~graph.in_scratch[accesses.storage])
    touched = np.flatnonzero(np.isin(accesses.storage[rows], accesses.storage[stores]))
    if not len(touched):
        return found
    lower, extents, exact = boxes(accesses, graph.storages, graph.layouts)
    upper = lower + extents
    bounds = rank_bounds(graph)
    known: dict[tuple[int, int, int], IntArray] = {}
    for place in touched.tolist():
        row = int(rows[place])
        view = (int(accesses.storage[row]), int(accesses.offset[row]), int(accesses.layout[row]))
        if view not in known:
            others = stores[accesses.storage[stores] == view[0]]
            meets = np.all((lower[others] < upper[row]) & (lower[row] < upper[others]), axis=1)
            known[view] = accesses.node[others[meets | ~exact[others] | ~exact[row]]]
        rank = int(nodes.rank[accesses.node[row]])
        here = np.searchsorted(known[view], bounds[rank : rank + 2])
        if here[1] - here[0] < len(known[view]):
            found[place] = 0
            continue
        later = np.searchsorted(known[view], accesses.node[row], side="right")
        if later < len(known[view]):
            found[place] = known[view][later]
    return found
