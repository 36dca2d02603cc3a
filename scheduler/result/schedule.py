"""A schedule: when every node is issued, starts and ends, on which engine and lane; and what that tells."""

from __future__ import annotations

import os
from functools import cached_property, lru_cache
from typing import Any

import attrs

from ...ir.columns import expect_graph
from ...ir.errors import ArgumentError, MachineError, shown
from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.messages import MessageFault, message_faults, refuse_faults
from ...ir.verifier.verify import require_valid
from ...machine.description import Machine, load_machine, machine_names, parse_machine
from ..policy.deadlock import deadlock_error
from ..policy.in_order import Times
from ..policy.lower_bounds import Bounds, lower_bounds
from ..policy.optimal import DEFAULT_LIMIT, SOLVER_BOUND, SolverLimit, check_solvable, solve
from ..policy.policies import Deadlock, run_policy
from ..policy.problem import Problem, make_problem
from ..policy.registry import LIST, QUEUED, Policy, policy_of
from ..search.bounding import quick_bounds
from ..search.efforts import Effort, check_effort
from ..search.lanes import assign_lanes
from ..search.solving import Solving
from .columns import ScheduleColumns
from .json_form import schedule_document, schedule_text
from .reordering import Moved, moved_nodes
from .tables import schedule_html

__all__ = ["Schedule", "Scheduling", "known_machine", "machine_of", "makespan_ps", "schedule"]


@attrs.frozen(eq=False, repr=False, slots=False)
class Schedule(ScheduleColumns):
    """A graph's schedule on a machine under a policy. Immutable; all columns are by node, times int64 in picoseconds
    (:class:`kernscope.scheduler.result.columns.ScheduleColumns`)."""

    def moved_against(self, other: Schedule) -> tuple[Moved, ...]:
        """What this schedule starts sooner than another one of the same graph, by source line and operation, what
        overtakes most first: ``list`` against ``lazy`` says what an author gains by reordering, and how. Raises
        ``ArgumentError`` for a schedule of another graph."""
        if not isinstance(other, Schedule):
            raise ArgumentError(
                f"moved_against takes a schedule, not {shown(other)}", help="pass what ks.schedule returns"
            )
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
    """The machine asked for, else the one that the graph was traced for. Raises ``MachineError``."""
    if machine is not None:
        return load_machine(machine)
    known = known_machine(graph)
    if known is None:
        raise MachineError(
            f"the graph was traced for machine {quote(graph.machine)!r}, no preset, and says nothing of its machine",
            help="pass the machine: a preset's name, a TOML file or a Machine",
        )
    return known


def known_machine(graph: Graph) -> Machine | None:
    """The machine that a graph was traced for: as it describes it, else the preset of that name. A graph's words open
    no file. Raises ``MachineError`` for a description that does not hold together."""
    if graph.machine_toml:
        return _described(graph.machine_toml)
    return load_machine(graph.machine) if graph.machine in machine_names() else None


@lru_cache(maxsize=16)
def _described(text: str) -> Machine:
    return parse_machine(text, "the graph's machine")


@attrs.frozen(eq=False, slots=False)
class Scheduling:
    """A graph on a machine, with all that its schedules share: each thing is computed when it is first asked for, and
    kept. ``asked``: the machine as the caller has it, a name, a file or a ``Machine`` (None: the preset that the graph
    was traced for)."""

    graph: Graph
    asked: Machine | str | os.PathLike[str] | None = None
    _times: dict[tuple[str, str], Times | Deadlock] = attrs.field(factory=dict, init=False, repr=False)
    _bounds: dict[str, Bounds] = attrs.field(factory=dict, init=False, repr=False)
    _schedules: dict[tuple[str, str, SolverLimit], Schedule] = attrs.field(factory=dict, init=False, repr=False)

    @cached_property
    def machine(self) -> Machine:
        """The machine. Raises ``MachineError``."""
        return machine_of(self.graph, self.asked)

    @cached_property
    def message_faults(self) -> list[MessageFault]:
        """Messages without a partner, or with one that expects another tile."""
        return message_faults(self.graph)

    @cached_property
    def problem(self) -> Problem:
        """The graph as arrays. Raises ``MachineError``, and ``TargetMismatchError`` for a machine of another target."""
        return make_problem(self.graph, self.machine)

    @cached_property
    def _solving(self) -> Solving:
        return Solving(self.problem.split.dag, bound_at_once=True)

    def bounds(self, effort: str = "normal") -> Bounds | None:
        """The lower bounds that an effort finds; None where the graph's own edges close a cycle, so that no policy can
        run it. Raises ``PolicyError`` for an unknown effort."""
        wanted, dag = check_effort(effort), self.problem.dag
        if dag.has_cycle:
            return None
        if effort not in self._bounds:
            known = self._solving.at(wanted).bounds if len(dag) else quick_bounds(self.problem.split.dag)
            self._bounds[effort] = lower_bounds(self.problem, known)
        return self._bounds[effort]

    def refuse_unmatched(self) -> None:
        """Raise ``UnmatchedMessageError`` where a message does not find its partner."""
        if len(self.graph.channels):
            refuse_faults(self.graph, self.message_faults)

    def times(self, policy: Policy, effort: str = "normal") -> Times | Deadlock:
        """The times of a policy, or the deadlock it ends in. Those of an exact one are what its solver starts from."""
        key = (policy.name, "") if policy.in_order else (LIST.name, effort)
        if key not in self._times:
            self._times[key] = self._run(policy, check_effort(effort))
        return self._times[key]

    def _run(self, policy: Policy, effort: Effort) -> Times | Deadlock:
        if policy.in_order or self.problem.dag.has_cycle:
            return run_policy(self.problem, policy, effort)
        queued = self.times(QUEUED)
        incumbent = None if isinstance(queued, Deadlock) else queued.start_ps
        return run_policy(self.problem, policy, effort, incumbent=incumbent, solving=self._solving)

    def schedule(self, policy: str = "list", effort: str = "normal", limit: SolverLimit = DEFAULT_LIMIT) -> Schedule:
        """The schedule of a policy: see :func:`schedule` in this module, which says what it raises."""
        rules = policy_of(policy)
        check_effort(effort)
        key = (policy, effort, limit)
        if key not in self._schedules:
            require_valid(self.graph)
            self.refuse_unmatched()
            self._schedules[key] = self._scheduled(rules, effort, limit)
        return self._schedules[key]

    def _scheduled(self, policy: Policy, effort: str, limit: SolverLimit) -> Schedule:
        problem, dag = self.problem, self.problem.dag
        if policy.exact:
            check_solvable(dag)
        known = self.bounds(effort)
        times = self.times(policy, effort)
        if isinstance(times, Deadlock):
            raise deadlock_error(self.graph, policy, times.waits)
        assert known is not None, "edges that close a cycle are a deadlock"
        if policy.exact:
            whole = problem.split
            exact = solve(whole.dag, whole.starts(times.start_ps), bound_ps=known.best_ps, limit=limit)
            times = attrs.evolve(times, start_ps=whole.given(exact.start_ps))
            known = known.with_bound(SOLVER_BOUND, exact.bound_ps)
        columns = {
            "issue_ps": times.issue_ps,
            "start_ps": times.start_ps,
            "end_ps": times.start_ps + dag.duration_ps,
            "engine": dag.engine,
            "lane": assign_lanes(problem.on_engines, times.start_ps),
        }
        ready = {}
        for name, column in columns.items():
            ready[name] = column.copy()
            ready[name].flags.writeable = False
        return Schedule(
            self.graph,
            self.machine,
            policy.name,
            effort,
            **ready,
            engines=problem.engines,
            bounds=known,
            problem=problem,
        )


def makespan_ps(graph: Graph, machine: Machine, policy: str = "list") -> int:
    """The makespan of a policy's schedule at the effort ``fast``, without bounds, which take most of the time: what a
    fit asks for thousands of times. Raises as :func:`schedule`."""
    made, rules = Scheduling(graph, machine), policy_of(policy)
    made.refuse_unmatched()
    times = made.times(rules, "fast")
    if isinstance(times, Deadlock):
        raise deadlock_error(graph, rules, times.waits)
    return int((times.start_ps + made.problem.dag.duration_ps).max(initial=0))


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
    solver of ``optimal`` then does.

    Raises ``UnmatchedMessageError`` for a message without its partner, ``DeadlockError`` with the cycle of source
    lines, ``TargetMismatchError`` for a machine of another target, ``PolicyError``, ``MachineError``, and
    ``InvalidGraphError`` for a graph that no trace made.
    """
    expect_graph(graph, "schedule")
    return Scheduling(graph, machine).schedule(policy, effort, limit)
