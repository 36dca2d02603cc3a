"""The price of reuse: what waiting for recycled scratch costs a schedule."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.source.location import Location
from ...ir.tables import IntArray, Reason
from ...machine.units import format_ps
from ..policy.constraints import ArcKind, make_constraints
from ..policy.in_order import Times
from ..policy.policies import run_policy
from ..policy.problem import Problem
from ..policy.registry import Policy
from ..search.efforts import check_effort
from ..search.lanes import lane_predecessors

__all__ = ["PriceOfReuse", "ReusePair", "price_of_reuse"]


@attrs.frozen
class ReusePair:
    """Two places of which the second waits for the first only because they share bytes of scratch: ``delay_ps`` is by
    how much nodes of the second started later than all else allowed, summed over ``count`` nodes; ``nodes`` is the
    costliest such (earlier, later) pair."""

    earlier: Location | None
    later: Location | None
    delay_ps: int
    count: int
    nodes: tuple[int, int]

    def __str__(self) -> str:
        places = [place.short if place else "?" for place in (self.later, self.earlier)]
        return f"{places[0]} waits for {places[1]}: {format_ps(self.delay_ps)} in {self.count} nodes"


@attrs.frozen
class PriceOfReuse:
    """``without_ps``: the makespan with the recycled war and waw edges taken away, searched from the constrained
    schedule (an optimal one as by ``list``) and so never above ``makespan_ps``. ``pairs``: what costs most first."""

    makespan_ps: int
    without_ps: int
    pairs: tuple[ReusePair, ...]

    @property
    def price_ps(self) -> int:
        """What reuse costs this schedule."""
        return self.makespan_ps - self.without_ps

    def __str__(self) -> str:
        share = 100 * self.price_ps / max(self.makespan_ps, 1)
        head = f"reused scratch costs {format_ps(self.price_ps)} ({share:.1f} %)"
        return "\n".join([head, *(f"  {pair}" for pair in self.pairs)])


def price_of_reuse(
    graph: Graph, problem: Problem, policy: Policy, effort: str, times: Times, lane: IntArray
) -> PriceOfReuse:
    """The price of reuse of a schedule, given by its times and lanes."""
    end = times.start_ps + problem.dag.duration_ps
    makespan = int(end.max()) if len(problem) else 0
    reuse = problem.recycled & ((problem.reason == Reason.WAR) | (problem.reason == Reason.WAW))
    if not reuse.any():
        return PriceOfReuse(makespan, makespan, ())
    freed = problem.without(reuse)
    found = run_policy(freed, policy, check_effort(effort), incumbent=times.start_ps)
    # Fewer edges cannot deadlock where more did not.
    assert isinstance(found, Times)
    without = int((found.start_ps + freed.dag.duration_ps).max())
    return PriceOfReuse(makespan, without, _pairs(graph, problem, freed, policy, reuse, times, lane))


def _pairs(
    graph: Graph, problem: Problem, freed: Problem, policy: Policy, reuse: IntArray, times: Times, lane: IntArray
) -> tuple[ReusePair, ...]:
    start, end = times.start_ps, times.start_ps + problem.dag.duration_ps
    allowed = _allowed(freed, policy, times, lane)
    edges = np.flatnonzero(reuse & (end[problem.dag.source] == start[problem.dag.target]))
    targets, first = np.unique(problem.dag.target[edges], return_index=True)
    delay = start[targets] - allowed[targets]
    late = delay > 0
    targets, delay, sources = targets[late], delay[late], problem.dag.source[edges[first[late]]]
    if not len(targets):
        return ()
    stacks = graph.nodes.stack.astype(np.int64)
    key = stacks[sources] * (len(graph.stacks) + 1) + stacks[targets]
    _, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weights=delay.astype(np.float64))
    by_cost = np.lexsort((targets, -delay, inverse))
    worst = by_cost[np.unique(inverse[by_cost], return_index=True)[1]]
    pairs = [
        ReusePair(
            earlier=graph.location(int(stacks[sources[row]])),
            later=graph.location(int(stacks[targets[row]])),
            delay_ps=int(total[group]),
            count=int(np.count_nonzero(inverse == group)),
            nodes=(int(sources[row]), int(targets[row])),
        )
        for group, row in enumerate(worst.tolist())
    ]
    return tuple(sorted(pairs, key=lambda pair: (-pair.delay_ps, pair.nodes)))


def _allowed(freed: Problem, policy: Policy, times: Times, lane: IntArray) -> IntArray:
    """By node the earliest start that everything but recycled scratch allowed, at the times as they are."""
    dag, start = freed.dag, times.start_ps
    end = start + dag.duration_ps
    allowed = times.issue_ps.copy()
    before = lane_predecessors(freed.on_engines, start, lane)
    held = np.flatnonzero(before >= 0)
    free = start + freed.occupancy_ps
    allowed[held] = np.maximum(allowed[held], free[before[held]])
    np.maximum.at(allowed, dag.target, end[dag.source])
    if policy.in_order:
        queue = make_constraints(freed, policy)
        inside = (queue.kind == ArcKind.ENGINE) & (queue.source < len(freed))
        np.maximum.at(allowed, queue.target[inside], start[queue.source[inside]])
    return allowed
