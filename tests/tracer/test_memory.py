"""Loads, stores and copies: regions and pointers, ragged edges, destinations, and the refusal of what does not fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl

X = ks.hbm((100, 32), "f16")
O = ks.hbm((100, 32), "f16")


def trace(body: Callable[..., None], **options: Any) -> ks.Graph:
    return ks.trace(body, X, O, **options)


def refused(body: Callable[[Any, Any], Any], error: type[ks.KernscopeError]) -> ks.KernscopeError:
    """The error that one call raises while tracing; it names this file and says what to do."""
    recorded: list[int] = []

    def kernel(x: Any, o: Any) -> None:
        tl.load(x[0:1])
        body(x, o)
        recorded.append(1)

    with pytest.raises(error) as caught:
        trace(kernel)
    assert not recorded
    assert type(caught.value) is error
    assert caught.value.help
    assert [place.file for _, place in caught.value.places] == [__file__]
    return caught.value


@pytest.mark.parametrize(
    ("make", "shape", "nbytes"),
    [
        (lambda x: tl.load(x), (100, 32), 6400),
        (lambda x: tl.load(x[:, :]), (100, 32), 6400),
        (lambda x: tl.load(x[0:10]), (10, 32), 640),
        (lambda x: tl.load(x[90:, 16:]), (10, 16), 320),
        (lambda x: tl.load(x[3, 0:8]), (8,), 16),
        (lambda x: tl.load(x[..., 5]), (100,), 200),
        (lambda x: tl.load(x[3, 5]), (), 2),
        (lambda x: tl.load(x[10:20][2:4, 0:8]), (2, 8), 32),
        (lambda x: tl.load(x, (4, 8)), (4, 8), 64),
        (lambda x: tl.load(x + 64, (4, 8), "f16"), (4, 8), 64),
        (lambda x: tl.load(64 + x + np.int64(1) - 1, [32]), (32,), 64),
        (lambda x: tl.load(x + 3199, 1, tl.float16), (1,), 2),
        (lambda x: tl.load(x[np.int64(0) : np.int32(10)]), (10, 32), 640),
        (lambda x: tl.load(x[0:10], (10, 32), "f16"), (10, 32), 640),
    ],
)
def test_a_load_is_one_node_that_moves_its_bytes(
    make: Callable[[Any], Any], shape: tuple[int, ...], nbytes: int
) -> None:
    """Both forms, regions and pointers: one `memory/dma_read`, fresh bytes, the bytes moved as its work."""

    def kernel(x: Any, o: Any) -> None:
        handle = make(x)
        assert (handle.shape, handle.dtype) == (shape, tl.float16)

    graph = trace(kernel)
    assert graph.op_log() == ["memory/dma_read"]
    assert graph[0].work == (nbytes, 0, 0)
    assert graph[0].engine == "dma_read"
    assert [a.storage.is_hbm for a in graph[0].accesses] == [True, False]


def test_a_region_and_a_pointer_to_the_same_elements_read_the_same() -> None:
    """Rows 2 and 3 are the 64 elements from 64 on."""

    def kernel(x: Any, o: Any) -> None:
        tl.load(x[2:4])
        tl.load(x + 64, (2, 32))

    graph = trace(kernel)
    assert [graph[i].reads[0].byte_range for i in (0, 1)] == [(128, 256), (128, 256)]


def test_a_store_is_one_node_that_moves_its_bytes() -> None:
    """To a region, to a pointer, of a view: `memory/dma_write`, no allocation."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[0:10])
        tl.store(o[0:10], tile)
        tl.store(o + 320, tile)
        tl.store(o[20:52, 0:10], tl.trans(tile))
        tl.store(o[60], tile[3])

    graph = trace(kernel)
    assert graph.op_log() == ["memory/dma_read", *["memory/dma_write"] * 4]
    assert [node.work[0] for node in graph][1:] == [640, 640, 640, 64]
    assert len(graph.storages) == 3
    assert [a.storage.is_hbm for a in graph[1].accesses] == [False, True]


def test_a_load_fills_the_handle_it_is_given() -> None:
    """`load(out=h)` takes no bytes and returns h itself; h may be a view."""

    def kernel(x: Any, o: Any) -> None:
        h = tl.empty((10, 32), "f16")
        assert tl.load(x[0:10], out=h) is h
        half = h[0:5]
        assert tl.load(x[0:5], out=half) is half
        column = h[:, 0:4]
        assert tl.load(x[0:10, 0:4], out=column) is column

    graph = trace(kernel)
    assert len(graph) == 3
    assert {a.storage.row for node in graph for a in node.writes} == {2}


@st.composite
def indexings(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any]]:
    """A shape, and indexings one after the other: numbers, slices and ``...``, of as many dimensions as are left."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    left, chain = list(shape), []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, len(left))) if left else 0
        dots = draw(st.sampled_from([None, *range(count + 1)])) if left else None
        axes = range(count) if dots is None else [*range(dots), *range(len(left) - count + dots, len(left))]
        entries: list[Any] = []
        after = dict(enumerate(left))
        for axis in axes:
            start = draw(st.integers(0, left[axis] - 1))
            stop = draw(st.integers(start + 1, left[axis]))
            entry = draw(
                st.sampled_from([start, slice(start, stop), slice(None, stop), slice(start, None), slice(None)])
            )
            entries.append(entry)
            after[axis] = 0 if isinstance(entry, int) else len(range(left[axis])[entry])
        if dots is not None:
            entries.insert(dots, ...)
        chain.append(entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries))
        left = [n for n in after.values() if n]
        if not left:
            break
    return shape, [entry for entry in chain if entry != ()]


@given(indexings())
@settings(max_examples=60, deadline=None)
def test_regions_of_regions_are_what_numpy_says(case: tuple[tuple[int, ...], list[Any]]) -> None:
    """Whatever was dropped or cut before: the shape, and the elements that are loaded."""
    shape, chain = case
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    wanted = x
    for entry in chain:
        wanted = wanted[entry]

    def kernel(x: Any, o: Any) -> None:
        for entry in chain:
            x = x[entry]
        assert x.shape == wanted.shape
        tl.store(o[...], tl.load(x))

    got = ks.run(ks.trace(kernel, x, ks.hbm(wanted.shape, "f32")))["o"]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("region", "inside", "at"),
    [
        (lambda x: x[96:112], 4 * 32, (0, 0)),
        (lambda x: x[90:110, 16:48], 10 * 16, (0, 0)),
        (lambda x: x[-4:8], 8 * 32, (4, 0)),
        (lambda x: x[0:8, -2:4], 8 * 4, (0, 2)),
    ],
)
def test_only_the_inside_of_a_ragged_tile_is_moved(region: Any, inside: int, at: tuple[int, int]) -> None:
    """`pad=` fills and `clip=True` leaves out what is outside: the work is the inside's bytes, the handle is whole."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(region(x), pad=0.0)
        assert tile.shape == region(x).shape
        tl.store(region(o), tile, clip=True)

    graph = trace(kernel)
    assert [node.work for node in graph] == [(2 * inside, 0, 0)] * 2
    assert graph[0].static["at"] == at
    assert graph[0].writes[0].layout.size == graph[0].writes[0].storage.layout.size
    assert graph[1].reads[0].layout.size == graph[1].writes[0].layout.size == inside


def test_a_padded_load_that_lies_inside_is_a_plain_one() -> None:
    """Nothing is filled in: the same node as without `pad`."""

    def kernel(x: Any, o: Any) -> None:
        tl.load(x[0:10], pad=0.0)
        tl.load(x[0:10])

    graph = trace(kernel)
    assert graph[0].attributes == graph[1].attributes


def test_a_tile_wholly_outside_moves_nothing() -> None:
    """A load gives the pad and moves no byte; a store does not happen."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[100:110], pad=1.0)
        tl.store(o[100:110], tile, clip=True)

    graph = trace(kernel)
    assert graph.op_log() == ["memory/dma_read"]
    assert graph[0].work == (0, 0, 0)
    assert graph[0].reads == ()


@pytest.mark.parametrize("pad", [0, 0.0, -0.0, 1, float("-inf"), np.float32(2), True])
def test_what_is_padded_with_is_what_was_written(pad: Any) -> None:
    """Equal numbers that compute differently are kept apart."""

    def kernel(x: Any, o: Any) -> None:
        for value in (0, 0.0, 1, 1.0, pad):
            tl.load(x[90:110], pad=value)

    graph = trace(kernel)
    expected = pad.item() if isinstance(pad, np.generic) else pad
    assert repr(graph[4].static["pad"]) == repr(expected) or expected in (True, 1)
    assert repr(graph[1].static["pad"]) == "0.0"
    assert repr(graph[0].static["pad"]) == "0"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, o: tl.load(x[96:112]), "x[96:112, 0:32]"),
        (lambda x, o: tl.load(x[-1]), "x[-1, 0:32]"),
        (lambda x, o: tl.load(x[0:4, 0:33]), "(100, 32)"),
        (lambda x, o: tl.load(x + 3190, (11,)), "x+3190 of 11 elements"),
        (lambda x, o: tl.load(x - 1 if False else x + -1, (4,)), "x+-1 of 4 elements"),
        (lambda x, o: tl.store(o[96:112], tl.zeros((16, 32), "f16")), "o[96:112, 0:32]"),
        (lambda x, o: tl.store(o + 3199, tl.zeros((2,), "f16")), "o+3199 of 2 elements"),
        (lambda x, o: tl.ref(x[96:112]), "x[96:112, 0:32]"),
    ],
)
def test_a_tile_that_leaves_its_tensor_is_refused(call: Any, words: str) -> None:
    """A region never clamps."""
    error = refused(call, ks.BoundsError)
    assert words in error.message
    assert isinstance(error, IndexError)


def test_a_region_that_is_only_formed_may_leave_its_tensor() -> None:
    """Nothing is touched."""

    def kernel(x: Any, o: Any) -> None:
        region = x[96:112]
        assert region.shape == (16, 32)
        _ = x + 100_000

    assert len(trace(kernel)) == 0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, o: tl.load(x + 4), ks.ArgumentError, "a pointer needs a shape"),
        (lambda x, o: tl.load(x + 4, (4,), pad=0.0), ks.ArgumentError, "pad and clip need a region"),
        (lambda x, o: tl.load(x[0:4], (8, 32)), ks.ShapeError, "(4, 32), not (8, 32)"),
        (lambda x, o: tl.load(x[0:4], dtype="f32"), ks.DTypeError, "x is f16, not f32"),
        (lambda x, o: tl.load(x[0:4], dtype="f61"), ks.DTypeError, "unknown dtype 'f61'"),
        (lambda x, o: tl.load(x[4:4]), ks.ShapeError, "slice 4:4"),
        (lambda x, o: tl.load(x[0:-4]), ks.ShapeError, "slice 0:-4"),
        (lambda x, o: tl.load(x[0, 0, 0]), ks.IndexingError, "3 indices"),
        (lambda x, o: tl.load(x[4:0:-2]), ks.IndexingError, "slice step -2"),
        (lambda x, o: tl.load(x[None]), ks.IndexingError, "None"),
        (lambda x, o: tl.load(x[0 : 8 / 2]), ks.IndexingError, "4.0"),
        (lambda x, o: tl.load(tl.zeros((4,), "f16")), ks.ArgumentError, "no place in HBM"),
        (lambda x, o: tl.load(np.zeros((64, 64), np.float32)), ks.ArgumentError, "ndarray of shape (64, 64)"),
        (lambda x, o: tl.load(x[90:110], pad=None), ks.BoundsError, "leaves x"),
        (lambda x, o: tl.load(x[90:110], pad="0"), ks.ArgumentError, "pad '0'"),
        (lambda x, o: tl.load(x[0:4], out=tl.zeros((4, 16), "f16")), ks.ShapeError, "(4, 16)"),
        (lambda x, o: tl.load(x[0:4], out=tl.zeros((4, 32), "f32")), ks.DTypeError, "f32"),
        (lambda x, o: tl.load(x[0:4], out=o), ks.ArgumentError, "no handle in scratch"),
        (
            lambda x, o: tl.load(x[0:4], out=tl.broadcast_to(tl.zeros((1, 32), "f16"), (4, 32))),
            ks.ShapeError,
            "broadcast view",
        ),
        (lambda x, o: tl.store(o[0:4], tl.zeros((4, 16), "f16")), ks.ShapeError, "(4, 16)"),
        (lambda x, o: tl.store(o[0:4], tl.zeros((4, 32), "f32")), ks.DTypeError, "store of f32 into o"),
        (lambda x, o: tl.store(o[0:4], 0.0), ks.ArgumentError, "0.0 is no handle"),
        (lambda x, o: tl.store(tl.zeros((4, 32), "f16"), tl.zeros((4, 32), "f16")), ks.ArgumentError, "no place"),
        (lambda x, o: tl.store(tl.zeros((4, 32), "f16"), o), ks.ArgumentError, "a place in HBM"),
    ],
)
def test_loads_and_stores_refuse_what_does_not_fit(call: Any, error: type[ks.KernscopeError], words: str) -> None:
    """Each mistake is raised at its line with the shapes, dtypes and names involved."""
    assert words in refused(call, error).message


def test_copy_to_writes_over_its_destination() -> None:
    """One math/copy over as many elements; no allocation; views on either side."""

    def kernel(x: Any, o: Any) -> None:
        a, b = tl.load(x[0:10]), tl.zeros((32, 10), "f16")
        assert tl.copy_to(a, tl.trans(b)) is None
        tl.copy_to(a[0:2, 0:4], a[4:6, 8:12])

    graph = trace(kernel)
    assert graph.op_log() == ["memory/dma_read", "math/fill", "math/copy", "math/copy"]
    assert [node.work for node in graph][2:] == [(320, 0, 0), (8, 0, 0)]
    assert len(graph.storages) == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, o: tl.copy_to(tl.zeros((4, 4), "f16"), tl.zeros((4, 1), "f16")), ks.ShapeError, "(4, 1)"),
        (lambda x, o: tl.copy_to(tl.zeros((4, 4), "f16"), tl.zeros((4, 4), "f32")), ks.DTypeError, "f32 into"),
        (lambda x, o: tl.copy_to(o, tl.zeros((100, 32), "f16")), ks.ArgumentError, "HBM tensor o"),
        (lambda x, o: tl.copy_to(tl.zeros((100, 32), "f16"), x), ks.ArgumentError, "HBM tensor x"),
        (lambda x, o: tl.copy_to(tl.zeros((4,), "f16"), 0.0), ks.ArgumentError, "0.0"),
        (
            lambda x, o: tl.copy_to(tl.broadcast_to(tl.zeros((1, 4), "f16"), (4, 4)), tl.zeros((4, 4), "f16")),
            ks.ShapeError,
            "broadcast view",
        ),
    ],
)
def test_copy_to_checks_at_the_call(call: Any, error: type[ks.KernscopeError], words: str) -> None:
    """Shape, dtype, both spaces: nothing broadcasts, nothing is converted."""
    assert words in refused(call, error).message


def test_a_refused_copy_records_nothing() -> None:
    """A kernel that catches the error goes on as if the call had not been made."""

    def kernel(x: Any, o: Any) -> None:
        a, b = tl.zeros((4, 4), "f16"), tl.zeros((4, 1), "f16")
        with pytest.raises(ks.ShapeError):
            tl.copy_to(a, b)
        tl.copy_to(a, a * 2.0)

    assert trace(kernel).op_log() == ["math/fill", "math/fill", "math/mul", "math/copy"]


def test_dot_refuses_a_broadcast_accumulator() -> None:
    """It cannot hold different sums in one place."""
    error = refused(
        lambda x, o: tl.dot(
            tl.zeros((4, 4), "f16"), tl.zeros((4, 4), "f16"), acc=tl.broadcast_to(tl.zeros((1, 4), "f32"), (4, 4))
        ),
        ks.ShapeError,
    )
    assert "broadcast view" in error.message
