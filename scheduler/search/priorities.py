"""Priority rules of list scheduling: from a problem to a number per node; the larger goes first, ties by id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag, longest_from_start, longest_to_end

__all__ = ["PRIORITIES", "by_largest"]


def _longest_path(dag: Dag) -> IntArray:
    return longest_to_end(dag)


def _program_order(dag: Dag) -> IntArray:
    return -np.arange(len(dag))


def _bottleneck_path(dag: Dag) -> IntArray:
    """The longest path where work on a busy engine counts more: scaled by the engine's share of the largest load."""
    load = _loads(dag)
    if not len(load) or not load.max():
        return longest_to_end(dag)
    share = np.where(dag.engine >= 0, load[dag.engine], 0) / load.max()
    return longest_to_end(dag, np.rint(dag.duration_ps * share).astype(np.int64))


def _critical_first(dag: Dag) -> IntArray:
    """The longest path through the node, from start to end; among equals, what is nearer to the start."""
    head = longest_from_start(dag)
    through = head + longest_to_end(dag)
    return -inverse_permutation(np.lexsort((np.arange(len(dag)), head, -through)))


def _latest_finish(dag: Dag) -> IntArray:
    """The least time that may be left after the node's end goes first (LFT; Kolisch 1996)."""
    return longest_to_end(dag) - dag.duration_ps


def _most_successors(dag: Dag) -> IntArray:
    """What most nodes wait for goes first; among equals, the longest path."""
    order = np.lexsort((np.arange(len(dag)), -longest_to_end(dag), -np.bincount(dag.source, minlength=len(dag))))
    return -inverse_permutation(order)


def _loads(dag: Dag) -> IntArray:
    """The load of each engine, per lane."""
    used = dag.engine >= 0
    weights = dag.duration_ps[used].astype(np.float64)
    return np.bincount(dag.engine[used], weights=weights, minlength=len(dag.channels)) / dag.channels


#: By name: a node's priority from the problem. The first is the one that stands for list scheduling as such.
PRIORITIES: Mapping[str, Callable[[Dag], IntArray]] = MappingProxyType(
    {
        "longest_path": _longest_path,
        "bottleneck_path": _bottleneck_path,
        "program_order": _program_order,
        "critical_first": _critical_first,
        "latest_finish": _latest_finish,
        "most_successors": _most_successors,
    }
)


def by_largest(priority: IntArray) -> IntArray:
    """Each node's place when sorted by priority, the largest first, ties by id."""
    # The complement falls as the number rises, and unlike the negative it exists for the least int64, too.
    return inverse_permutation(np.argsort(~priority, kind="stable"))
