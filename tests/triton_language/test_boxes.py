"""Loads and stores of boxes: masks that clip, lanes that begin anywhere, lanes that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tritonkernels import MACHINE, launched, same_in_turn, tl

from kernscope.tracer.triton.constexpr import Constexpr
from kernscope.tracer.triton.launching import launch
from kernscope.tracer.triton.rewriting import rewritten

RNG = np.random.default_rng(11)


def moved(x_ptr, o_ptr, begin_ptr, end_ptr, rows, cols, step, low, R: tl.constexpr, C: tl.constexpr):  # type: ignore[no-untyped-def]
    begin = tl.load(begin_ptr + tl.program_id(0))
    end = tl.load(end_ptr + tl.program_id(0))
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    mask = (r < rows) & (c >= low) & (c < cols) & (c < end)
    x = tl.load(x_ptr + begin + r * step + c, mask=mask, other=-1.0)
    tl.store(o_ptr + tl.program_id(0) * R * C + r * C + c, x)
    tl.store(x_ptr + begin + r * step + c, x + tl.program_id(0), mask=mask)


@pytest.mark.parametrize("begins", ["steps", "anywhere", "meeting", "one place", "two runs"])
@pytest.mark.parametrize("ends", ["all", "last shorter", "some dead", "each its own"])
@pytest.mark.parametrize(("rows", "cols", "low", "step"), [(4, 8, 0, 8), (3, 7, 0, 10), (4, 8, 2, 9), (2, 5, 1, -9)])
def test_boxes_are_those_of_a_loop(begins: str, ends: str, rows: int, cols: int, low: int, step: int) -> None:
    """Whatever of a tile a mask leaves, and wherever the lanes begin: what is read, filled and written equals a loop
    over programs, the later program's number where two write one place."""
    lanes, r, c = 11, 4, 8
    first = {
        "steps": np.arange(lanes) * 50,
        "anywhere": RNG.permutation(lanes) * 47,
        "meeting": np.arange(lanes) * 3,
        "one place": np.zeros(lanes),
        "two runs": np.where(np.arange(lanes) % 2, np.arange(lanes) * 60, 700 + np.arange(lanes)),
    }[begins].astype(np.int32) + 40
    stop = {
        "all": np.full(lanes, 99),
        "last shorter": np.append(np.full(lanes - 1, 99), 3),
        "some dead": np.where(np.arange(lanes) % 3 == 0, 0, 99),
        "each its own": np.arange(lanes) % 9,
    }[ends].astype(np.int32)
    x = RNG.standard_normal(800).astype(np.float32)
    wanted, out = x.copy(), np.zeros((lanes, r, c), np.float32)
    found = np.full_like(out, -1)
    meets = begins in ("meeting", "one place", "two runs")
    before = x.copy()
    for lane in range(lanes):
        for i in range(min(rows, r)):
            for j in range(low, min(cols, c, int(stop[lane]))):
                place = int(first[lane]) + i * step + j
                found[lane, i, j] = before[place]
                wanted[place] = before[place] + np.float32(lane)
    made = launched(moved, lanes, x, out, first, stop, rows, cols, step, low, R=r, C=c)
    np.testing.assert_array_equal(out, found)
    np.testing.assert_array_equal(x, wanted)
    if not meets:
        same_in_turn(made, {"x_ptr": x, "o_ptr": out})


def filled(o_ptr, bias_ptr, row, col, end, R: tl.constexpr, C: tl.constexpr):  # type: ignore[no-untyped-def]
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    mask = (r >= row) & (c >= col) & (r < end)
    at = o_ptr + tl.program_id(0) * 3 * R * C + r * C + c
    tl.store(at, 5.0, mask=mask)
    tl.store(at + R * C, (tl.program_id(0) + c).to(tl.float32), mask=mask)
    tl.store(at + 2 * R * C, tl.load(bias_ptr + r) + tl.zeros((R, 1), tl.float32), mask=mask)


@pytest.mark.parametrize(("row", "col", "end"), [(0, 0, 4), (2, 0, 4), (0, 3, 4), (1, 7, 3), (3, 1, 4), (4, 0, 4)])
def test_what_does_not_vary_along_an_axis_is_stored_where_a_mask_leaves_it(row: int, col: int, end: int) -> None:
    """A number, a row and a column, in boxes that do not begin where their tile does."""
    lanes, r, c = 3, 4, 8
    out = np.zeros((lanes, 3, r, c), np.float32)
    bias = RNG.standard_normal(r).astype(np.float32)
    wanted = out.copy()
    for lane in range(lanes):
        wanted[lane, 0, row:end, col:] = 5
        wanted[lane, 1, row:end, col:] = lane + np.arange(c)[col:]
        wanted[lane, 2, row:end, col:] = bias[row:end, None]
    made = launched(filled, lanes, out, bias, row, col, end, R=r, C=c)
    np.testing.assert_array_equal(out, wanted)
    same_in_turn(made, {"o_ptr": out})


def added(x_ptr, o_ptr, n, N: tl.constexpr, HOW: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    at = o_ptr + (i * 7) % 5
    if HOW == "add":
        tl.atomic_add(at, x, mask=i < n)
    elif HOW == "max":
        tl.atomic_max(at, x, mask=i < n)
    else:
        tl.atomic_min(at, x, mask=i < n)


@pytest.mark.parametrize("how", ["add", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.uint64])
def test_atomics_that_meet_follow_one_another(dtype: Any, how: str) -> None:
    """Bit for bit what a loop over elements leaves, rounding included."""
    x = (RNG.standard_normal(90) * 50).astype(dtype) if np.dtype(dtype).kind == "f" else RNG.integers(0, 99, 90, dtype)
    out = np.ones(5, dtype)
    wanted = out.copy()
    compute = {"add": np.add, "max": np.maximum, "min": np.minimum}[how]
    for i, value in enumerate(x):
        place = i * 7 % 5
        wanted[place] = compute(wanted[place], value, dtype=np.float32 if dtype is np.float16 else dtype)
    made = launched(added, 6, x, out, 90, N=16, HOW=how)
    assert out.tobytes() == wanted.tobytes()
    same_in_turn(made, {"o_ptr": out})


def test_what_nobody_asks_for_is_not_fetched_however_often_a_kernel_ran() -> None:
    """Python specialises the calls of code that has run before: the graph stays the same."""
    function = rewritten(added)
    x, out = np.arange(64, dtype=np.int32), np.zeros(5, np.int32)
    given = {"x_ptr": x, "o_ptr": out, "n": 64, "N": Constexpr(16), "HOW": Constexpr("add")}
    for _ in range(12):
        graph = launch(function, given, (4, 1, 1), target=MACHINE.target).graph()
        names = [node.operation.name for node in graph]
        assert "atomic" in names
        assert "fetch" not in names
