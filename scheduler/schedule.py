"""A schedule: when every node is issued, starts and ends, on which engine and lane; and what that tells."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..ir.errors import ArgumentError, MachineError
from ..ir.graph import Graph
from ..ir.tables import IntArray, Reason
from .bounds import Bounds, lower_bounds
from .causes import CauseColumns, find_causes
from .critical_chain import CriticalChain, walk_chain
from .deadlock import deadlock_error
from .in_order import Times
from .lanes import assign_lanes
from .latency import latencies_ps
from .list_search import check_effort
from .machine import Machine, load_machine
from .moved import Moved, moved_nodes
from .optimal import DEFAULT_LIMIT, SOLVER_BOUND, SolverLimit, check_solvable, solve
from .policies import OPTIMAL, Deadlock, check_policy, run_policy
from .problem import EngineInstance, Problem, make_problem
from .reuse import PriceOfReuse, price_of_reuse
from .schedule_json import schedule_document, schedule_text
from .schedule_tables import schedule_html
from .slack import slack_ps
from .units import format_ps

__all__ = ["Schedule", "machine_of", "make_schedule", "schedule"]


@attrs.frozen(eq=False, repr=False, slots=False)
class Schedule:
    """A graph's schedule on a machine under a policy. Immutable; all columns are by node, times int64 in picoseconds.

    ``issue_ps``: when the issue of the node's command ends (of a scope marker: when the CPU passes it); ``start_ps``,
    ``end_ps``; ``engine``: an index into ``engines``, -1 for what takes no engine; ``lane``: which of the engine's
    channels, -1 without one. ``bounds`` hold for every policy.
    """

    graph: Graph
    machine: Machine
    policy: str
    effort: str
    issue_ps: IntArray
    start_ps: IntArray
    end_ps: IntArray
    engine: IntArray
    lane: IntArray
    engines: tuple[EngineInstance, ...]
    bounds: Bounds
    problem: Problem

    def __len__(self) -> int:
        return len(self.start_ps)

    def __repr__(self) -> str:
        return (
            f"<Schedule {self.graph.kernel} on {self.machine.name}, {self.policy}: {format_ps(self.makespan_ps)}, "
            f"{self.ratio:.3f} x the bound ({self.bounds.best})>"
        )

    @property
    def makespan_ps(self) -> int:
        """The end of the last node."""
        return int(self.end_ps.max()) if len(self) else 0

    @property
    def bound_ps(self) -> int:
        """The best lower bound on any policy's makespan; ``bounds.best`` names it."""
        return self.bounds.best_ps

    @property
    def proved_optimal(self) -> bool:
        """Whether the makespan meets a lower bound: then no schedule of any policy is shorter."""
        return self.makespan_ps == self.bound_ps

    @property
    def ratio(self) -> float:
        """Makespan over bound, 1.0 at best: a schedule of 1.0 is optimal."""
        return self.makespan_ps / self.bound_ps if self.bound_ps else 1.0

    @cached_property
    def waited_for(self) -> CauseColumns:
        """What each node waited for last: ``waited_for[i]`` is a :class:`kernscope.scheduler.causes.WaitedFor`, or
        None."""
        return find_causes(self.problem, self.policy, self.issue_ps, self.start_ps, self.lane)

    @property
    def cause(self) -> IntArray:
        """``waited_for`` as a column: a ``Reason`` for an edge, else an ``ArcKind``, else 255."""
        return self.waited_for.cause

    @property
    def cause_node(self) -> IntArray:
        """The node behind ``cause``; -1: none."""
        return self.waited_for.node

    def critical_chain(self) -> CriticalChain:
        """What the end of the schedule waited for, back to time 0. The parts sum to the makespan exactly."""
        dag = self.problem.dag
        reused = self.problem.recycled & (self.problem.reason >= Reason.WAR)
        tight = reused & (self.cause_node[dag.target] == dag.source) & (self.cause[dag.target] == self.problem.reason)
        recycled_into = np.zeros(len(self), dtype=np.bool_)
        recycled_into[dag.target[tight]] = True
        latency = latencies_ps(self.graph, self.machine)
        return walk_chain(self.problem, self.start_ps, self.waited_for, latency, recycled_into)

    def engine_label(self, engine: int) -> str:
        """An engine for a reader: ``"gemm"``, on several ranks ``"rank 1 gemm"``; -1 is ``"none"``."""
        if engine < 0:
            return "none"
        instance = self.engines[engine]
        return f"rank {instance.rank} {instance.name}" if self.graph.ranks > 1 else instance.name

    @cached_property
    def busy_ps(self) -> IntArray:
        """By engine, the sum of its nodes' durations, int64 in picoseconds."""
        used = self.engine >= 0
        busy = np.zeros(len(self.engines), dtype=np.int64)
        np.add.at(busy, self.engine[used], (self.end_ps - self.start_ps)[used])
        return busy

    def utilisation(self) -> dict[str, float]:
        """By engine, the share of the makespan in which its lanes are at work, 0 to 1."""
        makespan = max(self.makespan_ps, 1)
        return {
            self.engine_label(number): int(self.busy_ps[number]) / (makespan * instance.channels)
            for number, instance in enumerate(self.engines)
        }

    @cached_property
    def slack_ps(self) -> IntArray:
        """How much later each node could start without delaying the end, all else staying in order."""
        return slack_ps(self.problem, self.policy, self.start_ps, self.lane)

    def price_of_reuse(self) -> PriceOfReuse:
        """What waiting for reused scratch costs, and which pairs of lines cost most."""
        times = Times(self.issue_ps, self.start_ps)
        return price_of_reuse(self.graph, self.problem, self.policy, self.effort, times, self.lane)

    def moved_against(self, other: Schedule) -> tuple[Moved, ...]:
        """What this schedule starts sooner than another one of the same graph, by source line and operation, what
        overtakes most first: ``list`` against ``lazy`` says what an author gains by reordering, and how. Raises
        ``ArgumentError`` for a schedule of another graph."""
        if other.graph is not self.graph and other.graph != self.graph:
            raise ArgumentError(
                f"schedules of different graphs: {self.graph.kernel} and {other.graph.kernel}",
                help="schedule one graph under two policies",
            )
        return moved_nodes(self.graph, self.start_ps, other.start_ps)

    def to_dict(self) -> dict[str, Any]:
        """The schedule as plain data, enough for an outside program to verify it: what :meth:`to_json` writes."""
        return schedule_document(self)

    def to_json(self) -> str:
        """The schedule as JSON."""
        return schedule_text(self)

    def _repr_html_(self) -> str:
        return schedule_html(self)


def machine_of(graph: Graph, machine: Machine | str | os.PathLike[str] | None) -> Machine:
    """The machine asked for, else the preset that the graph was traced for. Raises ``MachineError``."""
    if machine is not None:
        return load_machine(machine)
    try:
        return load_machine(graph.machine)
    except MachineError as error:
        raise MachineError(
            f"the graph was traced for machine {graph.machine!r}, which is no preset",
            help="pass the machine: a preset's name, a TOML file or a Machine",
        ) from error


def schedule(
    graph: Graph,
    machine: Machine | str | os.PathLike[str] | None = None,
    policy: str = "list",
    effort: str = "normal",
    limit: SolverLimit = DEFAULT_LIMIT,
) -> Schedule:
    """Schedule a graph on a machine (None: the preset it was traced for).

    ``policy``: ``"blocking"``, ``"lazy"``, ``"queued"``, ``"list"`` or ``"optimal"``, each never slower than the one
    before; ``effort`` (``"fast"``, ``"normal"``, ``"high"``) is how long ``list`` searches, ``limit`` how long the
    solver of ``optimal`` then does. Raises ``DeadlockError`` with the
    cycle of source lines, ``TargetMismatchError`` for a machine of another target, ``PolicyError``, ``MachineError``.
    """
    check_policy(policy)
    check_effort(effort)
    described = machine_of(graph, machine)
    return make_schedule(graph, described, make_problem(graph, described), policy, effort, limit=limit)


def make_schedule(
    graph: Graph,
    machine: Machine,
    problem: Problem,
    policy: str,
    effort: str,
    bounds: Bounds | None = None,
    limit: SolverLimit = DEFAULT_LIMIT,
) -> Schedule:
    """A schedule from a problem that is made already. Raises ``DeadlockError``, and what the solver of ``optimal``
    raises."""
    if policy == OPTIMAL:
        check_solvable(problem.dag)
    known = bounds
    if known is None and not problem.dag.has_cycle:
        known = lower_bounds(problem)
    times = run_policy(problem, policy, check_effort(effort), bound_ps=known.best_ps if known else 0)
    if isinstance(times, Deadlock):
        raise deadlock_error(graph, policy, times.waits)
    assert known is not None
    dag = problem.dag
    if policy == OPTIMAL:
        exact = solve(dag, times.start_ps, bound_ps=known.best_ps, limit=limit)
        times = attrs.evolve(times, start_ps=exact.start_ps)
        known = known.with_bound(SOLVER_BOUND, exact.bound_ps)
    columns = {
        "issue_ps": times.issue_ps,
        "start_ps": times.start_ps,
        "end_ps": times.start_ps + dag.duration_ps,
        "engine": dag.engine,
        "lane": assign_lanes(dag, times.start_ps),
    }
    ready = {}
    for name, column in columns.items():
        ready[name] = column.copy()
        ready[name].flags.writeable = False
    return Schedule(graph, machine, policy, effort, **ready, engines=problem.engines, bounds=known, problem=problem)
