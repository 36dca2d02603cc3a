"""Vector addition: the smallest kernel that streams. Ranks take turns at the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def add(x: Array, y: Array) -> dict[str, Array]:
    """``x + y``."""
    return {"o": x + y}


@ks.launch(
    "1m",
    x=ks.hbm((1 << 20,), "f32"),
    y=ks.hbm((1 << 20,), "f32"),
    o=ks.hbm((1 << 20,), "f32"),
    tile=16384,
    reference=add,
    tolerance=0.0,
)
@ks.launch(
    "ragged",
    x=ks.hbm((10_000,), "f32"),
    y=ks.hbm((10_000,), "f32"),
    o=ks.hbm((10_000,), "f32"),
    reference=add,
    tolerance=0.0,
)
@ks.launch(
    "4-ranks",
    ranks=4,
    x=ks.hbm((1 << 16,), "f16"),
    y=ks.hbm((1 << 16,), "f16"),
    o=ks.hbm((1 << 16,), "f16"),
    reference=add,
    tolerance=0.0,
)
@ks.kernel
def vector_add(x: ks.HbmTensor, y: ks.HbmTensor, o: ks.HbmTensor, *, tile: int = 4096) -> None:
    """``o = x + y`` over vectors of one length; the last tile may be shorter.

    Scratch: nothing persists; scoped, three tiles (launch 1m: 196,608 B).
    """
    (n,) = x.shape
    if y.shape != x.shape or o.shape != x.shape:
        raise ks.ShapeError(
            f"vector_add of shapes {x.shape}, {y.shape} into {o.shape}", help="give three equal lengths"
        )
    for start in range(tl.program_id(0) * tile, n, tl.num_programs(0) * tile):
        stop = min(start + tile, n)
        with tl.scratch_scope():
            tl.store(o[start:stop], tl.load(x[start:stop]) + tl.load(y[start:stop]))
