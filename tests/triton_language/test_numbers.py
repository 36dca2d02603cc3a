"""Numbers where Triton's language has rules of its own: NaN, narrow integers, numbers of Python's, counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tritonkernels import launched, same_in_turn, tl

from kernscope.ir.errors import TritonCompileError, TritonNameError

RNG = np.random.default_rng(7)


def extremes(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(o_ptr, tl.max(x, 0))
    tl.store(o_ptr + 1, tl.min(x, 0))
    tl.store(o_ptr + 2, tl.argmax(x, 0))
    tl.store(o_ptr + 3, tl.argmin(x, 0))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ([np.nan, 6, 8, 2], [8, 2, 2, 3]),
        ([3, 5, np.nan, np.nan], [5, 3, 1, 0]),
        ([np.nan, -np.inf, np.nan, -np.inf], [-np.inf, -np.inf, 1, 1]),
        ([np.nan] * 4, [np.nan, np.nan, 0, 0]),
        ([4, 4, 1, 1], [4, 1, 0, 2]),
    ],
)
def test_a_number_wins_over_nan_in_reductions(row: list[float], wanted: list[float], dtype: Any) -> None:
    """`max`, `min` and their places leave NaN out, unless there is nothing else; of equal ones the first counts."""
    out = np.zeros(4, dtype)
    made = launched(extremes, 1, np.array(row, dtype), out, N=4)
    np.testing.assert_array_equal(out, np.array(wanted, dtype))
    same_in_turn(made, {"o_ptr": out})


def pairs(x_ptr, y_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(o_ptr + i, tl.maximum(x, y))
    tl.store(o_ptr + N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o_ptr + 2 * N + i, tl.clamp(x, -1.0, 1.0))
    tl.store(o_ptr + 3 * N + i, tl.clamp(x, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL))


def test_two_numbers_are_compared_as_in_c_unless_nan_is_to_propagate() -> None:
    """`maximum`, `minimum` and `clamp`, with and without `propagate_nan`."""
    x, y = np.array([np.nan, 1, np.nan, -3], np.float32), np.array([2, np.nan, np.nan, 4], np.float32)
    out = np.zeros(16, np.float32)
    made = launched(pairs, 1, x, y, out, N=4)
    with np.errstate(invalid="ignore"):
        wanted = [np.fmax(x, y), np.minimum(x, y), np.fmin(np.fmax(x, -1), 1), np.clip(x, -1, 1)]
    np.testing.assert_array_equal(out, np.concatenate(wanted))
    same_in_turn(made, {"o_ptr": out})


def larger_integers(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(o_ptr + tl.arange(0, N), tl.maximum(x, 3) + tl.max(x, 0))


def test_integers_stay_integers() -> None:
    """Extrema of integers beyond the 24 bits of f32 are exact."""
    x = np.array([2**30 + 1, -5, 2, 7], np.int32)
    out = np.zeros(4, np.int32)
    launched(larger_integers, 1, x - 1, out, N=4)
    assert out.tolist() == (np.maximum(x - 1, 3) + 2**30).tolist()


def counts(x_ptr, m_ptr, o_ptr, N: tl.constexpr, BINS: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    at = o_ptr + tl.program_id(0) * 2 * BINS + tl.arange(0, BINS)
    tl.store(at, tl.histogram(x, BINS))
    tl.store(at + BINS, tl.histogram(x, BINS, mask=tl.load(m_ptr + i) != 0))


def square(o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.histogram(i[:, None] + i[None, :], N))


def test_a_histogram_is_of_one_dimension() -> None:
    """Anything else is refused as Triton does, at its line."""
    with pytest.raises(TritonCompileError, match=r"histogram of shape \(4, 4\)"):
        launched(square, 1, np.zeros(4, np.int32), N=4)


def test_a_histogram_counts_what_is_in_its_bins() -> None:
    """With and without a mask, a program each; it needs the bytes of its counts, not of a table of hits."""
    x, mask = RNG.integers(-2, 20, (3, 4096)).astype(np.int32), RNG.integers(0, 2, (3, 4096)).astype(np.int8)
    out = np.zeros((3, 2, 16), np.int32)
    made = launched(counts, 3, x, mask, out, N=4096, BINS=16)
    for row, keep, found in zip(x, mask, out, strict=True):
        inside = (row >= 0) & (row < 16)
        assert found[0].tolist() == np.bincount(row[inside], minlength=16).tolist()
        assert found[1].tolist() == np.bincount(row[inside & (keep != 0)], minlength=16).tolist()
    same_in_turn(made, {"o_ptr": out})


def one_bit(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.load(x_ptr + tl.arange(0, N)) > 0
    tl.store(o_ptr, tl.sum(x, 0, dtype=tl.int1).to(tl.int32))
    tl.store(o_ptr + 1, tl.sum(x, 0))


def test_a_sum_of_bits_has_one_bit_where_that_is_asked_for() -> None:
    """Else it is counted in 32 bits."""
    out = np.zeros(2, np.int32)
    made = launched(one_bit, 1, np.array([1, -1, 1, 1, 1, -1, -1, -1], np.float32), out, N=8)
    assert out.tolist() == [0, 4]
    same_in_turn(made, {"o_ptr": out})


def narrow_dot(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + at)
    tl.store(o_ptr + at, tl.dot(x, x, out_dtype=tl.int8))


def test_a_product_of_integers_is_i32_whatever_is_asked_for() -> None:
    """As in Triton: `out_dtype=tl.int8` narrows nothing."""
    x, out = RNG.integers(-100, 100, (16, 16)).astype(np.int8), np.zeros((16, 16), np.int32)
    launched(narrow_dot, 1, x, out, N=16)
    assert np.array_equal(out, x.astype(np.int32) @ x.astype(np.int32))


def deep_dot(x_ptr, o_ptr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.reshape(tl.load(x_ptr + tl.arange(0, N * N * 4)), (2, 2, N, N))
    tl.store(o_ptr + tl.arange(0, N * N * 4), tl.ravel(tl.dot(x, x, acc=x)))


def test_a_product_takes_several_dimensions_of_batches() -> None:
    """Each batch is a product of its own."""
    x = RNG.standard_normal((2, 2, 16, 16), np.float32)
    out = np.zeros_like(x)
    made = launched(deep_dot, 1, x, out, N=16)
    np.testing.assert_allclose(out, x @ x + x, rtol=1e-4, atol=1e-4)
    same_in_turn(made, {"o_ptr": out})


# --- long chains ------------------------------------------------------------------------------------------------------


def places_in_a_loop(x_ptr, o_ptr, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    best = tl.full((N,), -float("inf"), tl.float32)
    where = tl.zeros((N,), tl.int32)
    for k in range(n):
        x = tl.load(x_ptr + k * N + tl.arange(0, N))
        where = tl.where(x > best, k, where)
        best = tl.maximum(x, best)
    tl.store(o_ptr + tl.arange(0, N), where)


def test_what_a_long_loop_makes_of_integers_is_recorded_when_it_is_stored() -> None:
    """A chain of a thousand lazy values, each made of the one before."""
    x, out = RNG.standard_normal((1000, 4), np.float32), np.zeros(4, np.int32)
    made = launched(places_in_a_loop, 1, x, out, 1000, N=4)
    assert np.array_equal(out, x.argmax(0))
    same_in_turn(made, {"o_ptr": out})


# --- refused, with the line -------------------------------------------------------------------------------------------


def too_large(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr) + 0x80000000)


def negative(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr).to(tl.uint32) + (-1))


def wrong_axis(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr) + tl.program_id(3))


def wrong_shapes(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr + tl.arange(0, 4)) + tl.arange(0, 8)[:, None, None] * tl.arange(0, 2))


def wrong_store(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr + tl.arange(0, 4)[None, :]))


def no_such_type(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.store(o_ptr, tl.load(x_ptr).to(tl.float8e4b15).to(tl.int32))


@pytest.mark.parametrize(
    ("kernel", "error", "said"),
    [
        (too_large, TritonCompileError, "scalar 2147483648 is out of range for type i32"),
        (negative, TritonCompileError, "scalar -1 is out of range for type u32"),
        (wrong_axis, TritonCompileError, "program_id axis must be 0, 1, or 2 but got 3"),
        (wrong_shapes, TritonCompileError, "does not broadcast|do not broadcast"),
        (wrong_store, TritonCompileError, "does not broadcast|do not broadcast"),
        (no_such_type, TritonNameError, r"tl\.float8e4b15 is refused by kernscope"),
    ],
)
def test_what_triton_refuses_is_refused_at_its_line(kernel: Any, error: type[Exception], said: str) -> None:
    """One kind of error, whichever part of the language finds it; memory stays as it was."""
    out = np.full(4, 9, np.int32)
    with pytest.raises(error, match=said) as raised:
        launched(kernel, 1, np.arange(16, dtype=np.int32), out)
    if error is TritonCompileError:
        assert f":{kernel.__code__.co_firstlineno + 1}" in str(raised.value)
    assert out.tolist() == [9] * 4


def narrow_atomic(x_ptr, o_ptr):  # type: ignore[no-untyped-def]
    tl.atomic_add(o_ptr, tl.load(x_ptr))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float8_e4m3fn"])
def test_atomics_of_types_that_no_hardware_adds_are_refused(dtype: str) -> None:
    """Integers of less than 32 bits, floats of less than 16."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    with pytest.raises(TritonCompileError, match="atomic_add of"):
        launched(narrow_atomic, 1, np.zeros(1, kind), np.zeros(1, kind))
