"""The inner loops: one source, the same results as plain Python and compiled."""

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from problemgen import problems

from kernscope import schedule_dag
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.policies import Deadlock, run_policy
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.policy.registry import LADDER, policy_of
from kernscope.scheduler.result.slack import slack_ps
from kernscope.scheduler.search import compiling as loops
from kernscope.scheduler.search.lanes import assign_lanes
from kernscope.scheduler.search.list_search import EFFORTS

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra 'fast' (numba)")


def _layers(nodes: int, seed: int) -> dict[str, Any]:
    """A random graph of several engines whose edges go forward, and whose ids do not follow them."""
    random = np.random.default_rng(seed)
    target = np.repeat(np.arange(1, nodes), 2)
    source = np.maximum(target - random.integers(1, 20, len(target)), 0)
    name = random.permutation(nodes)
    return {
        "durations_ps": random.integers(0, 50, nodes),
        "engine": random.integers(-1, 4, nodes),
        "channels": [1, 2, 1, 3],
        "edges": np.stack([name[source], name[target]], axis=1),
        "release_ps": random.integers(0, 500, nodes),
    }


def _both(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], Any]) -> tuple[Any, Any]:
    monkeypatch.setattr(loops, "COMPILED_FROM", 1 << 62)
    plain = compute()
    monkeypatch.setattr(loops, "COMPILED_FROM", 0)
    return plain, compute()


@needs_numba
@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_compiled_lists_equal_plain_ones(monkeypatch: pytest.MonkeyPatch, effort: str) -> None:
    """``schedule_dag`` gives the same start times compiled and not."""
    for seed in range(3):
        case = _layers(400, seed)
        plain, compiled = _both(monkeypatch, lambda case=case: schedule_dag(**case, effort=effort))  # type: ignore[misc]
        assert np.array_equal(plain, compiled) and plain.max() > 0


@needs_numba
@given(problem=problems())
@settings(max_examples=25, deadline=None)
def test_compiled_policies_and_bounds_equal_plain_ones(problem: Problem) -> None:
    """Every policy's times and slacks, every deadlock and every bound are the same compiled and not."""
    with pytest.MonkeyPatch.context() as patch:
        for policy in LADDER:
            plain, compiled = _both(
                patch, lambda policy=policy: run_policy(problem, policy_of(policy), EFFORTS["normal"])
            )  # type: ignore[misc]
            if isinstance(plain, Deadlock):
                assert plain == compiled
            else:
                assert np.array_equal(plain.start_ps, compiled.start_ps)
                assert np.array_equal(plain.issue_ps, compiled.issue_ps)
                lane = assign_lanes(problem.dag, plain.start_ps)
                slacks = _both(patch, partial(slack_ps, problem, policy_of(policy), plain.start_ps, lane))
                assert np.array_equal(*slacks)
        if not problem.dag.has_cycle:
            plain, compiled = _both(patch, lambda: lower_bounds(problem).each)
            assert plain == compiled


def test_small_graphs_load_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the stated number of nodes no loop is compiled."""
    monkeypatch.setattr(loops, "_compiled", lambda loop: pytest.fail("compiled"))
    case = _layers(300, 0)
    assert len(schedule_dag(**case)) == 300 < loops.COMPILED_FROM


@needs_numba
def test_times_that_no_compiled_number_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durations whose events would not fit 64 bits are scheduled in plain Python, exactly."""
    monkeypatch.setattr(loops, "COMPILED_FROM", 0)
    long = 1 << 59
    start = schedule_dag([long, long, 3], [0, 0, 0], [1], [(0, 1), (1, 2)], effort="fast")
    assert start.tolist() == [0, long, 2 * long]


def test_long_columns_are_read_from_flat_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain Python gives the same from flat arrays, which long columns come as, as from lists."""
    case = _layers(500, 7)
    monkeypatch.setattr(loops, "COMPILED_FROM", 1 << 62)
    lists = schedule_dag(**case)
    monkeypatch.setattr(loops, "_LISTS_UP_TO", 0)
    assert np.array_equal(lists, schedule_dag(**case))
