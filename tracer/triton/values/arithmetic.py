"""Elementwise operations on values, for all lanes: Triton's promotion, integers as in C, by the table's evaluation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import dtypes
from ....ir.layout import Layout
from ....ir.ops import OPERATIONS, Cost, Family
from ..constexpr import bare
from .undefined import Undefined
from .value import Array, MadeBy, Running, Value, lift, support, under_rank

__all__ = [
    "FLOATING",
    "cast",
    "cast_numbers",
    "elementwise",
    "evaluate",
    "is_float",
    "merged",
    "promoted",
    "roots_of",
    "view",
]

_COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
#: Functions whose result is a float, also of integers.
FLOATING = frozenset(
    name
    for name, operation in OPERATIONS.items()
    if operation.cost is Cost.TRANSCENDENTAL and operation.family in (Family.UNARY, Family.BINARY) and name != "pow"
)
_OF_INTEGERS = frozenset({"and", "or", "xor", "not", "shl", "shr", "truncdiv", "mulhi"})
_BF16, _F16 = dtypes.of("bf16").numpy, np.dtype(np.float16)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float's, ``ml_dtypes`` included."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtypes.of_numpy(dtype).is_float)


def promoted(a: np.dtype[Any], b: np.dtype[Any], weak_a: bool, weak_b: bool, division: bool = False) -> np.dtype[Any]:
    """Triton's promotion of two dtypes; a number of Python's is weak. Of a ``division`` and a remainder, 16-bit floats
    give f32."""
    if weak_a != weak_b:
        weak, strong = (a, b) if weak_a else (b, a)
        rank = {"b": 0, "i": 1, "u": 1}
        if rank.get(weak.kind, 2) <= rank.get(strong.kind, 2):
            return np.dtype(np.float32) if division and is_float(strong) and strong.itemsize == 2 else strong
        return np.dtype(np.float32) if is_float(weak) else weak
    if is_float(a) != is_float(b):
        found = a if is_float(a) else b
        return np.dtype(np.float32) if division and found.itemsize == 2 else found
    if is_float(a):
        return _promoted_floats(a, b, division)
    if a == b:
        return a
    if a.kind == b.kind or "b" in (a.kind, b.kind):
        return a if (a.itemsize, b.kind == "b") > (b.itemsize, a.kind == "b") else b
    unsigned, signed = (a, b) if a.kind == "u" else (b, a)
    return unsigned if unsigned.itemsize >= signed.itemsize else signed


def _promoted_floats(a: np.dtype[Any], b: np.dtype[Any], division: bool) -> np.dtype[Any]:
    for wide in (np.dtype(np.float64), np.dtype(np.float32)):
        if wide in (a, b):
            return wide
    if _F16 in (a, b):
        return np.dtype(np.float32) if division else _F16
    if a == b == _BF16:
        return np.dtype(np.float32) if division else _BF16
    if _BF16 in (a, b):
        return np.dtype(np.float32)
    return a if a == b else _F16


# --- numbers ----------------------------------------------------------------------------------------------------------


def evaluate(name: str, arrays: Sequence[Array], result: np.dtype[Any], **static: Any) -> Array:
    """The table's own evaluation, of arrays with a leading axis of lanes."""
    operands = tuple(Layout.dense(a.shape[1:], dtypes.of_numpy(a.dtype)) for a in arrays)
    with np.errstate(all="ignore"):
        found: Array = OPERATIONS[name].evaluate(*arrays, result=dtypes.of_numpy(result), operands=operands, **static)
    return found


def cast_numbers(array: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as another dtype, by the table's rounding; the low bits of integers."""
    if array.dtype == dtype:
        return array
    if not is_float(array.dtype) and not is_float(dtype):
        return array.astype(dtype)
    return evaluate("cast", [np.ascontiguousarray(array)], dtype, dtype=dtypes.of_numpy(dtype))


def _wraps(name: str, x: Array, y: Array) -> Array | None:
    """In which lanes an int32 operation leaves int32 somewhere, ``(lanes or 1,)``, None for none: by bounds, exactly
    where these say it might."""
    if name not in ("add", "sub", "mul") or x.dtype != np.int32 or not x.size or not y.size:
        return None
    a, b, c, d = int(x.min()), int(x.max()), int(y.min()), int(y.max())
    corners = {"add": (a + c, b + d), "sub": (a - d, b - c), "mul": (a * c, a * d, b * c, b * d)}[name]
    if min(corners) >= -(2**31) and max(corners) < 2**31:
        return None
    compute = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name]
    exact = compute(x.astype(np.int64), y.astype(np.int64))
    return _some((exact < -(2**31)) | (exact >= 2**31))


def _some(bad: Array) -> Array | None:
    """The lanes in which something is bad; None for none."""
    lanes = np.asarray(bad.reshape(len(bad), -1).any(1))
    return lanes if lanes.any() else None


def _either(*lanes: Array | None) -> Array | None:
    """The lanes of any of them."""
    found: Array | None = None
    for one in lanes:
        if one is not None:
            found = one if found is None else np.asarray(found | one)
    return found


# --- parts ------------------------------------------------------------------------------------------------------------


def merged(parts: Sequence[Array], how: str) -> list[Array]:
    """The parts, those that vary along the same dimensions made one."""
    found: dict[tuple[int, ...], Array] = {}
    for part in parts:
        key = support(part)
        if key not in found:
            found[key] = part
        else:
            found[key] = found[key] & part if how == "and" else found[key] + part
    return list(found.values())


def roots_of(values: Sequence[Value]) -> tuple[Value, ...]:
    """What values with nodes some values depend on, each once."""
    return tuple({id(root): root for value in values for root in value.dependencies}.values())


def _undefined_of(values: Sequence[Value], rank: int) -> list[Undefined | None]:
    return [None if v.undefined is None else v.undefined.changed(lambda m: under_rank(m, rank)) for v in values]


def _chosen_undefined(condition: Value, undefined: Sequence[Undefined | None], rank: int) -> Undefined | None:
    """Of ``where``: only what was chosen counts."""
    chosen = under_rank(condition.array, rank)
    by, a, b = undefined
    return Undefined.of(
        [by, a and a.changed(lambda m: np.asarray(chosen & m)), b and b.changed(lambda m: np.asarray(~chosen & m))]
    )


# --- operations -------------------------------------------------------------------------------------------------------


def elementwise(name: str, *given: Any) -> Value:
    """An operation of the table on all lanes. What is an integer, a truth value or known stays lazy; a float that
    depends on memory is recorded."""
    given = tuple(bare(x) for x in given)
    values = [lift(x) for x in given]
    rank = max(len(v.shape) for v in values)
    shape = Running.tracing.broadcast(*[v.shape for v in values])
    if any(v.storage is not None for v in values):
        return _of_pointers(name, values, rank, shape)
    weak = [not isinstance(x, Value) for x in given]
    common = _common(name, values, weak)
    integer = not is_float(common)
    if common.kind in "iu" and True in weak:
        _check_numbers(name, given, common)
    result = np.dtype(np.bool_) if name in _COMPARISONS else common
    typed = [v if name == "where" and i == 0 else _as(v, common) for i, v in enumerate(values)]
    roots = roots_of(values)
    parts_undefined = _undefined_of(values, rank)
    if name == "where":
        undefined = _chosen_undefined(values[0], parts_undefined, rank)
    else:
        undefined = Undefined.of(parts_undefined)
    wrapped = None
    stack = Running.tracing.here()
    if integer:
        parts, how, wraps = _integer_parts(name, typed, rank, common, result)
        wrapped = _wrapped(values, stack, wraps)
    else:
        arrays = [np.ascontiguousarray(under_rank(_array(v), rank)) for v in typed]
        parts, how = [evaluate(name, arrays, result)], "add"
    made_by = MadeBy(
        name, tuple(v if isinstance(x, Value) else _item(x) for x, v in zip(given, values, strict=True)), (), common
    )
    made = Value(parts, shape, how=how, made_by=made_by, roots=roots, undefined=undefined, wrapped=wrapped, stack=stack)
    if roots and is_float(result):
        Running.tracing.handle(made)
    return made


def _wrapped(values: Sequence[Value], stack: int, wraps: Array | None) -> tuple[int, Array] | None:
    """Where an int32 of these values, or now, wrapped around first, and in which lanes any did."""
    known = [v.wrapped for v in values if v.wrapped is not None]
    known += [] if wraps is None else [(stack, wraps)]
    lanes = _either(*(lanes for _, lanes in known))
    return None if lanes is None else (known[0][0], lanes)


def _check_numbers(name: str, given: Sequence[Any], common: np.dtype[Any]) -> None:
    """Refuse a number of Python's that the integers it meets cannot hold, as Triton does."""
    limits = np.iinfo(common)
    for number in given[1:] if name == "where" else given:
        if isinstance(number, int) and not limits.min <= number <= limits.max:
            raise Running.tracing.refused(
                f"scalar {number} is out of range for type {dtypes.of_numpy(common)}",
                f"use numbers from {limits.min} to {limits.max}, or convert the tensor first: x.to(tl.int64)",
            )


def _array(value: Value) -> Array:
    """The elements, with sizes of 1 where they do not vary: results broadcast."""
    return value.parts[0] if len(value.parts) == 1 else value.array


def _item(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x


def _common(name: str, values: Sequence[Value], weak: Sequence[bool]) -> np.dtype[Any]:
    operands = list(zip(values, weak, strict=True))[1 if name == "where" else 0 :]
    if name in _OF_INTEGERS and any(is_float(v.numpy) for v, _ in operands):
        types = " and ".join(str(v.dtype) for v, _ in operands)
        raise Running.tracing.refused(
            f"invalid operands of type {types} for `{name}`", "it takes integers: x.to(tl.int32)"
        )
    common, is_weak = operands[0][0].numpy, operands[0][1]
    for other, other_weak in operands[1:]:
        common = promoted(common, other.numpy, is_weak, other_weak, name in ("div", "rem"))
        is_weak = is_weak and other_weak
    if name in ("shl", "shr") and values[0].numpy.kind == "i" and common.kind == "u":
        return np.dtype(f"i{common.itemsize}")  # the sign is that of what is shifted
    if (name == "div" or name in FLOATING) and not is_float(common):
        return np.dtype(np.float32)
    if common.kind == "b" and name in ("add", "sub", "mul", "neg", "abs", "truncdiv", "rem", "shl", "shr", "fma"):
        return np.dtype(np.int32)
    return common


def _integer_parts(
    name: str, typed: Sequence[Value], rank: int, common: np.dtype[Any], result: np.dtype[Any]
) -> tuple[list[Array], str, Array | None]:
    """The parts of a result of integers, kept apart where they can be; how they make it; the lanes that wrapped."""
    if name == "add" and all(v.how == "add" for v in typed):
        parts = [under_rank(p, rank) for v in typed for p in v.parts]
        return merged(parts, "add"), "add", _sum_wraps(parts, common)
    if name == "sub" and all(v.how == "add" for v in typed):
        with np.errstate(all="ignore"):
            parts = [under_rank(p, rank) for p in typed[0].parts] + [under_rank(-p, rank) for p in typed[1].parts]
        return merged(parts, "add"), "add", _sum_wraps(parts, common)
    if name == "and" and common.kind == "b" and all(v.how == "and" or len(v.parts) == 1 for v in typed):
        return merged([under_rank(p, rank) for v in typed for p in v.parts], "and"), "and", None
    if name == "mul":
        scale = next((i for i, v in enumerate(typed) if v.is_splat), None)
        if scale is not None and typed[1 - scale].how == "add":
            factor = under_rank(_splat(typed[scale]), rank)
            others = [under_rank(p, rank) for p in typed[1 - scale].parts]
            wraps = _either(*(_wraps("mul", p, factor) for p in others))
            with np.errstate(all="ignore"):
                return [p * factor for p in others], "add", wraps
    arrays = [under_rank(_array(v), rank) for v in typed]
    wraps = _wraps(name, *arrays) if len(arrays) == 2 else None
    return [evaluate(name, arrays, result)], "add", wraps


def _splat(value: Value) -> Array:
    """The one number of all elements, ``(lanes or 1, 1, ...)``."""
    total = value.parts[0]
    for part in value.parts[1:]:
        total = total & part if value.how == "and" else total + part
    return total


def _sum_wraps(parts: Sequence[Array], common: np.dtype[Any]) -> Array | None:
    # The bounds of a separable sum are the sums of its parts' bounds.
    if common != np.int32 or not all(p.size for p in parts):
        return None
    low, high = sum(int(p.min()) for p in parts), sum(int(p.max()) for p in parts)
    if -(2**31) <= low <= high < 2**31:
        return None
    wide = merged([p.astype(np.int64) for p in parts], "add")
    axes = [axis for part in wide for axis in support(part)]
    if len(set(axes)) < len(axes):  # not separable: their bounds may lie at different elements
        wide = [functools.reduce(operator.add, wide)]
    by_lane = [p.reshape(len(p), -1) for p in wide]
    lows = functools.reduce(operator.add, (p.min(1) for p in by_lane))
    highs = functools.reduce(operator.add, (p.max(1) for p in by_lane))
    return _some((lows < -(2**31)) | (highs >= 2**31))


def _as(value: Value, dtype: np.dtype[Any]) -> Value:
    if value.numpy == dtype:
        return value
    if len(value.parts) > 1 and value.how == "add" and not is_float(dtype) and not is_float(value.numpy):
        return Value([p.astype(dtype) for p in value.parts], value.shape)
    return Value([cast_numbers(_array(value), dtype)], value.shape)


def _of_pointers(name: str, values: Sequence[Value], rank: int, shape: tuple[int, ...]) -> Value:
    tracing = Running.tracing
    pointers = [v for v in values if v.storage is not None]
    pointer = pointers[0]
    place = next(i for i, v in enumerate(values) if v is pointer)
    stack, roots, undefined = tracing.here(), roots_of(values), Undefined.of(_undefined_of(values, rank))
    if len(pointers) == 1 and (name == "add" or (name == "sub" and place == 0)):
        other = next(v for v in values if v is not pointer)
        sign = -1 if name == "sub" else 1
        parts = [under_rank(p, rank) for p in pointer.parts]
        parts += [
            under_rank(sign * p.astype(np.int64), rank) for p in (other.parts if other.how == "add" else [other.array])
        ]
        return Value(
            merged(parts, "add"),
            shape,
            storage=pointer.storage,
            roots=roots,
            undefined=undefined,
            wrapped=_wrapped([pointer, other], stack, None),
            stack=stack,
            is_const=pointer.is_const,
        )
    if name == "where" and len(pointers) == 2 and pointers[0].storage is pointers[1].storage:
        arrays = [under_rank(_array(v), rank) for v in values]
        chosen = np.where(arrays[0], arrays[1], arrays[2])
        return Value(
            [chosen],
            shape,
            storage=pointer.storage,
            roots=roots,
            undefined=undefined,
            wrapped=_wrapped(values, stack, None),
            stack=stack,
            is_const=any(p.is_const for p in pointers),
        )
    if name == "where" and len(pointers) == 2 and values[0].shape == ():
        return pointers[0] if bool(values[0].only()) else pointers[1]
    if name in _COMPARISONS:
        plain = [Value(v.parts, v.shape) if v.storage is None else tracing.address_of(v) for v in values]
        return elementwise(name, *plain)
    raise tracing.refused(f"`{name}` of pointers", "compute with offsets, and add them to one pointer")


def cast(x: Value, dtype: np.dtype[Any]) -> Value:
    """``x.to(dtype)``: lazy for what is lazy, a node for floats that depend on memory."""
    if x.numpy == dtype:
        return x
    tracing = Running.tracing
    whole = not is_float(x.numpy) and not is_float(dtype) and dtype.kind != "b"
    parts = [p.astype(dtype) for p in x.parts] if whole and x.how == "add" else [cast_numbers(_array(x), dtype)]
    static = (("dtype", dtypes.of_numpy(dtype)),)
    made = Value(
        parts,
        x.shape,
        made_by=MadeBy("cast", (x,), static),
        roots=roots_of([x]),
        undefined=x.undefined,
        wrapped=x.wrapped,
        stack=tracing.here(),
    )
    if made.roots and (is_float(dtype) or is_float(x.numpy)):
        tracing.handle(made)
    return made


def view(x: Value, shape: Sequence[int], of_part: Any, of_handle: Any, *, collapse: bool = False) -> Value:
    """Another view of the same elements: of every part (of the whole, where it ``collapse``s dimensions), of what is
    undefined, and of the handle."""
    parts = [x.array] if collapse else x.parts
    undefined = x.undefined
    if undefined is not None:

        def seen(mask: Array) -> Array:
            whole = np.broadcast_to(under_rank(mask, len(x.shape)), (len(mask), *x.shape))
            found: Array = of_part(whole if collapse else mask)
            return found

        undefined = undefined.changed(seen)
    made = Value(
        [of_part(p) for p in parts],
        shape,
        how="add" if collapse else x.how,
        storage=x.storage,
        roots=x.roots,
        undefined=undefined,
        wrapped=x.wrapped,
        stack=x.stack,
        is_const=x.is_const,
    )
    if x.handle is not None:
        made.handle = of_handle(x.handle)
    elif x.storage is None:
        made.made_by = MadeBy("", (x,), view=of_handle)
    return made
