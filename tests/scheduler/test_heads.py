"""Heads and tails: times before which no node can start, and that must follow its end, whatever the policy."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from problemgen import problems

import kernscope as ks
from kernscope.ir.arrays.compiling import number_loop
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.matmul import matmul
from kernscope.scheduler.policy.lower_bounds import LOADED_PATH, LONGEST_PATH
from kernscope.scheduler.policy.policies import Deadlock, run_policy
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.policy.registry import LADDER, policy_of
from kernscope.scheduler.search import bounds
from kernscope.scheduler.search.dag import Dag, longest_from_start, longest_to_end
from kernscope.scheduler.search.efforts import EFFORTS
from kernscope.scheduler.search.heads import heads_and_tails
from kernscope.scheduler.search.list_scheduling import left_shifted


def _dag(durations: list[int], engine: list[int], channels: list[int], edges: list[tuple[int, int]]) -> Dag:
    pairs = np.array(sorted(edges, key=lambda edge: edge[::-1]), dtype=np.int64).reshape(-1, 2)
    columns: list[Any] = [np.array(column, dtype=np.int64) for column in (durations, engine, channels)]
    return Dag(*columns, source=pairs[:, 0], target=pairs[:, 1], release_ps=np.zeros(len(durations), dtype=np.int64))


@given(problem=problems())
@settings(max_examples=150, deadline=None)
def test_no_policy_starts_before_a_head_or_ends_after_a_tail(problem: Problem) -> None:
    """Under every policy each node starts at its head or later, and its tail fits between its end and the makespan."""
    if problem.dag.has_cycle:
        return
    dag = problem.split.dag
    known = heads_and_tails(dag)
    for policy in LADDER:
        times = run_policy(problem, policy_of(policy), EFFORTS["normal"])
        if not isinstance(times, Deadlock) and len(problem):
            start = problem.split.starts(times.start_ps)
            end = start + dag.duration_ps
            assert np.all(known.head_ps <= start)
            assert np.all(end + known.tail_ps <= end.max())


@pytest.mark.parametrize("seed", range(6))
def test_no_order_beats_a_bound(seed: int) -> None:
    """On seven nodes no order of all is shorter than the loaded path, nor starts any node before its head."""
    random = np.random.default_rng(seed)
    edges = [(a, b) for a in range(7) for b in range(a + 1, 7) if random.random() < 0.25]
    dag = _dag(random.integers(0, 9, 7).tolist(), random.integers(0, 2, 7).tolist(), [1, 1 + seed % 2], edges)
    known = heads_and_tails(dag)
    bound = int((known.head_ps + dag.duration_ps + known.tail_ps).max())
    for order in permutations(range(7)):
        place = np.argsort(order)
        if any(place[a] > place[b] for a, b in edges):
            continue
        # In this order, each as early as it can: among these is a shortest schedule.
        start = np.zeros(7, dtype=np.int64)
        lanes = [[0] * count for count in dag.channels.tolist()]
        for node in order:
            ready = [int(start[a] + dag.duration_ps[a]) for a, b in edges if b == node]
            mine = lanes[dag.engine[node]]
            lane = mine.index(min(mine))
            start[node] = max([*ready, mine[lane]])
            mine[lane] = int(start[node] + dag.duration_ps[node])
        assert np.all(known.head_ps <= start)
        assert int((start + dag.duration_ps).max()) >= bound
        assert np.all(left_shifted(dag, start) <= start)


def test_heads_are_never_below_the_longest_paths() -> None:
    """Counting loads only ever raises heads and tails."""
    dag = _dag([3, 4, 5, 6], [0, 0, 1, 0], [1, 1], [(0, 2), (1, 2), (2, 3)])
    known = heads_and_tails(dag)
    assert np.all(known.head_ps >= longest_from_start(dag))
    assert np.all(known.tail_ps >= longest_to_end(dag) - dag.duration_ps)
    # Both loads come before the product: 3 + 4, not the longer of the two.
    assert known.head_ps.tolist() == [0, 0, 7, 12]
    assert known.longest_path_ps == 4 + 5 + 6


def test_independent_engines_raise_nothing() -> None:
    """Two ancestors on engines of their own, or on two lanes of one, do not wait for each other."""
    for engine, channels in (([0, 1, 2], [1, 1, 1]), ([0, 0, 1], [2, 1])):
        known = heads_and_tails(_dag([3, 4, 5], engine, channels, [(0, 2), (1, 2)]))
        assert known.head_ps.tolist() == [0, 0, 4]


def test_an_ancestor_further_back_counts() -> None:
    """Three nodes of one engine, in a chain with others of another engine: all have run before the last one starts."""
    chain = [(0, 3), (1, 4), (2, 5), (3, 6), (4, 6), (5, 6)]
    known = heads_and_tails(_dag([10, 10, 10, 1, 1, 1, 1], [0, 0, 0, 1, 2, 3, 1], [1, 1, 1, 1], chain))
    assert known.head_ps[6] == 31


def test_a_matmul_without_a_second_buffer_is_proved_optimal() -> None:
    """Each step of K loads two tiles over one channel into the buffers that the step before has read: the loaded path
    counts both loads, the longest path one, and the schedule meets it."""
    schedule = ks.schedule(ks.trace(matmul.launch("512")))
    assert schedule.proved_optimal
    assert schedule.bounds.each[LOADED_PATH] == schedule.makespan_ps
    assert schedule.bounds.each[LONGEST_PATH] < 0.8 * schedule.makespan_ps


@pytest.mark.parametrize(("launch", "percent"), [("2k", 0), ("2k-causal", 1)])
def test_flash_attention_is_near_its_bound(launch: str, percent: int) -> None:
    """The schedule of a launch is within a per cent of the bound; of one block of queries it is proved optimal."""
    schedule = ks.schedule(ks.trace(flash_attention.launch(launch)))
    assert schedule.ratio <= 1 + percent / 100


def test_bounds_by_engine_use_the_raised_heads() -> None:
    """A chain of pairs of loads, each pair needed by one product: the products' engine is bounded by the loads before
    its first one and the products after."""
    products = 4
    edges = [(3 * i + part, 3 * i + 2) for i in range(products) for part in (0, 1)]
    edges += [(3 * i + 2, 3 * i + 5) for i in range(products - 1)]
    dag = _dag([6, 6, 20] * products, [0, 0, 1] * products, [1, 1], edges)
    known = heads_and_tails(dag)
    assert [int(known.head_ps[3 * i + 2]) for i in range(products)] == [12 + 20 * i for i in range(products)]
    assert all(a < b for a, b in pairwise(known.head_ps[2::3].tolist()))


def test_a_bound_names_itself() -> None:
    """The best bound's name is the first of the largest."""
    bounds = ks.schedule(ks.trace(matmul.launch("512"))).bounds
    assert bounds.best == LOADED_PATH and bounds.best_ps == max(bounds.each.values())


def test_loops_are_compiled_by_the_size_of_the_graph_not_of_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of an engine with few of the nodes runs as the graph's other loops do: their start-up is paid."""
    graph = ks.trace(flash_attention.launch("2k"))
    sizes: list[int] = []

    def run(loop: Any, size: int, *columns: Any) -> int:
        sizes.append(size)
        return number_loop(loop, size, *columns)

    monkeypatch.setattr(bounds, "number_loop", run)
    ks.schedule(graph, "lazy")
    assert sizes == [len(graph)] * 4, "a loop for each engine of one lane"
