"""Layer normalisation along rows, with a learned scale and shift."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def layer_norm_rows(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> dict[str, Array]:
    """Each row to mean 0 and variance 1, then scaled and shifted; in f32."""
    wide = x.astype(np.float32)
    mean = wide.mean(axis=1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(axis=1, keepdims=True)
    normal = (wide - mean) / np.sqrt(variance + np.float32(eps))
    return {"o": normal * weight.astype(np.float32) + bias.astype(np.float32)}


@ks.launch(
    "1k",
    x=ks.hbm((256, 1024), "f16"),
    weight=ks.hbm((1024,), "f16"),
    bias=ks.hbm((1024,), "f16"),
    o=ks.hbm((256, 1024), "f32"),
    reference=layer_norm_rows,
    tolerance=1e-4,
)
@ks.launch(
    "ragged",
    x=ks.hbm((37, 200), "f32"),
    weight=ks.hbm((200,), "f32"),
    bias=ks.hbm((200,), "f32"),
    o=ks.hbm((37, 200), "f32"),
    eps=1e-6,
    reference=layer_norm_rows,
    tolerance=1e-4,
)
@ks.kernel
def layer_norm(
    x: ks.HbmTensor, weight: ks.HbmTensor, bias: ks.HbmTensor, o: ks.HbmTensor, *, rows: int = 16, eps: float = 1e-5
) -> None:
    """``o = (x - mean) / sqrt(variance + eps) * weight + bias``: x and o of shape (M, N), weight and bias (N,).

    Works on blocks of rows; the last one may be smaller. Scratch: weight and bias persist, as loaded and in f32 (launch
    1k: 12,288 B); scoped, a block as loaded and five in f32 (360,832 B).
    """
    m, n = x.shape
    if o.shape != x.shape or weight.shape != (n,) or bias.shape != (n,):
        raise ks.ShapeError(
            f"layer_norm of {x.shape} with {weight.shape} and {bias.shape} into {o.shape}",
            help="give x and o of one shape (M, N), weight and bias of shape (N,)",
        )
    scale = tl.load(weight[:]).to(tl.float32)
    shift = tl.load(bias[:]).to(tl.float32)
    for start in range(0, m, rows):
        stop = min(start + rows, m)
        with tl.scratch_scope():
            block = tl.load(x[start:stop, :]).to(tl.float32)
            centred = block - tl.sum(block, axis=1, keep_dims=True) / n
            variance = tl.sum(centred * centred, axis=1, keep_dims=True) / n
            tl.store(o[start:stop, :], tl.fma(centred * tl.rsqrt(variance + eps), scale, shift))
