"""The exact policy: never worse than ``list``, right about what it proves, and polite where it cannot work."""

import importlib
import itertools
import json
import math
import sys
from collections.abc import Iterator

import attrs
import kernelgen
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problemgen import problems

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.layer_norm import layer_norm
from kernscope.scheduler.policy import optimal
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.optimal import SolverLimit, solve
from kernscope.scheduler.policy.policies import run_policy
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.policy.registry import LADDER, policy_of
from kernscope.scheduler.search.dag import Dag, longest_from_start
from kernscope.scheduler.search.efforts import EFFORTS
from kernscope.scheduler.search.improving import makespan_ps
from kernscope.scheduler.search.lanes import assign_lanes

pytest.importorskip("ortools")

LIMIT = SolverLimit(20.0)


@st.composite
def small_dags(draw: st.DrawFn) -> Dag:
    """Up to seven nodes on up to three engines of one or two lanes, with releases, also nodes that take no time or no
    engine; in steps of 1 or 250 ps."""
    n = draw(st.integers(1, 7))
    unit = draw(st.sampled_from([1, 250]))
    channels = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    pairs = [(s, t) for t in range(n) for s in range(t)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), max_size=8)) if pairs else [], key=lambda e: (e[1], e[0]))
    return Dag(
        duration_ps=unit * np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), dtype=np.int64),
        engine=np.array(draw(st.lists(st.integers(-1, len(channels) - 1), min_size=n, max_size=n)), dtype=np.int64),
        channels=np.array(channels, dtype=np.int64),
        source=np.array([s for s, _ in edges], dtype=np.int64),
        target=np.array([t for _, t in edges], dtype=np.int64),
        release_ps=unit * np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=np.int64),
    )


def legal(dag: Dag, start: np.ndarray) -> bool:
    """Whether edges, releases and lanes hold."""
    end = start + dag.duration_ps
    lane = assign_lanes(dag, start)
    return bool(
        np.all(start >= dag.release_ps)
        and np.all(end[dag.source] <= start[dag.target])
        and all(
            max(start[a], start[b]) >= min(end[a], end[b])
            for a, b in itertools.combinations(range(len(dag)), 2)
            if dag.engine[a] == dag.engine[b] >= 0 and lane[a] == lane[b]
        )
    )


def shortest(dag: Dag) -> int:
    """The optimum by trying every order in which nodes can be placed, each as early as those before it allow (one of
    them is optimal, as every left-shifted schedule comes from the order of its starts)."""
    n = len(dag)
    before = [dag.source[dag.target == node].tolist() for node in range(n)]
    best = math.inf

    def place(done: dict[int, int], free: tuple[tuple[int, ...], ...], ends: int) -> None:
        nonlocal best
        if ends >= best:
            return
        if len(done) == n:
            best = ends
            return
        for node in range(n):
            if node in done or any(other not in done for other in before[node]):
                continue
            at = max([int(dag.release_ps[node]), *(done[other] for other in before[node])])
            on = int(dag.engine[node])
            for lane in range(len(free[on]) if on >= 0 else 1):
                begin = max(at, free[on][lane]) if on >= 0 else at
                end = begin + int(dag.duration_ps[node])
                lanes = [list(each) for each in free]
                if on >= 0:
                    lanes[on][lane] = end
                place({**done, node: end}, tuple(map(tuple, lanes)), max(ends, end))

    place({}, tuple((0,) * int(count) for count in dag.channels), 0)
    return int(best)


def one_after_another(dag: Dag) -> np.ndarray:
    """A legal schedule that is far from good: every node after the one before it."""
    start = np.zeros(len(dag), dtype=np.int64)
    now = 0
    for node in range(len(dag)):
        start[node] = max(now, int(dag.release_ps[node]))
        now = int(start[node] + dag.duration_ps[node])
    return start


@given(small_dags())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_small_problems_are_solved_to_the_optimum(dag: Dag) -> None:
    """Beside brute force: the makespan is the optimum, its bound is the same, and the schedule is legal."""
    found = solve(dag, one_after_another(dag), bound_ps=0, limit=LIMIT)
    assert legal(dag, found.start_ps)
    assert makespan_ps(dag, found.start_ps) == found.bound_ps == shortest(dag)


@given(small_dags())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_same_seed_gives_the_same_schedule(dag: Dag) -> None:
    """Start times are equal in two runs, and left-shifted: each node starts at its release or at another's end."""
    limit = SolverLimit(20.0, seed=7)
    one, two = (solve(dag, one_after_another(dag), bound_ps=0, limit=limit).start_ps for _ in range(2))
    assert one.tolist() == two.tolist()
    ends = set((one + dag.duration_ps).tolist())
    for node, at in enumerate(one.tolist()):
        assert at == dag.release_ps[node] or at in ends


@given(problem=problems(max_ranks=2, max_commands=7))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_no_policy_is_shorter_than_a_proved_bound(problem: Problem) -> None:
    """On problems of one and two ranks: never worse than ``list``; the solver's bound is at least the best bound and
    lies under every policy's makespan."""
    if problem.dag.has_cycle:
        return
    bound = lower_bounds(problem).best_ps
    listed = run_policy(problem, policy_of("list"), EFFORTS["fast"])
    whole = problem.split
    found = solve(whole.dag, whole.starts(listed.start_ps), bound_ps=bound, limit=LIMIT)
    assert legal(whole.dag, found.start_ps)
    found = attrs.evolve(found, start_ps=whole.given(found.start_ps))
    assert bound <= found.bound_ps <= makespan_ps(problem.dag, found.start_ps)
    assert makespan_ps(problem.dag, found.start_ps) <= makespan_ps(problem.dag, listed.start_ps)
    for policy in LADDER:
        times = run_policy(problem, policy_of(policy), EFFORTS["fast"])
        if hasattr(times, "start_ps"):
            assert found.bound_ps <= makespan_ps(problem.dag, times.start_ps)


@given(st.one_of(kernelgen.programs(max_size=12), kernelgen.programs(ranks=2, max_size=8)))
@kernelgen.examples(20)
def test_the_checker_accepts_optimal_schedules(program: kernelgen.Program) -> None:
    """On random kernels of one and two ranks, with an issue cost and a DMA engine of two channels: no violation, never
    worse than ``list``, and what it tells holds together."""
    machine = ks.load_machine("ahbm-pe").override({"cpu.issue_cycles.default": "7", "dma_read.channels": "2"})
    graph = program.trace(machine=machine)
    listed = ks.schedule(graph, "list", machine=machine)
    best = ks.schedule(graph, "optimal", machine=machine, time_limit_s=2)
    assert ks.check(best) == []
    assert best.makespan_ps <= listed.makespan_ps
    assert best.bound_ps >= listed.bound_ps
    assert best.proved_optimal == (best.makespan_ps == best.bounds.each["solver"])
    assert sum(best.critical_chain().by_cause().values()) == best.makespan_ps
    assert best.slack_ps.min(initial=0) >= 0
    assert best.price_of_reuse().without_ps <= best.makespan_ps
    outputs = ks.run(graph, program.inputs())
    for name, array in ks.run(graph, program.inputs(), order=best).items():
        assert array.tobytes() == outputs[name].tobytes()


def test_layer_norm_is_solved() -> None:
    """A real kernel that no quick bound proves is proved in time; the ladder's rows then share the bound."""
    graph = ks.trace(layer_norm.launch())
    ladder = ks.compare(graph, ("lazy", "list", "optimal"), effort="fast", time_limit_s=60)
    best = ladder["optimal"].schedule
    assert best is not None
    assert best.proved_optimal
    assert best.ratio == 1.0
    assert ladder.bounds is not None
    assert ladder.bounds.best == "solver"
    assert ladder["list"].ratio == pytest.approx(ladder["list"].makespan_ps / best.makespan_ps)
    assert not ladder["lazy"].schedule.proved_optimal
    document = json.loads(best.to_json())
    assert document["policy"] == "optimal"
    assert document["proved_optimal"] is True
    assert document["bounds"]["solver"] == best.makespan_ps


def test_a_short_time_gives_the_list_schedule_or_better() -> None:
    """A limit that ends the search at once still gives a legal schedule, and a proof is claimed only where the bound is
    met (a quick machine may get there even so)."""
    graph = ks.trace(flash_attention.launch("2k-causal"))
    found = ks.schedule(graph, "optimal", time_limit_s=0.01)
    assert ks.check(found) == []
    assert found.makespan_ps <= ks.schedule(graph).makespan_ps
    assert found.proved_optimal == (found.makespan_ps == found.bound_ps)


def test_optimal_is_not_in_the_default_ladder() -> None:
    """It runs on request only."""
    assert "optimal" not in LADDER
    assert [row.policy for row in ks.compare(ks.trace(flash_attention.launch("small")))] == list(LADDER)


def test_too_many_nodes_are_refused() -> None:
    """Above the stated size there is one clear error, before any work."""
    n = optimal.LARGEST_NODES + 1
    column = np.ones(n, dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    dag = Dag(column, column - 1, np.array([1]), source=nothing, target=nothing, release_ps=column - 1)
    with pytest.raises(ks.PolicyError, match=r"2,001 nodes on engines are too many .* takes 2,000\n  help: trace"):
        solve(dag, longest_from_start(dag), bound_ps=0, limit=LIMIT)
    fewer = attrs.evolve(dag, duration_ps=column - np.eye(1, n, dtype=np.int64)[0])
    bound = int(fewer.duration_ps.sum())
    assert solve(fewer, np.cumsum(fewer.duration_ps) - fewer.duration_ps, bound_ps=bound, limit=LIMIT).bound_ps == bound


@pytest.fixture
def without_ortools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in sys.modules if name.split(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ortools", None)
    yield
    importlib.invalidate_caches()


@pytest.mark.usefixtures("without_ortools")
def test_a_missing_extra_is_named() -> None:
    """Without ortools the policy is an error that names the extra, also where there would be nothing to search."""
    graph = ks.trace(flash_attention.launch("small"))
    with pytest.raises(ks.MissingExtraError, match=r"needs ortools\n  help: pip install 'kernscope\[optimal\]'"):
        ks.schedule(graph, "optimal")


@pytest.mark.parametrize("wrong", [0, -1.0, math.inf, math.nan, "10", True])
def test_a_time_limit_is_a_positive_number(wrong: object) -> None:
    """Anything else is refused, with the value."""
    with pytest.raises(ks.PolicyError, match=r"a time limit of .*\n  help: give seconds, more than 0"):
        SolverLimit(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1, 1.0, 1 << 31, None, True])
def test_a_seed_is_a_whole_number(wrong: object) -> None:
    """Anything else is refused, with the value."""
    with pytest.raises(ks.PolicyError, match=r"a seed of .*\n  help: give a whole number"):
        SolverLimit(1.0, wrong)  # type: ignore[arg-type]
