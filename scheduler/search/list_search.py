"""The search behind the ``list`` policy: several priority rules, forward-backward improvement, then local search on the
critical chain; and its entry on plain arrays, :func:`schedule_dag`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from ...ir.errors import DeadlockError, InfeasibleError, PolicyError, did_you_mean, shown
from ...ir.tables import IntArray
from .bounds import best_bound_ps
from .critical_search import search_critical_chain
from .dag import Dag, find_cycle, longest_to_end
from .dag_arrays import column, make_dag, occupancy_of, scratch_of
from .list_scheduling import left_shifted, list_schedule
from .occupancy import split
from .priorities import PRIORITIES, by_largest
from .scratch_limit import in_program_order, program_order_need, within_scratch

__all__ = ["EFFORTS", "Effort", "check_effort", "check_seed", "makespan_ps", "schedule_dag", "search"]


@attrs.frozen
class Effort:
    """What a search may do: how many priority rules it tries, how many rounds of forward-backward improvement (two
    passes each), how many restarts from a perturbed priority (three passes each), and how many nodes and edges the
    local search may visit. It is content within ``gap`` of the bound."""

    rules: int
    rounds: int
    restarts: int
    visits: int
    gap: float

    def contented_ps(self, bound_ps: int) -> int:
        """The makespan at which the search stops."""
        return bound_ps + int(bound_ps * self.gap)


#: Up to so many nodes ``high`` tries every order: 120 lists, some milliseconds.
_A_HANDFUL = 5
#: ``fast``: one rule. ``normal``: all rules, up to four rounds, and a local search of some tenth of a second in plain
#: Python. ``high``: also restarts, a local search of a second compiled (a good ten seconds in plain Python), and no
#: contentment.
EFFORTS: Mapping[str, Effort] = MappingProxyType(
    {
        "fast": Effort(1, 0, 0, 0, 0.01),
        "normal": Effort(8, 4, 0, 150_000, 0.001),
        "high": Effort(8, 16, 16, 30_000_000, 0.0),
    }
)


def check_seed(seed: int) -> int:
    """The seed of a search's choices. Raises ``PolicyError`` for what is none."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 31:
        raise PolicyError(f"a seed of {shown(seed)}", help="give a whole number from 0 to 2147483647")
    return int(seed)


def check_effort(effort: str) -> Effort:
    """The effort of a name. Raises ``PolicyError`` for an unknown one."""
    if not isinstance(effort, str) or effort not in EFFORTS:
        raise PolicyError(f"no effort {shown(effort)}", help=did_you_mean(str(effort), EFFORTS, what="efforts"))
    return EFFORTS[effort]


# --- the search -------------------------------------------------------------------------------------------------------


def search(
    dag: Dag,
    effort: Effort,
    *,
    incumbent: IntArray | None = None,
    priority: IntArray | None = None,
    bound_ps: int = 0,
    seed: int = 0,
) -> IntArray:
    """The best start times found, int64 ``(n,)``: never worse than ``incumbent`` (start times that satisfy the
    problem).

    Tries the order of ``incumbent``, then ``priority`` (larger first) or the rules, then forward-backward improvement
    (Li and Willis 1992; Valls, Ballestin and Quintanilla 2005): a schedule of the reversed problem in the order of the
    ends, then a forward one in the order of those starts, as long as that gains; then local search on the critical
    chain (:mod:`.critical_search`). Stops at ``bound_ps``. Deterministic for a ``seed``.
    """
    if not len(dag):
        return np.zeros(0, dtype=np.int64)
    enough_ps = effort.contented_ps(bound_ps)
    # Served in order, or under more edges, it may have waited for what holds nobody here.
    incumbent = None if incumbent is None else left_shifted(dag, incumbent)
    best, best_ps = incumbent, makespan_ps(dag, incumbent) if incumbent is not None else -1
    for start in _candidates(dag, effort, incumbent, priority):
        reached = makespan_ps(dag, start)
        if best is None or reached < best_ps:
            best, best_ps = start, reached
        if best_ps <= enough_ps:
            return best
    assert best is not None
    for start in _improved(dag, effort, best, seed):
        reached = makespan_ps(dag, start)
        if reached < best_ps:
            best, best_ps = start, reached
        if best_ps <= enough_ps:
            return best
    return search_critical_chain(dag, best, visits=effort.visits, enough_ps=enough_ps, seed=seed)


def makespan_ps(dag: Dag, start: IntArray) -> int:
    """The end of the last node."""
    return int((start + dag.duration_ps).max()) if len(dag) else 0


def _candidates(dag: Dag, effort: Effort, incumbent: IntArray | None, priority: IntArray | None) -> Iterator[IntArray]:
    if priority is not None:
        yield list_schedule(dag, by_largest(priority))
        return
    for rule in list(PRIORITIES.values())[: effort.rules]:
        yield list_schedule(dag, by_largest(rule(dag)))
    if incumbent is not None:
        yield list_schedule(dag, by_largest(-incumbent))


def _improved(dag: Dag, effort: Effort, best: IntArray, seed: int) -> Iterator[IntArray]:
    backwards = dag.reversed() if effort.rounds or effort.restarts else dag
    current, current_ps = best, makespan_ps(dag, best)
    for _ in range(effort.rounds):
        following = _forward_backward(dag, backwards, current)
        yield following
        reached = makespan_ps(dag, following)
        if reached >= current_ps:
            break
        current, current_ps = following, reached
    if effort.restarts and len(dag) <= _A_HANDFUL:
        for order in permutations(range(len(dag))):
            yield list_schedule(dag, by_largest(np.array(order, dtype=np.int64)))
    random = np.random.default_rng(seed)
    length = longest_to_end(dag) if effort.restarts else current
    for _ in range(effort.restarts):
        noise = random.uniform(0.8, 1.2, size=len(dag))
        yield (start := list_schedule(dag, by_largest(np.rint(length * noise).astype(np.int64))))
        yield _forward_backward(dag, backwards, start)


def _forward_backward(dag: Dag, backwards: Dag, start: IntArray) -> IntArray:
    last_first = list_schedule(backwards, by_largest(start + dag.duration_ps))
    return list_schedule(dag, by_largest(last_first + dag.duration_ps))


# --- plain arrays -----------------------------------------------------------------------------------------------------


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
    ``scratch`` several rules, perturbed ones at ``"high"``, and program order where all others come to a dead end.
    Raises ``InfeasibleError`` for arrays that do not fit together and where no order was found that the scratch is
    enough for, ``DeadlockError`` where the edges close a cycle, ``PolicyError`` for an unknown rule, effort or seed.
    """
    wanted, seed = check_effort(effort), check_seed(seed)
    dag = make_dag(durations_ps, engine, channels, edges, release_ps)
    whole = split(dag, occupancy_of(occupancy_ps, dag))
    if dag.has_cycle:
        arcs = find_cycle(len(dag), dag.order, dag.source, dag.target)
        nodes = [int(dag.target[arc]) for arc in arcs]
        cycle = " after ".join(map(str, [*nodes, nodes[0]]))
        raise DeadlockError(f"the edges close a cycle: {cycle}", help="a task graph has no cycles", nodes=nodes)
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
    dag = whole.dag
    bound_ps = best_bound_ps(dag) if wanted.visits else 0
    if given is not None:
        first = np.concatenate([given, np.zeros(len(whole.late), dtype=np.int64)])
        return whole.given(search(dag, wanted, priority=first, bound_ps=bound_ps, seed=seed))
    started = list_schedule(dag, by_largest(PRIORITIES[priority](dag))) if len(dag) else None
    return whole.given(search(dag, wanted, incumbent=started, bound_ps=bound_ps, seed=seed))


def _search_within(
    dag: Dag, effort: Effort, first: IntArray, others: bool, nbytes: IntArray, limit: int, seed: int
) -> IntArray:
    """The best schedule found within ``limit`` bytes: by the ``first`` priority, and ``others`` as effort allows."""
    best: IntArray | None = None
    for priority in _tried_within(dag, effort, first, others, seed):
        start = within_scratch(dag, by_largest(priority), nbytes, limit)
        if start is not None and (best is None or makespan_ps(dag, start) < makespan_ps(dag, best)):
            best = start
    if best is None:
        best = in_program_order(dag, nbytes, limit)
    if best is not None:
        return best
    need = program_order_need(dag, nbytes)
    raise InfeasibleError(
        f"no order was found that {limit:,} B of scratch are enough for: in program order, one node after another, "
        f"node {need.node} needs {need.nbytes:,} B",
        help=f"give {need.nbytes:,} B of scratch, make the results smaller, or put their readers closer to them",
    )


#: Perturbed priorities are floats on their way: past this they are all the same.
_LARGEST_PRIORITY = 2.0**62


def _tried_within(dag: Dag, effort: Effort, first: IntArray, others: bool, seed: int) -> Iterator[IntArray]:
    yield first
    rules = list(PRIORITIES.values())[: effort.rules] if others and effort.rules > 1 else []
    for rule in rules:
        yield rule(dag)
    random = np.random.default_rng(seed)
    for _ in range(effort.restarts):
        noisy = np.rint(first * random.uniform(0.8, 1.2, size=len(dag)))
        yield np.clip(noisy, -_LARGEST_PRIORITY, _LARGEST_PRIORITY).astype(np.int64)
