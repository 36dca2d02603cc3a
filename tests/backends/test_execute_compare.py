"""Outputs beside a reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope.backends.execute_compare import compare_with_reference

F32 = np.float32


def test_errors_and_tolerance_are_stated_per_tensor() -> None:
    """In the outputs' order; the largest absolute and relative error; within the tolerance."""
    outputs = {"b": np.array([1, 100.001], F32), "a": np.zeros(2, F32)}
    rows = compare_with_reference(outputs, {"a": np.zeros(2), "b": np.array([1, 100.0])})
    assert [(row.tensor, row.ok, row.tolerance) for row in rows] == [("b", True, 1e-4), ("a", True, 1e-4)]
    assert rows[0].max_abs_error == pytest.approx(1e-3, rel=0.01)
    assert rows[0].max_rel_error == pytest.approx(1e-5, rel=0.01)


@pytest.mark.parametrize(
    ("value", "reference", "tolerance", "ok"),
    [
        (F32(1.0), 1.0002, None, False),
        (F32(1.0), 1.0002, 1e-3, True),
        (F32(1e-3), 0.0, 1e-2, True),  # absolute below magnitude 1
        (F32(1e6), 1.00001e6, 1e-4, True),  # relative above
        (np.int32(3), 3, None, True),
        (np.int32(3), 4, None, False),
        (ml_dtypes.bfloat16(1.0), 1.01, None, True),
        (F32(np.nan), np.nan, None, True),
        (F32(np.nan), 1.0, 1.0, False),
        (F32(1.0), np.nan, 1.0, False),
        (F32(np.inf), np.inf, None, True),
        (F32(1.0), np.inf, 1.0, False),
        (F32(np.inf), -np.inf, 1.0, False),
    ],
)
def test_close_enough(value: np.generic, reference: float, tolerance: float | None, ok: bool) -> None:
    """Dtypes have a default; what is not finite must agree."""
    (row,) = compare_with_reference({"o": np.array([value])}, {"o": np.array([reference])}, tolerance)
    assert row.ok is ok
    assert ok or row.max_abs_error > 0


def test_outputs_without_reference_are_left_out_and_others_refused() -> None:
    """A reference for what the kernel does not store, or of another shape, is an error."""
    outputs = {"o": np.zeros(2, F32), "scores": np.zeros(2, F32)}
    assert [row.tensor for row in compare_with_reference(outputs, {"o": np.zeros(2)})] == ["o"]
    with pytest.raises(ks.InputError, match="'score', which the kernel does not store") as caught:
        compare_with_reference(outputs, {"score": np.zeros(2)})
    assert caught.value.help == "did you mean 'scores'?"
    with pytest.raises(ks.InputError, match=r"shape \(2, 1\), the output \(2,\)"):
        compare_with_reference(outputs, {"o": np.zeros((2, 1))})
