"""Searching on plain arrays: :func:`schedule_dag`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.errors import InfeasibleError, PolicyError, did_you_mean
from ...ir.tables import IntArray
from .dag import Dag
from .dag_arrays import acyclic_dag, column, occupancy_of, scratch_of
from .efforts import Effort, check_effort, check_seed
from .improving import makespan_ps
from .least_scratch import LARGEST_BEAM, least_scratch_order
from .occupancy import split
from .priorities import PRIORITIES, by_largest
from .scratch_limit import in_order, need_in_order, within_scratch
from .solving import Solving

__all__ = ["schedule_dag"]


def schedule_dag(
    durations_ps: Any,
    engine: Any,
    channels: Any,
    edges: Any,
    *,
    release_ps: Any = None,
    occupancy_ps: Any = None,
    priority: Any = "longest_path",
    effort: str = "normal",
    scratch: tuple[Any, int] | None = None,
    seed: int = 0,
) -> IntArray:
    """Schedule any task graph on engines: start times, int64 ``(n,)`` in picoseconds (or whatever unit went in).

    ``durations_ps`` ``(n,)``: not negative. ``engine`` ``(n,)``: which engine works on each node, -1 for none.
    ``channels`` ``(E,)``: how many nodes an engine works on at once. ``edges`` ``(m, 2)``: from, to. ``release_ps``
    ``(n,)``: no node starts before. ``occupancy_ps`` ``(n,)``: how long a node holds its engine, its duration at the
    most (None: all of it); what waits for the node waits for its duration. ``priority``: a rule of ``PRIORITIES`` to
    begin with, or an array ``(n,)``, larger first, that is used instead of the rules. ``effort``: ``"fast"``,
    ``"normal"``, ``"high"``. ``scratch``: the bytes of each node's result ``(n,)``, and how many there are for all; a
    result holds its bytes from its node's start until the last of its readers (the targets of its edges) has ended, its
    node itself where there are none. ``seed``: of all that is tried at random; the same arrays and seed give the same
    times.

    Event-driven list scheduling, several rules, forward-backward improvement, local search (see :func:`search`); under
    ``scratch`` several rules, perturbed ones at ``"high"``; where all come to a dead end, program order, and at last an
    order of least scratch (:mod:`kernscope.scheduler.search.least_scratch`).
    Raises ``InfeasibleError`` for arrays that do not fit together and where no order was found that the scratch is
    enough for, ``DeadlockError`` where the edges close a cycle, ``PolicyError`` for an unknown rule, effort or seed.
    """
    wanted, seed = check_effort(effort), check_seed(seed)
    dag = acyclic_dag(durations_ps, engine, channels, edges, release_ps)
    whole = split(dag, occupancy_of(occupancy_ps, dag))
    if isinstance(priority, str) and priority not in PRIORITIES:
        raise PolicyError(f"no priority rule {priority!r}", help=did_you_mean(priority, PRIORITIES, what="rules"))
    given = None if isinstance(priority, str) else column(priority, len(dag), "priority")
    if scratch is not None:
        if whole.dag is not dag:
            raise InfeasibleError(
                "occupancy_ps below the durations together with scratch",
                help="leave one of them out: how long a result's bytes are held is not known then",
            )
        nbytes, limit = scratch_of(scratch, len(dag))
        first = PRIORITIES[priority](dag) if given is None else given
        return _search_within(dag, wanted, first, given is None, nbytes, limit, seed)
    if not len(dag):
        return np.zeros(0, dtype=np.int64)
    rule = priority if isinstance(priority, str) else "longest_path"
    if given is not None:
        given = np.concatenate([given, np.zeros(len(whole.late), dtype=np.int64)])
    return whole.given(Solving(whole.dag, priority=given, first_rule=rule, seed=seed).at(wanted).start_ps)


def _search_within(
    dag: Dag, effort: Effort, first: IntArray, others: bool, nbytes: IntArray, limit: int, seed: int
) -> IntArray:
    """The best schedule found within ``limit`` bytes: by the ``first`` priority, and ``others`` as effort allows."""
    best: IntArray | None = None
    for priority in _tried_within(dag, effort, first, others, seed):
        start = within_scratch(dag, by_largest(priority), nbytes, limit)
        if start is not None and (best is None or makespan_ps(dag, start) < makespan_ps(dag, best)):
            best = start
    if best is not None:
        return best
    need, how = need_in_order(dag, dag.order, nbytes), "in program order"
    if need.nbytes > limit and len(dag) <= LARGEST_BEAM:
        order = least_scratch_order(dag, nbytes)
        found = need_in_order(dag, order, nbytes)
        if found.nbytes < need.nbytes:
            need, how = found, "in the best order found"
        if need.nbytes <= limit:
            # By that order as a priority something may run at once; where that comes to a dead end, one by one.
            start = within_scratch(dag, inverse_permutation(order), nbytes, limit)
            best = in_order(dag, order, nbytes, limit) if start is None else start
    elif need.nbytes <= limit:
        best = in_order(dag, dag.order, nbytes, limit)
    if best is not None:
        return best
    raise InfeasibleError(
        f"no order was found that {limit:,} B of scratch are enough for: {how}, one node after another, "
        f"node {need.node} needs {need.nbytes:,} B",
        help=f"give {need.nbytes:,} B of scratch, make the results smaller, or put their readers closer to them",
    )


#: Perturbed priorities are floats on their way: past this they are all the same.
_LARGEST_PRIORITY = 2.0**62


def _tried_within(dag: Dag, effort: Effort, first: IntArray, others: bool, seed: int) -> Iterator[IntArray]:
    yield first
    for name in PRIORITIES if others and effort.below is not None else ():
        yield PRIORITIES[name](dag)
    random = np.random.default_rng(seed)
    for _ in range(effort.restarts):
        noisy = np.rint(first * random.uniform(0.8, 1.2, size=len(dag)))
        yield np.clip(noisy, -_LARGEST_PRIORITY, _LARGEST_PRIORITY).astype(np.int64)
