"""``schedule_dag``: the entry on plain arrays."""

import re
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernscope import DeadlockError, InfeasibleError, PolicyError, schedule_dag
from kernscope.scheduler.search.dag_arrays import make_dag
from kernscope.scheduler.search.efforts import EFFORTS
from kernscope.scheduler.search.list_scheduling import left_shifted
from kernscope.scheduler.search.priorities import PRIORITIES

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
@example(
    case={"durations_ps": [2, 4, 1, 5, 0], "engine": [0] * 5, "channels": [2], "edges": [(2, 1)], "release_ps": None}
)
@settings(max_examples=25, deadline=None)
def test_never_better_than_the_best_order(case: dict[str, Any]) -> None:
    """On five nodes, no priority array gives a shorter schedule than the best of all of them, and ``high`` finds it."""
    n = len(case["durations_ps"])
    best = min(
        check_feasible(schedule_dag(**case, priority=np.array(order, dtype=np.int64), effort="fast"), case)
        for order in permutations(range(n))
    )
    assert check_feasible(schedule_dag(**case, effort="high"), case) == best


@given(case=task_graphs(), seed=st.integers(0, 999))
@settings(max_examples=200, deadline=None)
def test_a_shifted_schedule_leaves_no_room(case: dict[str, Any], seed: int) -> None:
    """However long a schedule waited, on one lane or several: shifted to the left, a node starts at its release, at an
    edge's end, or when all lanes of its engine were busy right up to then; and none starts later than before. (Nodes
    that take no time are left out: one may take a lane that another would have filled.)"""
    case["durations_ps"] = [1 + each for each in case["durations_ps"]]
    dag = make_dag(*(case[name] for name in ("durations_ps", "engine", "channels", "edges", "release_ps")))
    random = np.random.default_rng(seed)
    before, now = np.zeros(len(dag), dtype=np.int64), 0
    for node in dag.order.tolist():  # one after another, with waits in between: the engines change turns at random
        before[node] = now = max(now, int(dag.release_ps[node])) + int(random.integers(0, 3))
        now += int(dag.duration_ps[node])
    start = left_shifted(dag, before)
    assert np.all(start <= before)
    check_feasible(start, case)
    end = start + dag.duration_ps
    for node in np.flatnonzero(start > dag.release_ps).tolist():
        if np.any(end[dag.source[dag.target == node]] == start[node]):
            continue
        busy = (dag.engine == dag.engine[node]) & (start < start[node]) & (end >= start[node])
        assert np.count_nonzero(busy) >= dag.channels[dag.engine[node]], node


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
    """On random job shops of ten jobs and six engines, ``normal`` is better than ``fast``, and ``high`` never worse
    than ``normal`` and sometimes better."""
    random = np.random.default_rng(1)
    gains = np.zeros(2, dtype=np.int64)
    for _ in range(3):
        durations = random.integers(1, 100, 60)
        engine = np.concatenate([random.permutation(6) for _ in range(10)])
        edges = [(6 * job + step, 6 * job + step + 1) for job in range(10) for step in range(5)]
        ends = [
            int((schedule_dag(durations, engine, [1] * 6, edges, effort=effort) + durations).max())
            for effort in EFFORTS
        ]
        assert ends == sorted(ends, reverse=True)
        gains += [ends[1] < ends[0], ends[2] < ends[1]]
    assert gains[0] == 3 and gains[1] >= 1


# --- under a limit of scratch -----------------------------------------------------------------------------------------


def _peak_bytes(case: dict[str, Any], start: np.ndarray[Any, Any], nbytes: list[int]) -> int:
    """The most bytes that are held at any start."""
    end = start + np.array(case["durations_ps"], dtype=np.int64)
    until = end.copy()
    for source, target in case["edges"]:
        until[source] = max(until[source], end[target])
    # What takes no time holds its bytes for an instant of its own; at one instant ends come before starts.
    return max((sum(b for i, b in enumerate(nbytes) if start[i] <= at < until[i]) for at in start.tolist()), default=0)


def _one_after_another(case: dict[str, Any], order: tuple[int, ...], nbytes: list[int]) -> int:
    """The most bytes that nodes hold in an order, one after another."""
    place = {node: number for number, node in enumerate(order)}
    last = {n: max([place[n], *(place[t] for s, t in case["edges"] if s == n)]) for n in order}
    return max(sum(nbytes[n] for n in order if place[n] <= now <= last[n]) for now in range(len(order)))


@given(
    case=task_graphs(max_nodes=7),
    data=st.data(),
    limit=st.integers(0, 24),
    effort=st.sampled_from(["fast", "normal"]),
)
@settings(max_examples=150, deadline=None)
def test_scratch_is_a_hard_limit(case: dict[str, Any], data: st.DataObject, limit: int, effort: str) -> None:
    """A schedule within scratch keeps every rule and never holds more; the error comes only where the nodes in program
    order, one after another, hold more, and says how much is enough; with so much, there is a schedule."""
    n = len(case["durations_ps"])
    nbytes = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    try:
        start = schedule_dag(**case, scratch=(nbytes, limit), effort=effort)
    except InfeasibleError as error:
        found = re.search(r"node \d+ needs (\d+) B", str(error))
        assert found is not None and int(found[1]) > limit
        if all(a < b for a, b in case["edges"]):
            assert int(found[1]) <= _one_after_another(case, tuple(range(n)), nbytes)
        check_feasible(schedule_dag(**case, scratch=(nbytes, int(found[1])), effort=effort), case)
        return
    check_feasible(start, case)
    assert _peak_bytes(case, start, nbytes) <= limit


@given(case=task_graphs(max_nodes=6), data=st.data(), limit=st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_an_order_is_found_exactly_where_there_is_one(case: dict[str, Any], data: st.DataObject, limit: int) -> None:
    """Where no order of the nodes, one after another, fits the scratch, there is no schedule at all: the error it is.
    Where one fits, there is never an error; and what the error says is enough is the least that is."""
    n = len(case["durations_ps"])
    case["durations_ps"] = [1 + d for d in case["durations_ps"]]
    nbytes = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    orders = [
        order
        for order in permutations(range(n))
        if all(order.index(source) < order.index(target) for source, target in case["edges"])
    ]
    needs = {order: _one_after_another(case, order, nbytes) for order in orders if order}
    try:
        schedule_dag(**case, scratch=(nbytes, limit))
        assert not needs or min(needs.values()) <= limit
    except InfeasibleError as error:
        assert min(needs.values()) > limit
        assert f"give {min(needs.values()):,} B of scratch" in str(error)


def test_a_dead_end_falls_back_to_program_order() -> None:
    """Two long chains of priority fill the scratch with results whose readers do not fit; program order runs one chain
    after the other."""
    case: dict[str, Any] = {
        "durations_ps": [1, 9, 1, 9],
        "engine": [0, 1, 0, 1],
        "channels": [1, 1],
        "edges": [(0, 1), (2, 3)],
    }
    start = schedule_dag(**case, scratch=([6, 4, 6, 4], 12), effort="fast")
    assert start.tolist() == [0, 1, 10, 11]
    assert schedule_dag(**case, scratch=([6, 4, 6, 4], 16), effort="fast").tolist() == [0, 1, 1, 10]


def test_an_order_that_no_rule_finds_is_found() -> None:
    """Of forty random graphs with as much scratch as the best of all orders takes, each is scheduled within it; program
    order takes more for most of them."""
    worse = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        n = int(random.integers(6, 11))
        edges = [(a, b) for b in range(n) for a in range(b) if random.random() < 0.2]
        nbytes = random.integers(1, 20, n).tolist()
        case: dict[str, Any] = {
            "durations_ps": random.integers(1, 9, n).tolist(),
            "engine": [0] * n,
            "channels": [1],
            "edges": edges,
            "release_ps": None,
        }
        least = _least_of_all_orders(n, edges, nbytes)
        start = schedule_dag(**case, scratch=(nbytes, least), effort="fast")
        check_feasible(start, case)
        assert _peak_bytes(case, start, nbytes) <= least
        with pytest.raises(InfeasibleError, match=f"give {least} B of scratch"):
            schedule_dag(**case, scratch=(nbytes, least - 1), effort="fast")
        worse += _one_after_another(case, tuple(range(n)), nbytes) > least
    assert worse > 20


def _least_of_all_orders(n: int, edges: list[tuple[int, int]], nbytes: list[int]) -> int:
    """By what has run, the least peak of all orders that lead there: every set that is closed under predecessors."""
    peaks = {frozenset[int](): 0}
    for _ in range(n):
        following: dict[frozenset[int], int] = {}
        for done, peak in peaks.items():
            held = sum(
                nbytes[node] for node in done if any(source == node and target not in done for source, target in edges)
            )
            for node in set(range(n)) - done:
                if all(source in done for source, target in edges if target == node):
                    reached = max(peak, held + nbytes[node])
                    now = done | {node}
                    following[now] = min(reached, following.get(now, reached))
        peaks = following
    return min(peaks.values())


def test_too_little_scratch_says_what_was_needed() -> None:
    """The error names the node, the bytes it needs in the best order found, and what would relax it."""
    with pytest.raises(InfeasibleError, match=r"that 9 B of scratch are enough for: .* node 1 needs 10 B") as caught:
        schedule_dag([1, 9], [0, 1], [1, 1], [(0, 1)], scratch=([6, 4], 9))
    assert "give 10 B of scratch" in str(caught.value)


def test_a_cycle_is_named() -> None:
    """Edges that close a cycle raise, with its nodes."""
    with pytest.raises(DeadlockError, match="the edges close a cycle: 1 after 3 after 2 after 1") as caught:
        schedule_dag([1] * 4, [0] * 4, [1], [(0, 1), (1, 2), (2, 3), (3, 1)])
    assert caught.value.nodes == (1, 3, 2)


INT64 = np.iinfo(np.int64)
UNSIGNED = np.array([0, 2**64 - 1], dtype=np.uint64)
CASE: dict[str, Any] = {"durations_ps": [1, 2], "engine": [0, 0], "channels": [1], "edges": [(0, 1)]}


@pytest.mark.parametrize(
    ("change", "message", "help_"),
    [
        ({"durations_ps": [1, -1]}, "durations_ps holds values from -1 to 1", "pass 0 or more"),
        ({"durations_ps": [1.5, 2.0]}, "durations_ps of shape (2,) and dtype float64: [1.5, 2.0]", "whole numbers"),
        (
            {"durations_ps": [1, float("nan")]},
            "durations_ps of shape (2,) and dtype float64: [1, nan]",
            "whole numbers",
        ),
        ({"durations_ps": [[1], [1, 2]]}, "durations_ps = [[1], [1, 2]]: not rows of one length", "one for each"),
        ({"durations_ps": UNSIGNED}, f"durations_ps holds values from 0 to {2**64 - 1}", f"{INT64.max} at most"),
        ({"durations_ps": [2**70, 1]}, f"durations_ps of shape (2,) and dtype object: [{2**70}, 1]", "int64 holds"),
        ({"durations_ps": [INT64.max, 1]}, f"durations and releases add up to {2**63}", "use a coarser unit"),
        ({"durations_ps": [True, False]}, "durations_ps of shape (2,) and dtype bool: [True, False]", "whole numbers"),
        ({"durations_ps": None}, "durations_ps of shape () and dtype object: None", "one for each"),
        ({"engine": [0]}, "engine of shape (1,) and dtype int64: [0]", "whole numbers that int64 holds, (2,)"),
        ({"engine": [0, 1]}, "engine holds values from 0 to 1", "pass -1 or more, 0 at most"),
        ({"engine": [-2, 0]}, "engine holds values from -2 to 0", "pass -1 or more, 0 at most"),
        ({"engine": UNSIGNED}, f"engine holds values from 0 to {2**64 - 1}", "pass -1 or more, 0 at most"),
        ({"engine": [[0], [0, 1]]}, "engine = [[0], [0, 1]]: not rows of one length", "(2,)"),
        ({"channels": [0]}, "channels holds values from 0 to 0", "pass 1 or more"),
        ({"channels": 1}, "channels of shape () and dtype int64: 1", "one for each"),
        ({"edges": [(0, 2)]}, "edges holds values from 0 to 2", "pass 0 or more, 1 at most"),
        ({"edges": [(-1, 0)]}, "edges holds values from -1 to 0", "pass 0 or more, 1 at most"),
        ({"edges": [(0, 1, 2)]}, "edges of shape (1, 3) and dtype int64: [(0, 1, 2)]", "(m, 2): [(from, to), ...]"),
        ({"edges": [[0, 1], [1]]}, "edges = [[0, 1], [1]]: not rows of one length", "(m, 2): [(from, to), ...]"),
        ({"edges": [[]]}, "edges of shape (1, 0) and dtype float64: [[]]", "(m, 2)"),
        ({"edges": {(0, 1)}}, "edges of shape () and dtype object: {(0, 1)}", "(m, 2)"),
        ({"edges": UNSIGNED[None]}, f"edges holds values from 0 to {2**64 - 1}", "pass 0 or more, 1 at most"),
        ({"release_ps": [-1, 0]}, "release_ps holds values from -1 to 0", "pass 0 or more"),
        ({"release_ps": [float("inf"), 0]}, "release_ps of shape (2,) and dtype float64: [inf, 0]", "(2,)"),
        ({"priority": UNSIGNED}, f"priority holds values from 0 to {2**64 - 1}", f"{INT64.max} at most"),
        ({"priority": None}, "priority of shape () and dtype object: None", "(2,)"),
        ({"priority": [[1], [1, 2]]}, "priority = [[1], [1, 2]]: not rows of one length", "(2,)"),
        ({"scratch": 5}, "scratch=5", "pass two things"),
        ({"scratch": ([1, 1], None)}, "scratch=([1, 1], None)", "pass two things"),
        ({"scratch": ([1, 1], 7.9)}, "scratch=([1, 1], 7.9)", "pass two things"),
        ({"scratch": ([1, 1], True)}, "scratch=([1, 1], True)", "pass two things"),
        ({"scratch": ([1, 1], 7, 9)}, "scratch=([1, 1], 7, 9)", "pass two things"),
        ({"scratch": ([1], 7)}, "scratch of shape (1,) and dtype int64: [1]", "(2,)"),
        ({"scratch": ([1, [1]], 7)}, "scratch = [1, [1]]: not rows of one length", "(2,)"),
        ({"scratch": ([INT64.max] * 2, 7)}, f"the results' bytes add up to {2**64 - 2}", "use a coarser unit"),
    ],
)
def test_arrays_that_do_not_fit(change: dict[str, Any], message: str, help_: str) -> None:
    """Every array of the wrong shape, kind or range is refused by name, with its values and what to pass; unsigned
    columns and numbers past int64 never turn into others."""
    with pytest.raises(InfeasibleError) as caught:
        schedule_dag(**{**CASE, **change})
    assert message in caught.value.message and help_ in caught.value.help


@pytest.mark.parametrize("effort", [[], None, 5, "fasst", np.array(["fast", "high"])], ids=repr)
def test_an_effort_that_is_none(effort: Any) -> None:
    """Of whatever type, hashable or not."""
    with pytest.raises(PolicyError, match="no effort") as caught:
        schedule_dag(**CASE, effort=effort)
    assert "fast" in caught.value.help


@pytest.mark.parametrize("seed", [-1, "x", 1.5, None, True, 2**31, [1, 2]], ids=repr)
def test_a_seed_that_is_none(seed: Any) -> None:
    """Refused at every effort, whether it would be used or not; an integer of numpy's is one."""
    for effort in EFFORTS:
        with pytest.raises(PolicyError, match="a seed of") as caught:
            schedule_dag(**CASE, effort=effort, seed=seed)
        assert caught.value.help == "give a whole number from 0 to 2147483647"
    assert schedule_dag(**CASE, effort="high", seed=np.int64(3)).tolist() == [0, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "int64"])
def test_columns_of_any_integer_type_are_taken(dtype: str) -> None:
    """Signed or unsigned, of any width: the same times; no edges are an empty list, or an array of two columns."""
    arrays = {name: np.array(value, dtype=dtype) for name, value in CASE.items()}
    assert schedule_dag(**arrays).tolist() == [0, 1]
    nothing: Any
    for nothing in ([], np.zeros((0, 2)), np.zeros(0, dtype=dtype)):
        assert schedule_dag(**{**arrays, "edges": nothing, "engine": [0, -1]}).tolist() == [0, 0]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("scratch", [None, ([1, 1, 1], 3), ([1, 1, 1], 2**80)])
def test_priorities_at_the_ends_of_int64_are_an_order(effort: str, scratch: Any) -> None:
    """The least goes last and the greatest first, with and without a limit of scratch, and no effort overflows."""
    case: dict[str, Any] = {"durations_ps": [1, 2, 4], "engine": [0, 0, 0], "channels": [1], "edges": []}
    start = schedule_dag(**case, priority=[INT64.min, 0, INT64.max], effort=effort, scratch=scratch)
    assert start.tolist() == [6, 4, 0]


def test_more_lanes_than_nodes_change_nothing() -> None:
    """An engine with lanes without end is one with a lane a node, and takes no memory for the others."""
    for effort in EFFORTS:
        assert schedule_dag([3, 2, 1], [0, 0, 0], [2**62], [(0, 2)], effort=effort).tolist() == [0, 0, 3]


def test_an_unknown_rule() -> None:
    """A misspelt rule names the nearest."""
    with pytest.raises(PolicyError, match="did you mean 'longest_path'"):
        schedule_dag([1], [0], [1], [], priority="longest_paht")


@given(case=task_graphs(), effort=st.sampled_from(list(EFFORTS)), data=st.data())
@quick
def test_an_engine_is_let_go_of_before_the_result_is_there(
    case: dict[str, Any], effort: str, data: st.DataObject
) -> None:
    """With ``occupancy_ps`` lanes are held for that long, edges still wait for the duration; all of it held is no
    change."""
    held = [data.draw(st.integers(0, duration)) for duration in case["durations_ps"]]
    start = schedule_dag(**case, occupancy_ps=held, effort=effort)
    end, free = start + np.array(case["durations_ps"], dtype=np.int64), start + np.array(held, dtype=np.int64)
    assert all(end[source] <= start[target] for source, target in case["edges"])
    for engine, channels in enumerate(case["channels"]):
        same = np.array(case["engine"]) == engine
        for node in np.flatnonzero(same):
            assert np.count_nonzero(same & (start <= start[node]) & (start[node] < free)) <= channels
    assert np.array_equal(
        schedule_dag(**case, occupancy_ps=case["durations_ps"], effort=effort), schedule_dag(**case, effort=effort)
    )


def test_occupancies_that_cannot_be() -> None:
    """Longer than the duration, of another length, or together with a limit of scratch."""
    one = {"durations_ps": [3], "engine": [0], "channels": [1], "edges": []}
    with pytest.raises(InfeasibleError, match="node 0 holds its engine for 4, and lasts 3"):
        schedule_dag(**one, occupancy_ps=[4])
    with pytest.raises(InfeasibleError, match="occupancy_ps of shape"):
        schedule_dag(**one, occupancy_ps=[1, 1])
    with pytest.raises(InfeasibleError, match="together with scratch"):
        schedule_dag(**one, occupancy_ps=[1], scratch=([1], 1))
    assert schedule_dag(**one, occupancy_ps=[3], scratch=([1], 1)).tolist() == [0]
