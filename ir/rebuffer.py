"""Rotating scratch: the same graph with several copies of its scopes' bytes, so that iterations overlap.

A kernel's scopes recycle the same bytes, so each iteration waits for the one before it. With K buffers a scope gives
its child scopes K copies in turn, as double buffering does by hand: that is modulo variable expansion (Lam 1988)
of scratch in place of registers. Only addresses change.

Where things stand in a graph of K buffers, for each scope:

* its own allocations follow each other in program order, from the scope's base on, until its first child scope opens;
* there, its child scopes' copies begin: as many as K, or as it has children if those are fewer, each as large as the
  largest child with all that this one holds;
* its n-th child (from 0) starts at the copy of number n mod K;
* its later allocations follow all copies.

All of that in sizes rounded up to the target's alignment, so that every address is aligned.
"""

from __future__ import annotations

import attrs
import numpy as np

from .columns import GraphColumns
from .errors import InfeasibleError, NoScopesError, OptionError, shown
from .graph import Graph
from .tables import IntArray, ScopeTable, StorageTable

__all__ = ["Placement", "check_buffers", "place_rotating", "rebuffered"]

#: Addresses stay below this, far inside int64.
_LARGEST = 1 << 48


@attrs.frozen(eq=False)
class Placement:
    """``address`` by storage (0 for an HBM tensor), ``base`` and ``size_bytes`` by scope: a scope takes ``size_bytes``
    from its base on, its children's copies included. All int64, in bytes."""

    address: IntArray
    base: IntArray
    size_bytes: IntArray


def check_buffers(buffers: object) -> int:
    """The number of buffers. Raises ``OptionError`` for what is no whole number from 1 on."""
    if isinstance(buffers, bool) or not isinstance(buffers, int | np.integer) or not 0 < buffers <= _LARGEST:
        raise OptionError(
            f"buffers={shown(buffers)}", help="pass a whole number: 1 or more copies of each scope's bytes"
        )
    return int(buffers)


def rebuffered(graph: Graph, buffers: int) -> Graph:
    """The graph with rotating copies of its scopes' bytes: new addresses and scope bases, all else equal.

    Right only for a graph whose accesses stay within their allocations' lifetimes: what reads bytes after their scope,
    or before anything wrote them, sees other bytes afterwards. Addresses may pass the budget: liveness and the linter
    see that. Raises ``OptionError`` for a number below 1, ``NoScopesError`` for a graph without scopes, and
    ``InfeasibleError`` where no memory could hold the copies.
    """
    copies = check_buffers(buffers)
    if not graph.is_scoped:
        raise NoScopesError(
            f"buffers={copies}: {graph.kernel} has no scopes, its allocations have automatic lifetimes",
            help="schedule the graph as it is: each allocation gives its bytes back after its last access",
        )
    placement = place_rotating(graph, copies)
    storages: StorageTable = StorageTable.make(**{**graph.storages.columns(), "address": placement.address})
    scopes: ScopeTable = ScopeTable.make(**{**graph.scopes.columns(), "base": placement.base})
    return attrs.evolve(graph, storages=storages, scopes=scopes, buffers=copies)


def place_rotating(graph: GraphColumns, buffers: int) -> Placement:
    """Where all allocations and scopes of a graph stand with so many buffers, whatever their addresses are now.

    Linear in allocations and scopes. The tables must be sound (allocations in program order, parents before children).
    Raises ``InfeasibleError`` for sizes that no memory has.
    """
    storages, scopes = graph.storages, graph.scopes
    rows = np.flatnonzero(graph.in_scratch)
    scope = storages.scope[rows]
    held = graph.held_bytes[rows]
    count = len(scopes)

    number, children, first_opened = _children(graph)
    late = storages.born[rows] > first_opened[scope]
    early_bytes, late_bytes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.add.at(early_bytes, scope[~late], held[~late])
    np.add.at(late_bytes, scope[late], held[late])

    # From the innermost scopes outwards: a scope's parent lies before it.
    own = (early_bytes + late_bytes).tolist()
    copies = np.minimum(children, buffers).tolist()
    parents: list[int] = scopes.parent.tolist()
    largest = [0] * count
    for row in range(count - 1, -1, -1):
        own[row] += copies[row] * largest[row]
        if parents[row] >= 0:
            largest[parents[row]] = max(largest[parents[row]], own[row])
    if max(own, default=0) > _LARGEST:
        raise InfeasibleError(
            f"the scopes take {max(own):,} B with buffers={buffers}",
            help="ask for fewer buffers: nested scopes multiply them",
        )
    early: list[int] = early_bytes.tolist()
    base = [0] * count
    for row, (parent, turn) in enumerate(zip(parents, (number % buffers).tolist(), strict=True)):
        if parent >= 0:
            base[row] = base[parent] + early[parent] + turn * largest[parent]

    bases = np.array(base, dtype=np.int64)
    behind_copies = np.array(copies, dtype=np.int64) * np.array(largest, dtype=np.int64)
    address = np.zeros(len(storages), dtype=np.int64)
    address[rows] = bases[scope] + _sum_before(held, scope) + np.where(late, behind_copies[scope], 0)
    return Placement(address=address, base=bases, size_bytes=np.array(own, dtype=np.int64))


def _children(graph: GraphColumns) -> tuple[IntArray, IntArray, IntArray]:
    """By scope: which child of its parent it is (from 0), how many children it has, and the node that opens the first
    of them (past all nodes: none)."""
    scopes = graph.scopes
    inner = np.flatnonzero(scopes.parent >= 0)
    parent = scopes.parent[inner]
    number = np.zeros(len(scopes), dtype=np.int64)
    number[inner] = _sum_before(np.ones(len(inner), dtype=np.int64), parent)
    children = np.bincount(parent, minlength=len(scopes))
    first_opened = np.full(len(scopes), len(graph.nodes) + 1, dtype=np.int64)
    np.minimum.at(first_opened, parent, scopes.enter[inner])
    return number, children, first_opened


def _sum_before(amount: IntArray, group: IntArray) -> IntArray:
    """For each row the sum of the amounts of the rows of its group that lie before it."""
    order = np.argsort(group, kind="stable")
    before = np.cumsum(amount[order]) - amount[order]
    opens = np.ones(len(order), dtype=np.bool_)
    opens[1:] = group[order][1:] != group[order][:-1]
    starts = np.flatnonzero(opens)
    sums = np.empty(len(order), dtype=np.int64)
    sums[order] = before - np.repeat(before[starts], np.diff(np.append(starts, len(order))))
    return sums
