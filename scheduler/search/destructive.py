"""A lower bound by refuting makespans, on the whole of a problem (destructive bounds: Klein and Scholl 1999)."""

from __future__ import annotations

import numpy as np

from ...ir.arrays.compiling import LARGEST_COMPILED, number_loop
from ...ir.arrays.permutations import group_starts, inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag
from .edge_finding import bisect_pass

__all__ = ["refuted_up_to"]

#: What this takes a node, beside the loops that :mod:`kernscope.ir.arrays.compiling` has its numbers from.
_TIMES_A_LIST = 500


def refuted_up_to(
    dag: Dag, head: IntArray, tail: IntArray, lowest: int, highest: int, *, budget: int, probing: bool
) -> int:
    """The least makespan from ``lowest`` on that could not be refuted; ``highest`` is that of a schedule.

    ``head`` and ``tail``: what is known to be before each node's start and after its end in every schedule. ``budget``:
    how many steps narrowing takes at most. ``probing``: whether parts of single nodes' windows are refuted on the way
    (shaving: Carlier and Pinson 1994), which takes some thousand times as long.
    """
    if lowest >= highest:
        return lowest
    order = dag.order
    place = inverse_permutation(order)
    source, target = place[dag.source], place[dag.target]
    by_target = np.lexsort((source, target))
    duration = dag.duration_ps[order]
    engine = np.where(duration > 0, dag.engine[order], -1)
    by_engine = np.flatnonzero(engine >= 0)
    by_engine = by_engine[np.argsort(engine[by_engine], kind="stable")]
    return number_loop(
        bisect_pass,
        len(dag) * _TIMES_A_LIST,
        head[order],
        tail[order],
        duration,
        group_starts(target[by_target], len(dag)),
        source[by_target],
        engine,
        dag.channels,
        group_starts(engine[by_engine], len(dag.channels)),
        by_engine,
        lowest,
        highest,
        budget,
        int(probing),
        exact=dag.horizon_ps * 4 * (len(dag) + 1) <= LARGEST_COMPILED,
    )
