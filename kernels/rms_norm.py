"""Root-mean-square normalisation along rows, with a learned scale."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def rms_norm_rows(x: Array, weight: Array, eps: float = 1e-5) -> dict[str, Array]:
    """Each row divided by its root mean square, then scaled; in f32."""
    wide = x.astype(np.float32)
    mean_square = (wide * wide).mean(axis=1, keepdims=True)
    return {"o": wide / np.sqrt(mean_square + np.float32(eps)) * weight.astype(np.float32)}


@ks.launch(
    "1k",
    x=ks.hbm((256, 1024), "f16"),
    weight=ks.hbm((1024,), "f16"),
    o=ks.hbm((256, 1024), "f32"),
    reference=rms_norm_rows,
    tolerance=1e-4,
)
@ks.launch(
    "ragged",
    x=ks.hbm((37, 200), "f32"),
    weight=ks.hbm((200,), "f32"),
    o=ks.hbm((37, 200), "f32"),
    reference=rms_norm_rows,
    tolerance=1e-4,
)
@ks.kernel
def rms_norm(x: ks.HbmTensor, weight: ks.HbmTensor, o: ks.HbmTensor, *, rows: int = 16, eps: float = 1e-5) -> None:
    """``o = x / sqrt(mean(x^2) + eps) * weight``: x and o of shape (M, N), weight (N,).

    Works on blocks of rows; the last one may be smaller. Scratch: the weight persists, as loaded and in f32 (launch 1k:
    6,144 B); scoped, a block as loaded and four in f32 (295,168 B).
    """
    m, n = x.shape
    if o.shape != x.shape or weight.shape != (n,):
        raise ks.ShapeError(
            f"rms_norm of {x.shape} with {weight.shape} into {o.shape}",
            help="give x and o of one shape (M, N), weight of shape (N,)",
        )
    scale = tl.load(weight[:]).to(tl.float32)
    for start in range(0, m, rows):
        stop = min(start + rows, m)
        with tl.scratch_scope():
            block = tl.load(x[start:stop, :]).to(tl.float32)
            mean_square = tl.sum(block * block, axis=1, keep_dims=True) / n
            tl.store(o[start:stop, :], block * tl.rsqrt(mean_square + eps) * scale)
