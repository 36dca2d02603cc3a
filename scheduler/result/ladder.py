"""One graph under several policies, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import attrs

from ...ir.columns import expect_graph
from ...ir.errors import DeadlockError, PolicyError, shown
from ...ir.graph import Graph
from ...ir.verifier.verify import require_valid
from ...machine.description import Machine
from ...machine.units import format_ps
from ..policy.lower_bounds import Bounds
from ..policy.optimal import DEFAULT_LIMIT, SolverLimit
from ..policy.registry import LADDER, POLICIES, policy_of
from ..search.list_search import check_effort
from .schedule import Schedule, Scheduling
from .tables import number_table

__all__ = ["Ladder", "LadderRow", "best_of", "compare", "ladder_of"]


@attrs.frozen(eq=False)
class LadderRow:
    """One policy: its schedule, or the deadlock that it ends in."""

    policy: str
    schedule: Schedule | None
    deadlock: DeadlockError | None

    @property
    def makespan_ps(self) -> int | None:
        """None for a deadlock."""
        return self.schedule.makespan_ps if self.schedule else None

    @property
    def ratio(self) -> float | None:
        """Makespan over bound; None for a deadlock."""
        return self.schedule.ratio if self.schedule else None


@attrs.frozen(eq=False)
class Ladder:
    """The rows in the order asked for. ``bounds`` hold for all of them; None where the graph's own edges close a cycle,
    so that no policy can run it."""

    graph: Graph
    machine: Machine
    rows: tuple[LadderRow, ...]
    bounds: Bounds | None

    @property
    def bound_ps(self) -> int | None:
        """The best lower bound in picoseconds."""
        return self.bounds.best_ps if self.bounds else None

    @property
    def best(self) -> Schedule | None:
        """The schedule to explain: :func:`best_of` the rows."""
        return best_of(row.schedule for row in self.rows)

    def __iter__(self) -> Iterator[LadderRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, policy: str | int) -> LadderRow:
        """The row of a policy's name, or of a number. Raises ``KeyError`` or ``IndexError``."""
        if isinstance(policy, int):
            return self.rows[policy]
        for row in self.rows:
            if row.policy == policy:
                return row
        raise KeyError(policy)

    def __str__(self) -> str:
        """A plain table: policy, makespan, and how far above the best bound."""
        lines = [f"{policy:<10} {makespan:>14} {ratio:>9}" for policy, makespan, ratio in self._texts()]
        bound = (
            f"bound      {format_ps(self.bounds.best_ps):>14}   ({self.bounds.best})" if self.bounds else "bound: none"
        )
        return "\n".join([*lines, bound])

    def _texts(self) -> Iterator[tuple[str, str, str]]:
        for row in self.rows:
            if row.schedule is None:
                yield row.policy, "deadlock", ""
            else:
                yield row.policy, format_ps(row.schedule.makespan_ps), f"{row.schedule.ratio:.3f} x"

    def _repr_html_(self) -> str:
        bound = (
            f"bound {format_ps(self.bounds.best_ps)} ({self.bounds.best})" if self.bounds else "no bound: a deadlock"
        )
        caption = f"{self.graph.kernel} on {self.machine.name}: {bound}"
        return number_table(caption, ("policy", "makespan", "over the bound"), self._texts())


def best_of(schedules: Iterable[Schedule | None]) -> Schedule | None:
    """The schedule of the shortest makespan, of equal ones the first: a simpler policy is named where a cleverer one
    gains nothing. None where every policy deadlocks."""
    made = [schedule for schedule in schedules if schedule is not None]
    return min(made, key=lambda schedule: schedule.makespan_ps, default=None)


def compare(
    graph: Graph,
    machine: Machine | str | os.PathLike[str] | None = None,
    policies: Iterable[str] = LADDER,
    effort: str = "normal",
    limit: SolverLimit = DEFAULT_LIMIT,
) -> Ladder:
    """Schedule a graph under several policies. One that deadlocks is a row that says so. What the solver of ``optimal``
    proves (``limit``: how long it may take) is a bound of all rows.

    Raises ``UnmatchedMessageError``, ``PolicyError``, ``TargetMismatchError`` and ``MachineError`` as
    :func:`kernscope.scheduler.result.schedule.schedule`.
    """
    expect_graph(graph, "compare")
    return ladder_of(Scheduling(graph, machine), policies, effort, limit)


def ladder_of(
    known: Scheduling,
    policies: Iterable[str] = LADDER,
    effort: str = "normal",
    limit: SolverLimit = DEFAULT_LIMIT,
) -> Ladder:
    """As :func:`compare`, of a graph on a machine of which something may be known already."""
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise PolicyError(f"policies={shown(policies)}", help='pass several names: ("lazy", "list")')
    wanted = [policy_of(name) for name in policies]
    check_effort(effort)
    require_valid(known.graph)
    known.refuse_unmatched()
    rows = []
    bounds = known.bounds
    for policy in wanted:
        try:
            rows.append(LadderRow(policy.name, known.schedule(policy.name, effort, limit), None))
        except DeadlockError as deadlock:
            rows.append(LadderRow(policy.name, None, deadlock))
    return _with_solver_bound(Ladder(known.graph, known.machine, tuple(rows), bounds))


def _with_solver_bound(ladder: Ladder) -> Ladder:
    """What the solver of ``optimal`` has proved holds for the other rows as well."""
    proved = [row.schedule.bounds for row in ladder if row.schedule is not None and POLICIES[row.policy].exact]
    if not proved:
        return ladder
    rows = (attrs.evolve(row, schedule=row.schedule and attrs.evolve(row.schedule, bounds=proved[0])) for row in ladder)
    return attrs.evolve(ladder, rows=tuple(rows), bounds=proved[0])
