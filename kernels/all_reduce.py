"""All-reduce: every rank ends with the sum of what all hold."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl
from kernscope.kernels.collectives import Tile, Ways, blocks, gathered, lines, reduced

Array = np.ndarray[Any, np.dtype[Any]]


def summed_by_all(x: Array) -> dict[str, Array]:
    """The sum over ranks, of which each has a copy."""
    return {"o": np.broadcast_to(x.sum(axis=0, dtype=np.float64).astype(x.dtype), x.shape)}


@ks.launch(
    "8-ranks",
    ranks=8,
    x=ks.hbm((8, 512, 256), "f32"),
    o=ks.hbm((8, 512, 256), "f32"),
    reference=summed_by_all,
    tolerance=1e-5,
)
@ks.kernel
def all_reduce(x: ks.HbmTensor, o: ks.HbmTensor, *, ways: Ways | None = None, tile: int = 16) -> None:
    """``o[rank] = x[0] + x[1] + ...`` on each rank, of which each loads its own ``x[rank]``: a reduce-scatter, then an
    all-gather of its parts (Rabenseifner, "Optimization of collective reduction operations", 2004).

    A tile of each part's rows at a time. ``ways`` are the directions along the axes of the ranks (None: by their grid).
    Scratch: nothing persists; scoped, a tile for each rank and a sum of each other one's (launch 8-ranks: 245,760 B).
    """
    axes = lines(ways)
    ranks = blocks(axes)
    rows = x.shape[1] // ranks
    if rows * ranks != x.shape[1] or rows % tile or x.shape[0] != ranks or o.shape != x.shape:
        raise ks.ShapeError(
            f"all_reduce of x {x.shape} into o {o.shape} on {ranks} ranks in tiles of {tile}",
            help="x and o are (ranks, ranks * n, cols) with n a multiple of the tile",
        )
    mine = 0
    for axis in axes:
        mine = mine * axis.size + axis.place
    for first in range(0, rows, tile):
        with tl.scratch_scope():
            tiles: list[Tile] = [
                tl.load(x[mine, rank * rows + first : rank * rows + first + tile, :]) for rank in range(ranks)
            ]
            for axis in axes:
                each = len(tiles) // axis.size
                tiles = reduced(axis, [tiles[place * each : (place + 1) * each] for place in range(axis.size)])
            for axis in reversed(axes):
                tiles = [each for place in gathered(axis, tiles) for each in place]
            for rank, tile_of_rank in enumerate(tiles):
                tl.store(o[mine, rank * rows + first : rank * rows + first + tile, :], tile_of_rank)
