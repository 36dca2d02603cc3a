"""Scratch: the cursor, scopes that rewind it, the budget, and what happens when a kernel raises."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl

MIB = 1 << 20
X = ks.hbm((64, 64), "f32")


def trace(body: Callable[..., Any], **options: Any) -> ks.Graph:
    return ks.trace(body, X, **options)


def line(function: Callable[..., Any], offset: int) -> int:
    """The number of a line of a function: its own is 0."""
    return function.__code__.co_firstlineno + offset


def buffer(nbytes: int) -> Any:
    return tl.zeros((nbytes,), "u8")


def test_sizes_are_rounded_up_to_16_bytes() -> None:
    """Case 7: odd dtypes with odd shapes begin at multiples of 16."""

    def kernel(x: Any) -> None:
        sizes = [((1,), "bool"), ((3, 5), "i8"), ((17,), "f8e4m3"), ((7,), "f16"), ((16,), "u8"), ((1,), "f32")]
        addresses = [tl.empty(shape, dtype).address for shape, dtype in sizes]
        assert addresses == [0, 16, 32, 64, 80, 96]

    graph = trace(kernel)
    assert [graph.storage(row).nbytes for row in range(1, 7)] == [1, 15, 17, 14, 16, 4]
    assert [graph.storage(row).held_bytes for row in range(1, 7)] == [16, 16, 32, 16, 16, 16]


def test_a_result_is_counted() -> None:
    """Case 2: `c = a + b`, 0.4 MiB each, peaks at 1.2 MiB: too much by the result."""

    def kernel(x: Any) -> None:
        a, b = buffer(4 * MIB // 10), buffer(4 * MIB // 10)
        _ = a + b

    with pytest.raises(ks.ScratchOverflowError):
        trace(kernel)
    graph = trace(kernel, on_overflow="record")
    last = graph.storage(len(graph.storages) - 1)
    assert last.address + last.nbytes > MIB


def test_sequential_scopes_take_the_same_bytes() -> None:
    """Case 3: eight scopes of 0.3 MiB one after the other peak at 0.3 MiB."""

    def kernel(x: Any) -> None:
        for _ in range(8):
            with tl.scratch_scope():
                assert buffer(3 * MIB // 10).address == 0

    graph = trace(kernel)
    assert [node.op for node in graph] == ["scope_enter", "fill", "scope_exit"] * 8


def test_a_loop_with_a_scope_inside_takes_no_more_the_longer_it_runs() -> None:
    """Case 6: every iteration has the same addresses, whatever the number."""
    ends: dict[int, set[int]] = {}

    def kernel(x: Any, *, n: int) -> None:
        kept = tl.zeros((64, 64), "f32")
        ends[n] = set()
        for _ in range(n):
            with tl.scratch_scope():
                t = tl.exp(tl.load(x)) + kept
                tl.copy_to(kept, t)
                ends[n].add(t.address + t.nbytes)

    for n in (1, 100):
        trace(kernel, n=n)
    assert ends[1] == ends[100] == {4 * 64 * 64 * 4}


def test_scopes_nest_and_rewind_to_their_own_save_points() -> None:
    """Each exit goes back to where its own enter was; handles made outside keep their address."""

    def kernel(x: Any) -> None:
        outer = tl.empty((16,), "u8")
        with tl.scratch_scope("a"):
            first = tl.empty((16,), "u8")
            with tl.scratch_scope("b"):
                assert tl.empty((16,), "u8").address == 32
                assert tl.empty((16,), "u8").address == 48
            assert tl.empty((16,), "u8").address == 32
            with tl.scratch_scope():
                assert tl.empty((16,), "u8").address == 48
        assert tl.empty((16,), "u8").address == 16
        assert (outer.address, first.address) == (0, 16)

    graph = trace(kernel)
    scopes = graph.scopes
    assert scopes.parent.tolist() == [-1, 0, 1, 1]
    assert scopes.base.tolist() == [0, 16, 32, 48]
    assert [graph.names[n] for n in scopes.name] == ["", "a", "b", ""]
    assert list(zip(scopes.enter.tolist(), scopes.exit.tolist(), strict=True)) == [(-1, -1), (0, 5), (1, 2), (3, 4)]
    assert graph.op_log() == []


def test_composites_take_their_hidden_tiles() -> None:
    """Case 6: the accumulator and the buffers of a composite count, and are given back with the scope."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            tl.composite("gemm", tl.ref(x), tl.ref(x), tile=(32, 32, 32))
            assert tl.empty((1,), "u8").address == 4 * (64 * 64 + 32 * 32 + 4 * 32 * 32)
        assert tl.empty((1,), "u8").address == 0

    trace(kernel)


@pytest.mark.parametrize("size", [MIB, MIB - 1, MIB - 15])
def test_exactly_the_budget_passes(size: int) -> None:
    """Case 4: filled to the last byte, also by a size that is rounded up to it."""
    trace(lambda x: buffer(size))


def test_one_byte_more_fails_and_the_numbers_agree() -> None:
    """Case 4: the size is rounded up before it is checked; asked, in use, budget and excess are printed in bytes."""
    with pytest.raises(ks.ScratchOverflowError) as caught:
        trace(lambda x: buffer(MIB + 1))
    message = caught.value.message.splitlines()[0]
    for number in ("u8[1048577]", "1,048,592 B", "0 B of 1,048,576 B", "16 B too many"):
        assert number in message
    assert "live allocations" not in caught.value.message, "there are none to list"
    with pytest.raises(ks.ScratchOverflowError, match="16 B too many"):
        trace(lambda x: (buffer(1), buffer(MIB)))


def test_overflow_lists_every_live_allocation_by_size() -> None:
    """Case 1: what was asked, what is in use, the budget, and each live allocation with bytes, name and line; freed
    ones are not among them; the error is at the line that asked."""

    def kernel(x: Any) -> None:
        small = tl.zeros((100_000,), "u8")  # 1
        with tl.scratch_scope():
            freed = tl.zeros((300_000,), "u8")
        large = tl.zeros((400_000,), "u8")
        for _ in range(3):
            tiles = tl.zeros((100_000,), "u8")
        _ = small, freed, large, tiles
        asked = tl.zeros((300_000,), "u8")  # 8
        _ = asked

    with pytest.raises(ks.ScratchOverflowError) as caught:
        trace(kernel)
    error = caught.value
    first, second, *allocations = error.message.splitlines()
    assert "300,000 B" in first and "800,000 B of 1,048,576 B are in use" in first and "51,424 B too many" in first
    assert "largest first" in second
    assert [entry.split() for entry in allocations] == [
        ["400,000", "B", "large", f"test_scopes.py:{line(kernel, 4)}"],
        ["300,000", "B", "3", "x", "tiles", f"test_scopes.py:{line(kernel, 6)}"],
        ["100,000", "B", "small", f"test_scopes.py:{line(kernel, 1)}"],
    ]
    assert (error.places[0][1].file, error.places[0][1].line) == (__file__, line(kernel, 8))
    assert "scratch_scope" in error.help
    assert isinstance(error, RuntimeError)
    # The message comes first: before places and help.
    assert str(error).startswith("scratch overflow on rank 0")


def test_overflow_names_and_places_are_of_one_line() -> None:
    """What a helper returns has its caller's name, and then the caller's line; what has no name has the helper's."""

    def helper(rows: int) -> Any:
        return tl.zeros((rows,), "u8")

    def nameless(rows: int) -> None:
        tl.zeros((rows,), "u8")  # 1

    def kernel(x: Any) -> None:
        first = helper(500_000)  # 1
        nameless(300_000)
        second = helper(400_000)
        _ = first, second

    with pytest.raises(ks.ScratchOverflowError) as caught:
        trace(kernel)
    assert [entry.split() for entry in caught.value.message.splitlines()[2:]] == [
        ["500,000", "B", "first", f"test_scopes.py:{line(kernel, 1)}"],
        ["300,000", "B", "unnamed", f"test_scopes.py:{line(nameless, 1)}"],
    ]
    assert caught.value.places[0][1].line == line(helper, 1)


def test_overflow_can_be_recorded() -> None:
    """With `on_overflow="record"` the trace goes on past the budget, and addresses say by how much."""

    def kernel(x: Any) -> None:
        for _ in range(3):
            buffer(600_000)

    graph = trace(kernel, on_overflow="record")
    assert [graph.storage(row).address for row in (1, 2, 3)] == [0, 600_000, 1_200_000]


def test_the_budget_is_per_rank() -> None:
    """Each rank begins with an empty scratch."""
    graph = trace(lambda x: buffer(MIB), ranks=3)
    assert graph.storages.address.tolist() == [0, 0, 0, 0]
    assert graph.storages.rank.tolist() == [-1, 0, 1, 2]


def test_an_overflow_that_is_caught_takes_nothing() -> None:
    """A kernel may try a large tile and fall back on a small one."""

    def kernel(x: Any) -> None:
        try:
            buffer(2 * MIB)
        except ks.ScratchOverflowError:
            assert buffer(16).address == 0

    assert trace(kernel).op_log() == ["math/fill"]


def returned_from_scope(x: Any) -> Any:
    with tl.scratch_scope():
        h = tl.load(x)
    return h


@pytest.mark.parametrize(
    "view", [lambda h: h, lambda h: h[0:4], lambda h: tl.trans(h), lambda h: tl.reshape(h, (4096,)), lambda h: h.T[0]]
)
def test_a_handle_used_after_its_scope_is_recorded(view: Callable[[Any], Any]) -> None:
    """Case 11: the handle and every view of it; the storage says where it was freed."""
    graph = trace(lambda x: tl.exp(view(returned_from_scope(x))))
    read = graph[3].reads[0]
    assert (read.storage.freed, graph[3].id) == (2, 3)


@pytest.mark.parametrize(
    "use",
    [
        lambda h, x: tl.exp(h),
        lambda h, x: h + 1.0,
        lambda h, x: 1.0 - h[0:4],
        lambda h, x: tl.store(x, h),
        lambda h, x: tl.copy_to(h, tl.zeros((64, 64), "f32")),
        lambda h, x: tl.copy_to(tl.zeros((64, 64), "f32"), h),
        lambda h, x: tl.load(x, out=h),
        lambda h, x: tl.dot(h, tl.load(x)),
        lambda h, x: tl.dot(tl.load(x), tl.load(x), acc=h),
        lambda h, x: tl.composite("gemm", h, tl.ref(x)),
        lambda h, x: tl.send("next", h),
        lambda h, x: tl.recv("prev", (64, 64), "f32", out=h),
        lambda h, x: tl.sum(tl.trans(h), axis=0),
        lambda h, x: h.to("f16"),
    ],
)
def test_strict_refuses_a_use_after_scope_at_once(use: Callable[[Any, Any], Any]) -> None:
    """Reads and writes alike, with three places: used here, made here, scope closed here."""

    def kernel(x: Any) -> None:
        use(returned_from_scope(x), x)

    trace(kernel, ranks=2)
    with pytest.raises(ks.UseAfterScopeError) as caught:
        trace(kernel, ranks=2, strict=True)
    assert [role for role, _ in caught.value.places] == ["here", "made here", "scope closed here"]
    assert caught.value.places[1][1].line == line(returned_from_scope, 2)
    assert "copy_to" in caught.value.help


def test_strict_accepts_what_is_made_outside_and_written_inside() -> None:
    """Case 12: no fault in any mode; also a view formed after the exit and never used."""

    def kernel(x: Any) -> None:
        kept = tl.zeros((64, 64), "f32")
        with tl.scratch_scope():
            inner = tl.load(x)
            tl.copy_to(kept, inner)
        _ = inner[0:4]
        tl.store(x, kept)

    trace(kernel, strict=True)


def test_a_scope_closes_on_exceptions() -> None:
    """A kernel that catches what was raised inside goes on with the cursor rewound and the exit recorded."""

    def kernel(x: Any) -> None:
        with pytest.raises(ZeroDivisionError), tl.scratch_scope():
            tl.load(x)
            _ = 1 / 0
        with pytest.raises(ks.ShapeError), tl.scratch_scope(), tl.scratch_scope():
            tl.copy_to(tl.load(x), tl.zeros((4,), "f32"))
        assert tl.empty((4,), "u8").address == 0

    graph = trace(kernel)
    names = [node.op for node in graph]
    assert names.count("scope_enter") == names.count("scope_exit") == 3
    assert (graph.scopes.exit[1:] > graph.scopes.enter[1:]).all()


def test_one_scope_object_can_be_entered_again() -> None:
    """One after the other, and within itself."""

    def kernel(x: Any) -> None:
        scope = tl.scratch_scope("again")
        with scope:
            tl.empty((16,), "u8")
            with scope:
                assert tl.empty((16,), "u8").address == 16
            assert tl.empty((16,), "u8").address == 16
        with scope:
            assert tl.empty((16,), "u8").address == 0

    assert trace(kernel).scopes.parent.tolist() == [-1, 0, 1, 0]


def test_a_scope_left_open_is_refused() -> None:
    """One that was entered by hand and never left."""

    def kernel(x: Any) -> None:
        tl.scratch_scope("lost").__enter__()

    with pytest.raises(ks.ScopeError, match="lost") as caught:
        trace(kernel)
    assert caught.value.places[0][1].line == line(kernel, 1)


def test_scopes_left_in_the_wrong_order_are_refused() -> None:
    """They nest."""

    def kernel(x: Any) -> None:
        outer, inner = tl.scratch_scope("outer"), tl.scratch_scope("inner")
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)

    with pytest.raises(ks.ScopeError, match="outer"):
        trace(kernel)


def fine(x: Any) -> None:
    h = tl.load(x)
    with tl.scratch_scope():
        tl.exp(h)


def raising(x: Any) -> None:
    tl.load(x)
    with tl.scratch_scope():
        buffer(1000)
        raise KeyError("the kernel's own")


def test_a_trace_that_raised_leaves_nothing_behind() -> None:
    """Case 15: the next trace is the same as if there had been none before, and `tl` is not tracing in between."""
    before = trace(fine)
    for broken in (raising, lambda x: buffer(2 * MIB), lambda x: tl.foo()):
        with pytest.raises((KeyError, ks.ScratchOverflowError, ks.UnknownNameError)):
            trace(broken)
        with pytest.raises(ks.NotTracingError):
            tl.zeros((4,), "f32")
        assert trace(fine) == before


def test_what_the_kernel_raises_passes_through() -> None:
    """Its own exception, not one of kernscope's."""
    with pytest.raises(KeyError, match="the kernel's own"):
        trace(raising)


def test_threads_do_not_meet() -> None:
    """Case 15: a trace in another thread, while one is running here, is its own; one that raised there leaves
    nothing."""
    alone = trace(fine)
    others: list[Any] = []

    def elsewhere() -> None:
        try:
            tl.zeros((4,), "f32")
        except ks.NotTracingError:
            others.append("clean")
        with pytest.raises(KeyError):
            trace(raising)
        others.append(trace(fine))

    def kernel(x: Any) -> None:
        h = tl.load(x)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with tl.scratch_scope():
            tl.exp(h)

    graph = trace(kernel)
    assert graph.op_log() == alone.op_log()
    assert others == ["clean", alone]


def test_traces_nest() -> None:
    """A trace inside a kernel is its own, and the outer one goes on where it was, also when the inner one raised."""
    inner: list[ks.Graph] = []

    def kernel(x: Any) -> None:
        h = tl.load(x)
        inner.append(trace(fine))
        with pytest.raises(KeyError):
            trace(raising)
        with tl.scratch_scope():
            tl.exp(h)

    assert trace(kernel).op_log() == trace(fine).op_log()
    assert inner == [trace(fine)]


@pytest.mark.parametrize(
    "use", [lambda h: h + 1.0, lambda h: -h, lambda h: h.to("f16"), lambda h: tl.exp(h), lambda h: tl.store(h, h)]
)
def test_a_handle_does_not_outlive_its_trace(use: Callable[[Any], Any]) -> None:
    """Kept in a list, it belongs to no later trace, to no trace within, to none at all: never recorded in silence."""
    kept: list[Any] = []
    trace(lambda x: kept.append(tl.load(x)))
    with pytest.raises((ks.NotTracingError, ks.OwnerError, ks.ArgumentError)):
        trace(lambda x: use(kept[0]))
    with pytest.raises((ks.NotTracingError, ks.OwnerError)):
        use(kept[0])

    def within(x: Any) -> None:
        h = tl.load(x)
        with pytest.raises((ks.NotTracingError, ks.OwnerError, ks.ArgumentError)):
            trace(lambda y: use(h))
        _ = h + 1.0

    assert trace(within).op_log() == ["memory/dma_read", "math/add"]


def test_an_hbm_tensor_does_not_outlive_its_trace() -> None:
    """Neither does a region or a pointer."""
    kept: list[Any] = []
    trace(lambda x: kept.extend([x, x[0:4]]))
    for number in (0, 1):
        with pytest.raises(ks.OwnerError, match="another trace"):
            trace(lambda x, *, number: tl.load(kept[number]), number=number)


def test_a_kernel_that_never_ends_meets_the_node_limit() -> None:
    """The limit is an error at the kernel's line; exactly so many nodes pass."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        while True:
            with tl.scratch_scope():
                tl.exp(h)

    with pytest.raises(ks.NodeLimitError, match="1,000 nodes") as caught:
        trace(kernel, max_nodes=1000)
    assert caught.value.places[0][1].file == __file__
    assert "max_nodes" in caught.value.help
    assert len(trace(fine, max_nodes=4)) == 4
    with pytest.raises(ks.NodeLimitError):
        trace(fine, max_nodes=3)


def test_the_same_kernel_gives_the_same_graph() -> None:
    """Bit for bit: all columns, NaN among the constants, and the text."""

    def kernel(x: Any) -> None:
        h = tl.load(x) * float("nan")
        tl.full((4,), float("nan"), "f32")
        with tl.scratch_scope():
            tl.exp(h)

    one, two = trace(kernel), trace(kernel)
    assert one == two
    assert str(one) == str(two)
    for name in ("nodes", "accesses", "storages", "scopes", "frames", "stacks"):
        columns, others = getattr(one, name).columns(), getattr(two, name).columns()
        assert all(columns[key].tobytes() == others[key].tobytes() for key in columns)
    assert trace(fine) != one


def test_a_graph_cannot_be_written_on() -> None:
    """Its columns are read-only."""
    graph = trace(fine)
    with pytest.raises(ValueError, match="read-only"):
        graph.nodes.op[0] = 1
    with pytest.raises(AttributeError):
        graph.kernel = "another"  # type: ignore[misc]  # that is the point
