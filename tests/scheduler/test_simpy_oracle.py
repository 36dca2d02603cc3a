"""The in-order policies against a simulation with one process per CPU, engine and node."""

import kernelgen
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policysim import simulate
from problemgen import problems

from kernscope.scheduler.policy.in_order import Times
from kernscope.scheduler.policy.policies import run_policy
from kernscope.scheduler.policy.problem import make_problem
from kernscope.scheduler.policy.registry import LADDER, POLICIES, policy_of
from kernscope.scheduler.search.efforts import EFFORTS


@pytest.mark.parametrize("policy", [name for name in LADDER if POLICIES[name].in_order])
@given(data=st.data())
@kernelgen.examples(80)
def test_times_equal_the_simulation(policy: str, data: st.DataObject) -> None:
    """Every issue and start is what the event-by-event simulation gives; where that comes to rest early, the policy
    reports a deadlock."""
    problem = data.draw(problems())
    expected = simulate(problem, policy)
    times = run_policy(problem, policy_of(policy), EFFORTS["fast"])
    if expected is None:
        assert not isinstance(times, Times)
    else:
        assert isinstance(times, Times)
        assert times.issue_ps.tolist() == expected[0]
        assert times.start_ps.tolist() == expected[1]


@pytest.mark.parametrize("policy", [name for name in LADDER if POLICIES[name].in_order])
@given(
    program=st.one_of(*[kernelgen.programs(ranks=n, deadlocks=n > 1) for n in (1, 2, 3)]),
    costs=st.sampled_from(["0", "3", "20"]),
)
@kernelgen.examples(60)
def test_kernels_start_when_the_simulation_says(policy: str, program: kernelgen.Program, costs: str) -> None:
    """The same for traced kernels of one and several ranks, with and without issue costs."""
    machine = program.machine.override({"cpu.issue_cycles.default": costs})
    problem = make_problem(program.trace(), machine)
    expected = simulate(problem, policy)
    times = run_policy(problem, policy_of(policy), EFFORTS["fast"])
    if expected is None:
        assert not isinstance(times, Times)
    else:
        assert isinstance(times, Times)
        assert (times.issue_ps.tolist(), times.start_ps.tolist()) == expected
