"""What a schedule consists of, and what can be read off it. :class:`kernscope.scheduler.result.schedule.Schedule` adds
how it is written down."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.tables import IntArray, Reason
from ...machine.description import Machine
from ...machine.engines import EngineInstance
from ...machine.latency import latencies_ps
from ...machine.units import format_ps
from ..policy.in_order import Times
from ..policy.lower_bounds import Bounds
from ..policy.problem import Problem
from ..policy.registry import Policy, policy_of
from .causes import CauseColumns, find_causes
from .critical_chain import CriticalChain, walk_chain
from .reuse import PriceOfReuse, price_of_reuse
from .slack import slack_ps

__all__ = ["ScheduleColumns"]


@attrs.frozen(eq=False, repr=False, slots=False)
class ScheduleColumns:
    """A graph's schedule on a machine under a policy. Immutable; all columns are by node, times int64 in picoseconds.

    ``issue_ps``: when the issue of the node's command ends (of a scope marker: when the CPU passes it); ``start_ps``;
    ``end_ps``: when what it makes is there; ``engine``: an index into ``engines``, -1 for what takes no engine;
    ``lane``: which of the engine's channels, -1 without one. ``bounds`` hold for every policy.
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
            f"<Schedule {quote(self.graph.kernel)} on {quote(self.machine.name)}, {self.policy}: "
            f"{format_ps(self.makespan_ps)}, {self.ratio:.3f} x the bound ({self.bounds.best})>"
        )

    @property
    def rules(self) -> Policy:
        """What the policy lets the CPU and the engines do. Raises ``PolicyError`` for a policy that is none."""
        return policy_of(self.policy)

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
    def free_ps(self) -> IntArray:
        """When each node lets go of its engine: at its end, or, where that holds no engine, before."""
        return self.start_ps + self.problem.occupancy_ps

    @cached_property
    def waited_for(self) -> CauseColumns:
        """What each node waited for last: ``waited_for[i]`` is a :class:`kernscope.scheduler.result.causes.WaitedFor`,
        or None."""
        return find_causes(self.problem, self.rules, self.issue_ps, self.start_ps, self.lane)

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
        return self._critical_chain

    @cached_property
    def _critical_chain(self) -> CriticalChain:
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
        """By engine, how long its nodes hold it in all, int64 in picoseconds."""
        used = self.engine >= 0
        busy = np.zeros(len(self.engines), dtype=np.int64)
        np.add.at(busy, self.engine[used], (self.free_ps - self.start_ps)[used])
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
        return slack_ps(self.problem, self.rules, self.start_ps, self.lane)

    def price_of_reuse(self) -> PriceOfReuse:
        """What waiting for reused scratch costs, and which pairs of lines cost most."""
        times = Times(self.issue_ps, self.start_ps)
        return price_of_reuse(self.graph, self.problem, self.rules, self.effort, times, self.lane)
