"""Lower bounds on every policy's makespan, by name. No schedule is looked at.

Under every policy a command's issue ends no earlier than the sum of the issue costs up to it: the release that heads
start from (:mod:`kernscope.scheduler.search.bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...ir.arrays.frozen_map import FrozenMap
from ..search.bounding import Bounding, quick_bounds
from .problem import Problem

__all__ = ["LOADED_PATH", "LONGEST_PATH", "RAISED_PATH", "REFUTED", "Bounds", "lower_bounds"]

LONGEST_PATH = "longest path"
#: The longest path on which a node also waits for what its engines have to do before.
LOADED_PATH = "loaded path"
#: The same with what local windows refute: which start is too early for what comes right before it.
RAISED_PATH = "raised path"
#: The least makespan that narrowing the time windows of all nodes does not refute.
REFUTED = "refuted makespans"


@attrs.frozen
class Bounds:
    """Lower bounds in picoseconds by name: ``"longest path"``, ``"loaded path"``, each busy engine's (``"gemm"``, on
    several ranks ``"rank 1 gemm"``), and each shared memory's that has a rate (``"hbm"``); under the policy ``optimal``
    also what its solver proved, ``"solver"``."""

    each: Mapping[str, int]

    def with_bound(self, name: str, bound_ps: int) -> Bounds:
        """These bounds and one more."""
        return Bounds(FrozenMap({**self.each, name: bound_ps}))

    @property
    def best_ps(self) -> int:
        """The largest of them: no schedule is shorter."""
        return max(self.each.values())

    @property
    def best(self) -> str:
        """The name of the largest, the first of equal ones."""
        return max(self.each, key=lambda name: self.each[name])


def lower_bounds(problem: Problem, known: Bounding | None = None) -> Bounds:
    """All bounds of a problem by name, the paths first, then the engines in their order; of those that take longer the
    ones that are ``known``. The edges must close no cycle."""
    known = quick_bounds(problem.split.dag) if known is None else known
    each = {LONGEST_PATH: known.path_ps, LOADED_PATH: known.loaded_ps}
    several = len({engine.rank for engine in problem.engines}) > 1
    for number, bound in known.engines:
        engine = problem.engines[number]
        each[f"rank {engine.rank} {engine.name}" if several else engine.name] = bound
    each |= {RAISED_PATH: known.raised_ps} if known.raised_ps else {}
    each |= {REFUTED: known.refuted_ps} if known.refuted_ps else {}
    return Bounds(FrozenMap({**each, **problem.shared_ps}))
