"""Plain numpy attention: what the attention kernels' results are compared with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Array", "attention"]

Array = np.ndarray[Any, np.dtype[Any]]


def attention(q: Array, k: Array, v: Array, *, causal: bool, scale: float | None = None) -> Array:
    """softmax(q k^T scale) v in f32: q ``(..., S_q, D)``, k and v ``(S_kv, D)`` shared by all heads of q.

    ``scale`` is 1 / sqrt(D) where none is given. Query i stands at position ``S_kv - S_q + i``; a causal one sees the
    keys up to its own position.
    """
    s_q, d = q.shape[-2:]
    s_kv = k.shape[0]
    factor = np.float32(1 / math.sqrt(d) if scale is None else scale)
    keys, values = k.astype(np.float32), v.astype(np.float32)
    hidden = np.arange(s_kv) > np.arange(s_kv - s_q, s_kv)[:, None] if causal else np.False_
    heads = q.astype(np.float32).reshape(-1, s_q, d)
    out = np.empty_like(heads)
    for head, queries in enumerate(heads):
        scores = np.where(hidden, -np.inf, (queries @ keys.T) * factor)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[head] = (weights @ values) / weights.sum(axis=1, keepdims=True)
    return out.reshape(q.shape)
