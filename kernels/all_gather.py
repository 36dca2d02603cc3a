"""All-gather: every rank ends with the parts of all."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl
from kernscope.kernels.collectives import Ways, blocks, gathered, lines

Array = np.ndarray[Any, np.dtype[Any]]


def gathered_by_all(x: Array, o: Array) -> dict[str, Array]:
    """Each rank's copy of ``x``."""
    return {"o": np.broadcast_to(x, o.shape)}


@ks.launch(
    "8-ranks",
    ranks=8,
    x=ks.hbm((1024, 256), "f16"),
    o=ks.hbm((8, 1024, 256), "f16"),
    reference=gathered_by_all,
    tolerance=0.0,
)
@ks.kernel
def all_gather(x: ks.HbmTensor, o: ks.HbmTensor, *, ways: Ways | None = None, tile: int = 32) -> None:
    """``o[rank] = x`` on each rank, of which each loads its own part: rows ``rank * n`` up to ``(rank + 1) * n``.

    Goes along one axis of the ranks after the other, a tile of each part's rows at a time. ``ways`` are the directions
    along the axes (None: by the grid of the ranks). Scratch: nothing persists; scoped, a tile of each rank's rows
    (launch 8-ranks: 131,072 B).
    """
    axes = lines(ways)
    ranks = blocks(axes)
    rows = x.shape[0] // ranks
    if rows * ranks != x.shape[0] or rows % tile or o.shape != (ranks, *x.shape):
        raise ks.ShapeError(
            f"all_gather of x {x.shape} into o {o.shape} on {ranks} ranks in tiles of {tile}",
            help="x is (ranks * n, cols) with n a multiple of the tile, o is (ranks, ranks * n, cols)",
        )
    mine = 0
    for axis in axes:
        mine = mine * axis.size + axis.place
    for first in range(0, rows, tile):
        with tl.scratch_scope():
            tiles = [tl.load(x[mine * rows + first : mine * rows + first + tile, :])]
            for axis in reversed(axes):  # each gathers whole lines of the axis before it
                tiles = [each for place in gathered(axis, tiles) for each in place]
            for rank, each in enumerate(tiles):
                tl.store(o[mine, rank * rows + first : rank * rows + first + tile, :], each)
