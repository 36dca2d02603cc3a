"""Schedules of random kernels: the ladder, the bounds, and the independent checker."""

import attrs
import kernelgen
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import kernscope as ks

POLICIES = ("blocking", "lazy", "queued", "list")
ANY = st.one_of(
    kernelgen.programs(),
    kernelgen.programs(faults=True),
    kernelgen.programs(ranks=2, max_size=20),
    kernelgen.programs(ranks=3, max_size=16),
    kernelgen.programs(ranks=2, max_size=16, topology="mesh2d"),
    kernelgen.programs(ranks=2, grid=3, max_size=12),
)
NUMBER = st.integers(0, 10_000)


def schedules(program: kernelgen.Program) -> list[ks.Schedule]:
    """The schedules of all policies that do not deadlock."""
    return [row.schedule for row in ks.compare(program.trace(), machine=program.machine) if row.schedule is not None]


def moved(schedule: ks.Schedule, node: int, **by: int) -> ks.Schedule:
    """The schedule with some times of one node moved by so many picoseconds."""
    changed = {}
    for name, difference in by.items():
        changed[name] = getattr(schedule, name).copy()
        changed[name][node] += difference
    return attrs.evolve(schedule, **changed)


@given(ANY)
@kernelgen.examples(50)
def test_the_ladder_is_monotone(program: kernelgen.Program) -> None:
    """blocking >= lazy >= queued >= list >= every lower bound, a deadlock counting as infinite."""
    ladder = ks.compare(program.trace(), machine=program.machine)
    spans = [float("inf") if row.makespan_ps is None else row.makespan_ps for row in ladder]
    assert [row.policy for row in ladder] == list(POLICIES)
    assert spans == sorted(spans, reverse=True)
    assert ladder.bound_ps is not None
    assert spans[-1] >= ladder.bound_ps


@given(ANY)
@kernelgen.examples(50)
def test_the_checker_accepts_every_schedule(program: kernelgen.Program) -> None:
    """The checker, which shares no code with edges and policies, finds nothing wrong with any policy's schedule."""
    for schedule in schedules(program):
        assert ks.check(schedule) == [], schedule.policy


@given(ANY, NUMBER)
@kernelgen.examples(40)
def test_nothing_can_start_earlier(program: kernelgen.Program, number: int) -> None:
    """Schedules are left-shifted, and the checker sees it: a node that takes an engine and is moved to start one
    picosecond earlier breaks a rule."""
    for schedule in schedules(program):
        candidates = np.flatnonzero((schedule.engine >= 0) & (schedule.end_ps > schedule.start_ps))
        if not len(candidates):
            continue
        node = int(candidates[number % len(candidates)])
        assert ks.check(moved(schedule, node, start_ps=-1, end_ps=-1)), (schedule.policy, node)


@given(ANY, NUMBER)
@kernelgen.examples(40)
def test_the_checker_rejects_a_wrong_duration(program: kernelgen.Program, number: int) -> None:
    """A node that ends one picosecond too early or too late is a violation that names it."""
    found_schedules = schedules(program)
    assume(all(len(schedule) for schedule in found_schedules))
    for schedule in found_schedules:
        node = number % len(schedule)
        for difference in (-1, 1):
            found = ks.check(moved(schedule, node, end_ps=difference))
            assert any(v.rule == "duration" and v.nodes[-1] == node for v in found), (schedule.policy, node)


@given(ANY, NUMBER)
@kernelgen.examples(40)
def test_the_checker_rejects_a_dropped_dependence(program: kernelgen.Program, number: int) -> None:
    """A node that runs at once with one that it has to wait for, for any reason, is a violation."""
    graph = program.trace()
    assume(len(graph.edges))
    for row in ks.compare(graph, machine=program.machine):
        if row.schedule is None:
            continue
        schedule = row.schedule
        takes = schedule.end_ps - schedule.start_ps
        source, target = graph.edges.source, graph.edges.target
        real = np.flatnonzero((takes[source] > 0) & (takes[target] > 0))
        if not len(real):
            continue
        edge = int(real[number % len(real)])
        start, end = schedule.start_ps.copy(), schedule.end_ps.copy()
        start[target[edge]] = schedule.start_ps[source[edge]]
        end[target[edge]] = start[target[edge]] + takes[target[edge]]
        assert ks.check(attrs.evolve(schedule, start_ps=start, end_ps=end)), (schedule.policy, edge)


@given(ANY, NUMBER)
@kernelgen.examples(30)
def test_the_checker_rejects_a_wrong_place(program: kernelgen.Program, number: int) -> None:
    """A node on another engine, or on a lane that its engine has not, is a violation."""
    for schedule in schedules(program):
        used = np.flatnonzero(schedule.engine >= 0)
        if not len(used):
            continue
        node = int(used[number % len(used)])
        if len(schedule.engines) > 1:
            other = (int(schedule.engine[node]) + 1) % len(schedule.engines)
            assert ks.check(moved(schedule, node, engine=other - int(schedule.engine[node]))), schedule.policy
        channels = schedule.engines[int(schedule.engine[node])].channels
        assert ks.check(moved(schedule, node, lane=channels)), schedule.policy


@given(ANY)
@kernelgen.examples(30)
def test_the_critical_chain_sums_to_the_makespan(program: kernelgen.Program) -> None:
    """The parts of the critical chain sum to the makespan exactly, and no engine is busy for longer."""
    for schedule in schedules(program):
        assert sum(part.end_ps - part.start_ps for part in schedule.critical_chain().parts) == schedule.makespan_ps
        assert all(0 <= share <= 1 for share in schedule.utilisation().values())


@pytest.mark.parametrize("policy", POLICIES)
def test_scheduling_twice_gives_the_same_schedule(policy: str) -> None:
    """The same graph gives the same times."""
    graph = kernelgen.random_kernel(3, size=60).trace()
    first, second = ks.schedule(graph, policy), ks.schedule(graph, policy)
    for name in ("issue_ps", "start_ps", "end_ps", "engine", "lane"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
