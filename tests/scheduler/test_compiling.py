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
from kernscope.ir.arrays import compiling as loops
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.policies import Deadlock, run_policy
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.policy.registry import LADDER, policy_of
from kernscope.scheduler.result.slack import slack_ps
from kernscope.scheduler.search.critical_search import search_critical_chain
from kernscope.scheduler.search.dag import longest_to_end
from kernscope.scheduler.search.dag_arrays import make_dag
from kernscope.scheduler.search.efforts import EFFORTS
from kernscope.scheduler.search.improving import makespan_ps
from kernscope.scheduler.search.lanes import assign_lanes
from kernscope.scheduler.search.list_scheduling import list_schedule
from kernscope.scheduler.search.priorities import by_largest
from kernscope.scheduler.search.scratch_limit import in_order, need_in_order, within_scratch

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


def _loop_with_a_part_elsewhere(column: Any) -> Any:
    return by_largest(column)


def _both(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], Any]) -> tuple[Any, Any]:
    monkeypatch.setattr(loops, "COMPILED_FROM", 1 << 62)
    plain = compute()
    monkeypatch.setattr(loops, "COMPILED_FROM", 0)
    return plain, compute()


def _doubled(column: Any) -> Any:
    for at in range(len(column)):
        column[at] *= 2
    return column


def _sum(column: Any) -> Any:
    total = 0
    for number in column:
        total += number
    return total


@pytest.mark.parametrize(("size", "options", "wanted"), [(9, {}, 0), (10, {}, 1), (10, {"exact": False}, 0)])
def test_a_loop_is_compiled_from_a_size_on(
    monkeypatch: pytest.MonkeyPatch, size: int, options: dict[str, bool], wanted: int
) -> None:
    """Where numbers fit int64, which they do unless it is said; never without numba. The result is the same."""
    compiled: list[Any] = []
    monkeypatch.setattr(loops, "_compiled", lambda loop: compiled.append(loop) or loop)
    monkeypatch.setattr(loops, "COMPILED_FROM", 10)
    for there in (True, False):
        monkeypatch.setattr(loops, "can_compile", lambda there=there: there)
        compiled.clear()
        found = loops.run_loop(_doubled, size, np.arange(4), **options)
        assert (found.tolist(), found.dtype) == ([0, 2, 4, 6], np.int64)
        assert loops.number_loop(_sum, size, np.arange(4), **options) == 6
        assert compiled == [_doubled, _sum] * (wanted * there)


@needs_numba
@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_compiled_lists_equal_plain_ones(monkeypatch: pytest.MonkeyPatch, effort: str) -> None:
    """``schedule_dag`` gives the same start times compiled and not."""
    for seed in range(3):
        case = _layers(400, seed)
        plain, compiled = _both(monkeypatch, lambda case=case: schedule_dag(**case, effort=effort))  # type: ignore[misc]
        assert np.array_equal(plain, compiled) and plain.max() > 0


@needs_numba
@pytest.mark.parametrize(("jobs", "engines", "lanes"), [(15, 10, 1), (6, 6, 1), (20, 5, 2)])
def test_compiled_local_search_equals_the_plain_one(
    monkeypatch: pytest.MonkeyPatch, jobs: int, engines: int, lanes: int
) -> None:
    """A job shop after some thousand moves (small ones start anew within them) has the same times compiled and not."""
    random = np.random.default_rng(0)
    nodes = np.arange(jobs * engines).reshape(jobs, engines)
    dag = make_dag(
        random.integers(1, 100, jobs * engines),
        np.concatenate([random.permutation(engines) for _ in range(jobs)]),
        [lanes] * engines,
        np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1),
        None,
    )
    start = list_schedule(dag, by_largest(longest_to_end(dag)))
    plain, compiled = _both(
        monkeypatch, lambda: search_critical_chain(dag, start, visits=1_000_000, enough_ps=0, seed=3)
    )
    assert np.array_equal(plain, compiled) and makespan_ps(dag, plain) < makespan_ps(dag, start)


@needs_numba
def test_compiled_passes_under_a_limit_equal_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit of scratch, by priority and in program order, the start times and the dead ends are the same."""
    for seed in range(4):
        case = {"release_ps": None, **_layers(300, seed)}
        dag = make_dag(*(case[name] for name in ("durations_ps", "engine", "channels", "edges", "release_ps")))
        nbytes = np.random.default_rng(seed).integers(0, 100, len(dag))
        need = need_in_order(dag, dag.order, nbytes).nbytes
        for limit in (need - 1, need, 2 * need):
            found = _both(monkeypatch, partial(in_order, dag, dag.order, nbytes, limit))
            assert (found[0] is None) == (found[1] is None) == (limit < need)
            assert np.array_equal(*found)
            within = _both(monkeypatch, partial(within_scratch, dag, by_largest(longest_to_end(dag)), nbytes, limit))
            assert np.array_equal(*within)


@needs_numba
def test_parts_stand_beside_their_loop() -> None:
    """A loop that calls a function of another module is refused: what is kept on disk would outlive its changes."""

    with pytest.raises(AssertionError, match="by_largest stands in another module than its loop"):
        loops._compiled(_loop_with_a_part_elsewhere)


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
                lane = assign_lanes(problem.on_engines, plain.start_ps)
                slacks = _both(patch, partial(slack_ps, problem, policy_of(policy), plain.start_ps, lane))
                assert np.array_equal(*slacks)
        if not problem.dag.has_cycle:
            plain, compiled = _both(patch, lambda: lower_bounds(problem).each)
            assert plain == compiled


def test_small_graphs_load_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the stated number of nodes no loop is compiled, but those that take many times as long a node."""
    monkeypatch.setattr(loops, "_compiled", lambda loop: pytest.fail("compiled"))
    case = _layers(300, 0)
    assert len(schedule_dag(**case, effort="fast")) == 300 < loops.COMPILED_FROM
    assert len(schedule_dag(**_layers(60, 0))) == 60


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
