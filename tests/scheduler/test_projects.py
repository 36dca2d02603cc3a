"""Projects: schedules that no resource is too small for, never below a bound, optimal where that can be tried out."""

from __future__ import annotations

import importlib.util
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir.arrays import compiling
from kernscope.scheduler.policy.solve_project import solve_project
from kernscope.scheduler.search.dag_arrays import make_dag
from kernscope.scheduler.search.projects import Project, schedule_project


def random_project(seed: int, n: int) -> tuple[Project, list[tuple[int, int]]]:
    """Activities of up to six steps, some of none, that take some of two resources."""
    random = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(b) if random.random() < 0.25]
    capacity = random.integers(1, 6, 2)
    demand = np.minimum(random.integers(0, 5, (n, 2)), capacity)
    dag = make_dag(random.integers(0, 7, n), np.full(n, -1), [], edges, None)
    return Project(dag, demand, capacity), edges


def serial(project: Project, order: tuple[int, ...]) -> int:
    """The makespan where each activity in turn starts as early as it can."""
    takes = project.dag.duration_ps.tolist()
    used = np.zeros((sum(takes) + 1, 2), dtype=np.int64)
    end = [0] * len(order)
    for node in order:
        at = max([end[s] for s in project.dag.source[project.dag.target == node].tolist()], default=0)
        while np.any(used[at : at + takes[node]] + project.demand[node] > project.capacity):
            at += 1
        used[at : at + takes[node]] += project.demand[node]
        end[node] = at + takes[node]
    return max(end)


@given(seed=st.integers(0, 1 << 20), n=st.integers(1, 14))
@settings(max_examples=60, deadline=None)
def test_schedules_keep_every_rule(seed: int, n: int) -> None:
    """Edges hold, no resource is taken beyond what there is at any step, and no bound is above the makespan."""
    project, _ = random_project(seed, n)
    found = schedule_project(project, 20)
    takes = project.dag.duration_ps
    end = found.start + takes
    assert np.all(found.start >= 0) and np.all(end[project.dag.source] <= found.start[project.dag.target])
    for step in range(found.makespan):
        running = (found.start <= step) & (end > step)
        assert np.all(project.demand[running].sum(axis=0) <= project.capacity)
    assert found.makespan == int(end.max()) >= max(found.bounds.values())


@pytest.mark.parametrize("seed", range(25))
def test_small_projects_are_scheduled_optimally(seed: int) -> None:
    """Of all orders of six activities none gives a shorter schedule, and no bound passes the shortest."""
    project, edges = random_project(seed, 6)
    orders = (order for order in permutations(range(6)) if all(order.index(a) < order.index(b) for a, b in edges))
    shortest = min(serial(project, order) for order in orders)
    found = schedule_project(project, 200)
    assert found.makespan == shortest >= max(found.bounds.values())


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra 'fast' (numba)")
def test_the_search_is_the_same_compiled_and_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start times, after the search has gone on from other schedules."""
    for seed in range(3):
        project, _ = random_project(seed, 20)
        found = []
        for compiled_from in (1 << 62, 0):
            monkeypatch.setattr(compiling, "COMPILED_FROM", compiled_from)
            found.append(schedule_project(project, 150, seed).start.tolist())
        assert found[0] == found[1]


def test_mistakes_are_told() -> None:
    """Each with a class of its own."""
    none, one = np.zeros((1, 1), dtype=np.int64), np.ones(1, dtype=np.int64)
    with pytest.raises(ks.InfeasibleError, match="take 200,000 steps of time"):
        solve_project([200_000], [], none, one)
    with pytest.raises(ks.PolicyError, match="no effort"):
        solve_project([1], [], none, one, effort="most")
    with pytest.raises(ks.PolicyError, match="time limit"):
        solve_project([1], [], none, one, time_limit_s=0.0)
    with pytest.raises(ks.DeadlockError, match="close a cycle"):
        solve_project([1, 1], [(0, 1), (1, 0)], np.zeros((2, 1), dtype=np.int64), one)
