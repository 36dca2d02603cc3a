"""``schedule_dag``: the entry on plain arrays."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernscope import DeadlockError, InfeasibleError, PolicyError, schedule_dag
from kernscope.scheduler.list_search import EFFORTS, PRIORITIES

quick = settings(max_examples=100, deadline=None)


@st.composite
def task_graphs(draw: st.DrawFn, max_nodes: int = 14) -> dict[str, Any]:
    """Arguments of ``schedule_dag``: node ids in no particular order along the edges."""
    n = draw(st.integers(0, max_nodes))
    channels = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rank = draw(st.permutations(range(n)))
    pairs = [(a, b) for a in range(n) for b in range(n) if rank[a] < rank[b]]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * n)) if pairs else []
    return {
        "durations_ps": draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)),
        "engine": draw(st.lists(st.integers(-1, len(channels) - 1), min_size=n, max_size=n)),
        "channels": channels,
        "edges": edges,
        "release_ps": draw(st.none() | st.lists(st.integers(0, 9), min_size=n, max_size=n)),
    }


def check_feasible(start: np.ndarray[Any, Any], case: dict[str, Any]) -> int:
    """Assert that start times keep edges, releases and channels; the makespan."""
    duration = np.array(case["durations_ps"], dtype=np.int64)
    end = start + duration
    assert start.dtype == np.int64 and np.all(start >= np.array(case["release_ps"] or 0))
    for source, target in case["edges"]:
        assert end[source] <= start[target]
    for engine, channels in enumerate(case["channels"]):
        for node in np.flatnonzero(np.array(case["engine"]) == engine):
            same = np.array(case["engine"]) == engine
            at_once = same & (start <= start[node]) & (start[node] < end)
            assert np.count_nonzero(at_once) <= channels
    return int(end.max(initial=0))


@given(case=task_graphs(), effort=st.sampled_from(list(EFFORTS)), rule=st.sampled_from(list(PRIORITIES)))
@quick
def test_schedules_keep_every_rule(case: dict[str, Any], effort: str, rule: str) -> None:
    """Edges, releases and channels hold for every rule and effort, and the same arrays give the same times."""
    start = schedule_dag(**case, effort=effort, priority=rule)
    check_feasible(start, case)
    assert np.array_equal(start, schedule_dag(**case, effort=effort, priority=rule))


@given(case=task_graphs(max_nodes=5))
@settings(max_examples=25, deadline=None)
def test_never_better_than_the_best_order(case: dict[str, Any]) -> None:
    """On five nodes, no priority array gives a shorter schedule than the best of all of them, and ``high`` finds it."""
    n = len(case["durations_ps"])
    best = min(
        check_feasible(schedule_dag(**case, priority=np.array(order, dtype=np.int64), effort="fast"), case)
        for order in permutations(range(n))
    )
    assert check_feasible(schedule_dag(**case, effort="high"), case) == best


def test_priority_decides_who_goes_first() -> None:
    """Two ready nodes of one engine start in the order of their priority, ties by id."""
    case: dict[str, Any] = {"durations_ps": [5, 7], "engine": [0, 0], "channels": [1], "edges": []}
    assert schedule_dag(**case, priority=[0, 1]).tolist() == [7, 0]
    assert schedule_dag(**case, priority=[1, 1]).tolist() == [0, 5]


def test_the_longest_path_goes_first() -> None:
    """The head of a long chain goes before an earlier node that leads nowhere."""
    start = schedule_dag([5, 1, 9], [0, 0, 1], [1, 1], [(1, 2)], effort="fast")
    assert start.tolist() == [1, 0, 1]


def test_more_effort_gains_on_job_shops() -> None:
    """On random job shops of ten jobs and five engines, ``normal`` is mostly better than ``fast`` and never worse, and
    so is ``high`` than ``normal``."""
    random = np.random.default_rng(1)
    gains = np.zeros(2, dtype=np.int64)
    for _ in range(10):
        durations = random.integers(1, 100, 50)
        engine = np.concatenate([random.permutation(5) for _ in range(10)])
        edges = [(5 * job + step, 5 * job + step + 1) for job in range(10) for step in range(4)]
        ends = [
            int((schedule_dag(durations, engine, [1] * 5, edges, effort=effort) + durations).max())
            for effort in EFFORTS
        ]
        assert ends == sorted(ends, reverse=True)
        gains += [ends[1] < ends[0], ends[2] < ends[1]]
    assert gains.min() >= 7


def test_a_cycle_is_named() -> None:
    """Edges that close a cycle raise, with its nodes."""
    with pytest.raises(DeadlockError, match="the edges close a cycle: 1 after 3 after 2 after 1") as caught:
        schedule_dag([1] * 4, [0] * 4, [1], [(0, 1), (1, 2), (2, 3), (3, 1)])
    assert caught.value.nodes == (1, 3, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"durations_ps": [1, -1]}, "durations_ps holds values from -1 to 1"),
        ({"durations_ps": [1.5, 2.0]}, r"durations_ps of shape \(2,\) and dtype float64"),
        ({"engine": [0]}, r"engine of shape \(1,\)"),
        ({"engine": [0, 1]}, "engine holds values from 0 to 1"),
        ({"channels": [0]}, "channels holds values from 0 to 0"),
        ({"edges": [(0, 2)]}, "edges holds values from 0 to 2"),
        ({"edges": [(0, 1, 2)]}, r"edges of shape \(1, 3\)"),
        ({"release_ps": [-1, 0]}, "release_ps holds values from -1 to 0"),
    ],
)
def test_arrays_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    """Every array of the wrong shape, kind or range is refused by name."""
    case: dict[str, Any] = {"durations_ps": [1, 2], "engine": [0, 0], "channels": [1], "edges": [(0, 1)]}
    with pytest.raises(InfeasibleError, match=message):
        schedule_dag(**{**case, **change})


def test_an_unknown_rule() -> None:
    """A misspelt rule names the nearest."""
    with pytest.raises(PolicyError, match="did you mean 'longest_path'"):
        schedule_dag([1], [0], [1], [], priority="longest_paht")
