"""Functions of analysis that front ends ask for: scipy's, computed in f64 and rounded once. Without scipy they are
declared all the same, and evaluating one says what is missing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import MissingExtraError
from .elementwise import declare_function
from .functions import erfc_of
from .numbers import Array
from .operation import Family

__all__: list[str] = []


def _of_scipy(name: str) -> Callable[..., Array]:
    def compute(*values: Any) -> Array:
        try:
            special = importlib.import_module("scipy.special")
        except ImportError as error:
            raise MissingExtraError(
                f"scipy is not installed: it computes {name}", help="pip install 'kernscope[special]'"
            ) from error
        return np.asarray(getattr(special, name)(*(np.asarray(v, np.float64) for v in values)))

    return compute


def _erfc(x: Array) -> Array:
    return erfc_of(np.asarray(x, np.float64))


def _sinpi(x: Array) -> Array:
    # The period is taken off before the product rounds.
    rest = np.asarray(x, np.float64)
    return np.sin(np.pi * (rest - 2 * np.round(rest / 2)))


def _cospi(x: Array) -> Array:
    rest = np.asarray(x, np.float64)
    return np.cos(np.pi * (rest - 2 * np.round(rest / 2)))


def _logb(x: Array) -> Array:
    exponent = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, np.where(np.isnan(x), x, exponent)))


def _round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x).astype(x.dtype), whole)


_ONE: dict[str, tuple[Callable[..., Any], str]] = {
    "lgamma": (_of_scipy("gammaln"), "Logarithm of the size of the gamma function"),
    "tgamma": (_of_scipy("gamma"), "Gamma function"),
    "erfc": (_erfc, "One less the error function"),
    "erfcx": (_of_scipy("erfcx"), "Scaled complementary error function"),
    "erfinv": (_of_scipy("erfinv"), "Inverse of the error function"),
    "erfcinv": (_of_scipy("erfcinv"), "Inverse of the complementary error function"),
    "normcdf": (_of_scipy("ndtr"), "Distribution function of the normal distribution"),
    "normcdfinv": (_of_scipy("ndtri"), "Quantile of the normal distribution"),
    "j0": (_of_scipy("j0"), "Bessel function of the first kind, of order 0"),
    "j1": (_of_scipy("j1"), "Bessel function of the first kind, of order 1"),
    "y0": (_of_scipy("y0"), "Bessel function of the second kind, of order 0"),
    "y1": (_of_scipy("y1"), "Bessel function of the second kind, of order 1"),
    "cyl_bessel_i0": (_of_scipy("i0"), "Modified Bessel function, of order 0"),
    "cyl_bessel_i1": (_of_scipy("i1"), "Modified Bessel function, of order 1"),
    "sinpi": (_sinpi, "Sine of pi times x"),
    "cospi": (_cospi, "Cosine of pi times x"),
    "logb": (_logb, "Exponent to base 2, as a float"),
    "round_half_away": (_round_half_away, "Nearest whole number, halves away from zero"),
}


def _remainder(x: Array, y: Array) -> Array:
    # Of twice the divisor first, which tells whether the quotient is odd; all steps are exact
    # (Sun's fdlibm, `e_remainder.c`).
    size = np.abs(y)
    rest = np.fmod(np.abs(x), 2 * size)
    above = rest + rest > size
    rest = np.where(above, rest - size, rest)
    rest = np.where(above & (rest + rest >= size), rest - size, rest)
    return np.asarray(np.copysign(1.0, x).astype(x.dtype) * rest)


def _ldexp(x: Array, exponent: Array) -> Array:
    # From the smallest subnormal number to the largest one of f64 there are fewer than 5,000 powers.
    return np.asarray(np.ldexp(x, np.clip(exponent, -5000, 5000).astype(np.int32)))


_TWO: dict[str, tuple[Callable[..., Any], str]] = {
    "jn": (_of_scipy("jv"), "Bessel function of the first kind, of an order"),
    "yn": (_of_scipy("yv"), "Bessel function of the second kind, of an order"),
    "remainder": (_remainder, "What is left of x less the nearest multiple of y"),
    "ldexp": (_ldexp, "x times a power of two, rounded once"),
}

for _name, (_compute, _what) in _TWO.items():
    declare_function(_name, Family.BINARY, _compute, f"{_what}. Example: ``libdevice.{_name}(x, y)``.")
for _name, (_compute, _what) in _ONE.items():
    declare_function(_name, Family.UNARY, _compute, f"{_what}. Example: ``libdevice.{_name}(x)``.")
