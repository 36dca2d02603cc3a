"""The policies by name, each from a problem to times, or to the deadlock it ends in."""

from __future__ import annotations

import attrs

from ..ir.errors import PolicyError, did_you_mean, shown
from ..ir.tables import IntArray
from .constraints import IN_ORDER_POLICIES, make_constraints
from .deadlock import Wait, edge_cycle, waiting_cycle
from .in_order import Times, run_in_order
from .list_search import Effort, search
from .problem import Problem

__all__ = ["KNOWN_POLICIES", "OPTIMAL", "POLICIES", "Deadlock", "check_policy", "run_policy"]

#: From the strictest to the freest: each is never slower than the one before.
POLICIES = (*IN_ORDER_POLICIES, "list")
#: Exact, under the rules of `list`; on request only, as it may take as long as it is given (:mod:`.optimal`).
OPTIMAL = "optimal"
KNOWN_POLICIES = (*POLICIES, OPTIMAL)


@attrs.frozen
class Deadlock:
    """A policy cannot run the problem: the cycle of waits."""

    waits: tuple[Wait, ...]


def check_policy(policy: str) -> str:
    """The policy's name. Raises ``PolicyError`` for an unknown one."""
    if not isinstance(policy, str) or policy not in KNOWN_POLICIES:
        raise PolicyError(f"no policy {shown(policy)}", help=did_you_mean(str(policy), KNOWN_POLICIES, what="policies"))
    return policy


def run_policy(
    problem: Problem, policy: str, effort: Effort, *, incumbent: IntArray | None = None, bound_ps: int = 0
) -> Times | Deadlock:
    """The times of a policy. ``effort``, ``incumbent`` (start times known to be possible) and ``bound_ps`` (no need to
    go on below) serve ``list`` only. Under ``optimal`` these are the times that the solver starts from: those of
    ``list``."""
    if policy in IN_ORDER_POLICIES:
        constraints = make_constraints(problem, policy)
        if constraints.has_deadlock:
            return Deadlock(waiting_cycle(problem, constraints))
        return run_in_order(problem, constraints)
    if problem.dag.has_cycle:
        return Deadlock(edge_cycle(problem))
    if incumbent is None:
        queued = make_constraints(problem, "queued")
        if not queued.has_deadlock:
            incumbent = run_in_order(problem, queued).start_ps
    start = search(problem.dag, effort, incumbent=incumbent, bound_ps=bound_ps)
    return Times(issue_ps=problem.dag.release_ps, start_ps=start)
