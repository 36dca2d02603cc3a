"""Layouts: the shape, strides and dtype of a view; and the view operations on them.

Layouts are interned: two equal ones are one object, so that a recorder can use them as cheap dictionary keys and a
graph stores each of them once.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from .dtypes import DType
from .errors import IndexingError, ShapeError, TracedValueError, shown

__all__ = [
    "LARGEST_ELEMENTS",
    "Layout",
    "Shape",
    "broadcast_shapes",
    "broadcast_to",
    "check_shape",
    "dense_strides",
    "expand_dims",
    "index",
    "reshape",
    "resolve_axes",
    "resolve_axis",
    "transpose",
]

Shape = tuple[int, ...]

#: What a view can show: sums and products of a few such numbers stay inside the graph's 64-bit columns.
LARGEST_ELEMENTS = 2**48


class Layout:
    """Shape, strides (in elements) and dtype of a view. Make one with :meth:`of` or :meth:`dense`; never directly.

    ``size`` elements and ``nbytes`` bytes are what the view shows; ``span`` is how many elements lie between its first
    and its last one (inclusive) in the storage.
    """

    __slots__ = ("dtype", "is_broadcast", "is_dense", "nbytes", "ndim", "shape", "size", "span", "strides")
    shape: Shape
    strides: Shape
    dtype: DType
    ndim: int
    size: int
    nbytes: int
    span: int
    is_dense: bool
    is_broadcast: bool

    @staticmethod
    def of(shape: Shape, strides: Shape, dtype: DType) -> Layout:
        """The layout of these three, each time the same object. Raises ``ShapeError`` for more elements than any memory
        has."""
        key = (shape, strides, dtype)
        found = _INTERNED.get(key)
        if found is not None:
            return found
        if math.prod(shape) > LARGEST_ELEMENTS:
            raise ShapeError(
                f"shape {shape} has {math.prod(shape):,} elements, more than any memory",
                help="tiles are small parts of a tensor: a few hundred elements in each dimension",
            )
        made = Layout.__new__(Layout)
        made.shape, made.strides, made.dtype = shape, strides, dtype
        made.ndim = len(shape)
        made.size = math.prod(shape)
        made.nbytes = made.size * dtype.itemsize
        dims = list(zip(shape, strides, dense_strides(shape), strict=True))
        made.span = 1 + sum((n - 1) * s for n, s, _ in dims)
        made.is_broadcast = any(s == 0 and n > 1 for n, s, _ in dims)
        made.is_dense = all(n == 1 or s == d for n, s, d in dims)
        # setdefault is atomic: two threads that intern one layout at once still get one object.
        return _INTERNED.setdefault(key, made)

    @staticmethod
    def dense(shape: Shape, dtype: DType) -> Layout:
        """The row-major layout of a shape."""
        return Layout.of(shape, dense_strides(shape), dtype)

    def __repr__(self) -> str:
        text = f"{self.dtype.short}[{','.join(map(str, self.shape))}]"
        return text if self.is_dense else f"{text} strides ({','.join(map(str, self.strides))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Layout.of, (self.shape, self.strides, self.dtype))


_INTERNED: dict[tuple[Shape, Shape, DType], Layout] = {}


def dense_strides(shape: Shape) -> Shape:
    """Row-major strides, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def check_shape(shape: Any, what: str = "shape") -> Shape:
    """A shape (any sequence or array of integers) as a tuple of positive Python integers; an integer stands for a shape
    of one dimension.

    Raises ``ShapeError`` where it is none; what a traced value raises when it is taken for a size passes through.
    """
    try:
        dims = tuple(int(operator.index(n)) for n in (shape if hasattr(shape, "__len__") else (shape,)))
    except TracedValueError:
        raise
    except TypeError:
        raise ShapeError(
            f"{what} {shown(shape)} is no tuple of integers", help="write it as a tuple: (128, 64)"
        ) from None
    if any(n <= 0 for n in dims):
        raise ShapeError(f"{what} {dims} has no elements", help="every dimension must be at least 1")
    return dims


def resolve_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front (negative ones count from the back). Raises ``ShapeError`` outside the shape."""
    try:
        number = int(operator.index(axis))
    except TracedValueError:
        raise
    except TypeError:
        raise ShapeError(
            f"axis {shown(axis)} is no integer", help="an axis is a Python integer; None means all of them"
        ) from None
    if not -ndim <= number < ndim:
        raise ShapeError(f"axis {number} does not exist in {ndim} dimensions", help=f"use 0 to {ndim - 1}")
    return number % ndim


def resolve_axes(axis: Any, ndim: int) -> int | Shape | None:
    """One axis or several of them (a tuple or list), counted from the front and in order; ``None``, for all, stays.

    Raises ``ShapeError`` outside the shape, and for an axis that is named twice."""
    if not isinstance(axis, tuple | list):
        return None if axis is None else resolve_axis(axis, ndim)
    numbers = sorted(resolve_axis(each, ndim) for each in axis)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ShapeError(f"axes {tuple(axis)} of {ndim} dimensions", help="name each of them once, and at least one")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape of numpy broadcasting. Raises ``ShapeError`` with all the shapes where there is none."""
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ShapeError(
                "shapes " + " and ".join(map(str, shapes)) + " do not broadcast",
                help="sizes must be equal or 1, counted from the last dimension; tl.expand_dims or h[:, None] adds one",
            )
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcast_to(layout: Layout, shape: Shape) -> Layout:
    """The layout of a broadcast view. Raises ``ShapeError`` where numpy would not broadcast."""
    if broadcast_shapes(layout.shape, shape) != shape:
        raise ShapeError(f"shape {layout.shape} does not broadcast to {shape}", help="only sizes of 1 can be widened")
    lead = len(shape) - layout.ndim
    strides = (0,) * lead + tuple(
        s if n == want else 0 for n, s, want in zip(layout.shape, layout.strides, shape[lead:], strict=True)
    )
    return Layout.of(shape, strides, layout.dtype)


def transpose(layout: Layout, axes: Sequence[int]) -> Layout:
    """The layout with its dimensions in another order; no axes: the last two swapped."""
    if not axes:
        if layout.ndim < 2:
            raise ShapeError(f"cannot transpose shape {layout.shape}", help="h[:, None] makes a column of a row")
        order = [*range(layout.ndim - 2), layout.ndim - 1, layout.ndim - 2]
    else:
        order = [resolve_axis(axis, layout.ndim) for axis in axes]
        if sorted(order) != list(range(layout.ndim)):
            raise ShapeError(
                f"axes {tuple(axes)} are no permutation of the {layout.ndim} dimensions of {layout.shape}",
                help="name every dimension once",
            )
    return Layout.of(tuple(layout.shape[i] for i in order), tuple(layout.strides[i] for i in order), layout.dtype)


def reshape(layout: Layout, shape: Shape) -> Layout:
    """The layout under another shape of as many elements; one size may be -1. Needs a contiguous view."""
    if shape.count(-1) == 1:
        rest = math.prod(n for n in shape if n != -1)
        if rest > 0 and layout.size % rest == 0:
            shape = tuple(layout.size // rest if n == -1 else n for n in shape)
    shape = check_shape(shape)
    if math.prod(shape) != layout.size:
        raise ShapeError(
            f"cannot reshape {layout.shape} ({layout.size} elements) to {shape} ({math.prod(shape)})",
            help="both shapes must hold the same number of elements",
        )
    if not layout.is_dense:
        raise ShapeError(
            f"cannot reshape a view that is not contiguous: {layout!r}",
            help="copy it first: dst = tl.empty(h.shape, h.dtype); tl.copy_to(dst, h); or reshape before the view",
        )
    return Layout.dense(shape, layout.dtype)


def expand_dims(layout: Layout, axis: Any) -> Layout:
    """The layout with a dimension of size 1 added at ``axis`` of the result."""
    at = resolve_axis(axis, layout.ndim + 1)
    shape = (*layout.shape[:at], 1, *layout.shape[at:])
    return Layout.of(shape, (*layout.strides[:at], 0, *layout.strides[at:]), layout.dtype)


def index(layout: Layout, items: Any) -> tuple[int, Layout]:
    """Basic indexing (integers, slices of step 1, ``None``, ``...``): how many elements further the view starts, and
    its layout. As in numpy negative numbers count from the end; unlike numpy a slice that leaves the shape is an
    ``IndexingError``, never clamped.
    """
    entries = list(items) if isinstance(items, tuple) else [items]
    given = sum(1 for e in entries if e is not None and e is not Ellipsis)
    if given > layout.ndim:
        raise IndexingError(f"{given} indices for shape {layout.shape}", help=f"give at most {layout.ndim}")
    fill = [slice(None)] * (layout.ndim - given)
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]  # `in` would compare handles and arrays with ==
    if len(dots) > 1:
        raise IndexingError("more than one `...`", help="it stands for all dimensions not named: once is enough")
    if dots:
        entries[dots[0] : dots[0] + 1] = fill
    else:
        entries += fill
    offset, axis = 0, 0
    shape: list[int] = []
    strides: list[int] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = layout.shape[axis], layout.strides[axis]
        axis += 1
        if isinstance(entry, slice):
            start, stop = slice_bounds(entry, size)
            if not 0 <= start < stop <= size:
                raise IndexingError(
                    f"slice {start}:{stop} of dimension {axis - 1} of shape {layout.shape}",
                    help="slices are not clamped: keep 0 <= start < stop <= size",
                )
            offset += start * stride
            shape.append(stop - start)
            strides.append(stride)
            continue
        number = as_index(entry)
        if not -size <= number < size:
            raise IndexingError(
                f"index {number} of dimension {axis - 1} of shape {layout.shape}", help=f"use 0 to {size - 1}"
            )
        offset += (number % size) * stride
    return offset, Layout.of(tuple(shape), tuple(strides), layout.dtype)


def as_index(entry: Any) -> int:
    """An integer index. Raises ``IndexingError`` for anything that is none (a float, a handle, an array)."""
    try:
        return int(operator.index(entry))
    except TracedValueError:
        raise
    except TypeError:
        raise IndexingError(
            f"cannot index with {shown(entry)}", help="use integers, slices a:b of Python integers, None or ..."
        ) from None


def slice_bounds(entry: slice, size: int) -> tuple[int, int]:
    """Start and stop of a slice of step 1, negative ones counted from the end, not clamped."""
    if entry.step is not None and as_index(entry.step) != 1:
        raise IndexingError(
            f"slice step {entry.step}", help="only slices of step 1 are views; load the whole and reduce"
        )
    start = 0 if entry.start is None else as_index(entry.start)
    stop = size if entry.stop is None else as_index(entry.stop)
    return (start + size if start < 0 else start), (stop + size if stop < 0 else stop)
