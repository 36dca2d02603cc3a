"""A task graph on plain arrays, scheduled with all that is known of it: :func:`solve_dag`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import ArgumentError, InfeasibleError, PolicyError, did_you_mean, shown
from ...ir.tables import IntArray
from ..search.bounding import BoundEffort
from ..search.critical_search import search_critical_chain
from ..search.dag import Dag
from ..search.dag_arrays import acyclic_dag, column
from ..search.efforts import EFFORTS, Effort, check_effort, check_seed
from ..search.improving import makespan_ps, relisted
from ..search.lanes import assign_lanes, placement_order
from ..search.solving import Solved, Solving
from .lower_bounds import LOADED_PATH, LONGEST_PATH, RAISED_PATH, REFUTED
from .optimal import DEFAULT_TIME_LIMIT_S, SOLVER_BOUND, SolverLimit, check_solvable, solve

__all__ = ["Progress", "SolvedDag", "solve_dag"]

#: How many nodes and edges one slice of local search visits under a time limit: some hundredths of a second compiled.
_SLICE = 1_000_000
#: What a second buys at the least, in steps of the searches for bounds and in visits, in plain Python.
_STEPS_A_SECOND = 4_000_000
_POLICIES = ("list", "optimal")


@attrs.frozen
class Progress:
    """What was known at a time: ``seconds`` since the call, the makespan of the best schedule so far, the best lower
    bound so far, and ``by``: what has found the one or the other (an effort, ``"local search"``, ``"solver"``)."""

    seconds: float
    makespan_ps: int
    bound_ps: int
    by: str


@attrs.frozen(eq=False)
class SolvedDag:
    """A schedule of a task graph. By node: ``start_ps`` int64 ``(n,)``, and ``lane`` int32 ``(n,)``, which of its
    engine's channels it runs on, -1 without an engine. ``bounds``: lower bounds on every schedule's makespan by name,
    those of engines as ``"engine 3"``. ``course``: what was known when, from the first schedule on."""

    start_ps: IntArray
    lane: IntArray
    makespan_ps: int
    bounds: Mapping[str, int]
    course: tuple[Progress, ...]

    @property
    def bound_ps(self) -> int:
        """The largest lower bound: no schedule is shorter."""
        return max(self.bounds.values(), default=0)

    @property
    def bound(self) -> str:
        """The name of the largest, the first of equal ones."""
        return max(self.bounds, key=lambda name: self.bounds[name], default="none")

    @property
    def proved_optimal(self) -> bool:
        """Whether the makespan meets a bound: then no schedule is shorter."""
        return self.makespan_ps == self.bound_ps

    @property
    def ratio(self) -> float:
        """Makespan over bound, 1.0 at best."""
        return self.makespan_ps / self.bound_ps if self.bound_ps else 1.0

    def __repr__(self) -> str:
        proof = "optimal" if self.proved_optimal else f"{self.ratio:.3f} x the bound of {self.bound_ps:,}"
        return f"<SolvedDag of {len(self.start_ps):,} nodes: {self.makespan_ps:,}, {proof} ({self.bound})>"


def solve_dag(
    durations_ps: Any,
    engine: Any,
    channels: Any,
    edges: Any,
    *,
    release_ps: Any = None,
    effort: str = "normal",
    policy: str = "list",
    time_limit_s: float | None = None,
    warm_start: Any = None,
    callback: Callable[[Progress], object] | None = None,
    seed: int = 0,
) -> SolvedDag:
    """Schedule any task graph on engines, with lanes, lower bounds, and the course of the search.

    The arrays, ``effort`` and ``seed`` are those of :func:`kernscope.schedule_dag`, and so are the errors. Without a
    time limit the effort ends by itself and the result is the same on every computer. ``time_limit_s``: seconds of wall
    time; the search goes on after its effort, from other seeds, until the time is over or the schedule is proved
    optimal, and leaves out of the effort what would take too long. ``warm_start``: start times ``(n,)`` that satisfy
    the problem; the result is never longer. ``callback`` is called with each :class:`Progress` as soon as it is made.
    ``policy``: ``"optimal"`` hands what is left of the time (10 seconds, without a limit) to a constraint solver, the
    extra ``optimal``.

    Raises ``InfeasibleError`` also for a warm start that breaks the problem, ``PolicyError`` also for an unknown policy
    and for a time limit that is none, ``MissingExtraError`` without the extra.
    """
    wanted, seed = check_effort(effort), check_seed(seed)
    if policy not in _POLICIES:
        raise PolicyError(f"no policy {shown(policy)}", help=did_you_mean(str(policy), _POLICIES, what="policies"))
    if callback is not None and not callable(callback):
        raise ArgumentError(f"callback={shown(callback)}", help="pass a function that takes what is known")
    limit = None if time_limit_s is None else SolverLimit(time_limit_s).seconds
    dag = acyclic_dag(durations_ps, engine, channels, edges, release_ps)
    if policy == "optimal":
        check_solvable(dag)
    start = None if warm_start is None else _checked(dag, column(warm_start, len(dag), "warm_start", 0))
    if not len(dag):
        empty = np.zeros(0, dtype=np.int64)
        return SolvedDag(empty, empty.astype(np.int32), 0, FrozenMap({LONGEST_PATH: 0}), ())
    course = _Course(dag, limit, callback)
    found = _by_efforts(course, wanted, start, seed)
    share = 0.5 if policy == "optimal" else 1.0
    if limit is not None:
        found = _by_local_search(course, found, share * limit, seed)
    bounds = _named(found)
    if policy == "optimal" and found.makespan_ps > max(bounds.values()):
        left = DEFAULT_TIME_LIMIT_S if limit is None else max(limit - course.seconds, 0.01)
        exact = solve(dag, found.start_ps, bound_ps=max(bounds.values()), limit=SolverLimit(left, seed))
        found = found.better(dag, exact.start_ps)
        bounds[SOLVER_BOUND] = exact.bound_ps
        course.note("solver", found.makespan_ps, max(bounds.values()))
    lane = assign_lanes(dag, found.start_ps)
    return SolvedDag(found.start_ps, lane, found.makespan_ps, FrozenMap(bounds), tuple(course.known))


class _Course:
    """The time since the call, and what was known when."""

    def __init__(self, dag: Dag, limit: float | None, callback: Callable[[Progress], object] | None) -> None:
        self.dag, self.limit, self.known = dag, limit, list[Progress]()
        self._callback = callback
        self._begun = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begun

    def note(self, by: str, makespan: int, bound: int) -> None:
        """Notes what is new, and tells it."""
        last = self.known[-1] if self.known else None
        if last is not None:
            makespan, bound = min(makespan, last.makespan_ps), max(bound, last.bound_ps)
            if (makespan, bound) == (last.makespan_ps, last.bound_ps):
                return
        self.known.append(Progress(self.seconds, makespan, bound, by))
        if self._callback is not None:
            self._callback(self.known[-1])


def _by_efforts(course: _Course, wanted: Effort, start: IntArray | None, seed: int) -> Solved:
    """What the efforts up to the one asked for find, as long as there is time."""
    dag = course.dag
    solving = Solving(dag, seed=seed, bound_at_once=True)
    below: Effort | None = None
    found: Solved | None = None
    for name, effort in EFFORTS.items():
        if found is not None and course.limit is not None and course.seconds >= course.limit:
            break
        if course.limit is not None:
            effort = _within(effort, below, course.limit - course.seconds)
        known = solving.at(effort)
        if start is not None:
            from_start = solving.from_incumbent(effort, start)
            known = attrs.evolve(known, start_ps=from_start, makespan_ps=makespan_ps(dag, from_start))
        found, below = known, effort
        course.note(name, known.makespan_ps, max(_named(known).values()))
        if known.within(0.0) or EFFORTS[name] is wanted:
            break
    assert found is not None, "there is an effort"
    return found


def _within(effort: Effort, below: Effort | None, seconds: float) -> Effort:
    """The effort with no more for bounds and local search than a slow computer does in the time."""
    steps = int(max(seconds, 0.0) * _STEPS_A_SECOND)
    bounds = effort.bounds
    less = BoundEffort(
        bounds.widths,
        min(bounds.window_steps, steps // 4),
        0 if bounds.window_steps > steps // 4 else bounds.steps_a_node,
        (bounds.refuting[0], min(bounds.refuting[1], steps // 4)),
        (bounds.probing[0], min(bounds.probing[1], steps // 4)),
        bounds.largest,
    )
    return attrs.evolve(effort, below=below, bounds=less, visits=min(effort.visits, _SLICE))


def _by_local_search(course: _Course, found: Solved, until: float, seed: int) -> Solved:
    """Slices of local search, each from another seed, from the best schedule or (where engines have several lanes) from
    one that is listed anew by it."""
    dag = course.dag
    random = np.random.default_rng(seed)
    bound = max(_named(found).values())
    number = 0
    while course.seconds < until and found.makespan_ps > bound:
        number += 1
        start = relisted(dag, found.start_ps, random, number) if np.any(dag.channels > 1) else found.start_ps
        again = search_critical_chain(dag, start, visits=_SLICE, enough_ps=bound, seed=(seed + number) % (1 << 31))
        if again is start and not np.any(dag.channels > 1):
            break  # the graph is too large for a single move within a slice
        found = found.better(dag, again)
        course.note("local search", found.makespan_ps, bound)
    return found


def _named(found: Solved) -> dict[str, int]:
    known = found.bounds
    assert known is not None, "bounds are wanted"
    each = {LONGEST_PATH: known.path_ps, LOADED_PATH: known.loaded_ps}
    each |= {f"engine {engine}": bound for engine, bound in known.engines}
    each |= {RAISED_PATH: known.raised_ps} if known.raised_ps else {}
    each |= {REFUTED: known.refuted_ps} if known.refuted_ps else {}
    return each


def _checked(dag: Dag, start: IntArray) -> IntArray:
    """Start times of a caller. Raises ``InfeasibleError`` where they break the problem."""
    help_ = "pass start times of these very arrays, or leave the warm start out"
    early = np.flatnonzero(start < dag.release_ps)
    if len(early):
        node = int(early[0])
        raise InfeasibleError(
            f"the warm start begins node {node} at {start[node]}, before its release at {dag.release_ps[node]}",
            help=help_,
        )
    end = start + dag.duration_ps
    broken = np.flatnonzero(end[dag.source] > start[dag.target])
    if len(broken):
        source, target = int(dag.source[broken[0]]), int(dag.target[broken[0]])
        raise InfeasibleError(
            f"the warm start begins node {target} at {start[target]}, before node {source} has ended at {end[source]}",
            help=help_,
        )
    order = placement_order(dag, start)
    free = [[-math.inf] * int(lanes) for lanes in dag.channels]
    for node in order[dag.engine[order] >= 0].tolist():
        lanes = free[dag.engine[node]]
        lane = lanes.index(min(lanes))
        if lanes[lane] > start[node]:
            raise InfeasibleError(
                f"the warm start begins node {node} at {start[node]}, when all {len(lanes)} channels of engine "
                f"{dag.engine[node]} are busy",
                help=help_,
            )
        lanes[lane] = int(end[node])
    return start
