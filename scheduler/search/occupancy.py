"""Occupancy apart from duration: a node that lets go of its engine before what it makes is there.

It is split in two: what holds the engine, and, on no engine, the rest of its time, which is what others wait for. No
pass, bound or search needs to know more: on no engine nothing waits, so that the rest begins when the engine is let go
of, and backwards in time as well.
"""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["Split", "split"]


@attrs.frozen(eq=False)
class Split:
    """A problem whose nodes hold their engines for all of their time. ``dag``: the nodes under their own numbers, then
    the rests of those that were split (``late``: their numbers)."""

    dag: Dag
    nodes: int
    late: IntArray

    def starts(self, start: IntArray) -> IntArray:
        """The starts of all of its nodes, from those of the nodes that were given."""
        return np.concatenate([start, start[self.late] + self.dag.duration_ps[self.late]])

    def given(self, start: IntArray) -> IntArray:
        """The starts of the nodes that were given."""
        return start[: self.nodes]


def split(dag: Dag, occupancy: IntArray) -> Split:
    """The problem with every node that holds its engine for less than its duration in two parts. ``occupancy`` ``(n,)``
    is no more than the duration, and all of it for a node without an engine."""
    n = len(dag)
    late = np.flatnonzero(occupancy < dag.duration_ps)
    if not len(late):
        return Split(dag, n, late)
    rest = np.arange(n)
    rest[late] = n + np.arange(len(late))
    source = np.concatenate([rest[dag.source], late])
    target = np.concatenate([dag.target, rest[late]])
    order = np.lexsort((source, target))
    made = attrs.evolve(
        dag,
        duration_ps=np.concatenate([occupancy, (dag.duration_ps - occupancy)[late]]),
        engine=np.concatenate([dag.engine, np.full(len(late), -1, dtype=dag.engine.dtype)]),
        source=source[order],
        target=target[order],
        release_ps=np.concatenate([dag.release_ps, np.zeros(len(late), dtype=dag.release_ps.dtype)]),
    )
    return Split(made, n, late)
