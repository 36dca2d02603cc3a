"""Pallas' matrix product for a TPU: a grid of blocks, the next step's operands on their way while this one multiplies.

After docs/pallas/tpu/matmul.ipynb and docs/pallas/tpu/sparse.ipynb of github.com/jax-ml/jax.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def product(x: Array, y: Array, lower: bool = False) -> dict[str, Array]:
    """``x @ y`` in f32, above the diagonal zero if only its lower triangle of blocks is made."""
    found = x.astype(np.float32) @ y.astype(np.float32)
    return {"z": np.tril(found) if lower else found}


@ks.launch(
    "tpu-mm-128-1024",
    machine="tpu-v5e",
    x=ks.hbm((1024, 1024), "bf16"),
    y=ks.hbm((1024, 1024), "bf16"),
    z=ks.hbm((1024, 1024), "bf16"),
    bm=128,
    bk=128,
    bn=128,
)
@ks.launch(
    "tpu-mm-128-4096",
    machine="tpu-v5e",
    x=ks.hbm((4096, 4096), "bf16"),
    y=ks.hbm((4096, 4096), "bf16"),
    z=ks.hbm((4096, 4096), "bf16"),
    bm=128,
    bk=128,
    bn=128,
)
@ks.launch(
    "tpu-mm-512-1024",
    machine="tpu-v5e",
    x=ks.hbm((1024, 1024), "bf16"),
    y=ks.hbm((1024, 1024), "bf16"),
    z=ks.hbm((1024, 1024), "bf16"),
    bm=512,
    bk=1024,
    bn=1024,
)
@ks.launch(
    "tpu-mm-512-4096",
    machine="tpu-v5e",
    x=ks.hbm((4096, 4096), "bf16"),
    y=ks.hbm((4096, 4096), "bf16"),
    z=ks.hbm((4096, 4096), "bf16"),
    bm=512,
    bk=1024,
    bn=1024,
)
@ks.launch(
    "tpu-mask",
    machine="tpu-v5e",
    x=ks.hbm((16384, 16384), "bf16"),
    y=ks.hbm((16384, 16384), "bf16"),
    z=ks.hbm((16384, 16384), "bf16"),
    bm=512,
    bk=1024,
    bn=512,
    lower=True,
)
@ks.launch(
    "small",
    machine="tpu-v5e",
    x=ks.hbm((64, 64), "bf16"),
    y=ks.hbm((64, 64), "bf16"),
    z=ks.hbm((64, 64), "bf16"),
    bm=32,
    bk=16,
    bn=32,
    reference=product,
    tolerance=2e-2,
)
@ks.kernel
def tpu_matmul(
    x: ks.HbmTensor, y: ks.HbmTensor, z: ks.HbmTensor, *, bm: int, bk: int, bn: int, lower: bool = False
) -> None:
    """``z = x @ y`` in blocks of (bm, bn), bk of K a step, summed in f32; with ``lower`` only blocks that touch the
    lower triangle are made.

    A block that a step needs and the one before had is not fetched again. Scratch: two buffers each for a block of x,
    of y and of z, and the sums.
    """
    (m, k), (_, n) = x.shape, y.shape
    left = [tl.empty((bm, bk), x.dtype) for _ in range(2)]
    right = [tl.empty((bk, bn), y.dtype) for _ in range(2)]
    out = [tl.empty((bm, bn), z.dtype) for _ in range(2)]
    acc = tl.empty((bm, bn), tl.float32)
    zero = tl.zeros((bm, bn), tl.float32)
    blocks = [(i, j) for i in range(m // bm) for j in range(n // bn) if not lower or j * bn < (i + 1) * bm]
    steps = [(i, j, s) for i, j in blocks for s in range(k // bk)]
    held: tuple[Any, Any] = (None, None)  # the blocks of x and y that are there, and in which buffers
    using = [1, 1]

    def fetch(step: tuple[int, int, int]) -> tuple[int, int]:
        nonlocal held
        i, j, s = step
        for which, (block, have) in enumerate(zip(((i, s), (s, j)), held, strict=True)):
            if block != have:
                using[which] = 1 - using[which]
                row, col = block
                tensor, buffers, rows, cols = ((x, left, bm, bk), (y, right, bk, bn))[which]
                tl.load(tensor[row * rows : (row + 1) * rows, col * cols : (col + 1) * cols], out=buffers[using[which]])
        held = (i, s), (s, j)
        return using[0], using[1]

    ready = fetch(steps[0])
    for number, (i, j, s) in enumerate(steps):
        at = ready
        if number + 1 < len(steps):
            ready = fetch(steps[number + 1])
        if s == 0:
            tl.copy_to(acc, zero)
        tl.dot(left[at[0]], right[at[1]], acc=acc)
        if s == k // bk - 1:
            made = out[(i * (n // bn) + j) % 2]
            tl.cast(acc, z.dtype, out=made)
            tl.store(z[i * bm : (i + 1) * bm, j * bn : (j + 1) * bn], made)
