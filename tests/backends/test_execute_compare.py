"""Outputs beside a reference."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.execution.blame import blame_lines
from kernscope.backends.execution.comparison import compare_with_reference, error_text, unstored_text
from kernscope.backends.execution.execute import execute
from kernscope.ir import dtypes

F32 = np.float32
RELATIVE = "relative to values above 1"


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


@pytest.mark.parametrize(
    ("values", "references", "text"),
    [
        ((0.5, 0.25), (0.5, 0.2504), "largest error 0.0004, tolerance 0.001"),
        (
            (1000.5, 0.5),
            (1000.0, 0.5),
            f"largest error 0.0005 {RELATIVE} (0.5 absolute), tolerance 0.001",
        ),
        # The largest absolute error is another element's than the largest one that counts.
        (
            (1000.5, 0.5),
            (1000.0, 0.502),
            f"largest error 0.002 {RELATIVE} (0.5 absolute), tolerance 0.001",
        ),
        ((np.nan, 0.5), (1.0, 0.5), "largest error inf, tolerance 0.001"),
        ((np.inf, 0.5), (5.0, 0.5), "largest error inf, tolerance 0.001"),
    ],
)
def test_the_error_told_is_the_one_that_is_judged(
    values: tuple[float, ...], references: tuple[float, ...], text: str
) -> None:
    """It is above the tolerance beside it exactly where the outputs differ."""
    (row,) = compare_with_reference({"o": np.array(values)}, {"o": np.array(references)}, 1e-3)
    assert error_text(row.max_error, row.max_abs_error, row.tolerance) == text
    assert row.ok is (row.max_error <= row.tolerance)


def test_outputs_without_reference_are_left_out_and_others_refused() -> None:
    """A reference for what the kernel does not store, or of another shape, is an error."""
    outputs = {"o": np.zeros(2, F32), "scores": np.zeros(2, F32)}
    assert [row.tensor for row in compare_with_reference(outputs, {"o": np.zeros(2)})] == ["o"]
    with pytest.raises(ks.InputError, match="'score', which the kernel does not store") as caught:
        compare_with_reference(outputs, {"score": np.zeros(2)})
    assert caught.value.help == "did you mean 'scores'?"
    with pytest.raises(ks.InputError, match=r"shape \(2, 1\), the output \(2,\)"):
        compare_with_reference(outputs, {"o": np.zeros((2, 1))})


@pytest.mark.parametrize(
    ("dtype", "there"), [("f32", np.nan), ("f16", np.nan), ("bf16", np.nan), ("i32", -1), ("u8", 255), ("bool", True)]
)
def test_what_is_never_stored_agrees_with_no_reference(dtype: str, there: Any) -> None:
    """Not even with one that expects what poison happens to be in that dtype; what is stored is judged by itself."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[1:3], tl.load(x[1:3]))

    x = np.zeros(4, dtypes.of(dtype).numpy)
    done = execute(ks.trace(kernel, x, ks.hbm((4,), dtype)))
    expected = np.array([there, 0, 0, there], dtype=x.dtype)
    np.testing.assert_array_equal(done.outputs["o"].astype(np.float32), expected.astype(np.float32))
    (fine,) = compare_with_reference(done.outputs, {"o": expected})
    assert fine.ok and not fine.unstored
    (judged,) = compare_with_reference(done.outputs, {"o": expected}, None, done.unstored)
    assert not judged.ok and judged.max_abs_error == 0
    assert judged.unstored.startswith("2 of the 4 elements of `o` are never stored: `o[0:1]`, `o[3:4]` (the rest: ")


def test_an_output_with_initial_values_is_compared_as_it_is() -> None:
    """They come with the trace or with the run."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[0:2], tl.load(x[0:2]))

    x, before = np.ones(4, np.float32), np.zeros(4, np.float32)
    given = execute(ks.trace(kernel, x, ks.hbm((4,), "f32")), {"o": before})
    traced = execute(ks.trace(kernel, x, before))
    for done in (given, traced):
        assert done.unstored == {} and done.outputs["o"].tolist() == [1, 1, 0, 0]
    assert before.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "reference",
    [np.array([1 + 5j]), np.array(["1"]), np.array([None]), "a", None, [[1], [1, 2]], np.array(["2026"], "M8[Y]")],
    ids=repr,
)
def test_a_reference_that_is_no_real_number_agrees_with_nothing(reference: Any) -> None:
    """It is refused: an imaginary part would be left out of the comparison."""
    with pytest.raises(ks.InputError, match=r"no array of real numbers|has shape") as caught:
        compare_with_reference({"o": np.array([1], F32)}, {"o": reference})
    assert caught.value.help


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_wide_integers_are_compared_exactly(dtype: Any) -> None:
    """Two that f64 holds for one are told apart, and the error is at least one."""
    value, wanted = np.array([2**60, 7], dtype=dtype), np.array([2**60 + 1, 7], dtype=dtype)
    (row,) = compare_with_reference({"o": value}, {"o": wanted})
    assert (row.ok, row.max_abs_error, row.first_wrong) == (False, 1.0, (0,))
    (row,) = compare_with_reference({"o": value}, {"o": value.astype(np.uint64)})
    assert row.ok


@pytest.mark.parametrize("stores", [1, 4, 5])
def test_the_lines_that_store_the_rest_are_named(stores: int) -> None:
    """Up to four; that there are more is said."""
    calls = "".join(f"    tl.store(o[{row}:{row + 1}, :], tl.zeros((1, 8), tl.float32))\n" for row in range(stores))
    space: dict[str, Any] = {}
    exec(compile(f"from kernscope import tl\ndef kernel(o):\n{calls}", "half.py", "exec"), space)
    done = execute(ks.trace(space["kernel"], ks.hbm((8, 8), "f32")))
    named = ", ".join(f"half.py:{3 + row}" for row in range(min(stores, 4)))
    assert unstored_text(done.unstored["o"]).endswith(f" (the rest: {named}{', ...' if stores > 4 else ''})")


def _element(graph: ks.Graph, tensor: str, *index: int) -> list[str]:
    return blame_lines(graph, np.arange(len(graph)), tensor, index)


def test_an_element_that_nothing_stored_blames_no_line() -> None:
    """Of a tensor that is only read, and past what is stored; of what is stored the last store is named."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        tl.store(o[0:2, :], tl.load(x[0:2, :]))
        tl.store(o[1:3, :], tl.load(x[1:3, :]))

    graph = ks.trace(kernel, ks.hbm((4, 4), "f32"), ks.hbm((4, 4), "f32"))
    first = kernel.function.__code__.co_firstlineno
    assert _element(graph, "x", 0, 0) == ["first wrong at `x[0, 0]`"]
    assert _element(graph, "o", 3, 0) == ["first wrong at `o[3, 0]`"]
    assert _element(graph, "o", 0, 3) == [
        f"first wrong at `o[0, 3]`, stored as `o[0:2, 0:4]` at test_execute_compare.py:{first + 2}"
    ]
    assert _element(graph, "o", 1, 0)[0].endswith(f"stored as `o[1:3, 0:4]` at test_execute_compare.py:{first + 3}")
    assert len(_element(graph, "o", 1, 0)) == 1


@pytest.mark.parametrize("lost", [1, 3, 4, 6])
def test_reads_of_other_bytes_are_named_up_to_three(lost: int) -> None:
    """Each read upstream of the wrong element that met the tile of another load; the rest are counted."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        total = tl.zeros((1, 8), tl.float32)
        for row in range(lost):
            tile = tl.load(x[2 * row : 2 * row + 1, :])
            tl.load(x[2 * row + 1 : 2 * row + 2, :], out=tile)
            tl.copy_to(total, total + tile)
        tl.store(o[:, :], total)

    graph = ks.trace(kernel, ks.hbm((2 * lost, 8), "f32"), ks.hbm((1, 8), "f32"))
    told = _element(graph, "o", 0, 0)
    reads = [line for line in told if "was written over before anything read it" in line]
    assert len(reads) == min(lost, 3)
    assert "read `x[1:2, 0:8]`" in reads[0] and "`x[0:1, 0:8]`" in reads[0]
    rest = [line for line in told if "more such reads" in line]
    assert rest == ([f"and {lost - 3} more such reads; `kernscope lint` explains them (KS304)"] if lost > 3 else [])
    assert len(told) == 1 + len(reads) + len(rest)
