"""What the messages of a graph do under the ``lazy`` policy: end in a deadlock, or hold their senders back."""

from __future__ import annotations

import attrs
import numpy as np

from ...analysis.analysis import Analysis
from ...ir.errors import DeadlockError
from ...ir.tables import IntArray, Reason
from ...scheduler.policy.deadlock import deadlock_error
from ...scheduler.policy.in_order import Times
from ...scheduler.policy.policies import Deadlock
from ...scheduler.policy.problem import Problem
from ...scheduler.policy.registry import LAZY

__all__ = ["HeldSend", "LazyRun", "cpu_free_ps", "run_lazy"]


@attrs.frozen
class HeldSend:
    """A send (node) that a full channel holds back for ``held_ps``, until the receive ``freed_by`` frees a slot."""

    node: int
    freed_by: int
    held_ps: int


@attrs.frozen(eq=False)
class LazyRun:
    """The ``lazy`` schedule of a graph: its deadlock, or else its times and the senders that were held back."""

    problem: Problem
    deadlock: DeadlockError | None
    times: Times | None
    held_sends: tuple[HeldSend, ...]


def run_lazy(analysis: Analysis) -> LazyRun:
    """What the policy makes of a graph on a machine.

    Raises ``MachineError`` where that is no preset, ``TargetMismatchError`` for a machine of another target.
    """
    problem, times = analysis.problem, analysis.times(LAZY)
    if isinstance(times, Deadlock):
        return LazyRun(problem, deadlock_error(analysis.graph, LAZY, times.waits), None, ())
    return LazyRun(problem, None, times, _held_sends(problem, times))


def _held_sends(problem: Problem, times: Times) -> tuple[HeldSend, ...]:
    """The sends whose credit comes later than all else that they wait for: their other edges, and the CPU."""
    dag = problem.dag
    end = times.start_ps + dag.duration_ps
    credit = np.flatnonzero(problem.reason == Reason.CREDIT)
    credited = np.zeros(len(problem), dtype=np.bool_)
    credited[dag.target[credit]] = True
    ready = np.zeros(len(problem), dtype=np.int64)
    others = np.flatnonzero((problem.reason != Reason.CREDIT) & credited[dag.target])
    np.maximum.at(ready, dag.target[others], end[dag.source[others]])
    ready = np.maximum(ready, cpu_free_ps(problem, times.issue_ps, end)[problem.command])
    held = end[dag.source[credit]] - ready[dag.target[credit]]
    return tuple(
        HeldSend(int(dag.target[edge]), int(dag.source[edge]), int(by))
        for edge, by in zip(credit.tolist(), held.tolist(), strict=True)
        if by > 0
    )


def cpu_free_ps(problem: Problem, issue_ps: IntArray, end_ps: IntArray) -> IntArray:
    """By command when its rank's CPU is done with the one before: after its issue or after its end."""
    count = len(problem.first_node)
    done = np.zeros(count, dtype=np.int64)
    np.maximum.at(done, problem.command, end_ps)
    done = np.where(problem.asynchronous, issue_ps[problem.first_node], done)
    free = np.zeros(count, dtype=np.int64)
    follows = problem.command_rank[1:] == problem.command_rank[:-1]
    free[1:][follows] = done[:-1][follows]
    return free
