"""From a schedule to a better one: forward-backward improvement, restarts, and local search in rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from ...ir.tables import IntArray
from .critical_search import search_critical_chain
from .dag import Dag, longest_to_end
from .efforts import Effort
from .list_scheduling import list_schedule
from .priorities import by_largest

__all__ = ["improved", "makespan_ps", "relisted", "searched_locally"]

#: Up to so many nodes restarts try every order: 120 lists, some milliseconds.
_A_HANDFUL = 5


def makespan_ps(dag: Dag, start: IntArray) -> int:
    """The end of the last node."""
    return int((start + dag.duration_ps).max()) if len(dag) else 0


def improved(dag: Dag, effort: Effort, best: IntArray, seed: int) -> Iterator[IntArray]:
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


#: Into so many rounds a long local search is cut where engines have several lanes.
_LANE_ROUNDS = 12
#: What makes a cut worth it: fewer visits are one round.
_LEAST_CUT = 1_000_000


def searched_locally(
    dag: Dag, effort: Effort, best: IntArray, others: list[IntArray], enough_ps: int, seed: int
) -> IntArray:
    """The best of a local search. It never moves a node to another lane: with several of them it goes in rounds,
    between which the best schedule, or the latest, is listed anew, with a little noise, so that lanes are assigned
    afresh; and it begins from the best start, then from the best of the restarts."""
    if effort.visits < _LEAST_CUT or not np.any(dag.channels > 1):
        return search_critical_chain(dag, best, visits=effort.visits, enough_ps=enough_ps, seed=seed)
    random = np.random.default_rng(seed)
    best_ps = makespan_ps(dag, best)
    current = best
    starts = [best, min(others, key=lambda start: makespan_ps(dag, start))] if others else [best]
    for number in range(_LANE_ROUNDS):
        if number < len(starts):
            start = starts[number]
        else:
            start = relisted(dag, best if number % 2 else current, random, number)
        visits = effort.visits // _LANE_ROUNDS
        current = search_critical_chain(dag, start, visits=visits, enough_ps=enough_ps, seed=seed + number)
        reached = makespan_ps(dag, current)
        if reached < best_ps:
            best, best_ps = current, reached
        if best_ps <= enough_ps:
            break
    return best


def relisted(dag: Dag, start: IntArray, random: np.random.Generator, number: int) -> IntArray:
    """A schedule listed anew in the order of another one's middles, three times in four with a little noise."""
    middle = start + dag.duration_ps / 2
    if number % 4:
        middle = middle + random.normal(0, 0.02 * (1 + number % 3) * makespan_ps(dag, start), len(dag))
    listed = list_schedule(dag, by_largest(np.rint(-middle).astype(np.int64)))
    again = _forward_backward(dag, dag.reversed(), listed)
    return min((again, listed), key=lambda start: makespan_ps(dag, start))
