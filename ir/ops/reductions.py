"""Reductions along an axis, scans, softmax, and the creation of tensors from nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError, ShapeError
from ..layout import Layout, Shape, check_shape, resolve_axes, resolve_axis
from .elementwise import TABLE
from .numbers import Array, cast_array, check_scalar
from .operation import Cost, Family, Kind, Operand, Operation, Scalar, input_elements, output_elements

__all__: list[str] = []


def _same(source: DType) -> DType:
    return source


def _wide(source: DType) -> DType:
    return source if source.is_float else source.accumulator


def _index(source: DType) -> DType:
    return dtypes.int32


Axis = int | Shape | None


def _reduced_shape(shape: Shape, axis: Axis, keep_dims: bool) -> Shape:
    found = resolve_axes(axis, len(shape))
    axes = range(len(shape)) if found is None else found if isinstance(found, tuple) else (found,)
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep_dims or i not in axes)


def _reduction(
    result_dtype: Callable[[DType], DType], *, public: bool = True
) -> Callable[[Callable[..., Array]], Operation]:
    """Declare a reduction: floats are computed in f32 (f64 in f64) and rounded once, integers in the result's type.
    One that is not ``public`` is for front ends."""

    def declare(body: Callable[..., Array]) -> Operation:
        name = body.__name__.rstrip("_")

        def rule(operands: Sequence[Operand], *, axis: Axis, keep_dims: bool) -> tuple[Shape, DType]:
            (source,) = operands
            assert isinstance(source, Layout)
            if result_dtype is _index and isinstance(axis, tuple):
                raise ShapeError(f"a place along axes {axis}", help="pass one axis, or None for all of them")
            return _reduced_shape(source.shape, axis, keep_dims), result_dtype(source.dtype)

        def evaluate(x: Array, *, axis: Axis, keep_dims: bool, result: DType, operands: Sequence[Operand]) -> Array:
            source = dtypes.of_numpy(x.dtype)
            ready = cast_array(x, result if result_dtype is _wide and not source.is_float else source.computed_in)
            with np.errstate(all="ignore"):
                return cast_array(body(ready, axis=axis, keepdims=keep_dims), result)

        return TABLE.add(
            Operation(
                name=name,
                family=Family.REDUCTION,
                kind=Kind.ELEMENTWISE,
                cost=Cost.REDUCTION,
                log=f"math/{name}",
                rule=rule,
                evaluate=evaluate,
                work=input_elements,
                doc=" ".join((body.__doc__ or "").split()),
                public=public,
            )
        )

    return declare


@_reduction(_wide)
def sum_(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Sum along an axis, or several (``None``: all); floats accumulate in f32 (f64 in f64), integers give i32, those of
    32 bits and more their own dtype. Example: ``tl.sum(p, axis=1)``."""
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype))


@_reduction(_same)
def max_(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Largest along an axis, or several (``None``: all); NaN wins. Example: ``tl.max(s, axis=1, keep_dims=True)``."""
    return np.asarray(np.max(x, axis=axis, keepdims=keepdims))


@_reduction(_same)
def min_(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Smallest along an axis, or several (``None``: all); NaN wins. Example: ``tl.min(x, axis=0)``."""
    return np.asarray(np.min(x, axis=axis, keepdims=keepdims))


@_reduction(_index)
def argmax(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    """Where the largest is (the first of equal ones), i32. Example: ``tl.argmax(logits, axis=1)``."""
    return np.asarray(np.argmax(x, axis=axis, keepdims=keepdims))


@_reduction(_index)
def argmin(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    """Where the smallest is (the first of equal ones), i32. Example: ``tl.argmin(cost, axis=1)``."""
    return np.asarray(np.argmin(x, axis=axis, keepdims=keepdims))


#: numpy's types of ``ufunc.reduce`` know no tuple of axes.
_FMAX: Any = np.fmax
_FMIN: Any = np.fmin


@_reduction(_same, public=False)
def nanmax(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Largest along an axis, or several (``None``: all); numbers win over NaN. Example: ``tl.max(x)``."""
    return np.asarray(_FMAX.reduce(x, axis=axis, keepdims=keepdims))


@_reduction(_same, public=False)
def nanmin(x: Array, *, axis: Axis, keepdims: bool) -> Array:
    """Smallest along an axis, or several (``None``: all); numbers win over NaN. Example: ``tl.min(x)``."""
    return np.asarray(_FMIN.reduce(x, axis=axis, keepdims=keepdims))


@_reduction(_index, public=False)
def nanargmax(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    """Where the largest number is (the first of equal ones; 0 if all are NaN), i32. Example: ``tl.argmax(x, 0)``."""
    return _place_of(_FMAX, x, axis, keepdims)


@_reduction(_index, public=False)
def nanargmin(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    """Where the smallest number is (the first of equal ones; 0 if all are NaN), i32. Example: ``tl.argmin(x, 0)``."""
    return _place_of(_FMIN, x, axis, keepdims)


def _place_of(extremum: Any, x: Array, axis: int | None, keepdims: bool) -> Array:
    if x.dtype.kind != "f" or not np.isnan(x).any():
        found = np.argmax(x, axis, keepdims=keepdims) if extremum is _FMAX else np.argmin(x, axis, keepdims=keepdims)
        return np.asarray(found)
    return np.asarray(np.argmax(x == extremum.reduce(x, axis=axis, keepdims=True), axis=axis, keepdims=keepdims))


def _float_or_f32(source: DType) -> DType:
    return source if source.is_float else dtypes.float32


def _scan_rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    resolve_axis(axis, source.ndim)
    return source.shape, _wide(source.dtype)


def _cumsum(x: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    compute = result.computed_in
    with np.errstate(all="ignore"):
        return cast_array(np.cumsum(cast_array(x, compute), axis=axis, dtype=compute.numpy), result)


def _cumprod(x: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    compute = result.computed_in
    with np.errstate(all="ignore"):
        return cast_array(np.cumprod(cast_array(x, compute), axis=axis, dtype=compute.numpy), result)


def _softmax_rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    resolve_axis(axis, source.ndim)
    return source.shape, _float_or_f32(source.dtype)


def _softmax(x: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    ready = cast_array(x, result.computed_in)
    with np.errstate(all="ignore"):
        e = np.exp(ready - np.max(ready, axis=axis, keepdims=True))
        return cast_array(e / np.sum(e, axis=axis, keepdims=True), result)


for _name, _cost, _rule, _body, _doc in (
    (
        "cumsum",
        Cost.SCAN,
        _scan_rule,
        _cumsum,
        "Running sum along an axis, as wide as ``sum``. Example: ``tl.cumsum(x, axis=0)``.",
    ),
    (
        "cumprod",
        Cost.SCAN,
        _scan_rule,
        _cumprod,
        "Running product along an axis, as wide as ``sum``. Example: ``tl.cumprod(decay, axis=0)``.",
    ),
    (
        "softmax",
        Cost.TRANSCENDENTAL,
        _softmax_rule,
        _softmax,
        "Softmax along an axis, computed in f32 (f64 in f64); one operation, one allocation. Example: "
        "``tl.softmax(s, axis=-1)``.",
    ),
):
    TABLE.add(
        Operation(
            name=_name,
            family=Family.SOFTMAX,
            kind=Kind.ELEMENTWISE,
            cost=_cost,
            log=f"math/{_name}",
            rule=_rule,
            evaluate=_body,
            work=input_elements,
            doc=_doc,
        )
    )


# --- creation -------------------------------------------------------------------------------------------------------


def _fill_rule(operands: Sequence[Operand], *, shape: Shape, value: Scalar, dtype: DType) -> tuple[Shape, DType]:
    if isinstance(value, float) and not dtype.is_float:
        raise DTypeError(f"cannot fill {dtype} with {value!r}", help="fill with an integer, or use a float dtype")
    check_scalar(value, dtype)
    return check_shape(shape), dtype


def _fill(*, shape: Shape, value: Scalar, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    return np.full(shape, cast_array(value, dtype), dtype=dtype.numpy)


def _arange_rule(operands: Sequence[Operand], *, start: int, end: int) -> tuple[Shape, DType]:
    if end <= start:
        raise ArgumentError(f"arange({start}, {end}) has no elements", help="the end must be above the start")
    check_scalar(start, dtypes.int32)
    check_scalar(end - 1, dtypes.int32)
    return (end - start,), dtypes.int32


def _arange(*, start: int, end: int, result: DType, operands: Sequence[Operand]) -> Array:
    return np.arange(start, end, dtype=np.int32)


TABLE.add(
    Operation(
        name="fill",
        family=Family.CREATION,
        kind=Kind.ELEMENTWISE,
        cost=Cost.MOVE,
        log="math/fill",
        rule=_fill_rule,
        evaluate=_fill,
        work=output_elements,
        doc="A tensor of one value (``tl.full``, ``tl.zeros``). Example: ``tl.full((128, 1), 0.0, tl.float32)``.",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="arange",
        family=Family.CREATION,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SIMPLE,
        log="math/arange",
        rule=_arange_rule,
        evaluate=_arange,
        work=output_elements,
        doc="The i32 numbers from ``start`` up to but not including ``end``. Example: ``cols = tl.arange(0, 128)``.",
        public=False,
    )
)
