"""The search behind the ``list`` policy: several priority rules, then forward-backward improvement; and its entry on
plain arrays, :func:`schedule_dag`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from ..ir.errors import DeadlockError, InfeasibleError, PolicyError, did_you_mean
from ..ir.tables import IntArray
from .dag import Dag, find_cycle, longest_from_start, longest_to_end
from .list_scheduling import left_shifted, list_schedule

__all__ = ["EFFORTS", "PRIORITIES", "Effort", "check_effort", "makespan_ps", "schedule_dag", "search"]


@attrs.frozen
class Effort:
    """What a search may do: how many priority rules it tries, how many rounds of forward-backward improvement (two
    passes each), and how many restarts from a perturbed priority (three passes each). It is content within ``gap`` of
    the bound."""

    rules: int
    rounds: int
    restarts: int
    gap: float

    def contented_ps(self, bound_ps: int) -> int:
        """The makespan at which the search stops."""
        return bound_ps + int(bound_ps * self.gap)


#: ``fast``: one rule. ``normal``: all rules and up to four rounds. ``high``: also 48 restarts, and no contentment.
EFFORTS: Mapping[str, Effort] = MappingProxyType(
    {"fast": Effort(1, 0, 0, 0.01), "normal": Effort(8, 4, 0, 0.001), "high": Effort(8, 16, 48, 0.0)}
)


def check_effort(effort: str) -> Effort:
    """The effort of a name. Raises ``PolicyError`` for an unknown one."""
    if effort not in EFFORTS:
        raise PolicyError(f"no effort {effort!r}", help=did_you_mean(str(effort), EFFORTS, what="efforts"))
    return EFFORTS[effort]


# --- priority rules: larger goes first, ties by id --------------------------------------------------------------------


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
    place = np.empty(len(dag), dtype=np.int64)
    place[np.lexsort((np.arange(len(dag)), head, -through))] = np.arange(len(dag))
    return -place


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
    }
)


# --- the search -------------------------------------------------------------------------------------------------------


def search(
    dag: Dag, effort: Effort, *, incumbent: IntArray | None = None, priority: IntArray | None = None, bound_ps: int = 0
) -> IntArray:
    """The best start times found, int64 ``(n,)``: never worse than ``incumbent`` (start times that satisfy the
    problem).

    Tries the order of ``incumbent``, then ``priority`` (larger first) or the rules, then forward-backward improvement
    (Li and Willis 1992; Valls, Ballestin and Quintanilla 2005): a schedule of the reversed problem in the order of the
    ends, then a forward one in the order of those starts, as long as that gains. Stops at ``bound_ps``. Deterministic.
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
    for start in _improved(dag, effort, best):
        reached = makespan_ps(dag, start)
        if reached < best_ps:
            best, best_ps = start, reached
        if best_ps <= enough_ps:
            break
    return best


def makespan_ps(dag: Dag, start: IntArray) -> int:
    """The end of the last node."""
    return int((start + dag.duration_ps).max()) if len(dag) else 0


def _candidates(dag: Dag, effort: Effort, incumbent: IntArray | None, priority: IntArray | None) -> Iterator[IntArray]:
    if priority is not None:
        yield list_schedule(dag, _by_largest(priority))
        return
    for rule in list(PRIORITIES.values())[: effort.rules]:
        yield list_schedule(dag, _by_largest(rule(dag)))
    if incumbent is not None:
        yield list_schedule(dag, _by_largest(-incumbent))


def _improved(dag: Dag, effort: Effort, best: IntArray) -> Iterator[IntArray]:
    backwards = dag.reversed() if effort.rounds or effort.restarts else dag
    current, current_ps = best, makespan_ps(dag, best)
    for _ in range(effort.rounds):
        following = _forward_backward(dag, backwards, current)
        yield following
        reached = makespan_ps(dag, following)
        if reached >= current_ps:
            break
        current, current_ps = following, reached
    random = np.random.default_rng(0)
    length = longest_to_end(dag) if effort.restarts else current
    for _ in range(effort.restarts):
        noise = random.uniform(0.8, 1.2, size=len(dag))
        yield (start := list_schedule(dag, _by_largest(np.rint(length * noise).astype(np.int64))))
        yield _forward_backward(dag, backwards, start)


def _forward_backward(dag: Dag, backwards: Dag, start: IntArray) -> IntArray:
    last_first = list_schedule(backwards, _by_largest(start + dag.duration_ps))
    return list_schedule(dag, _by_largest(last_first + dag.duration_ps))


def _by_largest(priority: IntArray) -> IntArray:
    """Each node's place when sorted by priority, the largest first, ties by id."""
    place = np.empty(len(priority), dtype=np.int64)
    place[np.argsort(-priority, kind="stable")] = np.arange(len(priority))
    return place


# --- plain arrays -----------------------------------------------------------------------------------------------------


def schedule_dag(
    durations_ps: Any,
    engine: Any,
    channels: Any,
    edges: Any,
    *,
    release_ps: Any = None,
    priority: Any = "longest_path",
    effort: str = "normal",
) -> IntArray:
    """Schedule any task graph on engines: start times, int64 ``(n,)`` in picoseconds (or whatever unit went in).

    ``durations_ps`` ``(n,)``: not negative. ``engine`` ``(n,)``: which engine works on each node, -1 for none.
    ``channels`` ``(E,)``: how many nodes an engine works on at once. ``edges`` ``(m, 2)``: from, to. ``release_ps``
    ``(n,)``: no node starts before. ``priority``: a rule of ``PRIORITIES`` to begin with, or an array ``(n,)``, larger
    first, that is used instead of the rules. ``effort``: ``"fast"``, ``"normal"``, ``"high"``.

    Event-driven list scheduling, several rules, forward-backward improvement (see :func:`search`). Raises
    ``InfeasibleError`` for arrays that do not fit together, ``DeadlockError`` where the edges close a cycle,
    ``PolicyError`` for an unknown rule or effort.
    """
    wanted = check_effort(effort)
    dag = _make_dag(durations_ps, engine, channels, edges, release_ps)
    if dag.has_cycle:
        arcs = find_cycle(len(dag), dag.order, dag.source, dag.target)
        nodes = [int(dag.target[arc]) for arc in arcs]
        shown = " after ".join(map(str, [*nodes, nodes[0]]))
        raise DeadlockError(f"the edges close a cycle: {shown}", help="a task graph has no cycles", nodes=nodes)
    if not isinstance(priority, str):
        given = _column(priority, len(dag), "priority")
        return search(dag, wanted, priority=given)
    if priority not in PRIORITIES:
        raise PolicyError(f"no priority rule {priority!r}", help=did_you_mean(priority, PRIORITIES, what="rules"))
    first = list_schedule(dag, _by_largest(PRIORITIES[priority](dag))) if len(dag) else None
    return search(dag, wanted, incumbent=first)


def _make_dag(durations: Any, engine: Any, channels: Any, edges: Any, release: Any) -> Dag:
    duration = _column(durations, None, "durations_ps")
    n = len(duration)
    lanes = _column(channels, None, "channels")
    on = _column(engine, n, "engine")
    pairs = np.asarray(edges)
    pairs = pairs.reshape(0, 2) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and pairs.dtype.kind not in "iu"):
        raise InfeasibleError(f"edges of shape {pairs.shape} and dtype {pairs.dtype}", help="pass integers, (m, 2)")
    ready = np.zeros(n, dtype=np.int64) if release is None else _column(release, n, "release_ps")
    _check_range(duration, 0, None, "durations_ps")
    _check_range(lanes, 1, None, "channels")
    _check_range(on, -1, len(lanes), "engine")
    _check_range(pairs, 0, n, "edges")
    _check_range(ready, 0, None, "release_ps")
    pairs = np.unique(pairs.astype(np.int64)[:, ::-1], axis=0) if len(pairs) else pairs.astype(np.int64)
    return Dag(duration, on, lanes, source=pairs[:, 1].copy(), target=pairs[:, 0].copy(), release_ps=ready)


def _column(values: Any, length: int | None, name: str) -> IntArray:
    column = np.asarray(values)
    column = column.astype(np.int64) if column.size == 0 else column
    if column.ndim != 1 or column.dtype.kind not in "iu" or (length is not None and len(column) != length):
        wanted = "(n,)" if length is None else f"({length},)"
        raise InfeasibleError(
            f"{name} of shape {column.shape} and dtype {column.dtype}", help=f"pass integers, {wanted}"
        )
    return column.astype(np.int64)


def _check_range(column: IntArray, lower: int, upper: int | None, name: str) -> None:
    if column.size and (int(column.min()) < lower or (upper is not None and int(column.max()) >= upper)):
        until = "" if upper is None else f", below {upper}"
        raise InfeasibleError(
            f"{name} holds values from {int(column.min())} to {int(column.max())}", help=f"pass {lower} or more{until}"
        )
