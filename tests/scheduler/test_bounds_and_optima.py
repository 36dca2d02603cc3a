"""Bounds never pass what a schedule reaches, and efforts never lose what a lower one has found: on random problems with
known optima."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import schedule_dag
from kernscope.ir.arrays import compiling as loops
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel
from kernscope.kernels.layer_norm import layer_norm
from kernscope.kernels.rms_norm import rms_norm
from kernscope.scheduler.policy.optimal import SolverLimit, solve
from kernscope.scheduler.search.active import WHOLE_WAIT, active_schedule
from kernscope.scheduler.search.bounding import Bounding, quick_bounds, raised_bounds
from kernscope.scheduler.search.dag import Dag, longest_to_end
from kernscope.scheduler.search.dag_arrays import make_dag
from kernscope.scheduler.search.destructive import refuted_up_to
from kernscope.scheduler.search.efforts import EFFORTS
from kernscope.scheduler.search.improving import makespan_ps
from kernscope.scheduler.search.list_scheduling import left_shifted, list_schedule
from kernscope.scheduler.search.priorities import PRIORITIES, by_largest
from kernscope.scheduler.search.solving import Solving

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra 'fast' (numba)")
needs_ortools = pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="needs the extra 'optimal'")


def random_problem(seed: int, most: int) -> dict[str, Any]:
    """A job shop, a flow shop, a layered graph or one without a plan; engines of one lane and of several, releases,
    nodes of no time and of no engine."""
    random = np.random.default_rng(seed)
    kind = seed % 4
    if kind < 2:
        jobs = int(random.integers(2, 5))
        engines = int(min(random.integers(2, 5), most // jobs))
        nodes = np.arange(jobs * engines).reshape(jobs, engines)
        order = [random.permutation(engines) if kind == 0 else np.arange(engines) for _ in range(jobs)]
        return {
            "durations_ps": random.integers(1, 20, jobs * engines),
            "engine": np.concatenate(order),
            "channels": random.choice([1, 1, 1, 2], engines).tolist(),
            "edges": np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1),
        }
    n = int(random.integers(3, most + 1))
    near = 4 if kind == 2 else n
    edges = [(a, b) for b in range(n) for a in range(max(b - near, 0), b) if random.random() < (0.4, 0.15)[kind - 2]]
    return {
        "durations_ps": random.integers(0, 15, n),
        "engine": random.integers(-1, 3, n),
        "channels": random.choice([1, 1, 2, 3], 3).tolist(),
        "edges": edges,
        "release_ps": random.integers(0, 12, n) * (random.random() < 0.5),
    }


def dag_of(problem: dict[str, Any]) -> Dag:
    given_ = {"release_ps": None, **problem}
    return make_dag(*(given_[name] for name in ("durations_ps", "engine", "channels", "edges", "release_ps")))


def all_bounds(dag: Dag, optimum: int, efforts: Iterable[str] = EFFORTS) -> list[tuple[str, int]]:
    """Every bound that an effort may state, by name; makespans are refuted up to one that is possible."""
    quick = quick_bounds(dag)
    found = [("quick", quick.best_ps)]
    for widths in ((3,), (50,), (4, 50)):
        raised = raised_bounds(dag, _effort(widths), quick)
        found += [(f"raised {widths}", raised.best_ps), *((f"engine {on}", bound) for on, bound in raised.engines)]
        for probing in (False, True):
            found.append((f"refuted {widths} {probing}", _refuted(dag, raised, optimum + 7, probing)))
            found.append((f"refuted from 0 {probing}", _refuted(dag, quick, optimum + 7, probing, lowest=0)))
    for effort in map(EFFORTS.__getitem__, efforts):
        bounds = Solving(dag, bound_at_once=True).at(effort).bounds
        assert bounds is not None
        found.append(("effort", bounds.best_ps))
    return found


def _effort(widths: tuple[int, ...]) -> Any:
    from_high = EFFORTS["high"].bounds
    return type(from_high)(widths, from_high.window_steps, from_high.steps_a_node)


def _refuted(dag: Dag, known: Bounding, highest: int, probing: bool, lowest: int | None = None) -> int:
    low = known.best_ps if lowest is None else lowest
    heads = known.known
    return refuted_up_to(dag, heads.head_ps, heads.tail_ps, low, highest, budget=10**9, probing=probing)


def optimum_of(dag: Dag) -> tuple[int, np.ndarray[Any, Any]]:
    """The least makespan, proved by the solver from nothing that is known, and start times that reach it."""
    start = list_schedule(dag, by_largest(longest_to_end(dag)))
    exact = solve(dag, start, bound_ps=0, limit=SolverLimit(60.0))
    reached = makespan_ps(dag, exact.start_ps)
    assert exact.bound_ps == reached, "small enough to be proved"
    return reached, exact.start_ps


def no_bound_passes(seed: int, most: int) -> bool:
    """Whether a gap was left by the quick bounds; no bound passes the optimum, no head and no tail what is possible."""
    dag = dag_of(random_problem(seed, most))
    optimum, start = optimum_of(dag)
    efforts = tuple(EFFORTS)[: 3 if seed % 10 == 0 else 2]
    assert [found for found in all_bounds(dag, optimum, efforts) if found[1] > optimum] == []
    known = raised_bounds(dag, _effort((50,)), quick_bounds(dag)).known
    assert np.all(known.head_ps <= start) and np.all(start + dag.duration_ps + known.tail_ps <= optimum)
    for effort in efforts:
        assert makespan_ps(dag, schedule_dag(**random_problem(seed, most), effort=effort)) >= optimum
    return quick_bounds(dag).best_ps < optimum


@needs_ortools
def test_no_bound_passes_an_optimum() -> None:
    """On sixty problems of up to twelve nodes; on some of them the quick bounds are not the optimum."""
    assert sum(no_bound_passes(seed, 12) for seed in range(60)) > 10


@pytest.mark.slow
@needs_ortools
@pytest.mark.parametrize("block", range(20))
def test_no_bound_passes_an_optimum_on_thousands(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """As above, on 3,000 problems of up to sixteen nodes, with the loops compiled where numba is installed."""
    monkeypatch.setattr(loops, "COMPILED_FROM", 0)
    for seed in range(1_000 + 150 * block, 1_000 + 150 * (block + 1)):
        no_bound_passes(seed, 16)


@pytest.mark.parametrize("seed", range(8))
def test_no_order_beats_a_refuted_makespan(seed: int) -> None:
    """Without any solver: of all orders of six nodes the shortest schedule is no shorter than any bound."""
    problem = random_problem(4 * seed + 2, 6)
    dag = dag_of(problem)
    n = len(dag)
    shortest = min(_serial(dag, order) for order in permutations(range(n)) if _is_topological(dag, order))
    assert [found for found in all_bounds(dag, shortest) if found[1] > shortest] == []


def _is_topological(dag: Dag, order: tuple[int, ...]) -> bool:
    place = np.argsort(order)
    return bool(np.all(place[dag.source] < place[dag.target]))


def _serial(dag: Dag, order: tuple[int, ...]) -> int:
    """The makespan where each node takes the first lane that is free, in this order."""
    lanes = [[0] * count for count in dag.channels.tolist()]
    end = np.zeros(len(dag), dtype=np.int64)
    for node in order:
        at = max([int(dag.release_ps[node]), *end[dag.source[dag.target == node]].tolist()])
        if dag.engine[node] >= 0:
            mine = lanes[dag.engine[node]]
            lane = mine.index(min(mine))
            at = max(at, mine[lane])
            mine[lane] = at + int(dag.duration_ps[node])
        end[node] = at + dag.duration_ps[node]
    return int(end.max())


# --- efforts ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 1 << 20), rule=st.sampled_from(sorted(PRIORITIES)))
@settings(max_examples=60, deadline=None)
def test_more_effort_is_never_worse(seed: int, rule: str) -> None:
    """``high`` is no longer than ``normal``, that than ``fast``, that than program order and the rule asked for; the
    bound of more effort is no lower, and no schedule is below any."""
    problem = random_problem(seed, 24)
    dag = dag_of(problem)
    solving = Solving(dag, first_rule=rule, bound_at_once=True)
    found = [solving.at(effort) for effort in EFFORTS.values()]
    reached = [one.makespan_ps for one in found]
    stated = [one.bounds.best_ps for one in found if one.bounds is not None]
    assert sorted(reached, reverse=True) == reached and sorted(stated) == stated
    assert max(stated) <= min(reached)
    plain = [makespan_ps(dag, schedule_dag(**problem, effort=effort, priority=rule)) for effort in EFFORTS]
    assert sorted(plain, reverse=True) == plain
    for name in (rule, "program_order"):
        assert plain[0] <= makespan_ps(dag, list_schedule(dag, by_largest(PRIORITIES[name](dag))))


@given(seed=st.integers(0, 1 << 20))
@settings(max_examples=40, deadline=None)
def test_an_incumbent_is_never_lost(seed: int) -> None:
    """From start times that are possible, however slow, each effort ends no later than they and than a lower effort."""
    dag = dag_of(random_problem(seed, 16))
    random = np.random.default_rng(seed)
    slow = list_schedule(dag, by_largest(random.permutation(len(dag))))
    solving = Solving(dag, bound_at_once=True)
    reached = [makespan_ps(dag, solving.from_incumbent(effort, slow)) for effort in EFFORTS.values()]
    assert sorted(reached, reverse=True) == reached and reached[0] <= makespan_ps(dag, slow)
    assert all(a <= b.makespan_ps for a, b in zip(reached, map(solving.at, EFFORTS.values()), strict=True))


# --- active schedules -------------------------------------------------------------------------------------------------


def test_an_engine_waits_for_a_critical_node() -> None:
    """A long node that nothing follows is ready at 0; one that a long chain follows is ready a little later. No list
    that never leaves an engine idle makes the second wait less than all of the first; an active schedule does."""
    dag = dag_of(
        {
            "durations_ps": [10, 2, 1, 20],
            "engine": [0, 1, 0, 1],
            "channels": [1, 1],
            "edges": [(1, 2), (2, 3)],
        }
    )
    priority = longest_to_end(dag)
    assert makespan_ps(dag, list_schedule(dag, by_largest(priority))) == 31
    assert makespan_ps(dag, active_schedule(dag, priority, 0)) == 31
    waited = active_schedule(dag, priority, 700)
    assert waited.tolist() == [3, 0, 2, 3] and makespan_ps(dag, waited) == 23
    assert np.array_equal(left_shifted(dag, waited), waited)


@given(seed=st.integers(0, 1 << 20), wait=st.integers(0, WHOLE_WAIT))
@settings(max_examples=150, deadline=None)
def test_active_schedules_are_schedules(seed: int, wait: int) -> None:
    """All edges and releases hold, no engine runs more at once than its lanes, and nothing could start earlier in the
    same order; whatever the priorities, equal ones included."""
    dag = dag_of(random_problem(seed, 24))
    random = np.random.default_rng(seed)
    start = active_schedule(dag, random.integers(0, 5, len(dag)), wait)
    end = start + dag.duration_ps
    assert np.all(start >= dag.release_ps) and np.all(end[dag.source] <= start[dag.target])
    for on, lanes in enumerate(dag.channels.tolist()):
        mine = np.flatnonzero(dag.engine == on)
        for at in start[mine]:
            assert np.count_nonzero((start[mine] <= at) & (end[mine] > at)) <= lanes
    assert np.all(left_shifted(dag, start) <= start)
    if np.all(dag.channels == 1):
        assert np.array_equal(left_shifted(dag, start), start)


# --- kernels, and how loops run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "launch", [layer_norm.launch("1k"), layer_norm.launch("ragged"), rms_norm.launch("1k")], ids=str
)
def test_norms_are_proved_optimal(launch: ks.Launch) -> None:
    """The usual effort proves the schedules of the norms optimal."""
    assert ks.schedule(ks.trace(launch)).proved_optimal


@needs_numba
def test_causal_flash_attention_is_proved_optimal() -> None:
    """No makespan below the schedule's is possible: each is refuted, the last ones by probing."""
    schedule = ks.schedule(ks.trace(flash_attention.launch("2k-causal")))
    assert schedule.proved_optimal and schedule.bounds.best == "refuted makespans"


@needs_numba
def test_a_ring_is_near_its_bound_as_engines_wait() -> None:
    """The schedule of attention on a ring of ranks waits for critical products; it is within a per cent of the bound,
    and no list that never leaves an engine idle is within two."""
    graph = ks.trace(gqa_attention_prefill_long_kernel.launch("8k"))
    schedule = ks.schedule(graph)
    assert schedule.ratio <= 1.007
    assert ks.check(schedule) == []
    assert ks.schedule(graph, effort="fast").makespan_ps > 1.02 * schedule.bound_ps


def _both(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], Any]) -> tuple[Any, Any]:
    monkeypatch.setattr(loops, "COMPILED_FROM", 1 << 62)
    plain = compute()
    monkeypatch.setattr(loops, "COMPILED_FROM", 0)
    return plain, compute()


@needs_numba
@pytest.mark.parametrize("seed", range(12))
def test_compiled_loops_equal_plain_ones(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Raised heads and tails, refuted makespans and active schedules are the same compiled and not."""
    dag = dag_of(random_problem(seed, 60))

    def all_of_them() -> list[Any]:
        raised = raised_bounds(dag, _effort((4, 20)), quick_bounds(dag))
        high = makespan_ps(dag, list_schedule(dag, by_largest(longest_to_end(dag))))
        refuted = [_refuted(dag, raised, high, probing) for probing in (False, True)]
        waits = [active_schedule(dag, urgent, wait).tolist() for urgent in raised.urgency for wait in (0, 300, 1000)]
        return [raised.known.head_ps.tolist(), raised.known.tail_ps.tolist(), refuted, waits]

    plain, compiled = _both(monkeypatch, all_of_them)
    assert plain == compiled


def test_a_window_that_was_met_is_not_solved_again() -> None:
    """A hundred equal chains of a loop get the same heads with a budget for a few of them as with any budget."""
    round_, rounds = 4, 100
    edges = [(round_ * r + a, round_ * r + b) for r in range(rounds) for a, b in ((0, 2), (1, 2), (2, 3))]
    edges += [(round_ * r + 3, round_ * r + round_) for r in range(rounds - 1)]
    problem = {
        "durations_ps": [3, 4, 5, 2] * rounds,
        "engine": [0, 0, 1, 0] * rounds,
        "channels": [1, 1],
        "edges": edges,
    }
    dag = dag_of(problem)
    few, many = (
        raised_bounds(dag, type(EFFORTS["high"].bounds)((20,), steps, 0), quick_bounds(dag))
        for steps in (60_000, 10**9)
    )
    assert np.array_equal(few.known.head_ps, many.known.head_ps)
