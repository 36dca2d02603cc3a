"""What holds for every schedule of every policy, on random plain-array problems of one and several ranks."""

from itertools import pairwise

import attrs
import kernelgen
import numpy as np
import picturekernels as pk
import pytest
from hypothesis import given
from problemgen import problems

import kernscope as ks
from kernscope import PolicyError, load_machine, schedule
from kernscope.ir.tables import Reason
from kernscope.kernels.flash_attention import flash_attention
from kernscope.scheduler.policy.constraints import make_constraints
from kernscope.scheduler.policy.in_order import Times
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.policies import Deadlock, run_policy
from kernscope.scheduler.policy.problem import Problem
from kernscope.scheduler.policy.registry import LADDER, POLICIES, Holds, Policy, policy_of
from kernscope.scheduler.search.dag import longest_from_start, longest_to_end
from kernscope.scheduler.search.efforts import EFFORTS, check_effort
from kernscope.scheduler.search.lanes import assign_lanes

quick = kernelgen.examples(60)


def run_all(problem: Problem, effort: str = "normal") -> dict[str, Times]:
    """The times of every policy that does not deadlock."""
    found = {policy: run_policy(problem, policy_of(policy), EFFORTS[effort]) for policy in LADDER}
    return {policy: times for policy, times in found.items() if isinstance(times, Times)}


def makespan(problem: Problem, times: Times) -> int:
    return int((times.start_ps + problem.dag.duration_ps).max(initial=0))


@given(problem=problems())
@quick
def test_the_ladder_is_monotone(problem: Problem) -> None:
    """blocking >= lazy >= queued >= list, a deadlock counting as infinite."""
    found = run_all(problem)
    ladder = [makespan(problem, found[policy]) if policy in found else None for policy in LADDER]
    for stricter, freer in pairwise(ladder):
        assert stricter is None or (freer is not None and freer <= stricter)


@given(problem=problems())
@quick
def test_all_constraints_hold(problem: Problem) -> None:
    """Edges, issues and engines: no node starts before its edges' ends or its issue's end, no lane holds two nodes at
    once, and in order every engine starts its nodes in program order."""
    dag = problem.dag
    for policy, times in run_all(problem).items():
        start, end = times.start_ps, times.start_ps + dag.duration_ps
        assert np.all(end[dag.source] <= start[dag.target])
        assert np.all(start >= times.issue_ps)
        lane, free = assign_lanes(problem.on_engines, start), start + problem.occupancy_ps
        assert np.all((lane >= 0) == (dag.engine >= 0))
        for engine, channels in enumerate(dag.channels.tolist()):
            nodes = np.flatnonzero(dag.engine == engine)
            assert np.all(lane[nodes] < channels)
            if policy != "list":
                assert np.all(np.diff(start[nodes]) >= 0)
            for number in range(channels):
                mine = nodes[lane[nodes] == number]
                mine = mine[np.lexsort((mine, free[mine], start[mine]))]
                assert np.all(free[mine[:-1]] <= start[mine[1:]])


@given(problem=problems())
@quick
def test_issues_of_a_rank_do_not_overlap(problem: Problem) -> None:
    """In program order each issue ends at least its cost after the one before."""
    for times in run_all(problem).values():
        ends = times.issue_ps[problem.first_node]
        same = problem.command_rank[1:] == problem.command_rank[:-1]
        assert np.all(ends >= problem.cost_ps)
        assert np.all((np.diff(ends) >= problem.cost_ps[1:])[same])


@given(problem=problems())
@quick
def test_list_schedules_are_left_shifted(problem: Problem) -> None:
    """No node could start earlier with the nodes before it where they are: each starts at its release, at an edge's
    end, or when a lane falls free."""
    dag = problem.dag
    found = run_all(problem)
    if "list" not in found:
        return
    start = found["list"].start_ps
    end, free = start + dag.duration_ps, start + problem.occupancy_ps
    for node in range(len(dag)):
        reasons = {int(dag.release_ps[node])}
        reasons |= {int(end[s]) for s in dag.source[dag.target == node]}
        if dag.engine[node] >= 0:
            reasons |= {int(free[other]) for other in np.flatnonzero(dag.engine == dag.engine[node])}
        assert int(start[node]) in reasons


@given(problem=problems())
@quick
def test_no_bound_is_above_a_makespan(problem: Problem) -> None:
    """Each lower bound holds for every policy."""
    found = run_all(problem)
    if problem.dag.has_cycle:
        assert not found
        return
    bounds = lower_bounds(problem)
    for times in found.values():
        assert max(bounds.each.values()) == bounds.best_ps <= makespan(problem, times)


@given(problem=problems())
@quick
def test_heads_and_tails_are_lower_bounds_of_each_node(problem: Problem) -> None:
    """No node starts before its head; no schedule ends before the node's tail has passed."""
    if problem.dag.has_cycle:
        return
    head, tail = longest_from_start(problem.dag), longest_to_end(problem.dag)
    for times in run_all(problem, "fast").values():
        assert np.all(head <= times.start_ps)
        assert np.all(times.start_ps + tail <= makespan(problem, times))


@given(problem=problems())
@quick
def test_more_effort_is_never_worse(problem: Problem) -> None:
    """The rules of a lower effort are among those of a higher one."""
    ends = [makespan(problem, run_all(problem, effort)["list"]) for effort in EFFORTS if not problem.dag.has_cycle]
    assert ends == sorted(ends, reverse=True)


@given(problem=problems())
@quick
def test_a_deadlock_is_a_cycle_of_waits(problem: Problem) -> None:
    """Each reported wait leads to the next, round to the first; across several ranks; and each is one that the policy
    really has: an edge, an engine's order, or the program's order."""
    edges = set(zip(problem.dag.source.tolist(), problem.dag.target.tolist(), strict=True))
    for policy in LADDER:
        found = run_policy(problem, policy_of(policy), EFFORTS["fast"])
        if not isinstance(found, Deadlock):
            continue
        waits = found.waits
        assert len({int(problem.command_rank[problem.command[wait.node]]) for wait in waits}) > 1
        for wait, following in zip(waits, [*waits[1:], waits[0]], strict=True):
            assert wait.other == following.node
            if wait.through:
                continue
            if wait.cause == "engine":
                assert problem.dag.engine[wait.node] == problem.dag.engine[wait.other]
                assert wait.other < wait.node
            elif wait.cause == "program order":
                assert problem.command[wait.other] < problem.command[wait.node]
            else:
                assert (wait.other, wait.node) in edges


@given(problem=problems(costs=False))
@quick
def test_without_lanes_and_costs_queued_is_the_longest_path(problem: Problem) -> None:
    """Where every node has an engine of its own, nothing but edges is left to wait for."""
    dag = problem.dag
    if dag.has_cycle:
        return
    alone = make_constraints(problem, policy_of("queued"))
    if len(np.unique(dag.engine[dag.engine >= 0])) < np.count_nonzero(dag.engine >= 0) or alone.has_deadlock:
        return
    times = run_policy(problem, policy_of("queued"), EFFORTS["fast"])
    assert isinstance(times, Times)
    assert times.start_ps.tolist() == longest_from_start(dag).tolist()


def test_names_are_checked() -> None:
    """An unknown policy or effort is an error that names the nearest."""
    with pytest.raises(PolicyError, match=r"no policy 'lasy'\n  help: did you mean 'lazy'\?"):
        policy_of("lasy")
    with pytest.raises(PolicyError, match=r"no effort 'hihg'\n  help: did you mean 'high'\?"):
        check_effort("hihg")


@pytest.mark.parametrize("policy", ["queued", "list"])
def test_a_machine_of_more_channels_than_nodes(policy: str) -> None:
    """They change nothing, and take neither memory nor time."""
    graph = pk.sweep(3)
    few, many = (
        schedule(graph, policy, machine=load_machine().override({"dma_read.channels": channels}))
        for channels in (str(len(graph)), str(1024))
    )
    assert many.makespan_ps == few.makespan_ps


def test_a_policy_is_an_entry_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more, made of the same facts, is scheduled, lies between its neighbours, explains itself, and is judged by
    the checker, which knows none by name."""
    patient = Policy("patient", frozenset({Reason.DATA, Reason.CREDIT, Reason.WAR}), Holds.NONE)
    eager = Policy("eager", frozenset({Reason.DATA, Reason.CREDIT}), Holds.NONE)
    for policy in (patient, eager):
        monkeypatch.setitem(POLICIES, policy.name, policy)
    graph = ks.trace(flash_attention.launch("2k"))
    times = [ks.schedule(graph, policy).makespan_ps for policy in ("lazy", "eager", "queued")]
    assert times == sorted(times, reverse=True)
    made = ks.schedule(graph, "eager")
    assert ks.check(made) == []
    assert sum(part.duration_ps for part in made.critical_chain().parts) == made.makespan_ps
    assert int(made.slack_ps.min()) == 0
    # Times of a freer policy under this one's name: the checker sees it.
    early = attrs.evolve(ks.schedule(graph, "queued"), policy="eager")
    assert {violation.rule for violation in ks.check(early)} == {"policy"}
    # What the checker has no rule for is said, not passed.
    (unknown,) = [v for v in ks.check(ks.schedule(graph, "patient")) if v.rule == "policy"]
    assert "waits for war" in unknown.message
