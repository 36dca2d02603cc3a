"""What of a box no other boxes cover, against a count of every element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernscope.ir import unstored
from kernscope.ir.unstored import uncovered

Box = tuple[tuple[int, ...], tuple[int, ...]]


@st.composite
def boxes(draw: st.DrawFn) -> tuple[Box, list[Box]]:
    """A box, and others that meet it or not."""
    ndim = draw(st.integers(1, 3))

    def box(low: int) -> Box:
        corner = [draw(st.integers(low, 6)) for _ in range(ndim)]
        return tuple(corner), tuple(at + draw(st.integers(1, 5)) for at in corner)

    return box(0), [box(0) for _ in range(draw(st.integers(0, 12)))]


def counted(whole: Box, others: list[Box], few: int) -> None:
    """Every element that is not covered lies in one box of one part, and no other does."""
    left = np.ones([16] * len(whole[0]), dtype=np.int64)
    for low, high in others:
        left[tuple(map(slice, low, high))] = 0
    wanted = np.zeros_like(left)
    inside = tuple(map(slice, *whole))
    wanted[inside] = left[inside]
    lower, upper = (np.array([box[end] for box in others], dtype=np.int64).reshape(-1, len(whole[0])) for end in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unstored, "_FEW_CELLS", few)
        parts = list(uncovered(*whole, lower, upper))
    found = np.zeros_like(left)
    for part in parts:
        held = list(part.boxes())
        assert part.count == sum(math.prod(np.subtract(high, low).tolist()) for low, high in held) > 0
        for low, high in held:
            found[tuple(map(slice, low, high))] += 1
    assert np.array_equal(found, wanted)


@given(boxes(), st.sampled_from([1, 8, 1 << 16]))
@settings(deadline=None)
def test_what_is_uncovered_is_counted_exactly(drawn: tuple[Box, list[Box]], few: int) -> None:
    """However many cells are looked at in one go."""
    counted(*drawn, few)


@pytest.mark.parametrize("few", [1, 1 << 16])
def test_a_grid_with_holes_is_taken_apart(few: int) -> None:
    """Single elements here and there, more cells than are looked at in one go: along the axis with the most bounds."""
    holes = {(1, 1), (5, 9), (11, 2)}
    others = [
        ((i, j), (i + 1, j + 1)) for i in range(12) for j in range(12) if (i, j) not in holes and (i + j) % 2 == 0
    ]
    counted(((0, 0), (12, 12)), others, few)
    counted(((0, 0), (12, 12)), [*others, ((0, 0), (12, 12))], few)
    counted(((0, 0), (1, 12)), [((0, 2 * j), (1, 2 * j + 1)) for j in range(6)], few)
    counted(((0, 0), (12, 1)), [((2 * j, 0), (2 * j + 1, 1)) for j in range(6)], few)
