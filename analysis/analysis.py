"""One analysis of a graph on a machine, for all who look at it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ..memory.liveness import Liveness, liveness
from ..scheduler.policy.optimal import DEFAULT_LIMIT, SolverLimit
from ..scheduler.policy.registry import LADDER
from ..scheduler.result.ladder import Ladder, ladder_of
from ..scheduler.result.schedule import Scheduling

__all__ = ["Analysis"]


@attrs.frozen(eq=False, slots=False)
class Analysis(Scheduling):
    """A graph on a machine (``Analysis(graph, machine)``; the machine may be None: the preset it was traced for), and
    what is found out about them: schedules and what they share, and the liveness in each memory. Each is computed when
    it is first asked for, and kept; so who hands an analysis on has nothing computed twice. What needs no machine asks
    for none."""

    _liveness: dict[int, Liveness] = attrs.field(factory=dict, init=False, repr=False)

    def liveness(self, memory: int | None = None) -> Liveness:
        """The liveness in one of the target's memories, by place (None: the one where results go)."""
        place = self.graph.target.results_memory if memory is None else memory
        if place not in self._liveness:
            self._liveness[place] = liveness(self.graph, place)
        return self._liveness[place]

    def ladder(
        self, policies: Iterable[str] = LADDER, effort: str = "normal", limit: SolverLimit = DEFAULT_LIMIT
    ) -> Ladder:
        """The schedules of several policies: see :func:`kernscope.scheduler.result.ladder.compare`."""
        return ladder_of(self, policies, effort, limit)
