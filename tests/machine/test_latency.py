"""Durations: the worked values of the design, and what every latency model must keep."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import MachineError, tl
from kernscope.ir import dtypes
from kernscope.ir.ops import OPERATIONS, Kind, Work
from kernscope.machine.description import Machine, load_machine, machine_names, parse_machine
from kernscope.machine.latency import (
    LATENCY_MODELS,
    duration_ps,
    durations_ps,
    issue_cost_ps,
    latencies_ps,
)

F16, F32 = dtypes.of("f16"), dtypes.float32


@pytest.mark.parametrize(
    ("operation", "work", "ns"),
    [
        ("load", (65_536, 0, 0), 612),
        ("store", (65_536, 0, 0), 612),
        ("dot", (128, 256, 128), 1_040),
        ("exp", (128 * 256, 0, 0), 516),
        ("copy_to", (128 * 128, 0, 0), 68),
        ("cast", (128 * 128, 0, 0), 68),
        ("fill", (1, 0, 0), 5),
        ("softmax", (257, 0, 0), 20),
        ("send", (64, 0, 0), 51),
        ("recv", (0, 0, 0), 0),
        ("wait", (0, 0, 0), 0),
        ("scope_enter", (0, 0, 0), 0),
    ],
)
def test_worked_values(operation: str, work: Work, ns: int) -> None:
    """The values worked out in the design, exactly."""
    assert duration_ps(load_machine(), OPERATIONS[operation], work, F16) == ns * 1000


def test_what_is_made_of_others_costs_what_they_do_unless_it_is_listed() -> None:
    """A multiplication and an exponential; on an engine that has both in one instruction, what is said for that."""
    work = (128 * 256, 0, 0)
    machine = load_machine()
    alone, both = (duration_ps(machine, OPERATIONS[name], work, F32) for name in ("exp", "exp_fma"))
    assert both == alone + 128_000 == 644_000
    fused = machine.override({"math.cycles.exp_fma": "4"})
    assert duration_ps(fused, OPERATIONS["exp_fma"], work, F32) == alone
    assert duration_ps(machine.override({"math.cycles.fma": "3"}), OPERATIONS["exp_fma"], work, F32) == alone + 384_000


def test_rounded_up_once() -> None:
    """21 cycles at 1.4 GHz are exactly 15,000 ps; 5 cycles at 3 GHz are 1,667; a byte at 128 B/ns is 8 ps."""
    machine = load_machine().override({"clock_ghz": "1.4", "math.startup_cycles": "20"})
    assert duration_ps(machine, OPERATIONS["add"], (256, 0, 0), F32) == 15_000
    assert duration_ps(load_machine().override({"clock_ghz": "3"}), OPERATIONS["add"], (1, 0, 0), F32) == 1_667
    assert duration_ps(load_machine(), OPERATIONS["load"], (1, 0, 0), F32) == 100_008


def test_gemm_rate_by_dtype() -> None:
    """ceil(K / rate) by the operands' dtype; edges of the array are paid in whole."""
    machine = load_machine().override({"gemm.rate.f16": "1.5"})
    assert duration_ps(machine, OPERATIONS["dot"], (65, 1, 4), F16) == (16 + 2 * 1 * 3) * 1000
    assert duration_ps(machine, OPERATIONS["dot"], (65, 1, 4), F32) == (16 + 2 * 1 * 4) * 1000


MACHINES = [
    *(load_machine(name) for name in machine_names()),
    load_machine().override(
        {"clock_ghz": "1.7", "gemm.rate.f16": "3.7", "math.cycles.exp": "0.3", "link.latency_ns": "0"}
    ),
]
works = st.tuples(*(st.integers(0, 2**40) for _ in range(3)))


@pytest.mark.parametrize("kind", LATENCY_MODELS)
@given(machine=st.sampled_from(MACHINES), work=works, more=works, data=st.data())
@settings(max_examples=60, deadline=None)
def test_conformance(kind: Kind, machine: Machine, work: Work, more: Work, data: st.DataObject) -> None:
    """Every latency model gives an integer, not negative, and no less for more work in any of its three numbers."""
    operation = data.draw(st.sampled_from([op for op in OPERATIONS.values() if op.kind is kind]))
    dtype = data.draw(st.sampled_from(dtypes.ALL))
    larger = (work[0] + more[0], work[1] + more[1], work[2] + more[2])
    less, most = (duration_ps(machine, operation, each, dtype) for each in (work, larger))
    assert type(less) is int and 0 <= less <= most


@ks.kernel
def varied(x: Any, y: Any, w: Any, o: Any) -> None:
    a, b = tl.load(x[:, :]), tl.load(y[:, :])
    with tl.scratch_scope():
        c = tl.dot(a, b) + 1.0
        d = tl.exp(c)
        tl.copy_to(c, d)
    tl.store(o[:, :], c)
    e = tl.composite("gemm", tl.ref(x[:, :]), tl.ref(w[:, :]), tile=(64, 64, 64))
    tl.store(o[:, :], tl.softmax(e))


def graph() -> ks.Graph:
    return ks.trace(
        varied, ks.hbm((64, 128), "f16"), ks.hbm((128, 64), "f16"), ks.hbm((128, 64), "f16"), ks.hbm((64, 64), "f32")
    )


def test_a_graphs_durations_are_those_of_its_nodes() -> None:
    """The columns agree with the single nodes, in every preset on whose target the graph runs."""
    traced = graph()
    for name in ("ahbm-pe", "ahbm-pe-2dma", "ahbm-mesh"):
        machine = load_machine(name)
        each = [duration_ps(machine, node.operation, node.work, node.dtype) for node in traced]
        assert durations_ps(traced, machine).tolist() == each


def test_latency_is_part_of_a_transfer() -> None:
    """Transfers have their latency, all else none; it is never more than the duration."""
    traced, machine = graph(), load_machine()
    part = latencies_ps(traced, machine)
    assert np.all(part <= durations_ps(traced, machine))
    assert part.tolist() == [100_000 if node.engine.startswith("dma") else 0 for node in traced]


def test_issue_cost_by_operation_then_engine_then_default() -> None:
    """An operation's own cost goes before its engine's, that before the default; markers cost nothing; a composite is
    one issue, at its first node."""
    issue = {"default": "1", "math": "2", "exp": "3", "composite": "7"}
    machine = load_machine().override({f"cpu.issue_cycles.{key}": value for key, value in issue.items()})
    traced = graph()
    by_name = {"scope_enter": 0, "scope_exit": 0, "exp": 3, "add": 2, "copy_to": 2, "softmax": 2}
    cost = issue_cost_ps(traced, machine).tolist()
    composite = [node.id for node in traced if sum(traced.nodes.command == node.command) > 1]
    assert len(composite) > 3
    for node in traced:
        if node.id in composite:
            assert cost[node.id] == (7_000 if node.id == composite[0] else 0)
        else:
            assert cost[node.id] == 1_000 * by_name.get(node.op, 1)


def test_a_composite_costs_what_the_gemm_does_where_it_is_not_listed() -> None:
    """Not listed as an operation, it goes by its engine."""
    machine = load_machine().override({"cpu.issue_cycles.gemm": "4"})
    traced = graph()
    (first,) = {node.command for node in traced if sum(traced.nodes.command == node.command) > 1}
    assert issue_cost_ps(traced, machine)[first] == 4_000


def test_times_that_do_not_fit() -> None:
    """Durations beyond an int64 schedule are an error of the machine, not a wrapped number."""
    machine = load_machine().override({"dma_read.latency_ns": "1e18"})
    with pytest.raises(MachineError, match="more than a schedule can hold"):
        durations_ps(graph(), machine)


@ks.kernel
def both_ways(x: Any, o: Any) -> None:
    """A message in each direction of a ring."""
    rank = tl.program_id(0)
    for there, here in (("next", "prev"), ("prev", "next")):
        tl.send(there, tl.load(x[rank]))
        tl.store(o[rank], tl.recv(here, (64,), "f32"))


def test_a_direction_can_have_numbers_of_its_own() -> None:
    """What it does not say is the link's. Schedules, the checker and the latency's share of a duration know it."""
    machine = load_machine().override({"link.next.latency_ns": "500", "link.prev.bytes_per_ns": "2"})
    graph = ks.trace(both_ways, ks.hbm((2, 64), "f32"), ks.hbm((2, 64), "f32"), ranks=2, machine=machine)
    sends = [node.id for node in graph if node.op == "send" and node.rank == 0]
    assert [graph[node].engine for node in sends] == ["link:next", "link:prev"]
    assert durations_ps(graph, machine)[sends].tolist() == [500_000 + 256 * 1000 // 64, 50_000 + 256 * 1000 // 2]
    assert latencies_ps(graph, machine)[sends].tolist() == [500_000, 50_000]
    for policy in ("blocking", "lazy", "queued", "list"):
        schedule = ks.schedule(graph, policy, machine)
        assert ks.check(schedule) == []
        took = (schedule.end_ps - schedule.start_ps)[sends]
        assert took.tolist() == durations_ps(graph, machine)[sends].tolist()
    work = (256, 0, 0)
    assert duration_ps(machine, OPERATIONS["send"], work, F32, "next") == 504_000
    assert duration_ps(machine, OPERATIONS["send"], work, F32) == 54_000


def test_a_direction_that_says_nothing_changes_nothing() -> None:
    """The same times as without, to the picosecond; and the same machine once written and read."""
    plain = load_machine()
    same = plain.override({"link.next.latency_ns": str(plain.link.latency_ns), "name": plain.name})
    graph = ks.trace(both_ways, ks.hbm((3, 64), "f32"), ks.hbm((3, 64), "f32"), ranks=3)
    assert durations_ps(graph, same).tolist() == durations_ps(graph, plain).tolist()
    assert parse_machine(same.to_toml(), "again") == same != plain


def test_a_direction_that_a_topology_has_not_is_a_mistake() -> None:
    """With those that it has."""
    with pytest.raises(ks.OptionError, match=r"link.north: a 'ring' has next, prev"):
        load_machine().override({"link.north.latency_ns": "1"})
    with pytest.raises(ks.OptionError, match=r"link.next: a 'mesh2d' has north, south, east, west"):
        load_machine("ahbm-mesh").override({"link.next.latency_ns": "1"})
