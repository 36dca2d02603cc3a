"""The founding record on lazy loads (0062): its points, in exact picoseconds on the default machine.

There a load of (64, 64) f16 takes 100 + 8,192 / 128 = 164 ns, one of (64, 1024) f16 1,124 ns, a dot of (64, K) with
(K, 64) 16 + K ns, an elementwise operation on (64, 64) 4 + 16 = 20 ns.
"""

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.scheduler.result.ladder import compare
from kernscope.scheduler.result.schedule import Schedule, schedule

X = ks.hbm((64, 1024), "f16")
O = ks.hbm((64, 64), "f32")


@ks.kernel
def independent(x, o):  # type: ignore[no-untyped-def]
    """A GEMM of 1,040 ns on fills, beside a load of 1,124 ns that nothing waits for."""
    a, b = tl.zeros((64, 1024), tl.float16), tl.zeros((1024, 64), tl.float16)
    tl.load(x[:, :])
    tl.dot(a, b)


@ks.kernel
def two_loads(x, o):  # type: ignore[no-untyped-def]
    """Two loads in flight, used one after the other."""
    a, b = tl.load(x[:, 0:64]), tl.load(x[:, 64:128])
    tl.store(o[:, :], tl.dot(a, tl.trans(a)))
    tl.store(o[:, :], tl.dot(b, tl.trans(b)))


@ks.kernel
def immediate(x, o):  # type: ignore[no-untyped-def]
    """Every load is used at once."""
    for j in range(4):
        a = tl.load(x[:, 64 * j : 64 * (j + 1)])
        tl.store(o[:, :], tl.exp(a).to(tl.float32))


@ks.kernel
def ahead(x, o):  # type: ignore[no-untyped-def]
    """The next tile's load is issued before this tile's work."""
    buffers = [tl.empty((64, 64), tl.float16) for _ in range(2)]
    tl.load(x[:, 0:64], out=buffers[0])
    for j in range(4):
        if j < 3:
            tl.load(x[:, 64 * (j + 1) : 64 * (j + 2)], out=buffers[(j + 1) % 2])
        tl.store(o[:, :], tl.exp(buffers[j % 2]).to(tl.float32))


def times_of(kernel: ks.Kernel, policy: str) -> Schedule:
    return schedule(ks.trace(kernel, X, O), "ahbm-pe", policy)


def rows(found: Schedule, op: str) -> list[tuple[int, int]]:
    """Start and end of every node of an operation, in ns."""
    return [
        (int(found.start_ps[node.id]) // 1000, int(found.end_ps[node.id]) // 1000)
        for node in found.graph
        if node.op == op
    ]


def test_a_load_overlaps_independent_compute() -> None:
    """Load and an independent GEMM of like duration end at about the longer of both, strictly below the sum."""
    fills = (4 + 256) * 2
    lazy, blocking = times_of(independent, "lazy"), times_of(independent, "blocking")
    assert rows(lazy, "load") == [(fills, fills + 1124)]
    assert rows(lazy, "dot") == [(fills, fills + 1040)]
    assert lazy.makespan_ps == (fills + max(1124, 1040)) * 1000
    assert blocking.makespan_ps == (fills + 1124 + 1040) * 1000


def test_the_first_use_waits() -> None:
    """Every first reader of a load starts at or after its end, in every policy: it sees the bytes that a blocking load
    would give."""
    for kernel in (two_loads, immediate, ahead):
        for row in compare(ks.trace(kernel, X, O)):
            assert row.schedule is not None
            for node in row.schedule.graph:
                for edge in node.edges_in:
                    assert row.schedule.end_ps[edge.source] <= row.schedule.start_ps[node.id]


def test_two_loads_in_flight_serialise_on_the_read_channel() -> None:
    """They end at 164 and 328 ns, and the first user waits for the first one only. On two channels both end at 164."""
    lazy = times_of(two_loads, "lazy")
    assert rows(lazy, "load") == [(0, 164), (164, 328)]
    assert rows(lazy, "dot")[0] == (164, 164 + 80)
    graph = ks.trace(two_loads, X, O, machine="ahbm-pe-2dma")
    assert rows(schedule(graph, policy="lazy"), "load") == [(0, 164), (0, 164)]


@pytest.mark.parametrize("kernel", [independent, two_loads, immediate, ahead])
def test_the_log_is_the_same_under_every_policy(kernel: ks.Kernel) -> None:
    """Asynchrony is a property of the schedule: one graph serves all policies, with one ``memory/dma_read`` a load."""
    graph = ks.trace(kernel, X, O)
    loads = sum(node.op == "load" for node in graph)
    ladder = compare(graph)
    assert {id(row.schedule.graph) for row in ladder if row.schedule} == {id(graph)}
    assert graph.count("memory/dma_read") == loads
    for row in ladder:
        assert row.schedule is not None
        assert np.count_nonzero(row.schedule.engine == 0) == loads


def test_a_load_used_at_once_costs_what_a_blocking_one_does() -> None:
    """Load then immediate use: lazy and blocking take exactly the same time, node by node."""
    lazy, blocking = times_of(immediate, "lazy"), times_of(immediate, "blocking")
    # Per tile: the load, exp (4 + 16 x 4), the cast (20), the store of 16,384 B.
    assert lazy.makespan_ps == blocking.makespan_ps == 4 * (164 + 68 + 20 + 228) * 1000
    assert np.array_equal(lazy.start_ps, blocking.start_ps)


def test_prefetching_gains_under_lazy_only() -> None:
    """One tile ahead, a load hides behind the tile before: per tile the longer of both, plus the first load."""
    lazy, blocking = times_of(ahead, "lazy"), times_of(ahead, "blocking")
    tile = 68 + 20 + 228
    assert blocking.makespan_ps == 4 * (164 + tile) * 1000
    assert lazy.makespan_ps == (164 + 4 * tile) * 1000


def test_an_issue_cost_is_paid_before_the_start() -> None:
    """With 10 cycles a command (and 30 a load), blocking pays each in between; queued pays ahead of time."""
    machine = ks.load_machine("ahbm-pe").override({"cpu.issue_cycles.default": "10", "cpu.issue_cycles.load": "30"})
    graph = ks.trace(two_loads, X, O)
    blocking = schedule(graph, machine, "blocking")
    assert rows(blocking, "load") == [(30, 194), (224, 388)]
    assert blocking.makespan_ps == (2 * (30 + 164) + 2 * (10 + 80) + 2 * (10 + 228)) * 1000
    queued = schedule(graph, machine, "queued")
    assert [int(t) // 1000 for t in queued.issue_ps] == [30, 60, 70, 80, 90, 100]
    assert rows(queued, "load") == [(30, 194), (194, 358)]
