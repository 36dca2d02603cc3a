"""Elementwise functions that front ends ask for, and ``tl`` does not have: numpy's own, in f32 (f64 in f64)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .elementwise import declare_function
from .operation import Family

__all__: list[str] = []

_ONE: dict[str, tuple[Callable[..., Any], str]] = {
    "tan": (np.tan, "Tangent"),
    "asin": (np.arcsin, "Inverse sine"),
    "acos": (np.arccos, "Inverse cosine"),
    "atan": (np.arctan, "Inverse tangent"),
    "sinh": (np.sinh, "Hyperbolic sine"),
    "cosh": (np.cosh, "Hyperbolic cosine"),
    "asinh": (np.arcsinh, "Inverse hyperbolic sine"),
    "acosh": (np.arccosh, "Inverse hyperbolic cosine"),
    "atanh": (np.arctanh, "Inverse hyperbolic tangent"),
    "log1p": (np.log1p, "Logarithm of one more"),
    "expm1": (np.expm1, "One less than e to the power x"),
    "log10": (np.log10, "Logarithm to base 10"),
    "cbrt": (np.cbrt, "Cube root"),
    "trunc": (np.trunc, "Round toward zero"),
}
_TWO: dict[str, tuple[Callable[..., Any], str]] = {
    "atan2": (np.arctan2, "Angle of a point"),
    "hypot": (np.hypot, "Distance from the origin"),
    "copysign": (np.copysign, "The size of one number with the sign of another"),
    "nextafter": (np.nextafter, "The next number towards another"),
}

for _name, (_compute, _what) in _ONE.items():
    declare_function(_name, Family.UNARY, _compute, f"{_what}. Example: ``libdevice.{_name}(x)``.")
for _name, (_compute, _what) in _TWO.items():
    declare_function(_name, Family.BINARY, _compute, f"{_what}. Example: ``libdevice.{_name}(x, y)``.")
