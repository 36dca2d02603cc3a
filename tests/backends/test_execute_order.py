"""The orders in which a graph may be executed, and those that are refused."""

from __future__ import annotations

import random
from typing import Any

import attrs
import kernelgen
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import load_machine, tl
from kernscope.backends.execution.execute import Execution, execute
from kernscope.backends.execution.order import execution_order
from kernscope.scheduler.result.schedule import schedule

IntArray = np.ndarray[Any, np.dtype[Any]]


@ks.kernel
def two_ways(x: Any, o: Any) -> None:
    """%0 load, %1 load, %2 add, %3 exp, %4 store, %5 store."""
    a, b = tl.load(x[0:4]), tl.load(x[4:8])
    total = a + b
    power = tl.exp(b)
    tl.store(o[0:4], total)
    tl.store(o[4:8], power)


def traced() -> ks.Graph:
    return ks.trace(two_ways, np.arange(8, dtype=np.float32), ks.hbm((8,), "f32"))


def keeps_edges(graph: ks.Graph, order: IntArray) -> bool:
    position = np.argsort(order)
    return bool(np.all(position[graph.edges.source] < position[graph.edges.target]))


def bits(run: Execution) -> dict[str, bytes]:
    return {name: value.tobytes() for name, value in run.outputs.items()}


def random_topological(graph: ks.Graph, seed: int) -> list[int]:
    """A random order that keeps every edge."""
    rng = random.Random(seed)
    waiting = np.bincount(graph.edges.target, minlength=len(graph)).tolist()
    after: list[list[int]] = [[] for _ in range(len(graph))]
    for source, target in zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True):
        after[source].append(target)
    ready = [node for node, count in enumerate(waiting) if not count]
    order = []
    while ready:
        order.append(ready.pop(rng.randrange(len(ready))))
        for node in after[order[-1]]:
            waiting[node] -= 1
            if not waiting[node]:
                ready.append(node)
    return order


# --- ids ------------------------------------------------------------------------------------------------------------


def test_any_order_that_keeps_the_edges_gives_the_same_bits() -> None:
    """Given as a list or as an array."""
    graph = traced()
    wanted = bits(execute(graph))
    assert bits(execute(graph, order=[1, 3, 5, 0, 2, 4])) == wanted
    assert bits(execute(graph, order=np.array([1, 0, 3, 2, 5, 4]))) == wanted


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0, 1, 2], "has 3 ids, the graph 6 nodes"),
        ([0, 1, 2, 3, 4, 6], "names node 6"),
        ([0, 1, 2, 3, 4, -1], "names node -1"),
        ([0, 1, 2, 3, 4, 4], "names node 4 2 times"),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "list of node ids"),
        ([2, 1, 0, 3, 4, 5], r"breaks the data edge %0 load -> %2 add"),
        ("sideways", "unknown order 'sideways'"),
    ],
)
def test_other_orders_are_refused(order: Any, message: str) -> None:
    """No permutation, no ids, a broken edge (named, with both places), an unknown word."""
    with pytest.raises(ks.OrderError, match=message):
        execute(traced(), order=order)


def test_a_broken_edge_shows_both_places() -> None:
    """Who waits, and for whom."""
    with pytest.raises(ks.OrderError) as caught:
        execute(traced(), order=[2, 1, 0, 3, 4, 5])
    assert [role for role, _ in caught.value.places] == ["waited for", "waits"]


def test_a_kernel_that_does_nothing_executes_in_every_order() -> None:
    """No node, no order to break."""
    graph = ks.trace(ks.kernel(lambda: None))
    assert len(graph) == 0
    for order in ("program", [], np.zeros(0, np.int64), schedule(graph)):
        assert execute(graph, order=order, poison=True).outputs == {}  # type: ignore[arg-type]


# --- schedules ------------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Times:
    """A schedule as far as an order needs it."""

    start_ps: IntArray
    end_ps: IntArray


def test_a_schedule_is_followed_by_start() -> None:
    """Here the second load and all that needs it go first."""
    graph = traced()
    times = Times(np.array([50, 0, 60, 10, 70, 20]), np.array([60, 10, 70, 20, 80, 30]))
    assert execution_order(graph, times).tolist() == [1, 3, 5, 0, 2, 4]


def test_nodes_without_duration_at_one_instant_keep_their_edges() -> None:
    """Across ranks ids say nothing: the receive of rank 0 has a smaller id than its send in rank 1."""

    @ks.kernel
    def kernel(o: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(o[:], tl.recv("next", (4,), tl.float32))
        else:
            tl.send("prev", tl.full((4,), 2.0, tl.float32))

    graph = ks.trace(kernel, ks.hbm((4,), "f32"), ranks=2)
    at_once = Times(np.zeros(len(graph), np.int64), np.zeros(len(graph), np.int64))
    assert keeps_edges(graph, execution_order(graph, at_once))
    np.testing.assert_array_equal(execute(graph, order=at_once).outputs["o"], np.full(4, 2, np.float32))


def test_a_schedule_that_breaks_an_edge_or_is_of_another_graph_is_refused() -> None:
    """An end after the start of what waits for it; another number of nodes."""
    graph = traced()
    early = Times(np.array([0, 0, 5, 10, 20, 20]), np.array([10, 10, 15, 20, 30, 30]))
    with pytest.raises(ks.OrderError, match=r"data edge %0 load -> %2 add: it starts at 5 ps, before 10 ps"):
        execute(graph, order=early)
    for starts, ends in ((5, 5), (5, 6), (6, 5), (7, 6)):
        with pytest.raises(
            ks.OrderError, match=rf"the schedule times \({starts},\) and \({ends},\) nodes, the graph has 6"
        ):
            execute(graph, order=Times(np.zeros(starts, np.int64), np.zeros(ends, np.int64)))


def test_times_that_leave_a_cycle_of_edges_to_order_are_refused() -> None:
    """Three messages through a channel of two slots, received over what is sent: all at one instant the edges have to
    decide, and close a cycle; with three slots they do not."""

    @ks.kernel
    def kernel() -> None:
        value = tl.zeros((4,), tl.float32)
        for _ in range(3):
            tl.send("next", value)
        for _ in range(3):
            tl.recv("prev", (4,), tl.float32, out=value)  # over what the sends read

    graph = ks.trace(kernel, ranks=2)
    nothing = np.zeros(len(graph), np.int64)
    with pytest.raises(ks.OrderError, match="nodes wait for each other at one instant") as caught:
        execute(graph, order=Times(nothing, nothing))
    assert int(caught.value.message.split()[0]) > 1
    fits = load_machine().override({"link.slots": "3"})
    execute(ks.trace(kernel, ranks=2, machine=fits), order=Times(nothing, nothing))


# --- program order --------------------------------------------------------------------------------------------------


def test_program_order_of_one_rank_is_by_id() -> None:
    """Nothing is ever held."""
    assert execution_order(traced(), "program").tolist() == [0, 1, 2, 3, 4, 5]


def test_a_posted_receive_lets_its_rank_go_on() -> None:
    """Two ranks that both post first and send later: alive, and each in its own program order but for the receive."""

    @ks.kernel
    def kernel(o: Any) -> None:
        rank = tl.program_id(0)
        future = tl.recv_async("prev", (4,), tl.float32)
        tl.send("next", tl.full((4,), float(rank), tl.float32))
        tl.store(o[rank, :], tl.wait(future))

    graph = ks.trace(kernel, ks.hbm((2, 4), "f32"), ranks=2)
    order = execution_order(graph, "program")
    assert keeps_edges(graph, order)
    swapped = np.repeat(np.float32([[1], [0]]), 4, axis=1)
    np.testing.assert_array_equal(execute(graph, poison=True).outputs["o"], swapped)


def test_program_order_that_cannot_go_on_is_a_deadlock_with_its_cycle() -> None:
    """Both ranks receive before they send. An order by hand that takes the sends first still executes."""

    @ks.kernel
    def kernel(o: Any) -> None:
        rank = tl.program_id(0)
        value = tl.full((4,), float(rank), tl.float32)
        got = tl.recv("prev", (4,), tl.float32)
        tl.send("next", value)
        tl.store(o[rank, :], got)

    graph = ks.trace(kernel, ks.hbm((2, 4), "f32"), ranks=2)
    with pytest.raises(ks.DeadlockError, match=r"recv \(rank 0\) waits for .* recv \(rank 1\)") as caught:
        execute(graph)
    assert len(caught.value.cycle) == 2 and caught.value.nodes == (1, 5)
    by_hand = execute(graph, order=[0, 4, 2, 6, 1, 5, 3, 7], poison=True)
    np.testing.assert_array_equal(by_hand.outputs["o"], np.repeat(np.float32([[1], [0]]), 4, axis=1))


# --- all orders -----------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(data=st.data(), ranks=st.sampled_from([1, 1, 3]))
def test_every_legal_order_gives_the_same_bits(data: st.DataObject, ranks: int) -> None:
    """Random kernels without faults: program order, schedules and random topological orders, poisoned or not."""
    program = data.draw(kernelgen.programs(ranks=ranks, max_size=25))
    graph, inputs = program.trace(on_overflow="record"), program.inputs()
    wanted = bits(execute(graph, inputs))
    assert bits(execute(graph, inputs, poison=True)) == wanted
    for policy in ("lazy", "list"):  # under blocking a receive posted early may wait for ever
        timed = schedule(graph, program.machine, policy, "fast")
        assert bits(execute(graph, inputs, order=timed, poison=True)) == wanted
    order = random_topological(graph, data.draw(st.integers(0, 1 << 16)))
    assert bits(execute(graph, inputs, order=order)) == wanted
    assert bits(execute(graph, inputs, order=order, poison=True)) == wanted
