"""Elementwise operations: operators, functions, comparisons, bits, ``where`` and ``cast``.

Each is one decorated function: its name is the operation's, its parameters the operands, its docstring the
documentation, its body the numpy evaluation. All computing is done in f32 for floats (rounded once, to the result; in
f64 for f64) and in the promoted integer type, wrapping around, for integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError
from ..layout import Layout, Shape, broadcast_shapes
from .functions import bit_length, erf_of, fused, high_product, reversed_bits
from .numbers import Array, cast_array, check_scalar
from .operation import (
    Cost,
    Family,
    Kind,
    Linear,
    Operand,
    Operation,
    OperationTable,
    operand_dtypes,
    output_elements,
)

__all__ = ["TABLE", "common_dtype", "declare_function"]

TABLE = OperationTable()


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


def _shape(operands: Sequence[Operand]) -> Shape:
    return broadcast_shapes(*[o.shape for o in operands if isinstance(o, Layout)])


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
    by, bits = operands[1], 8 * common.itemsize
    if isinstance(by, int) and not 0 <= by < bits:
        # Devices do not agree on what is left: nothing, or a shift by the remainder.
        raise DTypeError(
            f"a shift of {common} by {by}: it has {bits} bits, and shifts by 0 to {bits - 1}",
            help="shift the other way"
            if -bits < by < 0
            else "shift by fewer bits, or widen the tensor: h.to(tl.int64)",
        )
    return common


def _wide_products(operands: Sequence[Operand]) -> DType:
    common = common_dtype(operands)
    if not common.is_integer or common.itemsize < 4:
        raise DTypeError(f"high half of a product of {common}", help="it takes 32 or 64 bits: h.to(tl.int32)")
    return common


def _wide_integers(operands: Sequence[Operand]) -> DType:
    common = common_dtype(operands)
    if not common.is_integer or common.itemsize < 4:
        raise DTypeError(f"the bits of {common}", help="it takes integers of 32 or 64 bits: h.to(tl.int32)")
    return common


_FAMILIES = {1: Family.UNARY, 2: Family.BINARY, 3: Family.TERNARY}


def _elementwise(
    operand_rule: Rule,
    cost: Cost,
    *,
    result: DType | None = None,
    linear: Linear | None = None,
    parts: tuple[str, ...] = (),
    public: bool = True,
) -> Callable[[Callable[..., Array]], Operation]:
    """Declare an elementwise operation: ``operand_rule`` gives the dtype that the operands are brought to, which is
    the result's too unless ``result`` names another; ``cost`` is its class, for machines that do not list it; it costs
    what its ``parts`` cost there, where it has some. One that is not ``public`` is for front ends: ``tl`` does not have
    it."""

    def declare(body: Callable[..., Array]) -> Operation:
        operation_name = body.__name__.rstrip("_")

        def rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
            operand_type = operand_rule(operands)
            return _shape(operands), result or operand_type

        def evaluate(*values: Any, result: DType, operands: Sequence[Operand]) -> Array:
            operand_type = operand_rule(operands)
            ready = [cast_array(cast_array(value, operand_type), operand_type.computed_in) for value in values]
            with np.errstate(all="ignore"):
                return cast_array(body(*ready), result)

        return TABLE.add(
            Operation(
                name=operation_name,
                family=_FAMILIES[body.__code__.co_argcount],
                kind=Kind.ELEMENTWISE,
                cost=cost,
                linear=linear,
                parts=parts,
                log=f"math/{operation_name}",
                rule=rule,
                evaluate=evaluate,
                work=output_elements,
                doc=" ".join((body.__doc__ or "").split()),
                public=public,
            )
        )

    return declare


def declare_function(name: str, family: Family, compute: Callable[..., Any], doc: str) -> Operation:
    """Declare a function of floats that is for front ends: ``tl`` does not have it."""

    def rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
        return _shape(operands), _transcendental(operands)

    def evaluate(*values: Any, result: DType, operands: Sequence[Operand]) -> Array:
        ready = [cast_array(cast_array(value, result), result.computed_in) for value in values]
        with np.errstate(all="ignore"):
            return cast_array(np.asarray(compute(*ready)), result)

    return TABLE.add(
        Operation(
            name=name,
            family=family,
            kind=Kind.ELEMENTWISE,
            cost=Cost.TRANSCENDENTAL,
            log=f"math/{name}",
            rule=rule,
            evaluate=evaluate,
            work=output_elements,
            doc=doc,
            public=False,
        )
    )


# --- arithmetic -----------------------------------------------------------------------------------------------------


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0, 1), adds=True))
def add(a: Array, b: Array) -> Array:
    """``a + b``. Example: ``total = x + y``."""
    return a + b


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0, 1), adds=True))
def sub(a: Array, b: Array) -> Array:
    """``a - b``. Example: ``centred = x - mean``."""
    return a - b


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0, 1), jointly=False))
def mul(a: Array, b: Array) -> Array:
    """``a * b``. Example: ``scaled = scores * 0.125``."""
    return a * b


@_elementwise(_transcendental, Cost.DIVISION, linear=Linear((0,), jointly=False))
def div(a: Array, b: Array) -> Array:
    """``a / b``; integers give f32. Example: ``o = acc / l``."""
    return a / b


@_elementwise(_numeric, Cost.DIVISION)
def floordiv(a: Array, b: Array) -> Array:
    """``a // b``, rounded down as in Python; an integer divided by zero gives 0. Example: ``row = i // 128``."""
    return a // b


@_elementwise(_numeric, Cost.DIVISION)
def mod(a: Array, b: Array) -> Array:
    """``a % b`` with the sign of ``b`` as in Python; an integer modulo zero gives 0. Example: ``col = i % 128``."""
    return a % b


@_elementwise(_numeric, Cost.DIVISION, public=False)
def truncdiv(a: Array, b: Array) -> Array:
    """``a / b`` of integers rounded toward zero, as C and Triton divide; by zero it gives 0. Example: ``row = i //
    n``."""
    quotient = a // b
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    return np.where((np.fmod(a, b) != 0) & ((a < 0) != (b < 0)), quotient + 1, quotient).astype(a.dtype)


@_elementwise(_numeric, Cost.DIVISION, public=False)
def rem(a: Array, b: Array) -> Array:
    """The remainder with the sign of ``a``, as C and Triton have it; an integer modulo zero gives 0. Example: ``col = i
    % n``."""
    return np.fmod(a, b)


@_elementwise(_numeric, Cost.TRANSCENDENTAL)
def pow_(a: Array, b: Array) -> Array:
    """``a ** b``; a negative power of an integer is rounded toward zero. Example: ``x ** 2``."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    whole = np.power(a, np.maximum(b, b.dtype.type(0)))
    reciprocal = np.where(
        a == 1, 1, np.where((a == -1) if a.dtype.kind == "i" else False, np.where(b % 2 == 0, 1, -1), 0)
    )
    return np.where(b < 0, reciprocal.astype(a.dtype), whole)


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0,)))
def neg(x: Array) -> Array:
    """``-x``. Example: ``-x``."""
    return np.negative(x)


@_elementwise(_numeric, Cost.SIMPLE)
def abs_(x: Array) -> Array:
    """Absolute value. Example: ``tl.abs(x)``."""
    return np.abs(x)


@_elementwise(_numeric, Cost.SIMPLE, linear=Linear((0, 1, 2), adds=True))
def fma(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` with the product exact: floats through f64, f64 rounded once. Example: ``tl.fma(x, scale,
    shift)``."""
    return _fma(a, b, c)


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype.kind != "f":
        return a * b + c
    return fused(a, b, c) if a.dtype == np.float64 else a.astype(np.float64) * b + c


@_elementwise(_wide_products, Cost.SIMPLE)
def mulhi(a: Array, b: Array) -> Array:
    """The high half of the product of two integers of 32 or 64 bits, signed ones with their sign. Example:
    ``tl.mulhi(counter, key)``."""
    return high_product(a, b)


# --- functions ------------------------------------------------------------------------------------------------------


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def exp(x: Array) -> Array:
    """e to the power x. Example: ``p = tl.exp(s - m)``."""
    return np.exp(x)


@_elementwise(_transcendental, Cost.TRANSCENDENTAL, parts=("fma", "exp"))
def exp_fma(x: Array, scale: Array, shift: Array) -> Array:
    """e to the power ``x * scale + shift``: one instruction of engines that list it, such as NKI's ``activation``.
    Example: ``decay = tl.exp_fma(delta, rate, 0.0)``."""
    power: Array = np.exp(_fma(x, scale, shift).astype(x.dtype))
    return power


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


@_elementwise(_transcendental, Cost.TRANSCENDENTAL)
def erf(x: Array) -> Array:
    """Gauss error function. Example: ``gelu = 0.5 * x * (1 + tl.erf(x * 0.70710678))``."""
    return erf_of(x.astype(np.float64, copy=False))


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


@_elementwise(_wide_integers, Cost.SIMPLE, public=False)
def clz(x: Array) -> Array:
    """How many zeros stand before the first bit. Example: ``libdevice.clz(x)``."""
    return (x.dtype.itemsize * 8 - bit_length(x)).astype(x.dtype)


@_elementwise(_wide_integers, Cost.SIMPLE, public=False)
def popc(x: Array) -> Array:
    """How many bits are set. Example: ``libdevice.popc(x)``."""
    return np.asarray(np.bitwise_count(x.view(f"u{x.dtype.itemsize}"))).astype(x.dtype)


@_elementwise(_wide_integers, Cost.SIMPLE, public=False)
def ffs(x: Array) -> Array:
    """The place of the last bit that is set, from 1 on; 0 of 0. Example: ``libdevice.ffs(x)``."""
    return bit_length(x & (~x + x.dtype.type(1))).astype(x.dtype)


@_elementwise(_wide_integers, Cost.SIMPLE, public=False)
def brev(x: Array) -> Array:
    """The bits in the other order. Example: ``libdevice.brev(x)``."""
    return reversed_bits(x)


@_elementwise(_ordered, Cost.SIMPLE, public=False)
def fmax(a: Array, b: Array) -> Array:
    """The larger of two; a number wins over NaN, as in C. Example: ``libdevice.fmax(x, y)``."""
    return np.fmax(a, b)


@_elementwise(_ordered, Cost.SIMPLE, public=False)
def fmin(a: Array, b: Array) -> Array:
    """The smaller of two; a number wins over NaN, as in C. Example: ``libdevice.fmin(x, y)``."""
    return np.fmin(a, b)


@_elementwise(_numeric, Cost.SIMPLE)
def clamp(x: Array, low: Array, high: Array) -> Array:
    """``x`` kept between two bounds; NaN stays. Example: ``q = tl.clamp(x, -128, 127)``."""
    return np.minimum(np.maximum(x, low), high)


# --- comparisons ----------------------------------------------------------------------------------------------------


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def lt(a: Array, b: Array) -> Array:
    """``a < b``, a bool tensor. Example: ``mask = cols < n``."""
    return a < b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def le(a: Array, b: Array) -> Array:
    """``a <= b``, a bool tensor. Example: ``causal = cols <= rows``."""
    return a <= b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def gt(a: Array, b: Array) -> Array:
    """``a > b``, a bool tensor. Example: ``x > 0``."""
    return a > b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def ge(a: Array, b: Array) -> Array:
    """``a >= b``, a bool tensor. Example: ``rows >= cols``."""
    return a >= b


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def eq(a: Array, b: Array) -> Array:
    """``a == b``, a bool tensor. Example: ``labels == 0``."""
    return np.asarray(a == b)


@_elementwise(_ordered, Cost.SIMPLE, result=dtypes.bool_)
def ne(a: Array, b: Array) -> Array:
    """``a != b``, a bool tensor. Example: ``labels != 0``."""
    return np.asarray(a != b)


# --- bits -----------------------------------------------------------------------------------------------------------


@_elementwise(_bits, Cost.SIMPLE)
def and_(a: Array, b: Array) -> Array:
    """``a & b`` of integers or bool. Example: ``mask = (rows < m) & (cols < n)``."""
    return a & b


@_elementwise(_bits, Cost.SIMPLE)
def or_(a: Array, b: Array) -> Array:
    """``a | b`` of integers or bool. Example: ``a | b``."""
    return a | b


@_elementwise(_bits, Cost.SIMPLE)
def xor(a: Array, b: Array) -> Array:
    """``a ^ b`` of integers or bool. Example: ``a ^ b``."""
    return a ^ b


@_elementwise(_bits, Cost.SIMPLE)
def not_(x: Array) -> Array:
    """``~x`` of integers or bool. Example: ``~mask``."""
    return np.invert(x)


@_elementwise(_shifts, Cost.SIMPLE)
def shl(a: Array, b: Array) -> Array:
    """``a << b`` of integers; bits shifted out are lost; a constant ``b`` is less than the bits that there are.
    Example: ``code << 4``."""
    return np.asarray(np.left_shift(a, b))


@_elementwise(_shifts, Cost.SIMPLE)
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
        work=output_elements,
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
        work=output_elements,
        doc="The values in another dtype. To a float, rounded to nearest even. From a float to an integer, rounded "
        "toward zero; what is out of range becomes the nearest integer there is, NaN becomes 0. To a narrower integer, "
        "the low bits; to bool, whether it is not 0. Example: ``p16 = tl.cast(p, tl.float16)``.",
    )
)


def _bitcast_rule(operands: Sequence[Operand], *, dtype: DType) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    if source.dtype.itemsize != dtype.itemsize or "bool" in (source.dtype.kind, dtype.kind):
        raise DTypeError(
            f"the bits of {source.dtype} as {dtype}", help="both sides need one width, and neither is bool: h.to(dtype)"
        )
    return source.shape, dtype


def _bitcast(x: Array, *, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    return np.ascontiguousarray(x).view(dtype.numpy).reshape(x.shape)


TABLE.add(
    Operation(
        name="bitcast",
        family=Family.CAST,
        kind=Kind.ELEMENTWISE,
        cost=Cost.MOVE,
        log="math/bitcast",
        rule=_bitcast_rule,
        evaluate=_bitcast,
        work=output_elements,
        doc="The same bits as another dtype of that width, in fresh bytes (``tl.cast`` and ``to`` with ``bitcast``). "
        "Example: ``bits = x.to(tl.int32, bitcast=True)``.",
        public=False,
    )
)
