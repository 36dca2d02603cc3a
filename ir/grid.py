"""A launch grid: programs apart from ranks, dealt to them in order.

Programs are numbered with axis 0 fastest, as Triton numbers them. Program n runs on rank n mod the number of ranks;
a rank runs its own one after the other, each with fresh scratch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .errors import ArgumentError, shown

__all__ = ["PROGRAM", "Grid", "check_grid", "coordinates", "dealt", "program_text"]

#: Sizes along up to three axes; empty: no grid, every rank is a program.
Grid = tuple[int, ...]

#: The name of a program's scope.
PROGRAM = "program"

_AXES = 3


def check_grid(grid: Any) -> Grid:
    """A grid of one number, or of up to three; None is no grid. Raises ``ArgumentError``."""
    sizes = () if grid is None else tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    if len(sizes) <= _AXES and (sizes or grid is None) and all(map(_is_size, sizes)):
        return tuple(map(int, sizes))
    raise ArgumentError(
        f"grid={shown(grid)}", help="a grid is one to three positive integers: grid=(4, 8); without one, ranks= counts"
    )


def _is_size(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def dealt(grid: Grid, rank: int, ranks: int) -> range:
    """The numbers of a rank's programs, in the order in which it runs them."""
    return range(rank, math.prod(grid), ranks)


def coordinates(grid: Grid, number: int) -> Grid:
    """Where a program stands, by axis."""
    place = []
    for size in grid:
        number, at = divmod(number, size)
        place.append(at)
    return tuple(place)


def program_text(grid: Grid, number: int) -> str:
    """``program (3, 1)``."""
    return f"{PROGRAM} ({', '.join(map(str, coordinates(grid, number)))})"
