"""Which elements an access covers, against the sets of elements counted one by one."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernscope.ir import dtypes
from kernscope.ir import layout as layouts
from kernscope.ir.dependence.regions import box_of_view, flat_range_boxes
from kernscope.ir.layout import Layout

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def shown(view: Layout, offset: int) -> set[int]:
    """The elements of the storage that a view shows."""
    steps = [range(0, n * s, s) if s else [0] for n, s in zip(view.shape, view.strides, strict=True)]
    return {offset + sum(place) for place in itertools.product(*steps)}


def in_box(shape: tuple[int, ...], offset: int, extents: tuple[int, ...]) -> set[int]:
    """The elements of a box whose lower corner is the element `offset`; the box has to lie inside."""
    corner = [int(n) for n in np.unravel_index(offset, shape)]
    assert all(lo + n <= size for lo, n, size in zip(corner, extents, shape, strict=True)), (corner, extents, shape)
    spaces = [range(lo, lo + n) for lo, n in zip(corner, extents, strict=True)]
    return {int(np.ravel_multi_index(place, shape)) for place in itertools.product(*spaces)}


@st.composite
def views(draw: st.DrawFn) -> tuple[Layout, Layout, int]:
    """A dense storage and a view of it, by up to four view operations."""
    storage = Layout.dense(draw(SHAPES), dtypes.float32)
    view, offset = storage, 0
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["slice", "transpose", "reshape", "expand", "broadcast", "index"]))
        if kind == "slice" and view.ndim:
            parts = []
            for n in view.shape:
                a = draw(st.integers(0, n - 1))
                parts.append(slice(a, draw(st.integers(a + 1, n))))
            step, view = layouts.index(view, tuple(parts))
            offset += step
        elif kind == "index" and view.ndim > 1:
            step, view = layouts.index(view, draw(st.integers(0, view.shape[0] - 1)))
            offset += step
        elif kind == "transpose" and view.ndim:
            view = layouts.transpose(view, draw(st.permutations(range(view.ndim))))
        elif kind == "reshape" and view.is_dense:
            divisor = draw(st.sampled_from([d for d in range(1, view.size + 1) if view.size % d == 0]))
            view = layouts.reshape(view, (divisor, view.size // divisor))
        elif kind == "expand" and view.ndim < 4:
            view = layouts.expand_dims(view, draw(st.integers(0, view.ndim)))
        elif kind == "broadcast":
            wide = tuple(draw(st.integers(1, 3)) if n == 1 else n for n in view.shape)
            view = layouts.broadcast_to(view, wide)
    return storage, view, offset


@given(views())
def test_a_box_holds_exactly_the_elements_that_the_view_shows(case: tuple[Layout, Layout, int]) -> None:
    """Where a view has a box that lies inside the storage, the box is the view's set of elements: no more, no less."""
    storage, view, offset = case
    extents = box_of_view(storage, view)
    if extents is None:
        return
    corner = np.unravel_index(offset, storage.shape)
    if any(int(lo) + n > size for lo, n, size in zip(corner, extents, storage.shape, strict=True)):
        return
    assert in_box(storage.shape, offset, extents) == shown(view, offset)


@given(SHAPES, st.data())
def test_every_slice_and_its_transpose_has_a_box(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A slice of a tensor is a box of it, in whatever order its dimensions are read."""
    storage = Layout.dense(shape, dtypes.float16)
    parts = []
    for n in shape:
        a = data.draw(st.integers(0, n - 1))
        parts.append(slice(a, data.draw(st.integers(a + 1, n))))
    offset, view = layouts.index(storage, tuple(parts))
    turned = layouts.transpose(view, data.draw(st.permutations(range(view.ndim))))
    for each in (view, turned):
        extents = box_of_view(storage, each)
        assert extents is not None
        assert in_box(shape, offset, extents) == shown(each, offset)


@pytest.mark.parametrize(
    ("shape", "make", "extents"),
    [
        ((8, 8), lambda s: layouts.index(s, slice(2, 4))[1], (2, 8)),
        ((8, 8), lambda s: layouts.index(s, (slice(None), slice(2, 4)))[1], (8, 2)),
        ((8, 8), lambda s: layouts.transpose(s, ()), (8, 8)),
        ((8, 8), lambda s: layouts.reshape(s, (64,)), (8, 8)),
        ((8, 8), lambda s: layouts.reshape(s, (4, 2, 8)), (8, 8)),
        ((8, 1), lambda s: layouts.broadcast_to(s, (8, 64)), (8, 1)),
        ((8, 8), lambda s: layouts.index(layouts.reshape(s, (64,)), slice(0, 16))[1], (2, 8)),
        ((8, 8), lambda s: layouts.index(layouts.reshape(s, (64,)), slice(0, 12))[1], None),
        ((4, 4), lambda s: layouts.index(layouts.reshape(s, (8, 2)), (slice(None), 0))[1], None),
    ],
    ids=["rows", "columns", "transposed", "flat", "split", "broadcast", "two-rows", "row-and-half", "every-other"],
)
def test_the_views_that_kernels_make(shape: tuple[int, ...], make: Any, extents: tuple[int, ...] | None) -> None:
    """Rows, columns, transposes, reshapes and broadcasts are boxes; what starts and ends within rows is none."""
    storage = Layout.dense(shape, dtypes.float32)
    assert box_of_view(storage, make(storage)) == extents


@given(SHAPES, st.data())
def test_a_flat_range_is_a_few_disjoint_boxes(shape: tuple[int, ...], data: st.DataObject) -> None:
    """The boxes of a range of elements hold each element of it once and nothing else, and are at most 2 d - 1."""
    size = math.prod(shape)
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, size))
    boxes = flat_range_boxes(shape, start, stop)
    counted: list[int] = []
    for lower, extents in boxes:
        counted += in_box(shape, int(np.ravel_multi_index(lower, shape)), extents)
    assert sorted(counted) == list(range(start, stop))
    assert len(boxes) <= 2 * len(shape) - 1


def test_a_storage_without_dimensions_is_one_box() -> None:
    """A scalar has one element and one box."""
    assert flat_range_boxes((), 0, 1) == [((), ())]
