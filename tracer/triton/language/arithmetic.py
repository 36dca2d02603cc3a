"""Elementwise functions, products of matrices, and Python's operators on values."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import dtypes
from ....ir.ops import OPERATIONS, Family
from ..constexpr import bare
from ..values.arithmetic import FLOATING, elementwise, is_float
from ..values.arithmetic import cast as cast_value
from ..values.value import Running, Value, lift
from . import shapes

__all__ = [
    "FUNCTIONS", "ROUND", "PropagateNan", "cdiv", "clamp", "dot", "fdiv", "fma", "function", "maximum", "minimum",
    "power", "two", "umulhi", "where",
]  # fmt: skip

_F32, _I32 = np.dtype(np.float32), np.dtype(np.int32)


def function(operation: str) -> Callable[..., Value]:
    """An elementwise function of one operand, by the table's operation."""

    def call(x: Any, *_: Any, **__: Any) -> Value:
        return elementwise(operation, lift(x))

    call.__name__, call.__doc__ = operation, f"``tl.{operation}``."
    return call


def two(operation: str) -> Callable[..., Value]:
    """An elementwise function of two operands, by the table's operation."""

    def call(x: Any, y: Any, *_: Any, **__: Any) -> Value:
        return (
            elementwise(operation, x, y)
            if isinstance(x, Value) or isinstance(y, Value)
            else elementwise(operation, lift(x), y)
        )

    call.__name__, call.__doc__ = operation, f"``tl.{operation}``."
    return call


#: What rounds as ``libdevice.round`` does, and not as ``round`` of the table: it is called by that name alone.
ROUND = "round_half_away"
#: Functions of one operand, by their names in ``tl``, ``tl.math`` and ``libdevice``.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    name: function(name)
    for name, operation in OPERATIONS.items()
    if operation.family is Family.UNARY and (name in {*FLOATING, "floor", "ceil", "abs", "round"} - {ROUND})
}


class PropagateNan(enum.Enum):
    """``tl.PropagateNan``: what a comparison makes of NaN. Where nothing is said, the number wins, as in C."""

    NONE = 0
    ALL = 0xFFFF


def _extremum(name: str, of_numbers: str) -> Callable[..., Value]:
    def call(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE) -> Value:
        x, y = lift(x), y if isinstance(y, Value) else bare(y)
        ignores = bare(propagate_nan) is PropagateNan.NONE
        floats = is_float(x.numpy) or isinstance(y, float) or (isinstance(y, Value) and is_float(y.numpy))
        return elementwise(of_numbers if ignores and floats else name, x, y)

    call.__name__, call.__doc__ = name, f"``tl.{name}``."
    return call


maximum, minimum = _extremum("maximum", "fmax"), _extremum("minimum", "fmin")
power = two("pow")


def where(condition: Any, x: Any, y: Any) -> Value:
    """``tl.where``."""
    condition = lift(condition)
    if condition.numpy != np.bool_:
        condition = elementwise("ne", condition, 0)
    return elementwise("where", condition, bare(x), bare(y))


def fma(x: Any, y: Any, z: Any) -> Value:
    """``tl.fma``."""
    return elementwise("fma", lift(x), y, z)


def fdiv(x: Any, y: Any, ieee_rounding: Any = False) -> Value:
    """``tl.fdiv``, ``tl.div_rn``."""
    return elementwise("div", lift(x), y)


def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Value:
    """``tl.clamp``."""
    propagate = PropagateNan.NONE if propagate_nan is None else propagate_nan
    return minimum(maximum(lift(x), min, propagate), max, propagate)


def umulhi(x: Any, y: Any) -> Value:
    """``tl.umulhi``: the high half of a product, without signs."""
    a, b = lift(x), lift(y)
    unsigned = np.dtype(f"u{max(a.numpy.itemsize, b.numpy.itemsize)}")
    back = a.numpy
    return cast_value(elementwise("mulhi", cast_value(a, unsigned), cast_value(b, unsigned)), back)


def cdiv(x: Any, div: Any) -> Any:
    """``tl.cdiv``."""
    x, div = bare(x), bare(div)
    return (x + div - 1) // div


# --- products ---------------------------------------------------------------------------------------------------------


def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Value:
    """``tl.dot``: accumulated in f32 (i32, f64)."""
    tracing = Running.tracing
    a, b = lift(input), lift(other)
    if len(a.shape) == len(b.shape) > 3 and a.shape[:-2] == b.shape[:-2]:
        return _dot_of_batches(a, b, acc, out_dtype)
    if len(a.shape) != len(b.shape) or len(a.shape) not in (2, 3) or a.shape[-1] != b.shape[-2]:
        raise tracing.refused(
            f"a dot of shapes {a.shape} and {b.shape}", "it takes (M, K) and (K, N), or batches of them"
        )
    if a.numpy != b.numpy:
        if not (is_float(a.numpy) and is_float(b.numpy) and a.numpy.itemsize == b.numpy.itemsize == 1):
            raise tracing.refused(f"a dot of {a.dtype} and {b.dtype}", "bring both to one type: x.to(tl.float16)")
        a, b = cast_value(a, np.dtype(np.float16)), cast_value(b, np.dtype(np.float16))
    if a.numpy.kind == "b":
        a, b = cast_value(a, np.dtype(np.int8)), cast_value(b, np.dtype(np.int8))
    wide = dtypes.of_numpy(a.numpy).accumulator
    operands = [a, b]
    if acc is not None:
        start = lift(acc)
        operands.append(shapes.broadcast_to(cast_value(start, wide.numpy), *a.shape[:-1], b.shape[-1]))
    shape = (*a.shape[:-1], b.shape[-1])
    static = (("out_dtype", wide),)
    found: Value = tracing.computed("dot", operands, wide.numpy, shape, static, {"out_dtype": wide})
    wanted = bare(out_dtype) if is_float(wide.numpy) else None  # of integers it is i32, whatever is asked for
    if acc is not None:
        return cast_value(found, lift(acc).numpy)
    return found if wanted is None else cast_value(found, wanted.numpy)


def _dot_of_batches(a: Value, b: Value, acc: Any, out_dtype: Any) -> Value:
    """Several dimensions of batches as one."""
    shape = (*a.shape[:-1], b.shape[-1])
    start = None if acc is None else shapes.reshape(shapes.broadcast_to(lift(acc), *shape), (-1, *shape[-2:]))
    first, second = (shapes.reshape(x, (-1, *x.shape[-2:])) for x in (a, b))
    return shapes.reshape(dot(first, second, start, out_dtype=out_dtype), shape)


# --- operators --------------------------------------------------------------------------------------------------------

_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "truncdiv",
    "mod": "rem",
    "pow": "pow",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "lshift": "shl",
    "rshift": "shr",
}


def _forward(operation: str) -> Callable[[Any, Any], Value]:
    return lambda a, b: elementwise(operation, a, b)


def _backward(operation: str) -> Callable[[Any, Any], Value]:
    return lambda a, b: elementwise(operation, b, a)


def _comparing(operation: str) -> Callable[[Any, Any], Any]:
    def compare(a: Any, b: Any) -> Any:
        b = bare(b)
        if b is None or isinstance(b, str | tuple):
            return operation == "ne"
        return elementwise(operation, a, b)

    return compare


for _method, _operation in _OPERATORS.items():
    setattr(Value, f"__{_method}__", _forward(_operation))
    setattr(Value, f"__r{_method}__", _backward(_operation))
for _operation in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Value, f"__{_operation}__", _comparing(_operation))
for _method, _operation in (("neg", "neg"), ("invert", "not"), ("abs", "abs")):
    setattr(Value, f"__{_method}__", function(_operation))
setattr(Value, "__pos__", lambda x: x)  # noqa: B010  (as the others)
setattr(Value, "__hash__", object.__hash__)  # noqa: B010  (`__eq__` above took it away)
