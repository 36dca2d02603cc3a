"""A matrix product on Tenstorrent's Tensix cores: an 8 x 8 grid, each core makes one block of the result, blocks of K
are multicast along its rows and columns.

After tech_reports/GEMM_FLOPS and ttnn's 2D multicast matmul of github.com/tenstorrent/tt-metal. A multicast is a load
here that several cores make of the same block: the machine's level `multicast` charges DRAM for it once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]
#: The n150's grid, with multicast.
N150 = str(Path(__file__).parents[1] / "published" / "n150.toml")


def product(a: Array, b: Array) -> dict[str, Array]:
    """``a @ b`` in f32."""
    return {"c": a.astype(np.float32) @ b.astype(np.float32)}


def square(n: int, dtype: str = "bf16") -> dict[str, Any]:
    """Three matrices of n x n, on the whole grid."""
    return {"machine": N150, "ranks": 64, **{name: ks.hbm((n, n), dtype) for name in "abc"}}


@ks.launch("wh-oob-512", **square(512), wide=64)
@ks.launch("wh-oob-2048", **square(2048), wide=64)
@ks.launch("wh-oob-4096", **square(4096), wide=64)
@ks.launch("wh-man-2048-h4", **square(2048), wide=256, kept=True)
@ks.launch("wh-man-2048-h2", **square(2048), wide=256, kept=True)
@ks.launch("wh-man-4096-h4", **square(4096), wide=128)
@ks.launch("small", **{**square(256), "c": ks.hbm((256, 256), "f32")}, wide=64, reference=product, tolerance=1e-3)
@ks.kernel
def tensix_matmul(a: ks.HbmTensor, b: ks.HbmTensor, c: ks.HbmTensor, *, wide: int, kept: bool = False) -> None:
    """``c = a @ b``: core (i, j) makes that block of c, ``wide`` of K a step, with two buffers each for its blocks
    of a and b; the sums are kept in c's dtype, as the packer adds them up in L1. ``kept``: the result
    stays there."""
    (m, k), n = a.shape, c.shape[1]
    rows, cols = m // tl.num_programs(0), n // tl.num_programs(1)
    row, col = tl.program_id(0) * rows, tl.program_id(1) * cols
    left = [tl.empty((rows, wide), a.dtype) for _ in range(2)]
    right = [tl.empty((wide, cols), b.dtype) for _ in range(2)]
    acc = tl.empty((rows, cols), c.dtype)
    for step, s in enumerate(range(0, k, wide)):
        x = tl.load(a[row : row + rows, s : s + wide], out=left[step % 2])
        y = tl.load(b[s : s + wide, col : col + cols], out=right[step % 2])
        if step:
            tl.dot(x, y, acc=acc)
        else:
            tl.dot(x, y, out=acc)
    if not kept:
        tl.store(c[row : row + rows, col : col + cols], acc)
