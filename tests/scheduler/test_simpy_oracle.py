"""The in-order policies against a simulation with one process per CPU, engine and node."""

import kernelgen
import pytest
from devicesim import simulate_device
from hypothesis import given
from hypothesis import strategies as st
from policysim import simulate
from problemgen import problems

import kernscope as ks
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


#: What transfers of the machine with several memories may be like.
_TRANSFERS = {
    "memory.hbm.bytes_per_ns": ("1", "16", "400"),
    "dma_read.pipelined": ("true",),
    "dma_read.lanes_of_work": ("4",),
    "dma_read.spread": ("2", "4"),
    "dma_write.pipelined": ("true",),
    "dma_write.lanes_of_work": ("2",),
    "dma_write.spread": ("2",),
    "feed.latency_ns": ("0", "700"),
    "feed.lanes_of_work": ("2",),
    "math.latency_cycles": ("0", "250"),
    "gemm.latency_cycles": ("0", "900"),
}


@st.composite
def _transfers(draw: st.DrawFn) -> dict[str, str]:
    chosen = {path: draw(st.sampled_from(values)) for path, values in _TRANSFERS.items() if draw(st.booleans())}
    for engine in ("dma_read", "dma_write"):
        if f"{engine}.spread" in chosen:  # over queues that are there
            chosen[f"{engine}.lanes_of_work"] = _TRANSFERS[f"{engine}.lanes_of_work"][0]
    return chosen


@pytest.mark.parametrize("policy", [name for name in LADDER if POLICIES[name].in_order])
@given(
    program=st.one_of(*[kernelgen.programs(ranks=n, memories=True) for n in (1, 2, 3)]),
    options=_transfers(),
    costs=st.sampled_from(["0", "20"]),
)
@kernelgen.examples(60)
def test_devices_do_what_the_schedule_says(
    policy: str, program: kernelgen.Program, options: dict[str, str], costs: str
) -> None:
    """Where engines are let go of early, transfers are spread over queues and ranks share a memory's rate: every issue,
    start and end is that of the device, whose times are worked out from its file by other means."""
    machine = program.machine.override({**options, "cpu.issue_cycles.default": costs})
    graph = program.trace()
    problem = make_problem(graph, machine)
    expected = simulate_device(graph, machine, problem, policy)
    times = run_policy(problem, policy_of(policy), EFFORTS["fast"])
    if expected is None:
        assert not isinstance(times, Times)
        return
    made = ks.schedule(graph, policy, machine, effort="fast")
    assert (made.issue_ps.tolist(), made.start_ps.tolist(), made.end_ps.tolist()) == expected
    assert ks.check(made) == []
