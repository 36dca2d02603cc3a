"""Numbers of the device's dtypes on numpy: what a dtype holds, conversion with one rounding."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError
from .operation import Scalar

__all__ = ["Array", "cast_array", "check_scalar"]

Array = np.ndarray[Any, np.dtype[Any]]

# --- what a dtype holds ---------------------------------------------------------------------------------------------

_INTEGER_RANGE = {d: (int(np.iinfo(d.numpy).min), int(np.iinfo(d.numpy).max)) for d in dtypes.ALL if d.is_integer}

_FLOAT_RANGE = {
    d: float(ml_dtypes.finfo(d.numpy).max)  # type: ignore[no-untyped-call]  # its stub has no types
    for d in dtypes.ALL
    if d.is_float
}
_WITHOUT_INFINITY = frozenset(d for d in _FLOAT_RANGE if not np.isinf(np.float32(np.inf).astype(d.numpy)))

#: From here on ``float(value)`` overflows: half a unit above the largest f64.
_BEYOND_FLOATS = (1 << 1024) - (1 << 970)
#: What a value that does not fit is told to be widened to: the first that holds it.
_WIDER_INTEGERS = (dtypes.int32, dtypes.of("i64"), dtypes.of("u64"))
_WIDER_FLOATS = (dtypes.float32, dtypes.float64)


def check_scalar(value: Scalar, dtype: DType) -> None:
    """Refuse a number that a dtype cannot hold (``DTypeError``): an integer outside an integer dtype, a finite number
    that a float dtype rounds to infinity (or NaN), an infinity where the dtype has none. What is rounded to another
    finite number passes, a NaN and an infinity that the dtype has do, too."""
    if isinstance(value, bool):
        return
    if dtype.is_integer and isinstance(value, int):
        low, high = _INTEGER_RANGE[dtype]
        if not low <= value <= high:
            raise DTypeError(f"{value} does not fit {dtype} ({low} to {high})", help=_widened(value))
    if dtype.is_float:
        _check_float(value, dtype)


def _widened(value: int) -> str:
    for dtype in _WIDER_INTEGERS:
        low, high = _INTEGER_RANGE[dtype]
        if low <= value <= high:
            return f"widen the tensor: h.to(tl.{dtype.name})"
    return "no integer dtype holds it: compute with floats, h.to(tl.float32)"


def _check_float(value: float, dtype: DType) -> None:
    if _holds(value, dtype):
        return
    if isinstance(value, int) and abs(value) >= _BEYOND_FLOATS:
        raise DTypeError(f"an integer of {value.bit_length()} bits does not fit {dtype}", help="scale it down")
    has_infinity, largest = dtype not in _WITHOUT_INFINITY, _FLOAT_RANGE[dtype]
    sign = "-" if value < 0 else ""
    choices = [f"use {sign}{largest:g}"]
    choices += [f'float("{sign}inf") for infinity'] if has_infinity else []
    wider = next((d for d in _WIDER_FLOATS if _holds(value, d)), None)
    choices += [f"widen the tensor: h.to(tl.{wider.name})"] if wider else []
    range_text = f"largest {largest:g}" if has_infinity else f"largest {largest:g}, no infinity"
    raise DTypeError(f"{value:g} does not fit {dtype} ({range_text})", help=", or ".join(choices))


def _holds(value: float, dtype: DType) -> bool:
    largest = _FLOAT_RANGE[dtype]
    if -largest <= value <= largest or value != value:
        return True
    if isinstance(value, int) and abs(value) >= _BEYOND_FLOATS:
        return False
    if math.isinf(value):
        return dtype not in _WITHOUT_INFINITY
    # A little beyond the largest number is still rounded to it.
    return bool(np.isfinite(cast_array(float(value), dtype).astype(np.float64)))


# --- conversion -----------------------------------------------------------------------------------------------------


def cast_array(array: Any, dtype: DType) -> Array:
    """An array (or scalar) rounded once to a dtype; the same array where nothing changes.

    What is out of range follows the target: infinity, NaN for f8e4m3; from a float to an integer the nearest integer
    there is, and 0 for NaN; from an integer to a narrower one its low bits.
    """
    source = np.asarray(array)
    if source.dtype == dtype.numpy:
        return source
    with np.errstate(all="ignore"):
        if dtype.is_integer and source.dtype.kind not in "iub":
            return _to_integers(source, dtype)
        if dtype.is_float and dtype.itemsize <= 2 and source.dtype.itemsize >= 4 and source.dtype != np.float32:
            # numpy and ml_dtypes round to f32 on the way, which would be a second rounding.
            source = _rounded_to_odd(source)
        if dtype.numpy == np.float16 and source.dtype == np.float32:
            return _to_halves(source)
        if dtype is dtypes.float32 and source.dtype in _WIDE:
            return _WIDE[source.dtype][source.view(np.uint8)]
        return source.astype(dtype.numpy)


#: What the types of 8 bits are in f32: a look-up takes a fourth of the time of ml_dtypes' conversion.
_WIDE: dict[np.dtype[Any], Array] = {
    d.numpy: np.arange(256, dtype=np.uint8).view(d.numpy).astype(np.float32)
    for d in dtypes.ALL
    if d.is_float and d.itemsize == 1
}

#: The smallest normal f16, and a number beside which f32 has the steps of f16's subnormals.
_F16_NORMAL, _F16_STEPS = np.float32(2**-14), np.float32(0.75)
#: So many numbers are made halves at once: what they are on the way stays in a processor's cache.
_HALVES_AT_ONCE = 1 << 16


def _to_halves(source: Array) -> Array:
    if source.size <= _HALVES_AT_ONCE or not source.flags.c_contiguous:
        return _without_underflow(source).astype(np.float16)
    found = np.empty(source.shape, np.float16)
    numbers, halves = source.reshape(-1), found.reshape(-1)
    for i in range(0, source.size, _HALVES_AT_ONCE):
        halves[i : i + _HALVES_AT_ONCE] = _without_underflow(numbers[i : i + _HALVES_AT_ONCE])
    return found


def _without_underflow(source: Array) -> Array:
    """Numbers for which f16 has no normal number, rounded to its subnormals in f32 already: numpy's own conversion
    tells the processor of each that it has to round, which takes thirty times as long as the conversion."""
    tiny = np.abs(source) < _F16_NORMAL
    if not tiny.any():
        return source
    rounded = np.asarray((source + _F16_STEPS) - _F16_STEPS)
    return np.where(tiny, np.copysign(rounded, source), source)


def _to_integers(source: Array, dtype: DType) -> Array:
    # C leaves this conversion undefined out of range, and processors differ. Both ends are compared as powers of two,
    # which f64 holds; its numbers within them convert exactly.
    low, high = _INTEGER_RANGE[dtype]
    wide = source.astype(np.float64)
    below, above = wide < float(low), wide >= float(high + 1)
    inside = np.where(below | above | np.isnan(wide), 0.0, wide).astype(dtype.numpy)
    return np.where(above, dtype.numpy.type(high), np.where(below, dtype.numpy.type(low), inside))


def _rounded_to_odd(source: Array) -> Array:
    """Numbers of 32 bits and more as f32 whose last bit is set where anything was lost: rounding them to fewer bits
    gives what rounding the numbers themselves does (Boldo and Melquiond, "When double rounding is odd", 2005)."""
    if source.dtype.kind in "iu" and source.dtype.itemsize == 8:
        # f64 holds 53 bits: of larger numbers the 11 low bits leave one that says whether they were zero.
        kept = (source >> 11 << 11) | ((source & 2047) != 0).astype(source.dtype) << 11
        top = source >> 53
        source = np.where((top == 0) | (~top == 0), source, kept)
    exact = source.astype(np.float64)
    near = exact.astype(np.float32)
    back = near.astype(np.float64)
    even = (near.view(np.uint32) & 1) == 0
    toward = np.where(exact > back, np.float32(np.inf), np.float32(-np.inf))
    return np.where(even & (exact != back), np.nextafter(near, toward), near)
