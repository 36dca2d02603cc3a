"""Layouts: numpy's own views say what a view's shape and elements are."""

import math
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir import dtypes
from kernscope.ir import layout as layouts
from kernscope.ir.layout import Layout

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


def elements(layout: Layout, offset: int, size: int) -> np.ndarray[Any, Any]:
    """The elements that a view shows, as numbers of the storage's elements."""
    storage = np.arange(size, dtype=np.int64)
    strides = [8 * s for s in layout.strides]
    assert offset + layout.span <= size
    return np.ndarray(layout.shape, np.int64, storage, 8 * offset, strides)


@st.composite
def indexed(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape and a basic index into it that leaves nothing empty."""
    shape = draw(SHAPES)
    entries: list[Any] = []
    for n in draw(st.just(shape[: draw(st.integers(0, len(shape)))])):
        a = draw(st.integers(0, n - 1))
        b = draw(st.integers(a + 1, n))
        choice = draw(st.integers(0, 4))
        whole = slice(a if draw(st.booleans()) else a - n, b)
        entries.append([slice(a, b), a, a - n, slice(None), whole][choice])
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        given = sum(e is not None for e in entries)
        tail = shape[given:]
        entries.append(Ellipsis)
        if tail and draw(st.booleans()):
            entries.append(draw(st.integers(0, tail[-1] - 1)))
    return shape, tuple(entries)


@given(indexed())
def test_indexing_shows_the_elements_that_numpy_shows(case: tuple[tuple[int, ...], tuple[Any, ...]]) -> None:
    """Integers, slices, None and `...` give numpy's view, element by element."""
    shape, entries = case
    whole = np.arange(math.prod(shape)).reshape(shape)
    offset, view = layouts.index(Layout.dense(shape, dtypes.float32), entries)
    np.testing.assert_array_equal(elements(view, offset, whole.size), whole[entries])


@given(SHAPES, st.data())
def test_transposing_shows_the_elements_that_numpy_shows(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Any permutation of the dimensions gives numpy's transpose; negative axes count from the end."""
    order = data.draw(st.permutations(range(len(shape))))
    named = [a - len(shape) if data.draw(st.booleans()) else a for a in order]
    whole = np.arange(math.prod(shape)).reshape(shape)
    view = layouts.transpose(Layout.dense(shape, dtypes.float16), named)
    np.testing.assert_array_equal(elements(view, 0, whole.size), whole.transpose(order))


@given(SHAPES, SHAPES)
def test_broadcasting_is_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Two shapes broadcast exactly where numpy broadcasts them, to the same shape, and the view repeats the same
    elements."""
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ks.ShapeError, match="do not broadcast"):
            layouts.broadcast_shapes(a, b)
        return
    assert layouts.broadcast_shapes(a, b) == wanted
    whole = np.arange(math.prod(a)).reshape(a)
    view = layouts.broadcast_to(Layout.dense(a, dtypes.float32), wanted)
    np.testing.assert_array_equal(elements(view, 0, whole.size), np.broadcast_to(whole, wanted))
    assert view.is_broadcast == (math.prod(wanted) > math.prod(a))


@given(SHAPES, st.data())
def test_expanding_is_numpys(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A dimension of size 1 comes at the axis of the result that numpy puts it at, negative ones too."""
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    view = layouts.expand_dims(Layout.dense(shape, dtypes.int8), axis)
    whole = np.arange(math.prod(shape)).reshape(shape)
    np.testing.assert_array_equal(elements(view, 0, whole.size), np.expand_dims(whole, axis))


@given(SHAPES, st.data())
def test_reshaping_a_dense_view_keeps_the_order_of_elements(shape: tuple[int, ...], data: st.DataObject) -> None:
    """A reshape, one size of it perhaps -1, is numpy's."""
    size = math.prod(shape)
    divisor = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    wanted = data.draw(st.sampled_from([(divisor, size // divisor), (divisor, -1), (-1, divisor), (-1,)]))
    whole = np.arange(size).reshape(shape)
    view = layouts.reshape(Layout.dense(shape, dtypes.float32), wanted)
    np.testing.assert_array_equal(elements(view, 0, size), whole.reshape(wanted))


@given(SHAPES)
def test_equal_layouts_are_one_object(shape: tuple[int, ...]) -> None:
    """Layouts are interned, also through pickling."""
    one = Layout.dense(shape, dtypes.bfloat16)
    assert Layout.of(shape, layouts.dense_strides(shape), dtypes.bfloat16) is one
    assert pickle.loads(pickle.dumps(one)) is one
    assert one.is_dense and one.span == one.size == math.prod(shape)
    assert one.nbytes == 2 * math.prod(shape)


@pytest.mark.parametrize("wanted", [(-1, 0), (0, -1), (-1, 5), (-1, -1), (7,), (-2, -12), (0,)])
def test_a_shape_of_other_elements_is_refused(wanted: tuple[int, ...]) -> None:
    """A size of 0, one that the others do not divide, two that are left open, or negative ones."""
    with pytest.raises(ks.ShapeError):
        layouts.reshape(Layout.dense((4, 6), dtypes.float32), wanted)


def test_a_view_that_skips_elements_is_not_reshaped() -> None:
    """A reshape needs a contiguous view: columns, transposes and broadcasts are refused, whole rows are not."""
    whole = Layout.dense((4, 6), dtypes.float32)
    columns = layouts.index(whole, (slice(None), slice(0, 3)))[1]
    for view in (columns, layouts.transpose(whole, ()), layouts.broadcast_to(layouts.index(whole, 0)[1], (4, 6))):
        with pytest.raises(ks.ShapeError, match="not contiguous") as caught:
            layouts.reshape(view, (view.size,))
        assert "copy" in caught.value.help
    rows = layouts.index(whole, slice(1, 3))[1]
    assert layouts.reshape(rows, (12,)).shape == (12,)


def test_a_transpose_of_one_row_is_still_contiguous() -> None:
    """Dimensions of size 1 do not matter: the column of a row can be reshaped."""
    column = layouts.transpose(Layout.dense((1, 8), dtypes.float32), ())
    assert column.is_dense
    assert layouts.reshape(column, (2, 4)).shape == (2, 4)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (slice(0, 5), "slice 0:5"),
        (slice(2, 2), "slice 2:2"),
        (slice(3, 1), "slice 3:1"),
        (slice(-5, 4), "slice -1:4"),
        (slice(0, 4, 2), "slice step 2"),
        (4, "index 4"),
        (-5, "index -5"),
        ((0, 0, 0), "3 indices"),
        ((Ellipsis, Ellipsis), "more than one"),
        (1.0, "cannot index with 1.0"),
        ("a", "cannot index with 'a'"),
        (np.array([0, 1]), "cannot index with array"),
        (slice(0, 2.0), "cannot index with 2.0"),
    ],
    ids=str,
)
def test_an_index_that_leaves_the_shape_or_is_none_is_refused(entries: Any, words: str) -> None:
    """Slices are never clamped; steps, floats, lists of numbers and too many indices are no views."""
    with pytest.raises(ks.IndexingError) as caught:
        layouts.index(Layout.dense((4, 6), dtypes.float32), entries)
    assert words in caught.value.message
    assert caught.value.help
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize(
    "shape", [(2, 3), [2, 3], np.array([2, 3]), (np.int64(2), np.int32(3)), np.zeros((2, 3)).shape]
)
def test_a_shape_is_any_sequence_of_integers(shape: Any) -> None:
    """Tuples, lists, arrays and numpy integers give one tuple of Python integers."""
    checked = layouts.check_shape(shape)
    assert checked == (2, 3)
    assert {type(n) for n in checked} == {int}


def test_an_integer_is_a_shape_of_one_dimension() -> None:
    """`128` stands for `(128,)`."""
    assert layouts.check_shape(128) == layouts.check_shape(np.int64(128)) == (128,)


@pytest.mark.parametrize("shape", [(0,), (4, 0), (-1, 4), (2.0,), "ab", None, (None, 2), ((2, 3), 4)], ids=str)
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    """Zero and negative sizes, floats and nested tuples are ShapeErrors."""
    with pytest.raises(ks.ShapeError) as caught:
        layouts.check_shape(shape)
    assert caught.value.help
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("axis", [2, -3, 1.0, None, (0,), "x"], ids=str)
def test_an_axis_outside_the_shape_is_refused(axis: Any) -> None:
    """Axes are integers from -ndim to ndim - 1."""
    with pytest.raises(ks.ShapeError, match="axis"):
        layouts.resolve_axis(axis, 2)


@given(st.integers(-3, 2))
def test_negative_axes_count_from_the_end(axis: int) -> None:
    """An axis and its negative twin are the same."""
    assert layouts.resolve_axis(np.int64(axis), 3) == operator.mod(axis, 3)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 2), (0, 1, 1)], ids=str)
def test_axes_that_are_no_permutation_are_refused(axes: tuple[int, ...]) -> None:
    """Every dimension is named once."""
    with pytest.raises(ks.ShapeError):
        layouts.transpose(Layout.dense((4, 6), dtypes.float32), axes)


def test_one_dimension_cannot_be_transposed() -> None:
    """A row has no second dimension to swap with: the help says how to make a column of it."""
    with pytest.raises(ks.ShapeError) as caught:
        layouts.transpose(Layout.dense((4,), dtypes.float32), ())
    assert "h[:, None]" in caught.value.help


def test_a_layout_has_no_more_elements_than_any_memory() -> None:
    """2^48 are the most; with one more the error says how many."""
    most = 1 << 24
    assert Layout.dense((most, most), dtypes.uint8).size == layouts.LARGEST_ELEMENTS
    with pytest.raises(ks.ShapeError, match="281,474,993,487,872 elements, more than any memory") as caught:
        Layout.dense((most + 1, most), dtypes.uint8)
    assert caught.value.help
