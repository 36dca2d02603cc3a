"""The functions of ``libdevice``: numbers of one element each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..values.arithmetic import cast, elementwise
from ..values.types import TYPES
from ..values.value import Value, lift
from . import arithmetic, shapes
from .arithmetic import FUNCTIONS, ROUND, function, two

__all__ = ["LIBDEVICE", "REFUSED_LIBDEVICE"]


def is_nan(x: Any) -> Value:
    """Whether a number is none."""
    return elementwise("ne", lift(x), lift(x))


def is_infinite(x: Any) -> Value:
    """Whether a number is infinite."""
    return elementwise("eq", elementwise("abs", lift(x)), float("inf"))


def is_finite(x: Any) -> Value:
    """Whether a number is neither infinite nor none."""
    return elementwise("lt", elementwise("abs", lift(x)), float("inf"))


def sign_bit(x: Any) -> Value:
    """Whether a number's sign is negative, also that of a zero."""
    return elementwise("lt", elementwise("copysign", 1.0, lift(x)), 0.0)


def exp10(x: Any) -> Value:
    """Ten to the power x."""
    return elementwise("pow", 10.0, lift(x))


def reciprocal(x: Any) -> Value:
    """One over x."""
    return elementwise("div", 1.0, lift(x))


def positive_difference(x: Any, y: Any) -> Value:
    """``x - y`` where that is above 0, else 0; also of two infinities."""
    x = lift(x)
    return elementwise("where", elementwise("le", x, y), 0.0, elementwise("sub", x, y))


def saturated(x: Any) -> Value:
    """x kept between 0 and 1."""
    return elementwise("fmin", elementwise("fmax", lift(x), 0.0), 1.0)


def reciprocal_of(compute: Callable[..., Value]) -> Callable[..., Value]:
    """One over what a function gives."""
    return lambda *x: reciprocal(compute(*x))


def norm(*components: Any) -> Value:
    """The length of a vector, whose squares do not overflow."""
    total = lift(components[0])
    for component in components[1:]:
        total = elementwise("hypot", total, component)
    return total


def halved(mean: str, correct: str) -> Callable[..., Value]:
    """Half of a sum of integers that may overflow (Warren, "Hacker's Delight", 2-5)."""

    def call(x: Any, y: Any) -> Value:
        differing = elementwise("shr", elementwise("xor", lift(x), y), 1)
        return elementwise(correct, elementwise(mean, lift(x), y), differing)

    return call


def distance(x: Any, y: Any, z: Any) -> Value:
    """``|x - y| + z``."""
    larger, smaller = elementwise("maximum", lift(x), y), elementwise("minimum", lift(x), y)
    return elementwise("add", elementwise("sub", larger, smaller), z)


def to_type(name: str, before: str = "") -> Callable[[Any], Value]:
    """The conversion to a type, after a function that rounds."""

    def call(x: Any) -> Value:
        given = elementwise(before, lift(x)) if before else lift(x)
        return cast(given, TYPES[name].numpy)

    return call


def counted(name: str) -> Callable[[Any], Value]:
    """A number of bits, as an i32."""
    return lambda x: cast(elementwise(name, lift(x)), np.dtype(np.int32))


def exponent_of(x: Any) -> Value:
    """The exponent to base 2, as an i32."""
    return cast(elementwise("logb", lift(x)), np.dtype(np.int32))


_SOURCES = {"float": "float32", "double": "float64"}
_WHOLE = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
_ROUNDINGS = {"rn": "round", "rz": "trunc", "rd": "floor", "ru": "ceil"}

#: By name.
LIBDEVICE: dict[str, Any] = {
    **FUNCTIONS,
    "cdiv": arithmetic.cdiv,
    "clamp": arithmetic.clamp,
    "div_rn": arithmetic.fdiv,
    "fdiv": arithmetic.fdiv,
    "fma": arithmetic.fma,
    "pow": arithmetic.power,
    "sqrt_rn": FUNCTIONS["sqrt"],
    "umulhi": arithmetic.umulhi,
    "max": arithmetic.maximum,
    "min": arithmetic.minimum,
    **{
        f"{source}2{whole}_{way}": to_type(kind, rounding)
        for source in _SOURCES
        for whole, kind in _WHOLE.items()
        for way, rounding in _ROUNDINGS.items()
    },
    **{f"{whole}2{target}_rn": to_type(kind) for target, kind in _SOURCES.items() for whole in _WHOLE},
    "double2float_rn": to_type("float32"),
    **{name: counted(name) for name in ("clz", "popc", "ffs")},
    "brev": function("brev"),
    **{name: two(name) for name in ("jn", "yn", "remainder", "ldexp")},
    "hadd": halved("and", "add"),
    "rhadd": halved("or", "sub"),
    "sad": distance,
    "scalbn": two("ldexp"),
    "ilogb": exponent_of,
    "llrint": to_type("int64", "round"),
    "round": function(ROUND),
    "llround": to_type("int64", ROUND),
    "rcbrt": reciprocal_of(FUNCTIONS["cbrt"]),
    "rhypot": reciprocal_of(norm),
    "norm3d": norm,
    "norm4d": norm,
    "rnorm3d": reciprocal_of(norm),
    "rnorm4d": reciprocal_of(norm),
    "rint": FUNCTIONS["round"],
    "nearbyint": FUNCTIONS["round"],
    "fast_expf": FUNCTIONS["exp"],
    "fast_logf": FUNCTIONS["log"],
    "fast_dividef": arithmetic.fdiv,
    "isnan": is_nan,
    "isinf": is_infinite,
    "isfinited": is_finite,
    "finitef": is_finite,
    "signbit": sign_bit,
    "atan2": arithmetic.two("atan2"),
    "hypot": arithmetic.two("hypot"),
    "copysign": arithmetic.two("copysign"),
    "nextafter": arithmetic.two("nextafter"),
    "erfc": FUNCTIONS["erfc"],
    "exp10": exp10,
    "fast_exp10f": exp10,
    "fast_tanf": FUNCTIONS["tan"],
    "fast_log10f": FUNCTIONS["log10"],
    "rsqrt_rn": FUNCTIONS["rsqrt"],
    "fma_rn": arithmetic.fma,
    "rcp_rn": reciprocal,
    "mulhi": arithmetic.umulhi,
    "fdim": positive_difference,
    "saturatef": saturated,
    "float_as_int": shapes.bits_as("int32"),
    "float_as_uint": shapes.bits_as("uint32"),
    "int_as_float": shapes.bits_as("float32"),
    "uint_as_float": shapes.bits_as("float32"),
    "double_as_longlong": shapes.bits_as("int64"),
    "longlong_as_double": shapes.bits_as("float64"),
    "fmod": arithmetic.two("rem"),
    "fast_sinf": FUNCTIONS["sin"],
    "fast_cosf": FUNCTIONS["cos"],
    "fast_tanhf": FUNCTIONS["tanh"],
    "fast_log2f": FUNCTIONS["log2"],
    "fast_powf": arithmetic.power,
    "fmax": arithmetic.maximum,
    "fmin": arithmetic.minimum,
    "fabs": FUNCTIONS["abs"],
    "mul_rn": arithmetic.two("mul"),
    "add_rn": arithmetic.two("add"),
    "sub_rn": arithmetic.two("sub"),
}

_NEAREST = "kernscope rounds to the nearest number only"
#: Names that cannot run, each with the reason.
REFUSED_LIBDEVICE: dict[str, str] = {
    **{
        f"{name}_{way}": _NEAREST
        for name in ("add", "sub", "mul", "div", "rcp", "sqrt", "fma", "double2float")
        for way in ("rz", "rd", "ru")
    },
    **{f"{whole}2{target}_{way}": _NEAREST for target in _SOURCES for whole in _WHOLE for way in ("rz", "rd", "ru")},
    **dict.fromkeys(
        ("byte_perm", "mul24", "rcp64h", "hiloint2double", "double2loint", "double2hiint"), "it is not built yet"
    ),
}
