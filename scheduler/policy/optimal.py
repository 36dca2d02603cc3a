"""The ``optimal`` policy: an exact schedule by a constraint solver, or the best one found in time and a lower bound.

Google's CP-SAT (the extra ``optimal``: ortools) on the usual model of scheduling with interval variables (Laborie,
Rogerie, Shaw and Vilim 2018): a start per node, an edge as a difference, an engine of one lane as a disjunction, one of
k lanes as a cumulative resource of capacity k. It starts from the list schedule, as a hint and as an upper bound, and
from the lower bounds that are known already.
"""

from __future__ import annotations

import importlib
import math
from types import ModuleType
from typing import Any

import attrs
import numpy as np

from ...ir.errors import MissingExtraError, PolicyError, shown
from ...ir.tables import IntArray
from ...machine.units import format_ps
from ..search.dag import Dag, longest_from_start, longest_to_end
from ..search.efforts import check_seed
from ..search.lanes import assign_lanes, lane_predecessors

__all__ = [
    "DEFAULT_LIMIT",
    "DEFAULT_TIME_LIMIT_S",
    "LARGEST_NODES",
    "SOLVER_BOUND",
    "ExactSchedule",
    "SolverLimit",
    "check_solvable",
    "solve",
]

#: Above so many nodes that occupy an engine the solver is not even begun: it hardly ever gets anywhere there in
#: the time one would wait for it.
LARGEST_NODES = 2_000
DEFAULT_TIME_LIMIT_S = 10.0
#: The name of the solver's lower bound among a schedule's bounds.
SOLVER_BOUND = "solver"

#: The solver's times, in units of the greatest common divisor, stay exact as floats.
_LARGEST_TIME = 1 << 52


def _check_time(limit: Any, attribute: Any, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise PolicyError(f"a time limit of {shown(value)}", help="give seconds, more than 0")


@attrs.frozen
class SolverLimit:
    """How long the solver may search, in seconds of wall time, and the seed of its choices. It works on one thread: as
    long as it ends by a proof, the same problem and seed give the same schedule; where the time runs out, how far it
    came depends on the computer."""

    seconds: float = attrs.field(default=DEFAULT_TIME_LIMIT_S, validator=_check_time)
    seed: int = attrs.field(default=0, converter=check_seed)


DEFAULT_LIMIT = SolverLimit()


@attrs.frozen(eq=False)
class ExactSchedule:
    """``start_ps`` int64 ``(n,)``, left-shifted: nothing could start earlier with the same order on each lane.
    ``bound_ps``: the solver's lower bound on every policy's makespan; equal to the makespan, it proves the schedule
    optimal."""

    start_ps: IntArray
    bound_ps: int


def check_solvable(dag: Dag) -> None:
    """Raises ``MissingExtraError`` without ortools, ``PolicyError`` for a problem above ``LARGEST_NODES``."""
    _solver()
    nodes = int(np.count_nonzero((dag.engine >= 0) & (dag.duration_ps > 0)))
    if nodes > LARGEST_NODES:
        raise PolicyError(
            f"{nodes:,} nodes on engines are too many for the policy 'optimal', which takes {LARGEST_NODES:,}",
            help="trace a smaller launch, or use 'list': its ratio to the bound says how far from optimal it can be",
        )


def solve(dag: Dag, incumbent: IntArray, *, bound_ps: int, limit: SolverLimit) -> ExactSchedule:
    """The shortest schedule found, never longer than ``incumbent`` (start times that satisfy the problem).

    ``bound_ps`` is a lower bound that is known: where the incumbent meets it, nothing is left to search. The edges must
    close no cycle. Raises as :func:`check_solvable`.
    """
    check_solvable(dag)
    makespan = int((incumbent + dag.duration_ps).max(initial=0))
    if makespan <= bound_ps:
        return ExactSchedule(incumbent, bound_ps)
    unit = int(np.gcd.reduce(np.concatenate([dag.duration_ps, dag.release_ps])))
    if makespan // unit >= _LARGEST_TIME:
        raise PolicyError(
            f"a schedule of {format_ps(makespan)} in steps of {unit} ps is too long for the policy 'optimal'",
            help="use 'list', or a machine whose times are multiples of a nanosecond",
        )
    start, bound = _search(dag, incumbent, unit, -(-bound_ps // unit), limit)
    return ExactSchedule(_left_shifted(dag, start), min(max(bound * unit, bound_ps), makespan))


def _solver() -> ModuleType:
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        raise MissingExtraError(
            "the policy 'optimal' needs ortools", help="pip install 'kernscope[optimal]', or use the policy 'list'"
        ) from error


def _search(dag: Dag, incumbent: IntArray, unit: int, bound: int, limit: SolverLimit) -> tuple[IntArray, int]:
    """The best start times in picoseconds, and the bound in units."""
    cp = _solver()
    model = cp.CpModel()
    duration: list[int] = (dag.duration_ps // unit).tolist()
    # The makespan is of whole units: a left-shifted schedule's times are sums of durations and releases. What is not
    # left-shifted is so after rounding down.
    hint: list[int] = (_left_shifted(dag, incumbent) // unit).tolist()
    horizon = max(at + takes for at, takes in zip(hint, duration, strict=True))
    head: list[int] = (longest_from_start(dag) // unit).tolist()
    to_end: list[int] = (longest_to_end(dag) // unit).tolist()
    start = [model.new_int_var(earliest, horizon - tail, "") for earliest, tail in zip(head, to_end, strict=True)]
    for source, target in zip(dag.source.tolist(), dag.target.tolist(), strict=True):
        model.add(start[target] >= start[source] + duration[source])
    for engine, channels in enumerate(dag.channels.tolist()):
        nodes: list[int] = np.flatnonzero(dag.engine == engine).tolist()
        if channels == 1 or any(not duration[node] for node in nodes):
            _on_lanes(model, nodes, channels, start, duration, assign_lanes(dag, incumbent).tolist())
        elif len(nodes) > channels:
            intervals = [model.new_fixed_size_interval_var(start[node], duration[node], "") for node in nodes]
            model.add_cumulative(intervals, [1] * len(nodes), channels)
    makespan = model.new_int_var(bound, horizon, "")
    for node in np.flatnonzero(np.bincount(dag.source, minlength=len(dag)) == 0).tolist():
        model.add(makespan >= start[node] + duration[node])
    for node, at in enumerate(hint):
        model.add_hint(start[node], at)
    model.add_hint(makespan, horizon)
    model.minimize(makespan)

    solver = cp.CpSolver()
    solver.parameters.max_time_in_seconds = limit.seconds
    solver.parameters.random_seed = limit.seed
    solver.parameters.num_workers = 1
    # Presolving a disjunction of a thousand nodes takes longer than the search is given, and finds nothing there.
    solver.parameters.cp_model_presolve = False
    status = solver.solve(model)
    # The hint is a solution: the model cannot be infeasible.
    assert status in (cp.OPTIMAL, cp.FEASIBLE, cp.UNKNOWN), solver.status_name(status)
    proved = max(bound, math.ceil(solver.best_objective_bound - 1e-6))
    if status == cp.UNKNOWN:
        return incumbent, proved
    return np.array([solver.value(var) for var in start], dtype=np.int64) * unit, proved


def _on_lanes(
    model: Any, nodes: list[int], channels: int, start: list[Any], duration: list[int], hinted: list[int]
) -> None:
    """One disjunction per lane. It also holds for nodes that take no time, which a cumulative resource does not see:
    they, too, need a lane that is free."""
    if channels == 1:
        model.add_no_overlap([model.new_fixed_size_interval_var(start[node], duration[node], "") for node in nodes])
        return
    lanes: list[list[Any]] = [[] for _ in range(channels)]
    for node in nodes:
        chosen = [model.new_bool_var("") for _ in range(channels)]
        model.add_exactly_one(chosen)
        for number, (lane, here) in enumerate(zip(lanes, chosen, strict=True)):
            model.add_hint(here, int(number == hinted[node]))  # the oldest OR-Tools takes no bool
            lane.append(model.new_optional_fixed_size_interval_var(start[node], duration[node], here, ""))
    for lane in lanes:
        model.add_no_overlap(lane)


def _left_shifted(dag: Dag, start: IntArray) -> IntArray:
    """Every node as early as its release, its edges and the order on its lane allow."""
    lane = assign_lanes(dag, start)
    before = lane_predecessors(dag, start, lane)
    held = np.flatnonzero(before >= 0)
    source = np.concatenate([dag.source, before[held]])
    target = np.concatenate([dag.target, held])
    by_target = np.lexsort((source, target))
    return longest_from_start(attrs.evolve(dag, source=source[by_target], target=target[by_target]))
