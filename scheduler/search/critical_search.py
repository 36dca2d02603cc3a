"""Local search on the critical chain of a schedule: nodes move along their lane to where they hold nobody up.

Every lane is a sequence of nodes; with the edges, the sequences make a graph whose longest path is the makespan. Only
moves on that path can shorten it: within a run of nodes that follow each other on one lane, one is moved right behind
the last or right before the first, or the first or last one into the run (Balas and Vazacopoulos 1998, the moves called
N6). The best move by an estimate from heads and tails is made, even where it lengthens the schedule, and may not be
undone for a while (tabu search: Taillard 1994; Nowicki and Smutnicki 1996). After a time without a gain the search
starts anew from the best order found.
"""

from __future__ import annotations

import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag
from .lanes import assign_lanes
from .list_scheduling import left_shifted
from .tabu_pass import TABU_SLOTS, Order, Paths, Room, tabu_pass

__all__ = ["search_critical_chain"]


def search_critical_chain(dag: Dag, start: IntArray, *, visits: int, enough_ps: int, seed: int = 0) -> IntArray:
    """Start times no worse than ``start`` (which satisfy the problem), left-shifted, int64 ``(n,)``.

    ``visits``: how many visits of nodes and edges the search is worth; it makes as many moves as these allow, and none
    if they allow less than ten. Stops at a makespan of ``enough_ps``. Deterministic for a ``seed``.
    """
    n = len(dag)
    # A move costs something however small the graph is, and a small graph is searched through before long.
    moves = min(visits // max(n + len(dag.source), 300), 300 * n)
    if moves < 10:
        return start
    order = np.lexsort((inverse_permutation(dag.order), start + dag.duration_ps, start))
    first_lane = np.cumsum(dag.channels) - dag.channels
    on_engine = dag.engine >= 0
    lane = np.full(n, -1, dtype=np.int64)
    lane[on_engine] = first_lane[dag.engine[on_engine]] + assign_lanes(dag, start)[on_engine]
    zeros, none = np.zeros(n, dtype=np.int64), np.full(n, -1)
    found = run_loop(
        tabu_pass,
        moves * (n + len(dag.source)) // 20,
        zeros.copy(),
        dag.columns,
        Order(order, zeros.copy(), none.copy(), none.copy()),
        Order(zeros.copy(), zeros.copy(), none.copy(), none.copy()),
        Paths(zeros.copy(), zeros.copy()),
        Room(zeros.copy(), zeros.copy(), zeros.copy(), zeros.copy(), none.copy()),
        np.zeros(TABU_SLOTS, dtype=np.int64),
        lane,
        int(dag.channels.sum()),
        moves,
        enough_ps,
        np.array([seed + 1]),
    )
    return left_shifted(dag, found)
