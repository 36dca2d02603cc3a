"""Lower bounds on every policy's makespan, by name. No schedule is looked at.

Under every policy a command's issue ends no earlier than the sum of the issue costs up to it: the release that heads
start from (:mod:`kernscope.scheduler.search.bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...ir.arrays.frozen_map import FrozenMap
from ..search.bounds import engine_bounds, loaded_path_ps
from ..search.heads import heads_and_tails
from .problem import Problem

__all__ = ["LOADED_PATH", "LONGEST_PATH", "Bounds", "lower_bounds"]

LONGEST_PATH = "longest path"
#: The longest path on which a node also waits for what its engines have to do before.
LOADED_PATH = "loaded path"


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


def lower_bounds(problem: Problem) -> Bounds:
    """All bounds of a problem, the paths first, then the engines in their order. The edges must close no cycle."""
    dag = problem.split.dag
    known = heads_and_tails(dag)
    each = {LONGEST_PATH: known.longest_path_ps, LOADED_PATH: loaded_path_ps(dag, known)}
    several = len({engine.rank for engine in problem.engines}) > 1
    for number, bound in engine_bounds(dag, known):
        engine = problem.engines[number]
        each[f"rank {engine.rank} {engine.name}" if several else engine.name] = bound
    return Bounds(FrozenMap({**each, **problem.shared_ps}))
