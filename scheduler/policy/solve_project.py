"""A project on plain arrays: activities that take several resources each, with bounds, as long as it is given."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import InfeasibleError
from ...ir.tables import IntArray
from ..search.dag_arrays import acyclic_dag
from ..search.efforts import check_effort, check_seed
from ..search.projects import LONGEST_PROJECT, Project, schedule_project
from .optimal import SolverLimit
from .solve_dag import SolvedDag

__all__ = ["solve_project"]

#: Rounds of the search by effort.
_ROUNDS: Mapping[str, int] = MappingProxyType({"fast": 10, "normal": 500, "high": 5_000})


def solve_project(
    durations: Any,
    edges: Any,
    demand: IntArray,
    capacity: IntArray,
    *,
    effort: str = "normal",
    time_limit_s: float | None = None,
    seed: int = 0,
) -> SolvedDag:
    """As :func:`kernscope.solve_dag`, for activities without engines: ``demand`` ``(n, k)`` of ``capacity`` ``(k,)``,
    which no activity passes. With a time limit the rounds of the effort are repeated, from other seeds, until then.

    Raises ``InfeasibleError`` where all in a row take more than 100,000 steps of time, ``DeadlockError`` where the
    edges close a cycle, and ``PolicyError``.
    """
    check_effort(effort)
    seed = check_seed(seed)
    until = 0.0 if time_limit_s is None else time.perf_counter() + SolverLimit(time_limit_s).seconds
    dag = acyclic_dag(durations, np.full(len(durations), -1), [], edges, None)
    if dag.horizon_ps > LONGEST_PROJECT:
        raise InfeasibleError(
            f"all activities in a row take {dag.horizon_ps:,} steps of time, which is counted one by one",
            help=f"use a coarser unit: {LONGEST_PROJECT:,} at most",
        )
    project = Project(dag, demand, capacity)
    best = schedule_project(project, _ROUNDS[effort], seed)
    bound = max(best.bounds.values())
    while best.makespan > bound and time.perf_counter() < until:
        seed = (seed + 1) % (1 << 31)
        again = schedule_project(project, _ROUNDS[effort], seed)
        best = again if again.makespan < best.makespan else best
    lanes = np.full(len(dag), -1, dtype=np.int32)
    return SolvedDag(best.start, lanes, best.makespan, FrozenMap(best.bounds), ())
