"""Operations that put the elements of a tile into another order: sorting, looking up, reversing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType, int32, of_numpy
from ..errors import ArgumentError, DTypeError, ShapeError
from ..layout import Layout, Shape, broadcast_shapes, resolve_axis
from .elementwise import TABLE
from .numbers import Array, cast_array
from .operation import Cost, Family, Kind, Operand, Operation, Work, input_elements, output_elements

__all__: list[str] = []


def _sort_rule(operands: Sequence[Operand], *, axis: int, descending: bool) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    resolve_axis(axis, source.ndim)
    return source.shape, source.dtype


def _sorted(x: Array, axis: int, descending: bool) -> Array:
    # In f32, whose order has NaN last: of the narrow floats numpy knows no order of NaN.
    keys = cast_array(x, of_numpy(x.dtype).computed_in)
    keys = np.flip(keys, axis) if descending else keys
    order = np.argsort(keys, axis=axis, kind="stable")
    if descending:  # from the back, so that equal ones keep their order
        order = np.flip(x.shape[axis] - 1 - order, axis)
    return np.take_along_axis(x, order, axis)


def _sort(x: Array, *, axis: int, descending: bool, result: DType, operands: Sequence[Operand]) -> Array:
    return _sorted(x, axis, descending)


def _topk_rule(operands: Sequence[Operand], *, k: int, axis: int) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    at = resolve_axis(axis, source.ndim)
    if not 1 <= k <= source.shape[at]:
        raise ArgumentError(
            f"the {k} largest of {source.shape[at]} elements (shape {source.shape}, dimension {at})",
            help=f"k is 1 to {source.shape[at]}",
        )
    return (*source.shape[:at], k, *source.shape[at + 1 :]), source.dtype


def _topk(x: Array, *, k: int, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    return np.take(_sorted(x, axis, descending=True), np.arange(k), axis)


def _flip_rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    resolve_axis(axis, source.ndim)
    return source.shape, source.dtype


def _flip(x: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    return np.flip(x, axis).copy()


def _gather_rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    source, index = operands
    assert isinstance(source, Layout) and isinstance(index, Layout)
    at = resolve_axis(axis, source.ndim)
    if not index.dtype.is_integer:
        raise DTypeError(f"an index of {index.dtype}", help="indices are integers: index.to(tl.int32)")
    others = [n for i, n in enumerate(source.shape) if i != at]
    if index.ndim != source.ndim or [n for i, n in enumerate(index.shape) if i != at] != others:
        raise ShapeError(
            f"gather from {source.shape} by an index of shape {index.shape} along dimension {at}",
            help="the index has the source's shape, but for that dimension; tl.broadcast_to repeats sizes of 1",
        )
    return index.shape, source.dtype


def _gather(x: Array, index: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    inside = (index >= 0) & (index < x.shape[axis])
    found = np.take_along_axis(x, np.where(inside, index, 0).astype(np.int64), axis)
    found.view(np.uint8).reshape(*found.shape, -1)[~inside] = 1 if result.kind == "bool" else 0xFF
    return found


def _histogram_rule(operands: Sequence[Operand], *, bins: int, axis: int) -> tuple[Shape, DType]:
    source, *mask = operands
    assert isinstance(source, Layout)
    at = resolve_axis(axis, source.ndim)
    if not source.dtype.is_integer:
        raise DTypeError(f"a histogram of {source.dtype}", help="it counts integers: x.to(tl.int32)")
    for given in mask:
        assert isinstance(given, Layout)
        if given.shape != source.shape or given.dtype.kind != "bool":
            raise ShapeError(f"a mask {given} of a histogram of {source}", help="it is a bool tensor of its shape")
    return (*source.shape[:at], bins, *source.shape[at + 1 :]), int32


def _histogram(x: Array, *mask: Array, bins: int, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    rows = np.moveaxis(x, axis, -1).astype(np.int64)
    counted = (rows >= 0) & (rows < bins)
    for given in mask:
        counted &= np.moveaxis(given, axis, -1)
    lines = rows.size // max(rows.shape[-1], 1)
    first = np.arange(lines).reshape(*rows.shape[:-1], 1) * bins
    counts = np.bincount((rows + first)[counted], minlength=lines * bins).astype(result.numpy)
    return np.ascontiguousarray(np.moveaxis(counts.reshape(*rows.shape[:-1], bins), -1, axis))


def _counted(operands: Sequence[Operand], result: Layout) -> Work:
    source = operands[0]
    assert isinstance(source, Layout)
    return (source.size, 0, 0)


def _join_rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    a, b = operands
    assert isinstance(a, Layout) and isinstance(b, Layout)
    if a.dtype is not b.dtype:
        raise DTypeError(f"{a.dtype} and {b.dtype} do not join", help=f"bring both to one dtype: h.to(tl.{a.dtype})")
    return (*broadcast_shapes(a.shape, b.shape), 2), a.dtype


def _join(a: Array, b: Array, *, result: DType, operands: Sequence[Operand]) -> Array:
    return np.stack(np.broadcast_arrays(a, b), axis=-1)


TABLE.add(
    Operation(
        name="sort",
        family=Family.ORDER,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SCAN,
        log="math/sort",
        rule=_sort_rule,
        evaluate=_sort,
        work=input_elements,
        doc="The elements along a dimension in ascending order (``descending``: the other way round). NaN counts as "
        "larger than every number; equal elements (0.0 and -0.0) keep their order. Example: ``tl.sort(x)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="topk",
        family=Family.ORDER,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SCAN,
        log="math/topk",
        rule=_topk_rule,
        evaluate=_topk,
        work=input_elements,
        doc="The ``k`` largest elements along a dimension, the largest first: the beginning of a descending ``sort``. "
        "Example: ``best = tl.topk(scores, 8)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="flip",
        family=Family.REARRANGEMENT,
        kind=Kind.ELEMENTWISE,
        cost=Cost.MOVE,
        log="math/flip",
        rule=_flip_rule,
        evaluate=_flip,
        work=output_elements,
        doc="The elements along a dimension in reverse, in fresh bytes. Example: ``tl.flip(x)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="join",
        family=Family.REARRANGEMENT,
        kind=Kind.ELEMENTWISE,
        cost=Cost.MOVE,
        log="math/join",
        rule=_join_rule,
        evaluate=_join,
        work=output_elements,
        doc="Two tiles of one dtype side by side in a new last dimension of size 2. Example: ``tl.join(real, imag)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="gather",
        family=Family.REARRANGEMENT,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SIMPLE,
        log="math/gather",
        rule=_gather_rule,
        evaluate=_gather,
        work=output_elements,
        doc="Elements of a tile by an index tile: along ``axis`` the place that the index names, elsewhere its own. An "
        "index outside gives all bits set (NaN, -1 or the largest number). Example: ``tl.gather(x, index, 1)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="histogram",
        family=Family.ORDER,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SCAN,
        log="math/histogram",
        rule=_histogram_rule,
        evaluate=_histogram,
        work=_counted,
        doc="How many elements along a dimension are 0, 1, ... up to ``bins - 1``; others are not counted, nor is what "
        "a mask leaves out. Example: ``tl.histogram(x, 256)``.",
        public=False,
    )
)
