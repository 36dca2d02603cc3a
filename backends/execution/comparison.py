"""Outputs beside a reference: how far apart, and whether that is close enough."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from ...ir import dtypes
from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import InputError, did_you_mean, shown
from ...ir.unstored import Unstored
from .views import Array

__all__ = ["DEFAULT_TOLERANCE", "Comparison", "compare_with_reference", "error_text", "unstored_text"]

#: By dtype of the output, absolute below magnitude 1 and relative above. f32 and f64: sums of some thousand terms in
#: another order; narrower floats: two units in the last place; integers and bool: equal.
DEFAULT_TOLERANCE: Mapping[str, float] = MappingProxyType(
    {
        "float64": 1e-12,
        "float32": 1e-4,
        "float16": 2 * 2.0**-10,
        "bfloat16": 2 * 2.0**-7,
        "float8e4m3": 2 * 2.0**-3,
        "float8e5m2": 2 * 2.0**-2,
    }
)

_PLACES_SHOWN = 4


def error_text(max_error: float, max_abs_error: float, tolerance: float) -> str:
    """The largest error as the tolerance judges it, so that the two can be compared; where values above 1 make another
    of it than the absolute error, that one too."""
    told = f"largest error {max_error:.3g}"
    if max_error != max_abs_error:
        told += f" relative to values above 1 ({max_abs_error:.3g} absolute)"
    return f"{told}, tolerance {tolerance:g}"


@attrs.frozen
class Comparison:
    """One tensor beside its reference: the largest absolute and relative error over its elements (relative: where the
    reference is not zero), the tolerance, and whether each element keeps ``|value - reference| <= tolerance * max(1,
    |reference|)``. Equal infinities and NaN at the same place count as equal; where only one is finite the error is
    infinite. ``max_error`` is the largest of what the tolerance is held against, ``|value - reference| / max(1,
    |reference|)``. ``unstored`` says which elements were never stored, empty for none: they are left out of the errors,
    and ``ok`` is false, whatever the reference has there. ``first_wrong`` is the index of the first other element that
    is too far off, in row-major order."""

    tensor: str
    max_abs_error: float
    max_rel_error: float
    max_error: float
    tolerance: float
    ok: bool
    unstored: str = ""
    first_wrong: tuple[int, ...] | None = None


def compare_with_reference(
    outputs: Mapping[str, Array],
    expected: Mapping[str, Any],
    tolerance: float | None = None,
    unstored: Mapping[str, Unstored] = FrozenMap({}),
) -> list[Comparison]:
    """Compare the outputs that have a reference, in the outputs' order. ``tolerance`` holds for all of them; None: by
    dtype (:data:`DEFAULT_TOLERANCE`). ``unstored`` are the outputs of which a part was never stored (``Execution``).

    Raises ``InputError`` for a reference of a tensor that is no output, for one of another shape, and for one that are
    no real numbers.
    """
    for name in expected:
        if name not in outputs:
            raise InputError(
                f"the reference gives {name!r}, which the kernel does not store",
                help=did_you_mean(str(name), outputs, what="stored tensors"),
            )
    return [
        _compare(name, value, expected[name], tolerance, unstored.get(name))
        for name, value in outputs.items()
        if name in expected
    ]


def unstored_text(unstored: Unstored) -> str:
    """What of an output was never stored, and which lines store the rest."""
    places = [place.short for place in unstored.places[:_PLACES_SHOWN]]
    more = ", ..." if len(unstored.places) > _PLACES_SHOWN else ""
    return str(unstored) + (f" (the rest: {', '.join(places)}{more})" if places else "")


def _numbers(name: str, reference: Any) -> Array:
    """The reference's array. Raises ``InputError`` for what are no real numbers: text, objects, and complex numbers, of
    which half would go uncompared."""
    try:
        wanted = np.asarray(reference)
        real = wanted.dtype.kind in "fiub" or wanted.dtype.type.__module__.startswith("ml_dtypes")
    except ValueError:  # ragged
        real = False
    if not real:
        what = f"dtype {reference.dtype}" if isinstance(reference, np.ndarray) else shown(reference)
        raise InputError(
            f"the reference of {name!r} is {what}: no array of real numbers",
            help="let the reference return an array of floats, integers or bools",
        )
    return wanted


def _compare(name: str, value: Array, reference: Any, tolerance: float | None, unstored: Unstored | None) -> Comparison:
    wanted = _numbers(name, reference)
    if wanted.shape != value.shape:
        raise InputError(
            f"the reference of {name!r} has shape {wanted.shape}, the output {value.shape}",
            help="let the reference return the tensor's own shape",
        )
    if tolerance is None:
        tolerance = DEFAULT_TOLERANCE.get(dtypes.of_numpy(value.dtype).name, 0.0)
    with np.errstate(all="ignore"):
        ours, theirs = value.astype(np.float64), wanted.astype(np.float64)
        whole = value.dtype.kind in "iu" and wanted.dtype.kind in "iu"
        # f64 does not tell all integers of 64 bits apart.
        same = (value == wanted) if whole else (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        if unstored is not None:
            same |= unstored.mask()
        apart = np.abs(ours - theirs)
        error = np.where(same, 0.0, np.maximum(apart, 1.0) if whole else apart)
        error = np.where(np.isnan(error), np.inf, error)
        size = np.abs(theirs)
        relative = np.where(same | (theirs == 0), 0.0, error / size)
        relative = np.where(np.isnan(relative), np.inf, relative)
        scale = np.where(np.isfinite(size), np.maximum(1.0, size), 1.0)
        allowed = tolerance * np.where(np.isfinite(size), scale, 0.0)
    wrong = error > allowed
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.any() else None
    return Comparison(
        tensor=name,
        max_abs_error=float(error.max()),
        max_rel_error=float(relative.max()),
        max_error=float((error / scale).max()),
        tolerance=tolerance,
        ok=unstored is None and first is None,
        unstored="" if unstored is None else unstored_text(unstored),
        first_wrong=None if first is None else tuple(int(at) for at in first),
    )
