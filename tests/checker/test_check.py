"""The independent checker: it accepts every policy's schedules, and rejects each kind of damage by its own rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import kernelgen
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.checker import check as check_module
from kernscope.checker import work
from kernscope.checker.cells import _box_at_origin as box_at_origin
from kernscope.checker.cells import _boxes_of_range as boxes_of_range
from kernscope.checker.cells import element_offsets
from kernscope.checker.check import RULES, Violation, check
from kernscope.ir.dtypes import float32 as F32
from kernscope.ir.layout import Layout
from kernscope.ir.ops import OPERATIONS
from kernscope.machine.description import Machine, load_machine
from kernscope.machine.parts import Cpu, Table
from kernscope.scheduler.policy.registry import LADDER
from kernscope.scheduler.result.schedule import Schedule, schedule

IntArray = np.ndarray[Any, np.dtype[Any]]
TWO_DMA = "ahbm-pe-2dma"


@ks.kernel
def flash(q: Any, k: Any, v: Any, o: Any) -> None:
    """A sweep with scopes, loads and copies."""
    q_tile = tl.load(q[:, :])
    m, l = tl.full((32, 1), float("-inf"), tl.float32), tl.zeros((32, 1), tl.float32)
    acc = tl.zeros((32, 16), tl.float32)
    for j in range(0, k.shape[0], 32):
        with tl.scratch_scope():
            s = tl.dot(q_tile, tl.trans(tl.load(k[j : j + 32, :]))) * (1 / math.sqrt(16))
            m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
            p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
            l_new = l * alpha + tl.sum(p, axis=1, keep_dims=True)
            acc_new = acc * alpha + tl.dot(p.to(tl.float16), tl.load(v[j : j + 32, :]))
            tl.copy_to(m, m_new)
            tl.copy_to(l, l_new)
            tl.copy_to(acc, acc_new)
    tl.store(o[:, :], acc / l)


@ks.kernel
def ring(x: Any, o: Any, *, steps: int = 5) -> None:
    """Messages enough to fill the channels, a composite, and uneven work."""
    rank = tl.program_id(0)
    h = tl.load(x[rank, :, :])
    for _ in range(steps):
        tl.send("next", h)
    for i in range(steps):
        with tl.scratch_scope():
            got = tl.recv("prev", (8, 8), tl.float32)
            if rank == 0:
                got = tl.composite("gemm", got, tl.ref(x[0, :, :]), tile=(4, 4, 4))
            tl.store(o[rank, i, :, :], got)


@ks.kernel
def pieces(x: Any, o: Any) -> None:
    """Disjoint and overlapping slices, columns and whole reads of one buffer, in scratch and in HBM."""
    h = tl.empty((8, 8), tl.float32)
    for i in range(0, 8, 2):
        tl.copy_to(h[:, i : i + 2], tl.load(x[:, i : i + 2]))
        tl.store(o[:, i : i + 2], h[:, i : i + 2])
    tl.copy_to(h[2:6, 1:7], h[1:5, 2:8])
    tl.store(o[3:5, :], tl.load(o[0:2, :]) + h[3:5, :])


def with_issue_costs(machine: Machine) -> Machine:
    """The machine with a CPU that every command costs something."""
    return attrs.evolve(machine, cpu=Cpu(Table(machine.clock_ghz * 7, (("composite", machine.clock_ghz * 30),))))


def graphs() -> dict[str, ks.Graph]:
    f16, f32 = "f16", "f32"
    shapes = [ks.hbm((32, 16), f16), ks.hbm((96, 16), f16), ks.hbm((96, 16), f16), ks.hbm((32, 16), f32)]
    return {
        "flash": ks.trace(flash, *shapes),
        "ring": ks.trace(ring, ks.hbm((3, 8, 8), f32), ks.hbm((3, 2, 8, 8), f32), ranks=3, steps=2),
        "pieces": ks.trace(pieces, ks.hbm((8, 8), f32), ks.hbm((8, 8), f32)),
        "nothing": ks.trace(ks.kernel(lambda: None)),
    }


def rules(schedule_: Any) -> set[str]:
    return {violation.rule for violation in check(schedule_)}


def moved(made: Schedule, node: int, by: int) -> Schedule:
    """The schedule with one node moved in time, nothing else."""
    start, end = made.start_ps.copy(), made.end_ps.copy()
    start[node] += by
    end[node] += by
    return attrs.evolve(made, start_ps=start, end_ps=end)


def changed(made: Schedule, column: str, node: int, value: int) -> Schedule:
    values = getattr(made, column).copy()
    values[node] = value
    return attrs.evolve(made, **{column: values})


def nodes_of(graph: ks.Graph, op: str) -> list[int]:
    return [node.id for node in graph if node.op == op]


# --- accepted -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("machine", ["ahbm-pe", TWO_DMA])
@pytest.mark.parametrize("policy", LADDER)
@pytest.mark.parametrize("name", list(graphs()))
def test_every_policys_schedule_is_legal(name: str, policy: str, machine: str, costs: bool) -> None:
    """Scopes, messages, composites, slices; one or several lanes; with issue costs and without."""
    described = load_machine(machine)
    made = schedule(graphs()[name], with_issue_costs(described) if costs else described, policy, "fast")
    assert check(made) == []


@settings(max_examples=40, deadline=None)
@given(
    program=st.one_of(kernelgen.programs(faults=True), kernelgen.programs(ranks=3, faults=True, max_size=25)),
    policy=st.sampled_from(LADDER),
    costs=st.booleans(),
)
def test_every_schedule_of_random_kernels_is_legal(program: kernelgen.Program, policy: str, costs: bool) -> None:
    """Well-formed or with stale and unwritten uses."""
    machine = with_issue_costs(program.machine) if costs else program.machine
    try:
        made = schedule(program.trace(on_overflow="record"), machine, policy, "fast")
    except ks.DeadlockError:
        assume(False)
    assert check(made) == []


# --- mutated --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    program=st.one_of(kernelgen.programs(max_size=20), kernelgen.programs(ranks=2, max_size=15)),
    policy=st.sampled_from(["lazy", "queued", "list"]),
    data=st.data(),
)
def test_an_edge_cut_short_is_always_found(program: kernelgen.Program, policy: str, data: st.DataObject) -> None:
    """Whatever edge of the graph: its target begun one picosecond before its source's end breaks ``memory``, or a rule
    on messages."""
    graph = program.trace()
    assume(len(graph.edges) > 0)
    try:
        made = schedule(graph, program.machine, policy, "fast")
    except ks.DeadlockError:
        assume(False)
    row = data.draw(st.integers(0, len(graph.edges) - 1))
    source, target = int(graph.edges.source[row]), int(graph.edges.target[row])
    damaged = moved(made, target, int(made.end_ps[source]) - 1 - int(made.start_ps[target]))
    found = [v for v in check(damaged) if v.rule in ("memory", "message", "credit", "fifo", "order")]
    # A write with gaps has an edge to every later owner of what lies between, and may share no byte with it.
    if not found:
        assert graph.edges.recycled[row] and not shares_bytes(graph, source, target)


def shares_bytes(graph: ks.Graph, a: int, b: int) -> bool:
    """Whether two nodes touch the same byte of scratch."""

    def touched(node: int) -> set[int]:
        found: set[int] = set()
        for access in graph[node].accesses:
            if not access.storage.is_hbm:
                size = access.layout.dtype.itemsize
                first = access.storage.address + access.offset * size
                found |= {first + o * size + i for o in element_offsets(access.layout).tolist() for i in range(size)}
        return found

    return bool(touched(a) & touched(b))


Damage = Callable[[Schedule], Schedule]


def flash_schedule(policy: str = "list", machine: Machine | str = "ahbm-pe") -> Schedule:
    return schedule(graphs()["flash"], machine, policy, "fast")


def test_a_node_that_starts_before_its_data_breaks_memory() -> None:
    """And the violation names both nodes, the bytes and the times."""
    made = flash_schedule()
    dot = nodes_of(made.graph, "dot")[0]
    load = int(made.graph.edges.source[made.graph.edges.target == dot].max())
    late = int(made.end_ps[load])
    (found,) = [v for v in check(moved(made, dot, late - 1 - int(made.start_ps[dot]))) if v.rule == "memory"]
    assert found.nodes == (load, dot)
    assert f"starts at {late - 1} ps" in found.message and f"ends at {late} ps" in found.message
    assert str(found) == f"memory: {found.message}"


def test_recycled_bytes_are_written_after_their_last_reader() -> None:
    """A load of the next iteration, begun while the last one's dot still reads the same bytes."""
    made = flash_schedule()
    loads, dots = nodes_of(made.graph, "load"), nodes_of(made.graph, "dot")
    early = moved(made, loads[3], int(made.end_ps[dots[0]]) - 1 - int(made.start_ps[loads[3]]))
    assert (dots[0], loads[3]) in [v.nodes for v in check(early) if v.rule == "memory"]


def test_two_nodes_swapped_break_a_rule() -> None:
    """Of one engine and one duration, so that nothing but the order is wrong."""
    made = flash_schedule()
    first, second = nodes_of(made.graph, "exp")[0], nodes_of(made.graph, "sub")[0]
    assert made.end_ps[first] > made.start_ps[second]
    start, end = made.start_ps.copy(), made.end_ps.copy()
    start[[first, second]] = start[[second, first]]
    end[[first, second]] = start[[first, second]] + (made.end_ps - made.start_ps)[[first, second]]
    assert "memory" in rules(attrs.evolve(made, start_ps=start, end_ps=end))


@ks.kernel
def ranges(x: Any, o: Any) -> None:
    """Flat ranges of tensors of rows: the second load shares one element with the store before it, the third none."""
    tl.store(o + 5, tl.load(x + 3, (2, 4)))
    tl.load(o + 12, (3,))
    tl.load(o + 13, (3,))
    tl.load(o + 2, (3,))
    tl.load(o + 2, (4,))


def test_flat_ranges_of_a_tensor_meet_where_they_share_an_element() -> None:
    """A load begun before the store has ended is a violation where one element is shared, and none where the ranges
    only touch; whatever rows they run over."""
    made = schedule(ks.trace(ranges, ks.hbm((4, 6), "f32"), ks.hbm((4, 6), "f32")), TWO_DMA, "list", "fast")
    assert check(made) == []
    store, (_, shared, behind, before, last) = nodes_of(made.graph, "store")[0], nodes_of(made.graph, "load")
    late = int(made.end_ps[store]) - 1
    for load, met in ((shared, True), (behind, False), (before, False), (last, True)):
        found = [v.nodes for v in check(moved(made, load, late - int(made.start_ps[load]))) if v.rule == "memory"]
        assert found == ([(store, load)] if met else []), load


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.data())
@settings(deadline=None)
def test_the_boxes_of_a_range_are_its_elements(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Together all of them, and each once."""
    size = math.prod(shape)
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, size))
    counts = np.zeros(shape, dtype=np.int64)
    for low, extent in boxes_of_range(shape, start, stop):
        counts[tuple(slice(a, a + n) for a, n in zip(low, extent, strict=True))] += 1
    wanted = np.zeros(size, dtype=np.int64)
    wanted[start:stop] = 1
    assert np.array_equal(counts.ravel(), wanted)


@pytest.mark.parametrize(
    ("shape", "view", "box"),
    [
        ((4, 6), Layout.of((2, 3), (6, 1), F32), (2, 3)),
        ((4, 6), Layout.of((3, 2), (1, 6), F32), (2, 3)),  # transposed
        ((4, 6), Layout.of((4,), (1,), F32), (1, 4)),
        ((4, 6), Layout.of((4,), (6,), F32), (4, 1)),
        ((4, 6), Layout.of((8,), (1,), F32), None),  # runs into the second row
        ((4, 6), Layout.of((2,), (2,), F32), None),  # with a gap
        ((4, 6), Layout.of((2, 2), (5, 1), F32), None),  # a slant
        ((4, 6), Layout.of((25,), (1,), F32), None),  # past the end
        ((4, 6), Layout.of((2, 2, 3), (0, 6, 1), F32), (2, 3)),  # one element shown twice
        ((2, 3, 4), Layout.of((2, 3, 4), (12, 4, 1), F32), (2, 3, 4)),
    ],
)
def test_the_box_of_a_view(shape: tuple[int, ...], view: Layout, box: tuple[int, ...] | None) -> None:
    """The extents where the view shows exactly a box at the storage's first element; else none."""
    assert box_at_origin(shape, view) == box


@pytest.mark.parametrize("by", [-1, 1])
def test_a_wrong_duration_is_found(by: int) -> None:
    """One picosecond too long or too short."""
    made = flash_schedule()
    store = nodes_of(made.graph, "store")[0]
    damaged = changed(made, "end_ps", store, int(made.end_ps[store]) + by)
    assert rules(damaged) == {"duration"}


def test_no_time_is_right_where_no_engine_does_it() -> None:
    """What no engine of the machine takes can have neither occupancy nor duration; what needs none takes no time."""
    machine = load_machine()
    for operation in OPERATIONS.values():
        task = work._Task(operation, (), None, "", -1, -1, 1, 1)
        assert work._took(machine, -1, task) == ((0, 0) if operation.kind == "none" else (-1, -1))


def test_an_engine_or_lane_that_is_not_the_nodes_own_is_found() -> None:
    """Another engine, another rank's, none, one that does not exist; a lane past the channels, or negative."""
    made = schedule(graphs()["ring"], None, "list", "fast")
    store = nodes_of(made.graph, "store")[0]
    named = {(engine.rank, engine.name): number for number, engine in enumerate(made.engines)}
    for wrong in (named[0, "dma_read"], named[1, "dma_write"], -1, len(made.engines), -7):
        assert "engine" in rules(changed(made, "engine", store, wrong)), wrong
    recv = nodes_of(made.graph, "recv")[0]
    assert "engine" in rules(changed(made, "engine", recv, 0))
    for wrong in (1, -1):
        assert rules(changed(made, "lane", store, wrong)) == {"lane"}
    wider = tuple(attrs.evolve(engine, channels=2) for engine in made.engines)
    assert rules(attrs.evolve(made, engines=wider)) == {"engine"}
    assert rules(attrs.evolve(made, engines=(*made.engines, made.engines[0]))) == {"engine"}


def test_two_nodes_at_once_on_a_lane_are_found() -> None:
    """Every node of a lane is held against all before it: the short one in between hides nothing."""

    @ks.kernel
    def kernel(x: Any) -> None:
        for size in (4, 64, 8):
            tl.load(x[0:size])

    made = schedule(ks.trace(kernel, ks.hbm((64,), "f32")), TWO_DMA, "queued", "fast")
    assert made.lane.tolist() == [0, 1, 0] and check(made) == []
    shared = changed(made, "lane", 1, 0)
    assert [v.nodes for v in check(shared)] == [(0, 1), (1, 2)] and rules(shared) == {"overlap"}


def test_negative_times_and_missing_nodes_are_found() -> None:
    """A column one short, or of floats, is all that can be said."""
    made = flash_schedule()
    assert "range" in rules(moved(made, 0, -1))
    assert "range" in rules(changed(made, "issue_ps", 0, -1))
    for column in ("issue_ps", "start_ps", "end_ps", "engine", "lane"):
        assert rules(attrs.evolve(made, **{column: getattr(made, column)[:-1]})) == {"shape"}
        assert rules(attrs.evolve(made, **{column: getattr(made, column) * 1.0})) == {"shape"}


def test_another_machine_or_target_is_found() -> None:
    """The durations are another machine's; the target is not what the graph was traced for."""
    made = flash_schedule()
    slower = attrs.evolve(made.machine, clock_ghz=made.machine.clock_ghz / 2)
    assert "duration" in rules(attrs.evolve(made, machine=slower))
    roomier = made.machine.override({"link.slots": "3", "name": made.machine.name})
    assert rules(attrs.evolve(made, machine=roomier)) == {"target"}


def test_a_message_received_too_early_a_full_channel_and_a_broken_queue_are_found() -> None:
    """Each rule on channels by its own name."""

    @ks.kernel
    def kernel() -> None:
        h = tl.zeros((64,), tl.float32)
        if tl.program_id(0) == 0:
            for _ in range(4):
                tl.send("next", h)
        else:
            for _ in range(4):
                tl.recv("prev", (64,), tl.float32)

    made = schedule(ks.trace(kernel, ranks=2), None, "list", "fast")
    sends, recvs = nodes_of(made.graph, "send"), nodes_of(made.graph, "recv")
    assert check(made) == []
    assert "message" in rules(moved(made, recvs[1], -1))
    assert "fifo" in rules(moved(made, sends[1], -1))
    assert "fifo" in rules(moved(made, recvs[0], int(made.end_ps[-1]) + 1))
    late = moved(made, recvs[0], int(made.start_ps[sends[2]]) - int(made.end_ps[recvs[0]]) + 1)
    assert (recvs[0], sends[2]) in [v.nodes for v in check(late) if v.rule == "credit"]


# --- issue and policies ---------------------------------------------------------------------------------------------


def test_issues_overlap_run_backwards_or_begin_before_zero() -> None:
    """The CPU issues one command at a time, in program order."""
    made = schedule(graphs()["flash"], with_issue_costs(load_machine("ahbm-pe")), "list", "fast")
    assert check(made) == []
    for node in (0, 5, 11):
        assert "issue" in rules(changed(made, "issue_ps", node, int(made.issue_ps[node]) - 1)), node
    assert "issue" in rules(changed(made, "issue_ps", 5, int(made.issue_ps[6]) + 1))
    assert "issue" in rules(changed(made, "issue_ps", 0, int(made.start_ps[0]) + 1))


def test_what_the_checker_does_not_know_is_not_taken_for_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation of a kind without rules, with its nodes; a policy that holds the CPU in another way."""
    made = flash_schedule()
    kinds = check_module.KNOWN_KINDS
    gone = OPERATIONS["dot"].kind
    monkeypatch.setattr(check_module, "KNOWN_KINDS", frozenset(kinds) - {gone})
    (found,) = [v for v in check(made) if "knows no operations" in v.message]
    assert (found.rule, set(found.nodes)) == ("engine", set(nodes_of(made.graph, "dot")))
    monkeypatch.setattr(check_module, "KNOWN_KINDS", kinds)
    odd = attrs.evolve(made.rules, holds="some")
    monkeypatch.setattr(type(made), "rules", property(lambda _: odd))
    (found,) = check(made)
    assert (found.rule, found.message) == ("policy", "the checker knows no policy that holds 'some'")


def test_a_schedule_is_judged_by_its_own_policy() -> None:
    """What a freer policy does is a violation under a stricter one; never the other way round."""
    graph = graphs()["flash"]
    made = {policy: schedule(graph, None, policy, "fast") for policy in LADDER}
    spans = [made[policy].makespan_ps for policy in LADDER]
    assert spans == sorted(spans, reverse=True) and len(set(spans[:3])) == 3
    assert rules(attrs.evolve(made["lazy"], policy="blocking")) == {"policy"}
    assert rules(attrs.evolve(made["queued"], policy="lazy")) == {"policy"}
    assert rules(attrs.evolve(made["list"], policy="fastest")) == {"policy"}
    assert rules(attrs.evolve(made["blocking"], policy="lazy")) == set()
    assert rules(attrs.evolve(made["lazy"], policy="queued")) == set()


def test_in_order_engines_start_in_program_order() -> None:
    """Two loads of different length on two lanes: the later one first is ``list``'s right alone."""

    @ks.kernel
    def kernel(x: Any) -> None:
        tl.load(x[0:64])
        tl.load(x[0:4])

    made = schedule(ks.trace(kernel, ks.hbm((64,), "f32")), TWO_DMA, "queued", "fast")
    later = moved(made, 0, 1)
    assert rules(later) == {"policy"}
    assert rules(attrs.evolve(later, policy="list")) == set()


def test_lazy_waits_for_data_at_issue_and_for_the_end_of_what_blocks() -> None:
    """A load goes on, a store does not; a command is not issued before its data is there."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        h = tl.load(x[:])
        tl.store(o[:], h)
        tl.load(x[:])

    made = schedule(ks.trace(kernel, ks.hbm((64,), "f32"), ks.hbm((64,), "f32")), None, "lazy", "fast")
    load, store, again = 0, 1, 2
    assert made.issue_ps[store] == made.end_ps[load] and made.issue_ps[again] == made.end_ps[store]
    early = changed(made, "issue_ps", store, int(made.end_ps[load]) - 1)
    assert [v.nodes for v in check(early)] == [(load, store)] and rules(early) == {"policy"}
    rushed = changed(made, "issue_ps", again, int(made.end_ps[store]) - 1)
    assert [v.nodes for v in check(rushed)] == [(store, again)] and rules(rushed) == {"policy"}


@ks.kernel
def streams_over_a_dead_load(x: Any, y: Any, o: Any, *, sizes: Any, trans_b: bool, tile: Any) -> None:
    """A composite whose buffers lie where a load nobody uses is still in flight."""
    m, n, k = sizes
    with tl.scratch_scope():
        tl.load(x[:, :])
    c = tl.composite("gemm", tl.ref(x[:m, :k]), tl.ref(y[:n, :k] if trans_b else y[:k, :n]), trans_b=trans_b, tile=tile)
    tl.store(o[:m, :n], c)


@pytest.mark.parametrize("policy", LADDER)
@pytest.mark.parametrize("tile", [(64, 64, 64), (24, 20, 16), (7, 9, 5)])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("sizes", [(64, 64, 64), (50, 33, 41)])
def test_bytes_that_a_composite_overwrites_are_no_data_of_it(
    sizes: tuple[int, ...], trans_b: bool, tile: tuple[int, ...], policy: str
) -> None:
    """The CPU need not wait for a load into bytes that the composite's own stream takes over: only the write over them
    does, whatever the tile's edges, and read as it lies or transposed."""
    x = ks.hbm((64, 64), "f32")
    graph = ks.trace(streams_over_a_dead_load, x, x, x, sizes=sizes, trans_b=trans_b, tile=tile)
    made = schedule(graph, TWO_DMA, policy, "fast")
    assert check(made) == []
    dead, first = nodes_of(graph, "load")[:2]
    shared = shares_bytes(graph, dead, first)
    begun = moved(made, first, int(made.end_ps[dead]) - 1 - int(made.start_ps[first]))
    assert ((dead, first) in [v.nodes for v in check(begun) if v.rule == "memory"]) is shared


def test_a_composite_waits_at_issue_for_the_handle_it_reads() -> None:
    """Its operand in scratch, still being loaded, is data of the command: also where its dots read what the command
    itself streamed."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        a = tl.load(x[:, :])
        tl.store(o[:, :], tl.composite("gemm", a, tl.ref(x[:, :]), tile=(16, 16, 16)))

    made = schedule(ks.trace(kernel, ks.hbm((32, 32), "f32"), ks.hbm((32, 32), "f32")), None, "lazy", "fast")
    load, stream, dot = nodes_of(made.graph, "load")[0], nodes_of(made.graph, "load")[1], nodes_of(made.graph, "dot")[0]
    assert made.issue_ps[stream] == made.end_ps[load] and check(made) == []
    command = made.graph.nodes.command == stream
    early = attrs.evolve(made, issue_ps=np.where(command, made.issue_ps - 1, made.issue_ps))
    found = check(early)
    assert rules(early) == {"policy"} and (load, dot) in [v.nodes for v in found]
    assert f"begins at {made.end_ps[load] - 1} ps, before %{load} load" in found[0].message
    assert f"whose data it reads, ends at {made.end_ps[load]} ps" in found[0].message


# --- the checker itself ---------------------------------------------------------------------------------------------


def test_independent_slices_need_no_order() -> None:
    """Disjoint columns of one buffer at once are legal, overlapping ones are not."""

    @ks.kernel
    def kernel(x: Any, *, step: int) -> None:
        h = tl.empty((8, 8), tl.float32)
        tl.load(x[:, 0:4], out=h[:, 0:4])
        tl.load(x[:, 0:4], out=h[:, step : step + 4])

    for step, legal in ((4, True), (3, False)):
        made = schedule(ks.trace(kernel, ks.hbm((8, 8), "f32"), step=step), TWO_DMA, "list", "fast")
        assert check(made) == []
        at_once = changed(moved(made, 1, -int(made.start_ps[1])), "lane", 1, 1)
        assert (rules(at_once) == set()) is legal and (rules(at_once) == {"memory"}) is not legal


@pytest.mark.parametrize("gap", [True, False])
def test_bytes_between_those_of_a_view_are_nobodys(gap: bool) -> None:
    """A load into half of every row, still in flight at its scope's exit: what then takes the bytes in between may be
    loaded at once, what takes a row's first half may not."""

    @ks.kernel
    def kernel(x: Any, *, pad: bool) -> None:
        with tl.scratch_scope():
            half = tl.empty((4, 8), tl.float32)
            tl.load(x[0:4, 0:4], out=half[:, 0:4])
        if pad:
            tl.empty((4,), tl.float32)
        tl.load(x[0, 0:4])

    made = schedule(ks.trace(kernel, ks.hbm((8, 8), "f32"), pad=gap), TWO_DMA, "list", "fast")
    first, second = nodes_of(made.graph, "load")
    assert check(made) == []
    at_once = changed(moved(made, second, -int(made.start_ps[second])), "lane", second, 1)
    assert [v.nodes for v in check(at_once) if v.rule == "memory"] == ([] if gap else [(first, second)])


def test_violations_come_in_one_order() -> None:
    """By rule, then by node; the same list each time, and every rule is a known one."""
    made = flash_schedule("lazy")
    rng = np.random.default_rng(0)
    damaged = attrs.evolve(
        made,
        start_ps=rng.permutation(made.start_ps),
        end_ps=rng.permutation(made.end_ps),
        lane=rng.integers(-1, 2, len(made)),
    )
    found = check(damaged)
    assert found == check(damaged) and len(found) > 50
    assert all(isinstance(v, Violation) and v.rule in RULES for v in found)
    assert [RULES.index(v.rule) for v in found] == sorted(RULES.index(v.rule) for v in found)


def test_the_checker_shares_no_code_with_what_it_checks() -> None:
    """Its modules import neither the dependence pass nor the schedulers, and never mention edges of the graph."""
    folder = Path(check_module.__file__).parent
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        imported = [line.split()[1] for line in text.splitlines() if line.startswith("from .")]
        outside = [module for module in imported if module.startswith("..")]
        assert not any("dependence" in module or "scheduler" in module for module in outside), path.name
        assert "graph.edges" not in text.replace("never looks at ``graph.edges``", "")
