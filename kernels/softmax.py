"""Softmax along rows, written out: maximum, exponential, sum, quotient."""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]


def softmax_rows(x: Array) -> dict[str, Array]:
    """Softmax along the last axis, in f32."""
    wide = x.astype(np.float32)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    return {"o": e / e.sum(axis=1, keepdims=True)}


@ks.launch("1k", x=ks.hbm((256, 1024), "f32"), o=ks.hbm((256, 1024), "f32"), reference=softmax_rows, tolerance=1e-5)
@ks.launch("ragged", x=ks.hbm((50, 100), "f16"), o=ks.hbm((50, 100), "f32"), reference=softmax_rows, tolerance=1e-5)
@ks.kernel
def softmax(x: ks.HbmTensor, o: ks.HbmTensor, *, rows: int = 32) -> None:
    """``o = softmax(x)`` along the last axis: x of shape (M, N), o of the same shape, f32.

    Works on blocks of rows; the last one may be smaller. Scratch: nothing persists; scoped, five blocks in f32
    (launch 1k: 655,616 B).
    """
    m, _ = x.shape
    if o.shape != x.shape:
        raise ks.ShapeError(f"softmax of {x.shape} into {o.shape}", help="give two equal shapes (M, N)")
    for start in range(0, m, rows):
        stop = min(start + rows, m)
        with tl.scratch_scope():
            block = tl.load(x[start:stop, :]).to(tl.float32)
            e = tl.exp(block - tl.max(block, axis=1, keep_dims=True))
            tl.store(o[start:stop, :], e / tl.sum(e, axis=1, keep_dims=True))
