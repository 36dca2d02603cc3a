"""Reduce-scatter: every rank ends with its part of the sum of what all hold."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl
from kernscope.kernels.collectives import Tile, Ways, blocks, lines, reduced

Array = np.ndarray[Any, np.dtype[Any]]


def scattered_sum(x: Array) -> dict[str, Array]:
    """The sum over ranks, each part of which one rank has."""
    return {"o": x.sum(axis=0, dtype=np.float64).astype(x.dtype)}


@ks.launch(
    "8-ranks",
    ranks=8,
    x=ks.hbm((8, 512, 256), "f32"),
    o=ks.hbm((512, 256), "f32"),
    reference=scattered_sum,
    tolerance=1e-5,
)
@ks.kernel
def reduce_scatter(x: ks.HbmTensor, o: ks.HbmTensor, *, ways: Ways | None = None, tile: int = 16) -> None:
    """Rows ``rank * n`` up to ``(rank + 1) * n`` of ``o``, on each rank, are those of ``x[0] + x[1] + ...``: each rank
    loads its own ``x[rank]``, and sums grow on their way to whom they are meant for.

    Goes along one axis of the ranks after the other, a tile of each part's rows at a time. ``ways`` are the directions
    along the axes (None: by the grid of the ranks). Scratch: nothing persists; scoped, a tile for each rank (launch
    8-ranks: 131,072 B), and one that came (16,384 B).
    """
    axes = lines(ways)
    ranks = blocks(axes)
    rows = x.shape[1] // ranks
    if rows * ranks != x.shape[1] or rows % tile or x.shape[0] != ranks or o.shape != x.shape[1:]:
        raise ks.ShapeError(
            f"reduce_scatter of x {x.shape} into o {o.shape} on {ranks} ranks in tiles of {tile}",
            help="x is (ranks, ranks * n, cols) with n a multiple of the tile, o is (ranks * n, cols)",
        )
    mine = 0
    for axis in axes:
        mine = mine * axis.size + axis.place
    for first in range(0, rows, tile):
        with tl.scratch_scope():
            tiles: list[Tile] = [
                tl.load(x[mine, rank * rows + first : rank * rows + first + tile, :]) for rank in range(ranks)
            ]
            for axis in axes:  # what is left is meant for one place of the axes that are done
                each = len(tiles) // axis.size
                tiles = reduced(axis, [tiles[place * each : (place + 1) * each] for place in range(axis.size)])
            tl.store(o[mine * rows + first : mine * rows + first + tile, :], tiles[0])
