"""What a caller of :func:`kernscope.schedule_dag` passes, checked and brought to int64: no error here is numpy's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.errors import DeadlockError, InfeasibleError, shown
from ...ir.tables import IntArray
from .dag import Dag, find_cycle

__all__ = ["acyclic_dag", "column", "make_dag", "occupancy_of", "scratch_of"]

#: The longest schedule; a sum of two times fits int64 as well.
_LONGEST = (1 << 62) - 1
_INT64 = np.iinfo(np.int64)


def make_dag(durations: Any, engine: Any, channels: Any, edges: Any, release: Any) -> Dag:
    """The problem of these arrays. Raises ``InfeasibleError``."""
    duration = column(durations, None, "durations_ps", 0)
    n = len(duration)
    lanes = column(channels, None, "channels", 1)
    on = column(engine, n, "engine", -1, len(lanes) - 1)
    pairs = _pairs(edges, n)
    ready = np.zeros(n, dtype=np.int64) if release is None else column(release, n, "release_ps", 0)
    longest = int(ready.max(initial=0)) + sum(duration.tolist())
    if longest > _LONGEST:
        raise InfeasibleError(
            f"durations and releases add up to {longest}, which no time can hold",
            help=f"use a coarser unit: up to {_LONGEST} in all",
        )
    lanes = np.minimum(lanes, max(n, 1))  # more lanes than nodes change nothing, and each would take memory
    return Dag(duration, on, lanes, source=pairs[:, 1].copy(), target=pairs[:, 0].copy(), release_ps=ready)


def acyclic_dag(durations: Any, engine: Any, channels: Any, edges: Any, release: Any) -> Dag:
    """As :func:`make_dag`. Raises ``DeadlockError`` also, where the edges close a cycle."""
    dag = make_dag(durations, engine, channels, edges, release)
    if dag.has_cycle:
        arcs = find_cycle(len(dag), dag.order, dag.source, dag.target)
        nodes = [int(dag.target[arc]) for arc in arcs]
        cycle = " after ".join(map(str, [*nodes, nodes[0]]))
        raise DeadlockError(f"the edges close a cycle: {cycle}", help="a task graph has no cycles", nodes=nodes)
    return dag


def occupancy_of(given: Any, dag: Dag) -> IntArray:
    """How long each node holds its engine: all of its duration where nothing is given, and without an engine. Raises
    ``InfeasibleError``."""
    if given is None:
        return dag.duration_ps
    held = column(given, len(dag), "occupancy_ps", 0)
    late = np.flatnonzero((held > dag.duration_ps) & (dag.engine >= 0))
    if len(late):
        node = int(late[0])
        raise InfeasibleError(
            f"node {node} holds its engine for {held[node]}, and lasts {dag.duration_ps[node]}",
            help="a duration is no less than the occupancy",
        )
    return np.where(dag.engine >= 0, held, dag.duration_ps)


def scratch_of(given: Any, n: int) -> tuple[IntArray, int]:
    """The bytes of each node's result, and the limit for all. Raises ``InfeasibleError``."""
    try:
        each, limit = given
        if isinstance(limit, bool):
            raise TypeError
        limit = operator.index(limit)
    except (TypeError, ValueError):
        raise InfeasibleError(
            f"scratch={shown(given)}",
            help="pass two things: the bytes of each node's result, and how many there are for all",
        ) from None
    nbytes = column(each, n, "scratch", 0)
    total = sum(nbytes.tolist())
    if total > _LONGEST:
        raise InfeasibleError(
            f"the results' bytes add up to {total}, which no counter can hold",
            help=f"use a coarser unit: up to {_LONGEST} in all",
        )
    return nbytes, min(limit, total)  # more than all of them changes nothing


def column(values: Any, length: int | None, name: str, lowest: int = _INT64.min, highest: int = _INT64.max) -> IntArray:
    """One whole number per node (or so many), int64, each within the range. Raises ``InfeasibleError``."""
    found = _array(values)
    if found is not None and found.size == 0 and found.ndim == 1:
        found = found.astype(np.int64)  # of an empty list numpy makes floats
    fits = found is not None and found.ndim == 1 and found.dtype.kind in "iu"
    if found is None or not fits or (length is not None and len(found) != length):
        wanted = "one for each" if length is None else f"({length},)"
        raise InfeasibleError(f"{name} {_told(values, found)}", help=f"pass whole numbers that int64 holds, {wanted}")
    return _within(found, name, lowest, highest)


def _pairs(edges: Any, n: int) -> IntArray:
    """The edges as (to, from), each once, sorted."""
    found = _array(edges)
    if found is not None and found.size == 0 and found.shape in ((0,), (0, 2)):
        return np.zeros((0, 2), dtype=np.int64)
    if found is None or found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InfeasibleError(
            f"edges {_told(edges, found)}", help="pass whole numbers that int64 holds, (m, 2): [(from, to), ...]"
        )
    source, target = _within(found, "edges", 0, n - 1).T
    first = distinct_rows(target, source).first
    return np.stack((target[first], source[first]), axis=1)


def _array(values: Any) -> IntArray | None:
    """What numpy makes of the values; None where they are rows of different lengths, or nothing it can read."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        return None


def _told(values: Any, found: IntArray | None) -> str:
    if found is None:
        return f"= {shown(values)}: not rows of one length"
    if isinstance(values, np.ndarray):
        return f"of shape {found.shape} and dtype {found.dtype}"
    return f"of shape {found.shape} and dtype {found.dtype}: {shown(values)}"


def _within(found: IntArray, name: str, lowest: int, highest: int) -> IntArray:
    # Compared as Python's numbers: of an unsigned column int64 would make negative ones.
    least, most = (int(found.min()), int(found.max())) if found.size else (lowest, lowest)
    if least < lowest or most > highest:
        until = "" if highest == _INT64.max and most <= highest else f", {highest} at most"
        raise InfeasibleError(f"{name} holds values from {least} to {most}", help=f"pass {lowest} or more{until}")
    return found.astype(np.int64)
