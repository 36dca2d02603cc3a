"""Running a policy: from a problem to times, or to the deadlock it ends in."""

from __future__ import annotations

import attrs

from ...ir.tables import IntArray
from ..search.efforts import Effort
from ..search.solving import Solving
from .constraints import make_constraints
from .deadlock import Wait, edge_cycle, waiting_cycle
from .in_order import Times, run_in_order
from .problem import Problem
from .registry import QUEUED, Policy

__all__ = ["Deadlock", "run_policy"]


@attrs.frozen
class Deadlock:
    """A policy cannot run the problem: the cycle of waits."""

    waits: tuple[Wait, ...]


def run_policy(
    problem: Problem,
    policy: Policy,
    effort: Effort,
    *,
    incumbent: IntArray | None = None,
    solving: Solving | None = None,
) -> Times | Deadlock:
    """The times of a policy. ``effort``, ``incumbent`` (start times known to be possible) and ``solving`` (what is
    found of the problem already) serve a search only. Under an exact policy these are the times that the solver starts
    from: those of ``list``."""
    if policy.in_order:
        constraints = make_constraints(problem, policy)
        if constraints.has_deadlock:
            return Deadlock(waiting_cycle(problem, constraints))
        return run_in_order(problem, constraints)
    if problem.dag.has_cycle:
        return Deadlock(edge_cycle(problem))
    if incumbent is None:
        queued = make_constraints(problem, QUEUED)
        if not queued.has_deadlock:
            incumbent = run_in_order(problem, queued).start_ps
    if not len(problem):
        return Times(issue_ps=problem.dag.release_ps, start_ps=problem.dag.release_ps)
    whole = problem.split
    known = Solving(whole.dag, bounding=False) if solving is None else solving
    given = None if incumbent is None else whole.starts(incumbent)
    start = known.at(effort).start_ps if given is None else known.from_incumbent(effort, given)
    return Times(issue_ps=problem.dag.release_ps, start_ps=whole.given(start))
