"""Liveness of scratch allocations, in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.target import Target
from kernscope.memory.liveness import Liveness, ViolationKind, liveness
from kernscope.tracer.trace import record_kernel

TILE = 128 * 128 * 4


def live_of(kernel: Callable[..., Any], *args: Any, ranks: int = 1, budget: int = 1 << 20, **kwargs: Any) -> Liveness:
    """The liveness of a kernel traced with overflow recorded."""
    target = Target.of_scratch(budget)
    graph = record_kernel(kernel, args, kwargs, target=target, machine="", ranks=ranks, on_overflow="record")
    return liveness(graph)


def kinds(live: Liveness) -> list[tuple[str, str]]:
    """Kind and allocation's name of each violation."""
    return [(v.kind.value, live.graph.storage(v.allocation).name) for v in live.violations]


# --- cursor and peak --------------------------------------------------------------------------------------------------


def sweep(x: Any, tiles: int, scoped: bool) -> None:
    m = tl.zeros((128, 1), tl.float32)
    for j in range(tiles):
        if scoped:
            with tl.scratch_scope():
                tl.copy_to(m, tl.max(tl.load(x[:, j * 128 : (j + 1) * 128]), axis=1, keep_dims=True))
        else:
            tl.copy_to(m, tl.max(tl.load(x[:, j * 128 : (j + 1) * 128]), axis=1, keep_dims=True))


@pytest.mark.parametrize("tiles", [1, 2, 50])
def test_the_peak_of_a_scoped_sweep_is_one_tiles_footprint(tiles: int) -> None:
    """Persistent bytes plus one iteration's, however many iterations there are."""
    assert live_of(sweep, ks.hbm((128, 128 * tiles), "f32"), tiles, True).peak_bytes == 512 + TILE + 512


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_the_peak_of_an_unscoped_sweep_grows_with_its_length(tiles: int) -> None:
    """Nothing is given back before the kernel's end."""
    assert live_of(sweep, ks.hbm((128, 128 * tiles), "f32"), tiles, False).peak_bytes == 512 + tiles * (TILE + 512)


def test_the_cursor_holds_what_is_allocated_and_not_yet_rewound() -> None:
    """After each node: rounded sizes, given back by the exit of their own scope."""

    def kernel(x: Any) -> None:
        tl.load(x[0:3])  # 12 bytes, rounded to 16
        with tl.scratch_scope():
            tl.load(x[0:8])
            with tl.scratch_scope():
                tl.load(x[0:5])
            tl.load(x[0:4])

    live = live_of(kernel, ks.hbm((8,), "f32"))
    assert [node.op for node in live.graph] == [
        "load", "scope_enter", "load", "scope_enter", "load", "scope_exit", "load", "scope_exit",
    ]  # fmt: skip
    assert live.cursor.tolist() == [16, 16, 48, 48, 80, 48, 64, 16]
    assert (live.peak_bytes, live.peak_node) == (80, 4)


def test_an_empty_that_no_node_follows_counts_for_the_peak() -> None:
    """`empty` has no node; at the end of a scope or of the kernel its bytes are in no cursor, but in the peak."""

    def at_end_of_scope(x: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[:])
            tl.empty((1000,), tl.float32)

    def at_end_of_kernel(x: Any) -> None:
        tl.load(x[:])
        tl.empty((1000,), tl.float32)

    for kernel in (at_end_of_scope, at_end_of_kernel):
        assert live_of(kernel, ks.hbm((8,), "f32")).peak_bytes == 32 + 4000


def test_a_graph_without_nodes_has_an_empty_liveness() -> None:
    """Nothing is held, nothing is wrong."""
    live = live_of(lambda: None)
    assert (live.peak_bytes, live.peak_node, live.peak_bound_bytes, live.violations) == (0, -1, 0, ())
    assert live.peak_holders() == ()
    assert live.growth() == ()


def test_every_rank_has_its_own_scratch() -> None:
    """Cursor and peak are counted by rank; the fullest rank gives the peak."""

    def kernel(x: Any) -> None:
        for _ in range(tl.program_id(0) % 3):
            tl.load(x[:])

    live = live_of(kernel, ks.hbm((4,), "f32"), ranks=4)
    assert live.peak_bytes_by_rank == (0, 16, 32, 0)
    assert live.peak_node_by_rank == (-1, 0, 2, -1)
    assert (live.peak_bytes, live.fullest_rank, live.peak_node) == (32, 2, 2)
    assert live.cursor.tolist() == [16, 16, 32]


def test_a_trailing_empty_of_one_rank_does_not_count_for_the_next() -> None:
    """Its birth is the id of the next rank's first node."""

    def kernel(x: Any) -> None:
        tl.load(x[:])
        tl.empty((1000,), tl.float32)

    live = live_of(kernel, ks.hbm((4,), "f32"), ranks=2)
    assert live.cursor.tolist() == [16, 16]
    assert live.peak_bytes_by_rank == (4016, 4016)
    assert live.peak_node_by_rank == (0, 1)


def test_peak_holders_are_what_is_held_at_the_peak_largest_first() -> None:
    """With name, bytes and line; what was given back before, or made after, is not among them."""

    def kernel(x: Any) -> None:
        small = tl.load(x[0:3])
        with tl.scratch_scope():
            tl.load(x[:])
        with tl.scratch_scope():
            big = tl.load(x[0:64])
            tl.store(x[0:64], big)
        tl.store(x[0:3], small)

    live = live_of(kernel, ks.hbm((65,), "f32"))
    assert [h.name for h in live.peak_holders()] == ["", "small"]
    live = live_of(kernel, ks.hbm((64,), "f32"))
    assert [(h.name, h.nbytes, h.held_bytes) for h in live.peak_holders()] == [("", 256, 256), ("small", 12, 16)]
    (_, last) = live.peak_holders()
    assert last.location is not None and last.location.function == "kernel"


# --- live against held ------------------------------------------------------------------------------------------------


def test_live_bytes_end_with_the_last_access() -> None:
    """From the first access to the last one, both included; held bytes stay until the exit."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            a = tl.load(x[:])
            b = tl.exp(a)
            c = tl.exp(b)
            tl.store(o[:], c)

    live = live_of(kernel, ks.hbm((4,), "f32"), ks.hbm((4,), "f32"))
    assert live.live_bytes.tolist() == [0, 16, 32, 32, 16, 0]
    assert live.cursor.tolist() == [0, 16, 32, 48, 48, 0]
    assert live.peak_bound_bytes == 32
    a = 2
    assert (live.first_write[a], live.last_access[a]) == (1, 2)


def test_an_empty_is_live_from_its_first_write() -> None:
    """Before anybody wrote it, it holds nothing that is needed."""

    def kernel(x: Any) -> None:
        buffer = tl.empty((4,), tl.float32)
        tl.load(x[:])
        tl.load(x[:], out=buffer)
        tl.exp(buffer)

    live = live_of(kernel, ks.hbm((4,), "f32"))
    assert live.live_bytes.tolist() == [16, 16, 32]


def test_a_posted_receive_is_live_until_its_wait() -> None:
    """What an asynchronous operation fills lives until the operation has finished."""

    def kernel() -> None:
        payload = tl.zeros((4,), tl.float32)
        future = tl.recv_async("prev", (4,), tl.float32)
        tl.send("next", payload)
        tl.zeros((4,), tl.float32)
        tl.wait(future)

    live = live_of(kernel, ranks=2)
    assert live.live_bytes.tolist() == [16, 32, 32, 32, 16] * 2


def test_a_stale_access_does_not_prolong_a_live_range() -> None:
    """Live bytes are held bytes: never more than the cursor. `last_access` names the stale access all the same."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            a = tl.load(x[:])
        tl.exp(a)

    live = live_of(kernel, ks.hbm((4,), "f32"))
    assert bool((live.live_bytes <= live.cursor).all())
    assert live.last_access[1] == 3


# --- violations -------------------------------------------------------------------------------------------------------


def test_reads_after_the_exit_are_found_through_every_view() -> None:
    """A slice, a transpose, a reshape of a handle are the handle."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            h = tl.load(x[:, :])
            views = [h, h[1:2, :], tl.trans(h), tl.reshape(h, (16,)), h[:, None, :], tl.broadcast_to(h[0:1, :], (4, 4))]
        for view in views:
            tl.exp(view)

    live = live_of(kernel, ks.hbm((4, 4), "f32"), ks.hbm((4, 4), "f32"))
    assert [v.node for v in live.violations] == [3, 4, 5, 6, 7, 8]
    assert {(v.kind, v.scope_exit) for v in live.violations} == {("use_after_scope", 2)}


def test_writes_after_the_exit_are_told_apart_from_reads() -> None:
    """An accumulating dot reads and writes: one violation of each kind."""

    def kernel(x: Any) -> None:
        a = tl.load(x[:, :])
        with tl.scratch_scope():
            acc = tl.dot(a, a)
        tl.copy_to(acc, a)
        tl.dot(a, a, acc=acc)
        tl.load(x[:, :], out=acc[:, :])

    live = live_of(kernel, ks.hbm((4, 4), "f32"))
    assert [(v.node, v.kind.value) for v in live.violations] == [
        (4, "write_after_scope"),
        (5, "use_after_scope"),
        (5, "write_after_scope"),
        (6, "write_after_scope"),
    ]


def test_one_node_that_reads_a_stale_handle_twice_is_one_violation() -> None:
    """A node is at fault once for each allocation."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            a, b = tl.load(x[:]), tl.load(x[:])
        a + a
        a + b

    live = live_of(kernel, ks.hbm((4,), "f32"))
    assert [v.node for v in live.violations] == [4, 5, 5]


def test_a_handle_made_outside_and_written_inside_is_no_fault() -> None:
    """Nor is one that is used in a scope nested deeper than its own, or again in a later scope."""

    def kernel(x: Any, o: Any) -> None:
        m = tl.zeros((4,), tl.float32)
        for _ in range(3):
            with tl.scratch_scope():
                a = tl.load(x[:])
                with tl.scratch_scope():
                    tl.copy_to(m, m + a)
        tl.store(o[:], m)

    assert live_of(kernel, ks.hbm((4,), "f32"), ks.hbm((4,), "f32")).violations == ()


def test_the_next_owner_of_stale_bytes_is_named_once_it_has_them() -> None:
    """The first allocation that took some of the bytes, and only if that was before the use."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[:])
            stale = tl.load(x[:])
        tl.exp(stale)  # takes the bytes below
        below = tl.load(x[:])  # takes the stale bytes themselves
        tl.exp(stale)
        tl.exp(below)
        tl.exp(stale)

    live = live_of(kernel, ks.hbm((4,), "f32"))
    owners = [v.reused_by for v in live.violations]
    assert owners[0] is None
    assert [live.graph.storage(o).name for o in owners[1:] if o is not None] == ["below", "below"]


def test_the_next_owner_is_found_past_smaller_allocations_and_rewinds() -> None:
    """Bytes below the stale ones are taken and given back many times before."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[0:64])
            stale = tl.load(x[0:4])
        for _ in range(5):
            with tl.scratch_scope():
                tl.load(x[0:32])
        tl.exp(stale)
        with tl.scratch_scope():
            big = tl.load(x[:])
            tl.exp(big)
        tl.exp(stale)

    live = live_of(kernel, ks.hbm((128,), "f32"))
    first, second = live.violations
    assert first.reused_by is None
    assert second.reused_by is not None and live.graph.storage(second.reused_by).name == "big"


def test_the_next_owner_lies_on_the_same_rank() -> None:
    """Another rank's allocations have the same addresses, in another memory."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 1:
            tl.load(x[:])
            return
        with tl.scratch_scope():
            stale = tl.load(x[:])
        tl.store(x[:], stale)

    (violation,) = live_of(kernel, ks.hbm((4,), "f32"), ranks=2).violations
    assert violation.reused_by is None


def test_reading_what_nothing_wrote_is_found_element_by_element() -> None:
    """Halves are told apart; the write that comes too late is named; a node's own write is too late for its read."""

    def kernel(x: Any) -> None:
        h = tl.empty((4, 4), tl.float32)
        tl.load(x[0:2, :], out=h[0:2, :])
        tl.exp(h[0:2, :])
        tl.exp(h[1:3, :])  # its second row is unwritten
        tl.exp(h[:, 0:1])  # and so are two elements of this column
        tl.load(x[2:4, :], out=h[2:4, :])
        tl.exp(h)
        acc = tl.empty((4, 4), tl.float32)
        tl.dot(h, h, acc=acc)
        never = tl.empty((4, 4), tl.float32)
        tl.exp(tl.trans(never))

    live = live_of(kernel, ks.hbm((4, 4), "f32"))
    assert [(v.kind.value, v.node, v.written_by) for v in live.violations] == [
        ("read_before_write", 2, 4),
        ("read_before_write", 3, 4),
        ("read_before_write", 6, 6),
        ("read_before_write", 7, None),
    ]


def test_views_that_no_box_can_express_are_followed_exactly() -> None:
    """A column range of a reshaped handle has gaps: what lies in them stays unwritten."""

    def kernel(x: Any) -> None:
        h = tl.empty((4, 6), tl.float32)
        wide = tl.reshape(h, (2, 12))
        tl.load(x[:, 0:7], out=wide[:, 0:7])
        tl.exp(wide[:, 3:7])
        tl.exp(h[0:1, :])
        tl.exp(h[1:2, :])  # the row's end, elements 7 to 11, is unwritten

    live = live_of(kernel, ks.hbm((2, 12), "f32"))
    assert [v.node for v in live.violations] == [3]


def test_stale_writes_do_not_count_as_writes_and_stale_reads_are_no_early_reads() -> None:
    """After the exit the handle owns no bytes: such a read is a use after scope and nothing else."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            h = tl.empty((4,), tl.float32)
            a = tl.load(x[:])
            tl.store(x[:], a)
        tl.exp(h)
        tl.load(x[:], out=h)

    assert kinds(live_of(kernel, ks.hbm((4,), "f32"))) == [("use_after_scope", "h"), ("write_after_scope", "h")]


def test_a_buffer_filled_by_slices_in_a_loop_is_no_fault() -> None:
    """The usual way to build a message: one buffer, two loads into its halves."""

    def kernel(x: Any) -> None:
        for _ in range(4):
            with tl.scratch_scope():
                kv = tl.empty((2, 4), tl.float32)
                tl.load(x[:], out=kv[0])
                tl.load(x[:], out=kv[1])
                tl.exp(kv)

    assert live_of(kernel, ks.hbm((4,), "f32")).violations == ()


def test_a_budget_filled_to_the_last_byte_is_fine_and_one_more_is_not() -> None:
    """Sizes are rounded up before they are checked; every allocation past the budget is a violation."""

    def kernel(x: Any, extra: int) -> None:
        tl.load(x[0:1000])
        if extra:
            tl.load(x[0:extra])

    x = ks.hbm((1000,), "u8")
    assert live_of(kernel, x, 0, budget=1008).violations == ()
    assert live_of(kernel, x, 16, budget=1024).violations == ()
    (violation,) = live_of(kernel, x, 1, budget=1008).violations
    assert (violation.kind, violation.node, violation.end_bytes) == (ViolationKind.OVERFLOW, 1, 1024)


def test_an_overflow_that_no_node_follows_has_a_node_or_none() -> None:
    """The last node before it stands for the place; a rank without nodes has none."""

    def alone() -> None:
        tl.empty((100,), tl.float32)

    def after_a_node() -> None:
        tl.zeros((4,), tl.float32)
        tl.empty((100,), tl.float32)

    assert [v.node for v in live_of(alone, budget=256).violations] == [None]
    assert [v.node for v in live_of(after_a_node, budget=256).violations] == [0]


# --- growth -----------------------------------------------------------------------------------------------------------


def test_growth_names_the_bytes_of_an_iteration_and_where_it_overflows() -> None:
    """All that an iteration leaves behind counts, whatever line it came from."""
    budget = 512 + 3 * (TILE + 512) + 1000
    live = live_of(sweep, ks.hbm((128, 128 * 8), "f32"), 8, False, budget=budget)
    (growth,) = live.growth()
    assert (growth.iterations, growth.bytes_per_iteration, growth.uniform) == (8, TILE + 512, True)
    assert growth.overflow_iteration == 4
    assert growth.location is not None
    assert (
        str(growth) == f"peak grows by 66,048 B per iteration of line {growth.location.line}; overflows at iteration 4"
    )


def test_what_a_scope_gives_back_does_not_grow() -> None:
    """A loop with a scope in it has no growth."""
    assert live_of(sweep, ks.hbm((128, 128 * 8), "f32"), 8, True).growth() == ()


def test_the_outer_loop_stands_for_an_inner_one() -> None:
    """One growth for a nest of loops; one each for two loops in a row."""

    def nest(x: Any) -> None:
        for _ in range(3):
            tl.load(x[0:4])
            for _ in range(2):
                tl.load(x[0:8])

    def row(x: Any) -> None:
        for _ in range(3):
            tl.load(x[0:4])
        for _ in range(4):
            tl.load(x[0:8])

    x = ks.hbm((8,), "f32")
    assert [(g.iterations, g.bytes_per_iteration) for g in live_of(nest, x).growth()] == [(3, 80)]
    assert [(g.iterations, g.bytes_per_iteration) for g in live_of(row, x).growth()] == [(3, 16), (4, 32)]


def test_iterations_of_unequal_size_are_averaged() -> None:
    """And said to be about that."""

    def kernel(x: Any) -> None:
        for j in range(1, 4):
            tl.load(x[0 : 4 * j])

    (growth,) = live_of(kernel, ks.hbm((12,), "f32")).growth()
    assert (growth.uniform, growth.bytes_per_iteration) == (False, 24)
    assert "about 24 B" in str(growth)


def test_the_allocations_of_one_composite_are_no_iterations() -> None:
    """They come from one call."""

    def kernel(x: Any) -> None:
        tl.composite("gemm", tl.ref(x[:, :]), tl.ref(x[:, :]), tile=(8, 8, 8))

    assert live_of(kernel, ks.hbm((16, 16), "f32")).growth() == ()


# --- size -------------------------------------------------------------------------------------------------------------


def test_results_cannot_be_changed_and_show_themselves() -> None:
    """Columns are read-only; a notebook shows a table with names escaped."""
    live = live_of(sweep, ks.hbm((128, 256), "f32"), 2, False)
    with pytest.raises(ValueError, match="read-only"):
        live.cursor[0] = 1
    assert live._repr_html_().startswith("<table>")
    assert "<lambda>" not in live_of(lambda: None)._repr_html_()
    assert np.issubdtype(live.cursor.dtype, np.int64)


def test_nothing_is_held_where_nothing_is_made() -> None:
    """No lines, no holders, no growth."""
    live = ks.liveness(ks.trace(ks.kernel(lambda: None)))
    assert (live.peak_by_line(), live.peak_holders(), live.growth(), live.peak_bytes) == ((), (), (), 0)
