"""Elementwise operations: operators, functions, comparisons, bits, ``where`` and ``cast``.

Each is one decorated function: its name is the operation's, its parameters the operands, its docstring the
documentation, its body the numpy evaluation. All computing is done in f32 for floats (rounded once, to the result) and
in the promoted integer type, wrapping around, for integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError
from ..layout import Layout, Shape, broadcast_shapes
from .operation import Cost, Family, Kind, Linear, Operand, Operation, OperationTable, Scalar, Work, operand_dtypes

__all__ = ["TABLE", "cast_array", "check_scalar", "common_dtype"]

TABLE = OperationTable()
Array = np.ndarray[Any, np.dtype[Any]]

_INTEGER_RANGE = {d: (np.iinfo(d.numpy).min, np.iinfo(d.numpy).max) for d in dtypes.ALL if d.is_integer}

_FLOAT_RANGE = {
    d: float(ml_dtypes.finfo(d.numpy).max)  # type: ignore[no-untyped-call]  # its stub has no types
    for d in dtypes.ALL
    if d.is_float
}
_WITHOUT_INFINITY = frozenset(d for d in _FLOAT_RANGE if not np.isinf(np.float32(np.inf).astype(d.numpy)))

#: From here on ``float(value)`` overflows.
_BEYOND_FLOATS = 1 << 1023


def check_scalar(value: Scalar, dtype: DType) -> None:
    """Refuse a number that a dtype cannot hold (``DTypeError``): an integer outside an integer dtype, a finite number
    that a float dtype rounds to infinity (or NaN), an infinity where the dtype has none. What is rounded to another
    finite number passes, a NaN and an infinity that the dtype has do, too."""
    if isinstance(value, bool):
        return
    if dtype.is_integer and isinstance(value, int):
        low, high = _INTEGER_RANGE[dtype]
        if not low <= value <= high:
            raise DTypeError(f"{value} does not fit {dtype} ({low} to {high})", help="widen the tensor: h.to(tl.int32)")
    if dtype.is_float:
        _check_float(value, dtype)


def _check_float(value: float, dtype: DType) -> None:
    largest = _FLOAT_RANGE[dtype]
    if -largest <= value <= largest or value != value:
        return
    if isinstance(value, int) and abs(value) >= _BEYOND_FLOATS:
        raise DTypeError(f"an integer of {value.bit_length()} bits does not fit {dtype}", help="scale it down")
    infinite, has_infinity = math.isinf(value), dtype not in _WITHOUT_INFINITY
    # A little beyond the largest number is still rounded to it.
    if (infinite and has_infinity) or np.isfinite(cast_array(float(value), dtype).astype(np.float32)):
        return
    sign = "-" if value < 0 else ""
    choices = [f"use {sign}{largest:g}"]
    choices += [f'float("{sign}inf") for infinity'] if has_infinity else []
    choices += ["widen the tensor: h.to(tl.float32)"] if dtype is not dtypes.float32 else []
    range_text = f"largest {largest:g}" if has_infinity else f"largest {largest:g}, no infinity"
    raise DTypeError(f"{value:g} does not fit {dtype} ({range_text})", help=", or ".join(choices))


def common_dtype(operands: Sequence[Operand]) -> DType:
    """The dtype that operands are brought to: the tensors' promotion; a scalar takes it, except that a float with
    integers gives f32. Raises ``ArgumentError`` where no operand is a tensor."""
    tensors = operand_dtypes(operands)
    if not tensors:
        values = ", ".join(map(repr, operands))
        raise ArgumentError(
            f"no operand is a tensor: {values}", help="compute Python numbers with Python (math.exp, ...)"
        )
    common = tensors[0]
    for other in tensors[1:]:
        common = dtypes.promote(common, other)
    for operand in operands:
        if isinstance(operand, Layout):
            continue
        if isinstance(operand, float):
            common = common if common.is_float else dtypes.float32
        elif not isinstance(operand, bool) and common.kind == "bool":
            common = dtypes.int32
    for operand in operands:
        if not isinstance(operand, Layout):
            check_scalar(operand, common)
    return common


def cast_array(array: Any, dtype: DType) -> Array:
    """An array (or scalar) rounded to a dtype; the same array where nothing changes.

    What is out of range follows the target: infinity, NaN for f8e4m3; from a float to an integer the nearest integer
    there is, and 0 for NaN; from an integer to a narrower one its low bits.
    """
    source = np.asarray(array)
    if source.dtype == dtype.numpy:
        return source
    with np.errstate(all="ignore"):
        if dtype.is_integer and source.dtype.kind not in "iub":
            # C leaves this conversion undefined, and processors differ. f64 holds every i32 exactly.
            limits = np.iinfo(dtype.numpy)
            wide = np.clip(source.astype(np.float64), int(limits.min), int(limits.max))
            source = np.where(np.isnan(wide), 0.0, wide)
        return source.astype(dtype.numpy)


def _shape(operands: Sequence[Operand]) -> Shape:
    return broadcast_shapes(*[o.shape for o in operands if isinstance(o, Layout)])


def _elements(operands: Sequence[Operand], result: Layout) -> Work:
    return (result.size, 0, 0)


Rule = Callable[[Sequence[Operand]], DType]


def _numeric(operands: Sequence[Operand]) -> DType:
    common = common_dtype(operands)
    if common.kind == "bool":
        raise DTypeError("arithmetic on bool", help="convert it first: h.to(tl.int32)")
    return common


def _transcendental(operands: Sequence[Operand]) -> DType:
    common = _numeric(operands)
    return common if common.is_float else dtypes.float32


def _ordered(operands: Sequence[Operand]) -> DType:
    return common_dtype(operands)


def _bits(operands: Sequence[Operand]) -> DType:
    common = common_dtype(operands)
    if common.is_float:
        raise DTypeError(f"bit operation on {common}", help="bit operations take integers and bool: h.to(tl.int32)")
    return common


def _shifts(operands: Sequence[Operand]) -> DType:
    common = _bits(operands)
    if common.kind == "bool":
        raise DTypeError("shift of bool", help="convert it first: h.to(tl.int32)")
    return common


_FAMILIES = {1: Family.UNARY, 2: Family.BINARY, 3: Family.TERNARY}


def _elementwise(
    operand_rule: Rule,
    cost: Cost,
    *,
    result: DType | None = None,
    linear: Linear | None = None,
    name: str = "",
    public: bool = True,
) -> Callable[[Callable[..., Array]], Operation]:
    """Declare an elementwise operation: ``operand_rule`` gives the dtype that the operands are brought to, which is
    the result's too unless ``result`` names another; ``cost`` is its class, for machines that do not list it."""

    def declare(body: Callable[..., Array]) -> Operation:
        operation_name = name or body.__name__.rstrip("_")

        def rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
            operand_type = operand_rule(operands)
            return _shape(operands), result or operand_type

        def evaluate(*values: Any, result: DType, operands: Sequence[Operand]) -> Array:
            operand_type = operand_rule(operands)
            compute = dtypes.float32 if operand_type.is_float else operand_type
            ready = [cast_array(cast_array(value, operand_type), compute) for value in values]
            with np.errstate(all="ignore"):
                return cast_array(body(*ready), result)

        return TABLE.add(
            Operation(
                name=operation_name,
                family=_FAMILIES[body.__code__.co_argcount],
                kind=Kind.ELEMENTWISE,
                cost=cost,
                linear=linear,
                log=f"math/{operation_name}",
                rule=rule,
                evaluate=evaluate,
                work=_elements,
                doc=" ".join((body.__doc__ or "").split()),
                public=public,
            )
        )

    return declare


# --- arithmetic -----------------------------------------------------------------------------------------------------


@_elementwise(_numeric, Cost.SIMPLE, public=False, linear=Linear((0, 1), adds=True))
def add(a: Array, b: Array) -> Array:
    """``a + b``. Example: ``total = x + y``."""
    return a + b


@_elementwise(_numeric, Cost.SIMPLE, public=False, linear=Linear((0, 1), adds=True))
def sub(a: Array, b: Array) -> Array:
    """``a - b``. Example: ``centred = x - mean``."""
    return a - b


@_elementwise(_numeric, Cost.SIMPLE, public=False, linear=Linear((0, 1), jointly=False))
def mul(a: Array, b: Array) -> Array:
    """``a * b``. Example: ``scaled = scores * 0.125``."""
    return a * b


@_elementwise(_transcendental, Cost.DIVISION, public=False, linear=Linear((0,), jointly=False))
def div(a: Array, b: Array) -> Array:
    """``a / b``; integers give f32. Example: ``o = acc / l``."""
    return a / b


@_elementwise(_numeric, Cost.DIVISION, public=False)
def floordiv(a: Array, b: Array) -> Array:
    """``a // b``, rounded down as in Python; an integer divided by zero gives 0. Example: ``row = i // 128``."""
    return a // b


@_elementwise(_numeric, Cost.DIVISION, public=False)
def mod(a: Array, b: Array) -> Array:
    """``a % b`` with the sign of ``b`` as in Python; an integer modulo zero gives 0. Example: ``col = i % 128``."""
    return a % b


@_elementwise(_numeric, Cost.TRANSCENDENTAL, public=False)
def pow_(a: Array, b: Array) -> Array:
    """``a ** b``; a negative power of an integer is rounded toward zero. Example: ``x ** 2``."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, b.dtype.type(0)))
    reciprocal = np.where(
        a == 1, 1, np.where((a == -1) if a.dtype.kind == "i" else False, np.where(b % 2 == 0, 1, -1), 0)
    )
    return np.where(b < 0, reciprocal.astype(a.dtype), whole)


@_elementwise(_numeric, Cost.SIMPLE, public=False, linear=Linear((0,)))
def neg(x: Array) -> Array:
    """``-x``. Example: ``-x``."""
    return np.negative(x)


@_elementwise(_numeric, Cost.SIMPLE)
def abs_(x: Array) -> Array:
    """Absolute value. Example: ``tl.abs(x)``."""
    return np.abs(x)


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0, 1, 2), adds=True))
def fma(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c``; floats through f64, so that the product is exact. Example: ``tl.fma(x, scale, shift)``."""
    if a.dtype.kind != "f":
        return a * b + c
    return a.astype(np.float64) * b + c


# --- functions ------------------------------------------------------------------------------------------------------


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def exp(x: Array) -> Array:
    """e to the power x. Example: ``p = tl.exp(s - m)``."""
    return np.exp(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def exp2(x: Array) -> Array:
    """2 to the power x. Example: ``p = tl.exp2(s * log2e)``."""
    return np.exp2(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def log(x: Array) -> Array:
    """Natural logarithm. Example: ``lse = m + tl.log(l)``."""
    return np.log(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def log2(x: Array) -> Array:
    """Logarithm to base 2. Example: ``tl.log2(l)``."""
    return np.log2(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def sqrt(x: Array) -> Array:
    """Square root. Example: ``std = tl.sqrt(var + eps)``."""
    return np.sqrt(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def rsqrt(x: Array) -> Array:
    """One over the square root. Example: ``inv = tl.rsqrt(var + eps)``."""
    return np.float32(1) / np.sqrt(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def tanh(x: Array) -> Array:
    """Hyperbolic tangent. Example: ``tl.tanh(x)``."""
    return np.tanh(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def sigmoid(x: Array) -> Array:
    """``1 / (1 + exp(-x))``. Example: ``gate = tl.sigmoid(x)``."""
    return np.float32(1) / (np.float32(1) + np.exp(-x))


_ERF = np.frompyfunc(math.erf, 1, 1)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def erf(x: Array) -> Array:
    """Gauss error function. Example: ``gelu = 0.5 * x * (1 + tl.erf(x * 0.70710678))``."""
    return np.asarray(_ERF(x.astype(np.float64)), dtype=np.float64).astype(np.float32)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def sin(x: Array) -> Array:
    """Sine. Example: ``tl.sin(angle)``."""
    return np.sin(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def cos(x: Array) -> Array:
    """Cosine. Example: ``tl.cos(angle)``."""
    return np.cos(x)


@_elementwise(_numeric, Cost.SIMPLE)
def floor(x: Array) -> Array:
    """Round down; integers stay. Example: ``tl.floor(x)``."""
    return np.floor(x) if x.dtype.kind == "f" else x


@_elementwise(_numeric, Cost.SIMPLE)
def ceil(x: Array) -> Array:
    """Round up; integers stay. Example: ``tl.ceil(x)``."""
    return np.ceil(x) if x.dtype.kind == "f" else x


@_elementwise(_numeric, Cost.SIMPLE)
def round_(x: Array) -> Array:
    """Round to the nearest, halves to even; integers stay. Example: ``q = tl.round(x / scale)``."""
    return np.rint(x) if x.dtype.kind == "f" else x


@_elementwise(_ordered, Cost.SIMPLE)
def maximum(a: Array, b: Array) -> Array:
    """The larger of two; NaN wins. Example: ``m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))``."""
    return np.maximum(a, b)


@_elementwise(_ordered, Cost.SIMPLE)
def minimum(a: Array, b: Array) -> Array:
    """The smaller of two; NaN wins. Example: ``tl.minimum(x, 6.0)``."""
    return np.minimum(a, b)


@_elementwise(_numeric, Cost.SIMPLE)
def clamp(x: Array, low: Array, high: Array) -> Array:
    """``x`` kept between two bounds; NaN stays. Example: ``q = tl.clamp(x, -128, 127)``."""
    return np.minimum(np.maximum(x, low), high)


# --- comparisons ----------------------------------------------------------------------------------------------------


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def lt(a: Array, b: Array) -> Array:
    """``a < b``, a bool tensor. Example: ``mask = cols < n``."""
    return a < b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def le(a: Array, b: Array) -> Array:
    """``a <= b``, a bool tensor. Example: ``causal = cols <= rows``."""
    return a <= b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def gt(a: Array, b: Array) -> Array:
    """``a > b``, a bool tensor. Example: ``x > 0``."""
    return a > b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def ge(a: Array, b: Array) -> Array:
    """``a >= b``, a bool tensor. Example: ``rows >= cols``."""
    return a >= b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def eq(a: Array, b: Array) -> Array:
    """``a == b``, a bool tensor. Example: ``labels == 0``."""
    return np.asarray(a == b)


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_, public=False)
def ne(a: Array, b: Array) -> Array:
    """``a != b``, a bool tensor. Example: ``labels != 0``."""
    return np.asarray(a != b)


# --- bits -----------------------------------------------------------------------------------------------------------


@_elementwise(_bits, Cost.SIMPLE, public=False)
def and_(a: Array, b: Array) -> Array:
    """``a & b`` of integers or bool. Example: ``mask = (rows < m) & (cols < n)``."""
    return a & b


@_elementwise(_bits, Cost.SIMPLE, public=False)
def or_(a: Array, b: Array) -> Array:
    """``a | b`` of integers or bool. Example: ``a | b``."""
    return a | b


@_elementwise(_bits, Cost.SIMPLE, public=False)
def xor(a: Array, b: Array) -> Array:
    """``a ^ b`` of integers or bool. Example: ``a ^ b``."""
    return a ^ b


@_elementwise(_bits, Cost.SIMPLE, public=False)
def not_(x: Array) -> Array:
    """``~x`` of integers or bool. Example: ``~mask``."""
    return np.invert(x)


@_elementwise(_shifts, Cost.SIMPLE, public=False)
def shl(a: Array, b: Array) -> Array:
    """``a << b`` of integers; bits shifted out are lost. Example: ``code << 4``."""
    return np.asarray(np.left_shift(a, b))


@_elementwise(_shifts, Cost.SIMPLE, public=False)
def shr(a: Array, b: Array) -> Array:
    """``a >> b`` of integers, keeping the sign. Example: ``code >> 4``."""
    return np.asarray(np.right_shift(a, b))


# --- where and cast -------------------------------------------------------------------------------------------------


def _where_rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    condition, *branches = operands
    if not isinstance(condition, Layout) or condition.dtype.kind != "bool":
        raise DTypeError(
            f"the condition of where is {condition!r}, not a bool tensor", help="compare first: tl.where(x > 0, a, b)"
        )
    if not operand_dtypes(branches):
        common = dtypes.float32 if any(isinstance(b, float) for b in branches) else dtypes.int32
        for branch in branches:
            assert not isinstance(branch, Layout)
            check_scalar(branch, common)
        return condition.shape, common
    return _shape(operands), common_dtype(branches)


def _where(condition: Array, a: Any, b: Any, *, result: DType, operands: Sequence[Operand]) -> Array:
    return np.where(condition, cast_array(a, result), cast_array(b, result))


TABLE.add(
    Operation(
        name="where",
        family=Family.TERNARY,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SIMPLE,
        linear=Linear((1, 2)),
        log="math/where",
        rule=_where_rule,
        evaluate=_where,
        work=_elements,
        doc='``a`` where the condition holds, else ``b``. Example: ``tl.where(mask, s, float("-inf"))``.',
    )
)


def _cast_rule(operands: Sequence[Operand], *, dtype: DType) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    return source.shape, dtype


def _cast(x: Array, *, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    return cast_array(x, dtype)


TABLE.add(
    Operation(
        name="cast",
        family=Family.CAST,
        kind=Kind.ELEMENTWISE,
        cost=Cost.MOVE,
        linear=Linear((0,)),
        log="math/cast",
        rule=_cast_rule,
        evaluate=_cast,
        work=_elements,
        doc="The values in another dtype. To a float, rounded to nearest even. From a float to an integer, rounded "
        "toward zero; what is out of range becomes the nearest integer there is, NaN becomes 0. To a narrower integer, "
        "the low bits; to bool, whether it is not 0. Example: ``p16 = tl.cast(p, tl.float16)``.",
    )
)
