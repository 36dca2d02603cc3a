"""Reductions, scans, sorting, and looking up within a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..constexpr import bare
from ..values.arithmetic import cast, elementwise, is_float
from ..values.value import Running, Value, lift
from . import shapes

__all__ = [
    "argmax", "argmin", "associative_scan", "cumprod", "cumsum", "gather", "histogram", "max_", "min_", "reduce",
    "reduce_or", "softmax", "sort", "sum_", "topk", "xor_sum",
]  # fmt: skip

_F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)


def _axis_of(x: Value, axis: Any) -> tuple[Value, int, bool]:
    """The tensor, the one axis along which it is reduced, and whether that stands for all of them."""
    axis = bare(axis)
    if not x.shape:
        return shapes.expand_dims(x, 0), 0, True
    if axis is None:
        return shapes.ravel(x), 0, True
    rank = len(x.shape)
    number = int(axis)
    if not -rank <= number < rank:
        raise Running.tracing.refused(f"axis {number} of shape {x.shape}", f"use 0 to {rank - 1}")
    return x, number % rank, False


def _kept(found: Value, rank: int, axis: int, whole: bool, keep_dims: Any) -> Value:
    if not bare(keep_dims):
        return found
    return shapes.reshape(found, (1,) * rank) if whole else shapes.expand_dims(found, axis)


def _reduced(
    name: str, input: Any, axis: Any, keep_dims: Any, result: Callable[[np.dtype[Any]], np.dtype[Any]]
) -> Value:
    given = lift(input)
    x, number, whole = _axis_of(given, axis)
    shape = (*x.shape[:number], *x.shape[number + 1 :])
    static = (("axis", number), ("keep_dims", False))
    lanes = {"axis": number + 1, "keep_dims": False}
    found: Value = Running.tracing.computed(name, [x], result(x.numpy), shape, static, lanes)
    return _kept(found, len(given.shape), number, whole, keep_dims)


def _same(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype


def _widened(x: Value, *, floats: bool) -> Value:
    """Narrow integers as i32 (u32), bf16 and, where asked for, all 16-bit floats as f32: what Triton reduces in."""
    if is_float(x.numpy):
        narrow = x.numpy.itemsize < 4 and (floats or x.numpy != np.float16)
        return cast(x, _F32) if narrow else x
    if x.numpy.itemsize < 4:
        return cast(x, np.dtype(np.uint32) if x.numpy.kind == "u" else _I32)
    return x


def sum_(input: Any, axis: Any = None, keep_dims: Any = False, dtype: Any = None) -> Value:
    """``tl.sum``."""
    x = lift(input)
    wanted = bare(dtype)
    if wanted is not None and wanted.numpy == np.bool_:
        return xor_sum(cast(x, np.dtype(np.bool_)), axis, keep_dims)  # a sum of one bit
    x = cast(x, wanted.numpy) if wanted is not None else _widened(x, floats=False)
    return _reduced("sum", x, axis, keep_dims, _same)


def _extremum(name: str) -> Callable[..., Any]:
    def call(
        input: Any,
        axis: Any = None,
        return_indices: Any = False,
        return_indices_tie_break_left: Any = True,
        keep_dims: Any = False,
    ) -> Any:
        x = _widened(lift(input), floats=True)
        found = _reduced(f"nan{name}" if is_float(x.numpy) else name, x, axis, keep_dims, _same)
        if bare(return_indices):
            return found, _place(f"arg{name}", x, axis, return_indices_tie_break_left, keep_dims)
        return found

    call.__name__, call.__doc__ = name, f"``tl.{name}``."
    return call


max_, min_ = _extremum("max"), _extremum("min")


def _place(name: str, input: Any, axis: Any, tie_break_left: Any, keep_dims: Any) -> Value:
    name = f"nan{name}" if is_float(lift(input).numpy) else name
    if bare(tie_break_left):
        return _reduced(name, input, axis, keep_dims, lambda _: _I32)
    x, number, _ = _axis_of(lift(input), axis)
    last = x.shape[number] - 1
    found = _reduced(name, shapes.flip(x, number), number, False, lambda _: _I32)
    return _kept(elementwise("sub", last, found), len(lift(input).shape), number, bare(axis) is None, keep_dims)


def argmax(input: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False) -> Value:
    """``tl.argmax``."""
    return _place("argmax", input, axis, tie_break_left, keep_dims)


def argmin(input: Any, axis: Any = None, tie_break_left: Any = True, keep_dims: Any = False) -> Value:
    """``tl.argmin``."""
    return _place("argmin", input, axis, tie_break_left, keep_dims)


def _as_tuple(input: Any) -> tuple[list[Value], bool]:
    given = bare(input)
    return ([lift(x) for x in given], True) if isinstance(given, tuple | list) else ([lift(given)], False)


def _called(combine: Any, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    found = combine(*a, *b)
    return [lift(x) for x in found] if isinstance(found, tuple | list) else [lift(found)]


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False) -> Any:
    """``tl.reduce`` by a function of the kernel's: the halves are combined, again and again."""
    given, several = _as_tuple(input)
    rank = len(given[0].shape)
    parts = [_axis_of(x, axis) for x in given]
    values, number, whole = [x for x, _, _ in parts], parts[0][1], parts[0][2]
    while values[0].shape[number] > 1:
        n = values[0].shape[number]
        first = [shapes.part_of(x, number, 0, n // 2) for x in values]
        second = [shapes.part_of(x, number, n // 2, n) for x in values]
        values = _called(combine_fn, first, second)
    shape = (*values[0].shape[:number], *values[0].shape[number + 1 :])
    found = [_kept(shapes.reshape(x, shape), rank, number, whole, keep_dims) for x in values]
    return tuple(found) if several else found[0]


def _xor(a: Value, b: Value) -> Value:
    return elementwise("xor", a, b)


def _or(a: Value, b: Value) -> Value:
    return elementwise("or", a, b)


def xor_sum(input: Any, axis: Any = None, keep_dims: Any = False) -> Value:
    """``tl.xor_sum``."""
    found: Value = reduce(input, axis, _xor, keep_dims)
    return found


def reduce_or(input: Any, axis: Any = None, keep_dims: Any = False) -> Value:
    """``tl.reduce_or``."""
    found: Value = reduce(input, axis, _or, keep_dims)
    return found


# --- scans ------------------------------------------------------------------------------------------------------------


def _scanned(name: str, input: Any, axis: Any, reverse: Any, dtype: Any) -> Value:
    x = lift(input)
    if bare(dtype) is not None:
        x = cast(x, bare(dtype).numpy)
    x = _widened(x, floats=False)
    if not x.shape:
        return x
    number = int(bare(axis)) % len(x.shape)
    x = shapes.flip(x, number) if bare(reverse) else x
    static, lanes = (("axis", number),), {"axis": number + 1}
    found: Value = Running.tracing.computed(name, [x], x.numpy, x.shape, static, lanes)
    return shapes.flip(found, number) if bare(reverse) else found


def cumsum(input: Any, axis: Any = 0, reverse: Any = False, dtype: Any = None) -> Value:
    """``tl.cumsum``."""
    return _scanned("cumsum", input, axis, reverse, dtype)


def cumprod(input: Any, axis: Any = 0, reverse: Any = False) -> Value:
    """``tl.cumprod``."""
    return _scanned("cumprod", input, axis, reverse, None)


def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False) -> Any:
    """``tl.associative_scan`` by a function of the kernel's, in steps that double (Hillis and Steele, 1986)."""
    values, several = _as_tuple(input)
    number = int(bare(axis)) % len(values[0].shape)
    if bare(reverse):
        values = [shapes.flip(x, number) for x in values]
    n, rank = values[0].shape[number], len(values[0].shape)
    place = shapes.arange(0, n)
    step = 1
    while step < n:
        before = elementwise("maximum", elementwise("sub", place, step), 0)
        has = elementwise("ge", place, step)
        for d in range(rank):
            if d != number:
                before, has = shapes.expand_dims(before, d), shapes.expand_dims(has, d)
        earlier = [gather(x, shapes.broadcast_to(before, *x.shape), number) for x in values]
        combined = _called(combine_fn, earlier, values)
        values = [elementwise("where", has, new, old) for new, old in zip(combined, values, strict=True)]
        step *= 2
    if bare(reverse):
        values = [shapes.flip(x, number) for x in values]
    return tuple(values) if several else values[0]


# --- order ------------------------------------------------------------------------------------------------------------


def _last_axis(x: Value, dim: Any) -> int:
    return len(x.shape) - 1 if bare(dim) is None else int(bare(dim)) % len(x.shape)


def sort(x: Any, dim: Any = None, descending: Any = False) -> Value:
    """``tl.sort``."""
    x = lift(x)
    axis, down = _last_axis(x, dim), bool(bare(descending))
    static, lanes = (("axis", axis), ("descending", down)), {"axis": axis + 1, "descending": down}
    found: Value = Running.tracing.computed("sort", [x], x.numpy, x.shape, static, lanes)
    return found


def topk(x: Any, k: Any, dim: Any = None) -> Value:
    """``tl.topk``."""
    x, k = lift(x), int(bare(k))
    axis = _last_axis(x, dim)
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    static, lanes = (("k", k), ("axis", axis)), {"k": k, "axis": axis + 1}
    found: Value = Running.tracing.computed("topk", [x], x.numpy, shape, static, lanes)
    return found


def gather(src: Any, index: Any, axis: Any) -> Value:
    """``tl.gather``: elements of a tile by an index tile."""
    src, index = lift(src), lift(index)
    number = int(bare(axis)) % len(src.shape)
    static, lanes = (("axis", number),), {"axis": number + 1}
    found: Value = Running.tracing.computed("gather", [src, index], src.numpy, index.shape, static, lanes)
    return found


def histogram(input: Any, num_bins: Any, mask: Any = None) -> Value:
    """``tl.histogram``: how many elements are each of ``0, 1, ...``."""
    x, bins = lift(input), int(bare(num_bins))
    if len(x.shape) != 1:
        raise Running.tracing.refused(f"histogram of shape {x.shape}", "it takes one dimension: tl.ravel(x)")
    given = [x] if bare(mask) is None else [x, shapes.broadcast_to(lift(mask), *x.shape)]
    static, lanes = (("bins", bins), ("axis", 0)), {"bins": bins, "axis": 1}
    found: Value = Running.tracing.computed("histogram", given, _I32, (bins,), static, lanes)
    return found


def softmax(x: Any, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False) -> Value:
    """``tl.softmax``."""
    x = lift(x)
    axis = 0 if bare(dim) is None else int(bare(dim)) % len(x.shape)
    above = elementwise("exp", elementwise("sub", x, max_(x, axis, keep_dims=True)))
    return elementwise("div", above, sum_(above, axis, keep_dims=True))
