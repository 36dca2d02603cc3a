"""A matrix product as GPUs run it: each streaming multiprocessor makes whole blocks of the result, its bulk copies fill
a ring of buffers ahead of its tensor cores.

After kernels/gemm/educational_b200 of github.com/HazyResearch/ThunderKittens, docs/pallas/gpu/blackwell_matmul.md of
github.com/jax-ml/jax and examples/matmul of github.com/pranjalssh/fast.cu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def product(a: Array, b: Array) -> dict[str, Array]:
    """``a @ b`` in f32."""
    return {"c": a.astype(np.float32) @ b.astype(np.float32)}


def square(n: int) -> dict[str, Any]:
    """Three bf16 matrices of n x n."""
    return {name: ks.hbm((n, n), "bf16") for name in "abc"}


#: docs/pallas/gpu/blackwell_matmul.md: m 4096, n 8192, k 4096 in f16.
PALLAS: dict[str, Any] = {
    "a": ks.hbm((4096, 4096), "f16"),
    "b": ks.hbm((4096, 8192), "f16"),
    "c": ks.hbm((4096, 8192), "f16"),
}


@ks.launch("b200-tk-06", machine="b200-sm", ranks=148, **square(4096), bm=128, bn=128, stages=1)
@ks.launch("b200-tk-07", machine="b200-sm", ranks=148, **square(4096), bm=128, bn=128, stages=3)
@ks.launch("b200-tk-09", machine="b200-sm", ranks=148, **square(4096), bm=256, bn=256, stages=3, epilogue=32)
@ks.launch("b200-pallas-0", machine="b200-sm", ranks=148, **PALLAS, bm=128, bn=128, stages=6)
@ks.launch("b200-pallas-3", machine="b200-sm", ranks=148, **PALLAS, bm=128, bn=256, stages=4, epilogue=64)
@ks.launch("b200-pallas-4", machine="b200-sm", ranks=16, **PALLAS, bm=128, bn=256, stages=4, epilogue=64, rounds=7)
@ks.launch(
    "h100-fastcu-4096",
    machine="h100-sm",
    ranks=16,
    **square(4096),
    bm=128,
    bn=256,
    stages=3,
    epilogue=64,
    rounds=4,
    pairs=True,
)
@ks.launch(
    "small",
    machine="b200-sm",
    ranks=2,
    a=ks.hbm((64, 64), "bf16"),
    b=ks.hbm((64, 64), "bf16"),
    c=ks.hbm((64, 64), "bf16"),
    bm=16,
    bn=64,
    bk=16,
    stages=2,
    epilogue=32,
    rounds=2,
    reference=product,
    tolerance=2e-2,
)
@ks.launch(
    "small-h100",
    machine="h100-sm",
    ranks=2,
    a=ks.hbm((64, 64), "bf16"),
    b=ks.hbm((64, 64), "bf16"),
    c=ks.hbm((64, 64), "bf16"),
    bm=32,
    bn=64,
    bk=16,
    stages=3,
    pairs=True,
    reference=product,
    tolerance=2e-2,
)
@ks.kernel
def gpu_matmul(
    a: ks.HbmTensor,
    b: ks.HbmTensor,
    c: ks.HbmTensor,
    *,
    bm: int,
    bn: int,
    bk: int = 64,
    stages: int,
    epilogue: int = 0,
    rounds: int = 1,
    pairs: bool = False,
) -> None:
    """``c = a @ b``: in each of ``rounds`` every rank makes one block of (bm, bn), row after row of blocks, bk of K a
    step.

    In ``pairs`` two ranks make blocks below each other: each loads half of the columns of b and sends them to the
    other, as a multicast copy gives both to both.

    ``stages`` buffers each for blocks of a and b; sums in f32 where the tensor cores leave them. They are rounded into
    shared memory and stored in pieces of ``epilogue`` columns (0: all at once).
    """
    k, n = a.shape[1], c.shape[1]
    width = epilogue or bn
    left = [tl.empty((bm, bk), a.dtype, space="smem") for _ in range(stages)]
    right = [tl.empty((bk, bn), b.dtype, space="smem") for _ in range(stages)]
    out = [tl.empty((bm, width), c.dtype, space="smem") for _ in range(min(2, bn // width))]
    step = 0
    for turn in range(rounds):
        block = turn * tl.num_programs(0) + tl.program_id(0)
        if pairs:
            down, (above, across) = block % 2, divmod(block // 2, n // bn)
            row, col = (2 * above + down) * bm, across * bn
        else:
            row, col = block // (n // bn) * bm, block % (n // bn) * bn
        with tl.scratch_scope("block"):
            acc = None
            for s in range(0, k, bk):
                at = step % stages
                step += 1
                tl.load(a[row : row + bm, s : s + bk], out=left[at])
                if pairs:
                    _exchanged(b, s, col, right[at], tl.program_id(0) % 2)
                else:
                    tl.load(b[s : s + bk, col : col + bn], out=right[at])
                acc = tl.dot(left[at], right[at], acc=acc)
            assert acc is not None
            for number, j in enumerate(range(0, bn, width)):
                made = out[number % len(out)]
                tl.cast(acc[:, j : j + width], c.dtype, out=made)
                tl.store(c[row : row + bm, col + j : col + j + width], made)


def _exchanged(b: ks.HbmTensor, row: int, col: int, buffer: ks.TensorHandle, which: int) -> None:
    """A pair's block of b: this rank's half from memory, the other's from the other."""
    bk, bn = buffer.shape
    half = bn // 2
    mine, theirs = buffer[:, which * half : (which + 1) * half], buffer[:, (1 - which) * half : (2 - which) * half]
    direction = ("next", "prev")[which]
    start = col + which * half
    tl.send(direction, tl.load(b[row : row + bk, start : start + half], out=mine))
    tl.recv(direction, theirs.shape, theirs.dtype, out=theirs)
