"""Ranks in words."""

from __future__ import annotations

import pytest

from kernscope.ir.forms.ranks import fold_ranks, ranks_text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((), "no rank"),
        ((3,), "rank 3"),
        ((0, 1), "ranks 0 to 1"),
        ((2, 3, 4), "ranks 2 to 4"),
        ((0, 2, 5), "ranks 0, 2, 5"),
        (tuple(range(0, 12, 2)), "ranks 0, 2, 4, 6, 8, 10"),
        (tuple(range(0, 14, 2)), "7 of the ranks 0 to 12"),
        (tuple(range(0, 16, 2)), "8 of the ranks 0 to 14"),
    ],
)
def test_ranks_are_said_shortly(ranks: tuple[int, ...], text: str) -> None:
    """A range, a list, or a number."""
    assert ranks_text(ranks) == text


def test_what_is_equal_on_several_ranks_is_said_once() -> None:
    """By thing, then by value; every rank is in exactly one group; what is on no rank stays as it is."""
    values = {f"rank {rank} {thing}": (rank >= 2, thing) for rank in range(4) for thing in ("gemm", "math")}
    values |= {"rank 0 read": (True, "read"), "rank 1 read": (True, "read"), "loaded path": (False, "")}
    assert fold_ranks(values) == [
        ("gemm", "ranks 0 to 1", (False, "gemm")),
        ("gemm", "ranks 2 to 3", (True, "gemm")),
        ("math", "ranks 0 to 1", (False, "math")),
        ("math", "ranks 2 to 3", (True, "math")),
        ("read", "ranks 0 to 1", (True, "read")),
        ("loaded path", "", (False, "")),
    ]
