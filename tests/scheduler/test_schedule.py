"""What a schedule tells: causes, the critical chain, slack, utilisation, the price of reuse, JSON; on real traces."""

import html.parser
import json
from typing import Any

import attrs
import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import MachineError, TargetMismatchError, tl
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_decode_long import gqa_attention_decode_long_kernel
from kernscope.machine.units import format_ps
from kernscope.scheduler.policy.problem import make_problem
from kernscope.scheduler.policy.registry import LADDER
from kernscope.scheduler.result.causes import Cause
from kernscope.scheduler.result.ladder import compare
from kernscope.scheduler.result.schedule import Schedule, makespan_ps, schedule

COSTLY = {"cpu.issue_cycles.default": "7", "cpu.issue_cycles.gemm": "40"}


def schedules(graph: ks.Graph, machine: Any = None) -> list[Schedule]:
    """A schedule of every policy that has one."""
    return [row.schedule for row in compare(graph, machine) if row.schedule]


@pytest.fixture(scope="module")
def flash() -> ks.Graph:
    return ks.trace(flash_attention.launch("small"))


@pytest.fixture(scope="module")
def ring() -> ks.Graph:
    return ks.trace(gqa_attention_decode_long_kernel.launch("small"))


def check_chain(found: Schedule) -> None:
    """The chain begins at 0, ends at the makespan, has no gap and no idle part."""
    chain = found.critical_chain()
    assert chain.total_ps == found.makespan_ps
    for sums in (chain.by_engine(), chain.by_reason(), chain.by_cause()):
        assert sum(sums.values()) == found.makespan_ps
        assert "idle" not in sums
    at = 0
    for part in chain.parts:
        assert part.start_ps == at <= part.end_ps
        assert 0 <= part.latency_ps <= part.duration_ps
        at = part.end_ps
    assert at == found.makespan_ps


def check_causes(found: Schedule) -> None:
    """What a node waited for last is true: its start is that node's end, or follows from it by issues alone."""
    edges = {(e.source, e.target, e.reason.label) for node in found.graph for e in node.edges_in}
    for node in range(len(found)):
        cause, start = found.waited_for[node], int(found.start_ps[node])
        if cause is None:
            assert start == 0
            continue
        assert start > 0
        if cause.cause is Cause.EDGE:
            assert cause.node is not None and (cause.node, node, cause.reason) in edges
            assert found.end_ps[cause.node] == start
        elif cause.cause is Cause.ENGINE:
            assert cause.node is not None and found.engine[cause.node] == found.engine[node]
            assert start in (found.end_ps[cause.node], found.start_ps[cause.node])
        elif cause.cause is Cause.PROGRAM:
            assert cause.node is not None and found.end_ps[cause.node] == start == found.issue_ps[node]
        else:
            assert cause.cause is Cause.ISSUE and start == found.issue_ps[node]
            assert cause.node is None or found.end_ps[cause.node] < start


def check_slack(found: Schedule) -> None:
    """Nothing has negative slack, the critical chain has none, and no node can go on past the makespan."""
    slack = found.slack_ps
    assert np.all(slack >= 0)
    assert np.all(found.end_ps + slack <= found.makespan_ps)
    assert all(
        slack[part.node] == 0 for part in found.critical_chain().parts if part.node is not None and part.duration_ps
    )


def check_reuse(found: Schedule) -> None:
    """Without the recycled edges it is never slower; without any such edge the price is nothing."""
    price = found.price_of_reuse()
    assert price.makespan_ps == found.makespan_ps and price.without_ps <= price.makespan_ps
    assert all(pair.delay_ps > 0 and pair.count > 0 for pair in price.pairs)
    assert [pair.delay_ps for pair in price.pairs] == sorted((p.delay_ps for p in price.pairs), reverse=True)


def check_all(graph: ks.Graph, machine: Any = None) -> None:
    for found in schedules(graph, machine):
        check_chain(found)
        check_causes(found)
        check_slack(found)
        check_reuse(found)
        assert ks.check(found) == []
        assert found.bound_ps <= found.makespan_ps
        assert all(0 <= share <= 1 for share in found.utilisation().values())


@pytest.mark.parametrize("machine", ["ahbm-pe", "ahbm-pe-2dma"])
@pytest.mark.parametrize("name", ["flash", "ring"])
def test_all_of_it_on_real_kernels(name: str, machine: str, request: pytest.FixtureRequest) -> None:
    """Chains, causes, slack, prices and the independent checker agree, with and without issue costs."""
    described = ks.load_machine(machine)
    for each in (described, described.override(COSTLY)):
        check_all(request.getfixturevalue(name), each)


@given(program=kernelgen.programs(faults=True, max_size=25))
@kernelgen.examples(25)
def test_all_of_it_on_random_kernels(program: kernelgen.Program) -> None:
    """The same on random kernels of one rank, also broken ones."""
    graph = program.trace(on_overflow="record")
    check_all(graph, program.machine)
    check_all(graph, program.machine.override({**COSTLY, "dma_read.channels": "2"}))


@given(program=kernelgen.programs(ranks=3, max_size=14))
@kernelgen.examples(15)
def test_all_of_it_on_random_kernels_of_three_ranks(program: kernelgen.Program) -> None:
    """The same where ranks send each other messages."""
    graph = program.trace()
    check_all(graph, program.machine)
    check_all(graph, program.machine.override({**COSTLY, "dma_read.channels": "2"}))


@given(program=kernelgen.programs(ranks=2, deadlocks=True, max_size=14))
@kernelgen.examples(25)
def test_the_ladder_on_random_kernels(program: kernelgen.Program) -> None:
    """blocking >= lazy >= queued >= list, a deadlock counting as infinite, with and without issue costs."""
    graph = program.trace()
    for machine in (program.machine, program.machine.override(COSTLY)):
        times = [row.makespan_ps if row.schedule else float("inf") for row in compare(graph, machine)]
        assert times == sorted(times, key=lambda t: -(t or 0))


def test_the_first_node_of_all_holds_its_lane_too() -> None:
    """Two loads of one engine, both needed by what follows: neither may start later, though no edge joins them."""

    @ks.kernel
    def kernel(x, o):  # type: ignore[no-untyped-def]
        tl.store(o[:, :], tl.load(x[0:64, :]) + tl.load(x[64:128, :]))

    for found in schedules(ks.trace(kernel, ks.hbm((128, 64), "f16"), ks.hbm((64, 64), "f16"))):
        assert found.start_ps[0] < found.start_ps[1]
        assert found.slack_ps.tolist() == [0, 0, 0, 0], found.policy


@ks.kernel
def reusing(x, o):  # type: ignore[no-untyped-def]
    """Each iteration's load goes into the bytes that the last one's store still reads."""
    for j in range(4):
        with tl.scratch_scope():
            tl.store(o[64 * j : 64 * (j + 1), :], tl.load(x[64 * j : 64 * (j + 1), :]))


def test_the_price_of_reuse_is_exact() -> None:
    """Four loads and stores of 164 ns through one buffer alternate: 1,312 ns. With bytes of their own they overlap:
    five times 164. The pair of lines that costs it is the store's and the load's, in three nodes."""
    found = schedule(ks.trace(reusing, ks.hbm((256, 64), "f16"), ks.hbm((256, 64), "f16")))
    price = found.price_of_reuse()
    assert (price.makespan_ps, price.without_ps, price.price_ps) == (8 * 164_000, 5 * 164_000, 3 * 164_000)
    (pair,) = price.pairs
    assert (pair.delay_ps, pair.count) == (3 * 164_000, 3)
    assert [found.graph[node].op for node in pair.nodes] == ["store", "load"]
    chain = found.critical_chain()
    assert chain.by_cause()["waiting for reused scratch"] == 3 * 164_000
    assert chain.by_reason() == {"data": 4 * 164_000, "war": 3 * 164_000, "end": 164_000}
    assert chain.by_engine() == {"dma_read": 4 * 164_000, "dma_write": 4 * 164_000}
    line = reusing.function.__code__.co_firstlineno + 5
    place = f"test_schedule.py:{line}"
    assert str(price) == (f"reused scratch costs 492 ns (37.5 %)\n  {place} waits for {place}: 492 ns in 3 nodes")
    assert str(chain).splitlines() == [
        f"{cause}: {format_ps(ps)} ({100 * ps / (8 * 164_000):.0f} %)" for cause, ps in chain.by_cause().items()
    ]
    assert sum(chain.by_cause().values()) == 8 * 164_000
    assert len(found.waited_for) == len(found)


def test_the_json_is_enough_to_verify_by(ring: ks.Graph) -> None:
    """From the JSON alone: ids, times, lanes, edges and the makespan hold together; the same schedule gives the same
    bytes."""
    found = schedule(ring, policy="lazy")
    text = found.to_json()
    assert text == schedule(ring, policy="lazy").to_json()
    data = json.loads(text)
    nodes = data["nodes"]
    assert (data["version"], data["machine"], data["policy"]) == (1, "ahbm-pe", "lazy")
    assert [node["id"] for node in nodes] == list(range(len(ring)))
    assert max(node["end_ps"] for node in nodes) == data["makespan_ps"] == found.makespan_ps
    assert max(data["bounds"].values()) == data["bound_ps"] == data["bounds"][data["bound"]]
    for source, target, reason in data["edges"]:
        assert nodes[source]["end_ps"] <= nodes[target]["start_ps"]
        assert reason in ("data", "message", "credit", "fifo", "war", "waw")
    busy: dict[tuple[int, int], int] = {}
    for node in sorted((n for n in nodes if n["engine"] is not None), key=lambda n: (n["start_ps"], n["end_ps"])):
        engine = data["engines"][node["engine"]]
        assert engine["rank"] == node["rank"] and 0 <= node["lane"] < engine["channels"]
        place = (node["engine"], node["lane"])
        assert busy.get(place, 0) <= node["start_ps"]
        busy[place] = node["end_ps"]
    for node in nodes:
        assert node["issue_ps"] <= node["start_ps"] <= node["end_ps"]
        assert node["waited_for"] is None or set(node["waited_for"]) >= {"cause", "node"}
        assert node["loc"]["line"] > 0
        assert len(node["accesses"]) == len(ring[node["id"]].accesses)
        for access in node["accesses"]:
            assert data["storages"][access["storage"]]["nbytes"] > 0


def test_another_target_is_refused(flash: ks.Graph) -> None:
    """Addresses and credits were made for another machine: the fields that differ are listed."""
    other = ks.load_machine().override({"scratch.bytes": "2097152", "link.slots": "4"})
    with pytest.raises(TargetMismatchError) as caught:
        make_problem(flash, other)
    assert "bytes of tcm: 1048576 here, 2097152 there; slots: 2 here, 4 there" in str(caught.value)


def test_another_speed_is_fine(flash: ks.Graph) -> None:
    """Only the target binds: a faster machine schedules the same graph, and is faster."""
    fast = ks.load_machine().override({"clock_ghz": "2"})
    assert schedule(flash, fast).makespan_ps < schedule(flash).makespan_ps


def test_a_graph_of_a_machine_that_is_no_preset() -> None:
    """The graph carries it. One that says no more than a name opens no file of that name: the error asks for it."""
    mine = ks.load_machine().override({"name": "mine", "dma_read.channels": "2"})
    graph = ks.trace(reusing, ks.hbm((256, 64), "f16"), ks.hbm((256, 64), "f16"), machine=mine)
    assert schedule(graph).machine == mine
    for name in ("mine", "/dev/zero", "mine.toml"):
        with pytest.raises(MachineError, match="says nothing of its machine"):
            schedule(attrs.evolve(graph, machine=name, machine_toml=""))
    assert schedule(attrs.evolve(graph, machine_toml=""), mine).machine is mine


def test_an_empty_kernel() -> None:
    """Nothing to do takes no time, under every policy."""

    @ks.kernel
    def nothing(x):  # type: ignore[no-untyped-def]
        pass

    for found in schedules(ks.trace(nothing, ks.hbm((4,), "f32"))):
        assert (found.makespan_ps, found.bound_ps, found.ratio) == (0, 0, 1.0)
        assert found.critical_chain().parts == () and found.price_of_reuse().price_ps == 0
        assert json.loads(found.to_json())["nodes"] == [] and found.slack_ps.tolist() == []


def test_results_are_read_only(flash: ks.Graph) -> None:
    """Columns cannot be written, attributes cannot be set."""
    found = schedule(flash)
    with pytest.raises(ValueError, match="read-only"):
        found.start_ps[0] = 1
    with pytest.raises(AttributeError):
        found.policy = "lazy"  # type: ignore[misc]


def test_the_same_graph_gives_the_same_schedule(flash: ks.Graph) -> None:
    """Scheduling twice gives equal columns."""
    for one, two in zip(schedules(flash), schedules(flash), strict=True):
        for name in ("issue_ps", "start_ps", "end_ps", "engine", "lane", "cause", "cause_node"):
            assert np.array_equal(getattr(one, name), getattr(two, name))


class Balanced(html.parser.HTMLParser):
    """Asserts that tags close in the order in which they open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


def test_tables_are_well_formed_and_escaped(flash: ks.Graph) -> None:
    """A machine's hostile name does not break out of the notebook's table."""
    hostile = ks.load_machine().override({"name": "<script>&\"'"})
    for text in (schedule(flash, hostile)._repr_html_(), compare(flash, hostile)._repr_html_()):
        assert "<script>" not in text and "&lt;script&gt;&amp;" in text
        parser = Balanced()
        parser.feed(text)
        assert parser.opened == []


def test_the_ladder_by_name_and_number(flash: ks.Graph) -> None:
    """Rows by policy, by number, and in order."""
    ladder = compare(flash, policies=("list", "lazy"))
    assert [row.policy for row in ladder] == ["list", "lazy"] and len(ladder) == 2
    assert ladder["lazy"] is ladder[1]
    with pytest.raises(KeyError):
        ladder["blocking"]
    assert str(ladder).splitlines()[0].split()[0] == "list"


def test_the_critical_chain_is_walked_once(flash: ks.Graph) -> None:
    """A schedule does not change, and a report asks for its chain in many places."""
    made = schedule(flash)
    assert made.critical_chain() is made.critical_chain()


@given(program=st.one_of(*[kernelgen.programs(ranks=n, deadlocks=n > 1) for n in (1, 2)]))
@kernelgen.examples(40)
def test_a_makespan_alone_is_that_of_the_schedule(program: kernelgen.Program) -> None:
    """Under every policy of the ladder, at the effort `fast`; and a deadlock is one."""
    graph = program.trace()
    for policy in LADDER:
        try:
            wanted = ks.schedule(graph, policy, program.machine, effort="fast").makespan_ps
        except ks.DeadlockError:
            with pytest.raises(ks.DeadlockError):
                makespan_ps(graph, program.machine, policy)
            continue
        assert makespan_ps(graph, program.machine, policy) == wanted
