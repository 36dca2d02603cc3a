"""Tiled matrix product, with a K loop that accumulates in place and edges that need not divide."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def product(a: Array, b: Array) -> dict[str, Array]:
    """``a @ b``, summed in f64 and rounded once."""
    return {"c": (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)}


@ks.launch(
    "512",
    a=ks.hbm((512, 512), "f16"),
    b=ks.hbm((512, 512), "f16"),
    c=ks.hbm((512, 512), "f32"),
    reference=product,
    tolerance=1e-4,
)
@ks.launch(
    "ragged",
    a=ks.hbm((200, 330), "bf16"),
    b=ks.hbm((330, 150), "bf16"),
    c=ks.hbm((200, 150), "f32"),
    reference=product,
    tolerance=1e-4,
)
@ks.launch(
    "2k",
    a=ks.hbm((2048, 2048), "f16"),
    b=ks.hbm((2048, 2048), "f16"),
    c=ks.hbm((2048, 2048), "f32"),
    reference=product,
    tolerance=1e-4,
)
@ks.kernel
def matmul(
    a: ks.HbmTensor, b: ks.HbmTensor, c: ks.HbmTensor, *, tile_m: int = 128, tile_n: int = 128, tile_k: int = 128
) -> None:
    """``c = a @ b``: a of shape (M, K), b (K, N), c (M, N) f32.

    A tile that leaves its tensor is filled with zeros on loading and cut on storing.
    Scratch: nothing persists; scoped per tile of c its f32 accumulator (launch 512: 65,536 B), and per step of K one
    tile of a and one of b (65,536 B).
    """
    (m, k), (_, n) = a.shape, b.shape
    if b.shape != (k, n) or c.shape != (m, n):
        raise ks.ShapeError(f"matmul of {a.shape} and {b.shape} into {c.shape}", help="give (M, K), (K, N) and (M, N)")
    for i in range(0, m, tile_m):
        for j in range(0, n, tile_n):
            with tl.scratch_scope("tile of c"):
                acc = tl.zeros((tile_m, tile_n), tl.float32)
                for s in range(0, k, tile_k):
                    with tl.scratch_scope("step of K"):
                        left = tl.load(a[i : i + tile_m, s : s + tile_k], pad=0.0)
                        right = tl.load(b[s : s + tile_k, j : j + tile_n], pad=0.0)
                        tl.dot(left, right, acc=acc)
                tl.store(c[i : i + tile_m, j : j + tile_n], acc, clip=True)
