"""Poison: rewound bytes are filled, and stale and unwritten accesses are found, byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernelgen
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.execution.execute import Execution, execute
from kernscope.backends.execution.memory import POISON
from kernscope.memory.liveness import liveness


def run(kernel: Callable[..., Any], outputs: int = 4, **options: Any) -> tuple[ks.Graph, Execution]:
    """A kernel of one f32 output, executed poisoned in program order."""
    graph = ks.trace(kernel, ks.hbm((outputs,), "f32"))
    return graph, execute(graph, poison=True, **options)


def nodes_of(graph: ks.Graph, op: str) -> tuple[int, ...]:
    return tuple(node.id for node in graph if node.op == op)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_the_pattern_is_nan_in_every_float_dtype(dtype: Any) -> None:
    """So that whatever reads it shows."""
    assert np.isnan(np.full(4, POISON, np.uint8).view(dtype).astype(np.float32)).all()


# --- what is found --------------------------------------------------------------------------------------------------


def test_a_stale_read_is_found_and_reads_poison() -> None:
    """A handle of a closed scope, read before anyone took its bytes."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            h = tl.full((4,), 1.0, tl.float32)
        tl.store(o[:], h)

    graph, ran = run(kernel)
    assert ran.tracked and ran.stale_reads == nodes_of(graph, "store")
    assert ran.stale_writes == ran.unwritten_reads == ()
    assert np.isnan(ran.outputs["o"]).all()


def test_a_stale_read_is_found_although_the_bytes_were_taken_over() -> None:
    """A view, read after its bytes went to another allocation, written in full."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            h = tl.full((2, 4), 1.0, tl.float32)
        tl.full((8,), 2.0, tl.float32)
        tl.store(o[:], h[1, :])

    graph, ran = run(kernel)
    assert ran.stale_reads == nodes_of(graph, "store") and ran.unwritten_reads == ()


def test_a_stale_write_is_found_and_leaves_no_written_mark() -> None:
    """It writes bytes of another allocation's: whose own read of them is still a read of unwritten bytes."""

    def kernel(o: Any) -> None:
        one = tl.full((4,), 1.0, tl.float32)
        with tl.scratch_scope():
            h = tl.full((4,), 2.0, tl.float32)
        taken = tl.empty((4,), tl.float32)
        tl.copy_to(h, one)
        tl.store(o[:], taken)

    graph, ran = run(kernel)
    assert ran.stale_writes == nodes_of(graph, "copy_to")
    assert ran.unwritten_reads == nodes_of(graph, "store") and ran.stale_reads == ()


def test_a_read_of_unwritten_bytes_is_found_byte_by_byte() -> None:
    """Of an ``empty`` written but for one element, the whole is unwritten, the written part is not."""

    def kernel(o: Any) -> None:
        h = tl.empty((4,), tl.float32)
        tl.copy_to(h[0:3], tl.full((3,), 1.0, tl.float32))
        tl.store(o[0:3], h[0:3])
        tl.store(o[:], h)
        tl.copy_to(h[3:4], tl.full((1,), 1.0, tl.float32))
        tl.store(o[:], h)

    graph, ran = run(kernel)
    assert ran.unwritten_reads == nodes_of(graph, "store")[1:2]


def test_an_allocation_of_recycled_bytes_begins_unwritten() -> None:
    """What the one before it wrote does not count."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            tl.full((4,), 1.0, tl.float32)
        tl.store(o[:], tl.empty((4,), tl.float32))

    graph, ran = run(kernel)
    assert ran.unwritten_reads == nodes_of(graph, "store")


def test_an_accumulator_is_read_before_it_is_written() -> None:
    """``dot(acc=)`` into an ``empty`` handle reads it."""

    def kernel(o: Any) -> None:
        a = tl.full((2, 2), 1.0, tl.float32)
        acc = tl.empty((2, 2), tl.float32)
        tl.dot(a, a, acc=acc)
        tl.dot(a, a, acc=acc)
        tl.store(o[:], tl.reshape(acc, (4,)))

    graph, ran = run(kernel)
    assert ran.unwritten_reads == nodes_of(graph, "dot")[:1]


def test_what_is_made_outside_and_written_inside_is_no_fault() -> None:
    """Nor is a strided write, nor a view of it, nor a use by the last node of the scope."""

    def kernel(o: Any) -> None:
        h = tl.empty((4, 2), tl.float32)
        with tl.scratch_scope():
            for col in range(2):
                tl.copy_to(h[:, col], tl.full((4,), float(col), tl.float32))
        tl.store(o[:], h[:, 1])

    _, ran = run(kernel)
    assert ran.stale_reads == ran.stale_writes == ran.unwritten_reads == ()
    np.testing.assert_array_equal(ran.outputs["o"], np.ones(4, np.float32))


def test_only_a_poisoned_run_in_program_order_watches() -> None:
    """Elsewhere the fields are empty, and ``tracked`` says why."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            h = tl.full((4,), 1.0, tl.float32)
        tl.store(o[:], h)

    graph = ks.trace(kernel, ks.hbm((4,), "f32"))
    for options in ({"poison": False}, {"poison": True, "order": range(len(graph))}):
        ran = execute(graph, **options)  # type: ignore[arg-type]
        assert not ran.tracked and ran.stale_reads == ()
    assert execute(graph).outputs["o"].tolist() == [1, 1, 1, 1]


@settings(max_examples=20, deadline=None)
@given(program=st.one_of(kernelgen.programs(faults=True), kernelgen.programs(ranks=3, faults=True, max_size=25)))
def test_what_is_found_is_what_liveness_reports(program: kernelgen.Program) -> None:
    """Node by node and kind by kind, over random kernels with and without faults; and so is the highest byte."""
    graph = program.trace(on_overflow="record")
    live = liveness(graph)
    ran = execute(graph, program.inputs(), poison=True)
    reported = {
        kind: tuple(sorted({v.node for v in live.violations if v.kind == kind and v.node is not None}))
        for kind in ("use_after_scope", "write_after_scope", "read_before_write")
    }
    assert (ran.stale_reads, ran.stale_writes, ran.unwritten_reads) == tuple(reported.values())
    assert max(ran.high_water_bytes) == live.peak_bytes


# --- when bytes are filled ------------------------------------------------------------------------------------------


def stale_after(op: str) -> Callable[[Any], None]:
    """A kernel that reads a handle in its scope and, faultily, after it."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            h = tl.full((4,), 1.0, tl.float32)
            tl.store(o[0:4], h)
        if op == "early":
            tl.store(o[4:8], h)
        tl.full((4,), 2.0, tl.float32)
        if op == "late":
            tl.store(o[4:8], h)

    return kernel


def test_in_program_order_bytes_are_filled_at_the_exit_that_rewinds_them() -> None:
    """Not before: the read inside is good; and not what the next allocation writes later."""
    _, ran = run(stale_after("early"), outputs=8)
    assert ran.outputs["o"][:4].tolist() == [1, 1, 1, 1] and np.isnan(ran.outputs["o"][4:]).all()
    _, ran = run(stale_after("late"), outputs=8)
    assert ran.outputs["o"].tolist() == [1, 1, 1, 1, 2, 2, 2, 2]


def test_in_another_order_bytes_are_filled_after_the_last_access() -> None:
    """The stale read is the last access: until it has run the bytes stay; and the next owner's bytes are never
    filled."""
    graph = ks.trace(stale_after("early"), ks.hbm((8,), "f32"))
    ran = execute(graph, order=range(len(graph)), poison=True)
    assert ran.outputs["o"].tolist() == [1] * 8
    graph = ks.trace(stale_after("late"), ks.hbm((8,), "f32"))
    assert execute(graph, order=range(len(graph)), poison=True).outputs["o"][4:].tolist() == [2] * 4


def test_poison_shows_an_order_that_lacks_an_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the recycled edges missing, a poisoned run in the order they forbid gives other bits: the proof can fail."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope():
            tl.store(o[0:4], tl.full((4,), 1.0, tl.float32))
        with tl.scratch_scope():
            tl.store(o[4:8], tl.full((4,), 2.0, tl.float32))

    graph = ks.trace(kernel, ks.hbm((8,), "f32"))
    first, second = nodes_of(graph, "fill")
    one, two = nodes_of(graph, "store")
    others = [node for node in range(len(graph)) if node not in (first, second, one, two)]
    order = np.array([*others, first, second, two, one])
    with pytest.raises(ks.OrderError, match=r"waw|war"):
        execute(graph, order=order)
    monkeypatch.setattr("kernscope.backends.execution.execute.execution_order", lambda graph, order: np.asarray(order))
    wrong = execute(graph, order=order, poison=True).outputs["o"]
    assert not np.array_equal(wrong, np.repeat(np.float32([1, 2]), 4)) and np.isnan(wrong).any()
