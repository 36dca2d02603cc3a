"""A matrix product on Ascend's cube cores: K in long steps into L1, in short ones from there into L0, sums in L0C.

After kernels/manual/a2a3/gemm_performance of github.com/hw-native-sys/pto-isa and the Norm template of AscendC's
Matmul.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def product(a: Array, b: Array) -> dict[str, Array]:
    """``a @ b``, summed in f64 and rounded once."""
    return {"c": (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)}


def tensors(m: int, k: int, n: int) -> dict[str, Any]:
    """The operands in f16, and the result in f32."""
    return {"a": ks.hbm((m, k), "f16"), "b": ks.hbm((k, n), "f16"), "c": ks.hbm((m, n), "f32")}


@ks.launch("asc-gemm-1536", machine="ascend-910b2", ranks=24, cores=(4, 6), **tensors(1536, 1536, 1536))
@ks.launch("asc-gemm-6144", machine="ascend-910b2", ranks=2, cores=(4, 6), **tensors(6144, 6144, 6144))
@ks.launch("asc-norm", machine="ascend-910b2", ranks=24, cores=(1, 24), **tensors(128, 1024, 30720))
@ks.launch(
    "small",
    machine="ascend-910b2",
    ranks=2,
    cores=(1, 2),
    base=(16, 32, 16),
    step_k=2,
    reference=product,
    tolerance=1e-3,
    **tensors(32, 64, 128),
)
@ks.kernel
def ascend_matmul(
    a: ks.HbmTensor,
    b: ks.HbmTensor,
    c: ks.HbmTensor,
    *,
    cores: tuple[int, int],
    base: tuple[int, int, int] = (128, 256, 64),
    step_k: int = 4,
) -> None:
    """``c = a @ b``, its rows and columns dealt to ``cores`` (rows, columns) of them.

    A core's part is made in tiles of ``base`` (m, n, k); L1 holds two blocks each of ``step_k`` base tiles along K, L0
    two base tiles each, L0C one sum.
    """
    (m, k), n = a.shape, c.shape[1]
    rows, cols = m // cores[0], n // cores[1]
    top, first = (at * size for at, size in zip(divmod(tl.program_id(0), cores[1]), (rows, cols), strict=True))
    bm, bn, bk = base
    deep = bk * step_k
    a_l1 = [tl.empty((bm, deep), a.dtype, space="l1") for _ in range(2)]
    b_l1 = [tl.empty((deep, bn), b.dtype, space="l1") for _ in range(2)]
    a_l0 = [tl.empty((bm, bk), a.dtype, space="l0a") for _ in range(2)]
    b_l0 = [tl.empty((bk, bn), b.dtype, space="l0b") for _ in range(2)]
    block = step = 0
    for i in range(top, top + rows, bm):
        for j in range(first, first + cols, bn):
            with tl.scratch_scope("tile of c"):
                acc = None
                for s in range(0, k, deep):
                    left, right = a_l1[block % 2], b_l1[block % 2]
                    block += 1
                    tl.load(a[i : i + bm, s : s + deep], out=left)
                    tl.load(b[s : s + deep, j : j + bn], out=right)
                    for d in range(0, deep, bk):
                        tl.move(left[:, d : d + bk], out=a_l0[step % 2])
                        tl.move(right[d : d + bk, :], out=b_l0[step % 2])
                        acc = tl.dot(a_l0[step % 2], b_l0[step % 2], acc=acc)
                        step += 1
                assert acc is not None
                tl.store(c[i : i + bm, j : j + bn], acc)
