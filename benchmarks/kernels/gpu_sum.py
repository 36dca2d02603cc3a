"""The sum of an array on a GPU: every multiprocessor takes each so-manieth piece, its vector lanes add it up.

After sum.cu of github.com/pranjalssh/fast.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def total(x: Array, **others: Any) -> dict[str, Array]:
    """What each of two blocks adds up."""
    parts = [x[rank::2].astype(np.int64).sum().astype(np.int32) for rank in range(2)]
    return {"sums": np.array(parts, dtype=np.int32).reshape(2, 1)}


@ks.launch(
    "h100-sum",
    machine="h100-sm",
    ranks=4,
    x=ks.hbm((65536, 16384), "i32"),
    sums=ks.hbm((132, 1), "i32"),
    blocks=132,
)
@ks.launch(
    "small",
    machine="h100-sm",
    ranks=2,
    x=ks.hbm((8, 256), "i32"),
    sums=ks.hbm((2, 1), "i32"),
    blocks=2,
    reference=total,
)
@ks.kernel
def gpu_sum(x: ks.HbmTensor, sums: ks.HbmTensor, *, blocks: int, stages: int = 3) -> None:
    """Block i of ``blocks`` adds up rows i, i + ``blocks``, ... of x. ``stages`` rows are on their way at once."""
    (pieces, width), rank = x.shape, tl.program_id(0)
    buffers = [tl.empty((1, width), x.dtype, space="smem") for _ in range(stages)]
    acc = tl.zeros((1, 1), tl.int32)
    added = tl.empty((1, 1), tl.int32)
    for number, row in enumerate(range(rank, pieces, blocks)):
        piece = tl.load(x[row : row + 1, :], out=buffers[number % stages])
        tl.sum(piece, axis=1, keep_dims=True, out=added)
        tl.add(acc, added, out=acc)
    tl.store(sums[rank : rank + 1, :], tl.move(acc, "smem"))
