"""The search behind the ``list`` policy, effort by effort: a problem's schedules and lower bounds, each by the other.

Several priority rules, forward-backward improvement (Li and Willis 1992; Valls, Ballestin and Quintanilla 2005), local
search on the critical chain (:mod:`.critical_search`); where a gap is left, bounds that take longer, active schedules
by what these raise, and makespans refuted (:mod:`.bounding`). An effort goes on from what the one below it has found:
its schedule is never longer, and its bound never lower.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...ir.tables import IntArray
from .active import active_schedule
from .bounding import Bounding, quick_bounds, raised_bounds, refuted_bounds
from .dag import Dag
from .efforts import Effort
from .improving import improved, makespan_ps, searched_locally
from .list_scheduling import left_shifted, list_schedule
from .priorities import PRIORITIES, by_largest

__all__ = ["Solved", "Solving"]


@attrs.frozen(eq=False)
class Solved:
    """``start_ps`` int64 ``(n,)``: the best start times found, and their ``makespan_ps``; ``bounds``: None where none
    were wanted."""

    start_ps: IntArray
    makespan_ps: int
    bounds: Bounding | None

    def within(self, gap: float) -> bool:
        """Whether the makespan is within a share of the bound, or 0."""
        bound = 0 if self.bounds is None else self.bounds.best_ps
        return self.makespan_ps <= bound + int(bound * gap)

    def better(self, dag: Dag, start: IntArray) -> Solved:
        """With other start times where these are shorter."""
        reached = makespan_ps(dag, start)
        return attrs.evolve(self, start_ps=start, makespan_ps=reached) if reached < self.makespan_ps else self


@attrs.frozen(eq=False, slots=False)
class Solving:
    """A problem of one node or more whose edges close no cycle, and what each effort finds of it, computed when it is
    first asked for. Deterministic for a ``seed``.

    ``priority``: larger first, instead of the rules. ``first_rule``: the rule to begin with. ``bounding``: whether
    bounds are looked for; ``bound_at_once``: at the lowest effort, too, where they take as long as a list.
    """

    dag: Dag
    priority: IntArray | None = None
    first_rule: str = "longest_path"
    seed: int = 0
    bounding: bool = True
    bound_at_once: bool = False
    _found: dict[Effort, Solved] = attrs.field(factory=dict, init=False, repr=False)

    def at(self, effort: Effort) -> Solved:
        """What an effort finds."""
        if effort not in self._found:
            self._found[effort] = self._solved(effort)
        return self._found[effort]

    def from_incumbent(self, effort: Effort, incumbent: IntArray) -> IntArray:
        """The best start times found, never worse than ``incumbent`` (start times that satisfy the problem), nor than
        :meth:`at` of the effort or :meth:`from_incumbent` of one below."""
        if effort.below is None:
            # Served in order, or under more edges, it may have waited for what holds nobody here.
            incumbent = left_shifted(self.dag, incumbent)
        else:
            incumbent = self.from_incumbent(effort.below, incumbent)
        known = self.at(effort)
        best = Solved(incumbent, makespan_ps(self.dag, incumbent), known.bounds)
        if not best.within(effort.gap):
            best = best.better(self.dag, list_schedule(self.dag, by_largest(-incumbent)))
        if best.makespan_ps > known.makespan_ps:
            return known.start_ps
        if best.makespan_ps == known.makespan_ps:
            return best.start_ps  # as good in an order that is there: nobody moves for nothing
        return self._improved(effort, best).start_ps

    def _solved(self, effort: Effort) -> Solved:
        below = None if effort.below is None else self.at(effort.below)
        bounds = None if below is None else below.bounds
        if self.bounding and bounds is None and (self.bound_at_once or below is not None):
            bounds = quick_bounds(self.dag)
        best = None if below is None else attrs.evolve(below, bounds=bounds)
        for start in self._candidates(effort):
            best = best.better(self.dag, start) if best else Solved(start, makespan_ps(self.dag, start), bounds)
            if best.within(effort.gap):
                break
        assert best is not None, "the lowest effort has a rule"
        best = self._improved(effort, best)
        if bounds is None or not effort.bounds.widths or best.within(0.0):
            return best
        best = attrs.evolve(best, bounds=raised_bounds(self.dag, effort.bounds, bounds))
        found = self._waiting(effort, best)
        if found.makespan_ps < best.makespan_ps:
            best = self._improved(effort, found)
        assert best.bounds is not None
        return attrs.evolve(best, bounds=refuted_bounds(self.dag, effort.bounds, best.bounds, best.makespan_ps))

    def _candidates(self, effort: Effort) -> Iterator[IntArray]:
        if self.priority is not None:
            if effort.below is None:
                yield list_schedule(self.dag, by_largest(self.priority))
            return
        tried = [] if effort.below is None else [self.first_rule, *effort.below.rules]
        for name in dict.fromkeys([self.first_rule, *effort.rules]):
            if name not in tried:
                yield list_schedule(self.dag, by_largest(PRIORITIES[name](self.dag)))

    def _improved(self, effort: Effort, best: Solved) -> Solved:
        """The same schedule, or a better one by what an effort makes of it."""
        if best.within(effort.gap):
            return best
        others = []
        for start in improved(self.dag, effort, best.start_ps, self.seed):
            others.append(start)
            best = best.better(self.dag, start)
            if best.within(effort.gap):
                return best
        enough_ps = effort.contented_ps(0 if best.bounds is None else best.bounds.best_ps)
        found = searched_locally(self.dag, effort, best.start_ps, others, enough_ps, self.seed)
        return best.better(self.dag, found)

    def _waiting(self, effort: Effort, best: Solved) -> Solved:
        """The same schedule, or an active one that is better."""
        assert best.bounds is not None
        for wait in effort.waits:
            for urgent in best.bounds.urgency:
                if best.within(0.0):
                    return best
                best = best.better(self.dag, active_schedule(self.dag, urgent, wait))
        return best
