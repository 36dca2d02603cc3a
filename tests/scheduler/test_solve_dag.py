"""``solve_dag``: schedules of task graphs with lanes, bounds, proof and the course of the search."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks

needs_ortools = pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="needs the extra 'optimal'")


def shop(seed: int, jobs: int, engines: int, lanes: int) -> dict[str, Any]:
    """Jobs that each visit all engines, in an order of their own, with releases."""
    random = np.random.default_rng(seed)
    nodes = np.arange(jobs * engines).reshape(jobs, engines)
    return {
        "durations_ps": random.integers(1, 30, jobs * engines),
        "engine": np.concatenate([random.permutation(engines) for _ in range(jobs)]),
        "channels": [lanes] * engines,
        "edges": np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1),
        "release_ps": random.integers(0, 10, jobs * engines),
    }


def holds(problem: dict[str, Any], found: ks.SolvedDag) -> bool:
    """Whether edges and releases hold, no two nodes overlap on a lane, and the makespan is what it says."""
    start, end = found.start_ps, found.start_ps + problem["durations_ps"]
    edges = np.asarray(problem["edges"]).reshape(-1, 2)
    if np.any(start < problem["release_ps"]) or np.any(end[edges[:, 0]] > start[edges[:, 1]]):
        return False
    if np.any(found.lane >= np.asarray(problem["channels"])[problem["engine"]]) or np.any(found.lane < 0):
        return False
    order = np.lexsort((start, found.lane, problem["engine"]))
    same = (np.diff(found.lane[order]) == 0) & (np.diff(problem["engine"][order]) == 0)
    return bool(np.all(end[order][:-1][same] <= start[order][1:][same])) and int(end.max()) == found.makespan_ps


@given(
    seed=st.integers(0, 1 << 16),
    jobs=st.integers(1, 4),
    engines=st.integers(1, 4),
    lanes=st.integers(1, 3),
    effort=st.sampled_from(["fast", "normal"]),
)
@settings(max_examples=60, deadline=None)
def test_what_it_returns_holds(seed: int, jobs: int, engines: int, lanes: int, effort: str) -> None:
    """Lanes and times are a schedule, the same as without a course; bounds lie below it, the best one is named, and the
    course only gets better and ends at what is returned."""
    problem = shop(seed, jobs, engines, lanes)
    told: list[ks.Progress] = []
    found = ks.solve_dag(**problem, effort=effort, callback=told.append)
    assert holds(problem, found)
    assert found.makespan_ps <= int((ks.schedule_dag(**problem, effort=effort) + problem["durations_ps"]).max())
    assert found.bound_ps == found.bounds[found.bound] <= found.makespan_ps
    assert found.proved_optimal == (found.bound_ps == found.makespan_ps) and found.ratio >= 1.0
    assert tuple(told) == found.course
    assert (found.course[-1].makespan_ps, found.course[-1].bound_ps) == (found.makespan_ps, found.bound_ps)
    for before, after in zip(found.course, found.course[1:], strict=False):
        assert before.seconds <= after.seconds
        assert before.makespan_ps >= after.makespan_ps and before.bound_ps <= after.bound_ps


def test_a_warm_start_is_never_lost() -> None:
    """From the schedule of more effort less effort returns none that is longer."""
    problem = shop(3, 8, 5, 2)
    best = ks.solve_dag(**problem, effort="high")
    again = ks.solve_dag(**problem, effort="fast", warm_start=best.start_ps)
    assert holds(problem, again)
    assert again.makespan_ps <= best.makespan_ps < ks.solve_dag(**problem, effort="fast").makespan_ps


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0, 1, 5], "before node 0 has ended at 3"),
        ([0, 3, 3], "when all 1 channels of engine 0 are busy"),
        ([0, 3, 1], "before its release at 2"),
        ([0, 3], "warm_start"),
    ],
)
def test_a_warm_start_that_breaks_the_problem_is_refused(start: list[int], message: str) -> None:
    """It is told which node, and why."""
    with pytest.raises(ks.InfeasibleError, match=message):
        ks.solve_dag([3, 2, 2], [1, 0, 0], [1, 1], [(0, 1)], release_ps=[0, 0, 2], warm_start=start)


def test_a_time_limit_goes_on_until_it_is_over() -> None:
    """A problem that is not proved is searched on, and the call ends about in time; each schedule is no longer."""
    problem = shop(5, 12, 6, 2)
    begun = time.perf_counter()
    found = ks.solve_dag(**problem, time_limit_s=1.0)
    assert holds(problem, found)
    assert time.perf_counter() - begun < 20  # one slice may run on
    assert found.makespan_ps <= ks.solve_dag(**problem, effort="fast").makespan_ps


@needs_ortools
def test_the_solver_proves_what_bounds_do_not() -> None:
    """With ``policy="optimal"`` the bound is the solver's where it is the best, and the makespan meets it."""
    problem = shop(4, 5, 4, 2)
    found = ks.solve_dag(**problem, effort="fast", policy="optimal")
    assert holds(problem, found) and found.proved_optimal
    assert "solver" in found.bounds and found.course[-1].by == "solver"


def test_mistakes_are_told() -> None:
    """Each with a class of its own."""
    one: tuple[Any, ...] = ([1], [0], [1], [])
    with pytest.raises(ks.PolicyError, match="no policy 'lazy'"):
        ks.solve_dag(*one, policy="lazy")
    with pytest.raises(ks.PolicyError, match="time limit"):
        ks.solve_dag(*one, time_limit_s=-1)
    with pytest.raises(ks.PolicyError, match="no effort"):
        ks.solve_dag(*one, effort="most")
    with pytest.raises(ks.ArgumentError, match="callback"):
        ks.solve_dag(*one, callback=3)  # type: ignore[arg-type]
    with pytest.raises(ks.DeadlockError, match="0 after 1 after 0"):
        ks.solve_dag([1, 1], [0, 0], [1], [(0, 1), (1, 0)])


def test_an_empty_graph_is_solved() -> None:
    """Nothing takes no time, and that is proved."""
    found = ks.solve_dag([], [], [], [])
    assert (found.makespan_ps, found.bound_ps, found.proved_optimal, len(found.lane)) == (0, 0, True, 0)
