"""Flash attention on Hopper: blocks of 128 queries, K and V in rings of two buffers, the scores of one tile in
registers while the softmax of the one before is under way.

After FlashAttention-3 (arXiv 2407.08608, hopper/ of github.com/Dao-AILab/flash-attention), whose two groups of warps
take turns: here one instruction does what both do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import attention

Array = np.ndarray[Any, np.dtype[Any]]


def reference(q: Array, k: Array, v: Array, heads: int = 1, **others: Any) -> dict[str, Array]:
    """Plain attention of each head in f32."""
    parts = zip(*(np.split(x, heads) for x in (q, k, v)), strict=True)
    return {"o": np.concatenate([attention(*each, causal=False, scale=None) for each in parts])}


def tensors(queries: int, keys: int, d: int = 128) -> dict[str, Any]:
    """Q, K, V and O in f16, of all heads below each other."""
    return {
        "q": ks.hbm((queries, d), "f16"),
        "k": ks.hbm((keys, d), "f16"),
        "v": ks.hbm((keys, d), "f16"),
        "o": ks.hbm((queries, d), "f16"),
    }


@ks.launch("h100-fa3-512", machine="h100-sm", ranks=4, **tensors(2048, 2048), heads=4)
@ks.launch("h100-fa3-16384", machine="h100-sm", ranks=4, **tensors(1024, 16384))
@ks.launch(
    "small",
    machine="h100-sm",
    ranks=2,
    **tensors(128, 256, 32),
    rows=32,
    tile=32,
    heads=2,
    reference=reference,
    tolerance=2e-3,
)
@ks.kernel
def gpu_attention(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    rows: int = 128,
    tile: int = 128,
    heads: int = 1,
) -> None:
    """``o = softmax(q k^T / sqrt(D)) v`` of each head: blocks of ``rows`` queries dealt to the ranks, ``tile`` keys a
    step.

    Shared memory holds two blocks of queries, two tiles each of K and V, and one block on its way out; registers hold
    two tiles of scores, one of weights, and the sums.
    """
    (queries, d), keys = q.shape, k.shape[0] // heads
    a_head = queries // heads // rows
    state = _Buffers(rows, tile, d, q.dtype)
    for number, block in enumerate(range(tl.program_id(0), queries // rows, tl.num_programs(0))):
        first, base = block * rows, block // a_head * keys
        mine = tl.load(q[first : first + rows, :], out=state.queries[number % 2])
        state.begin()
        state.score(mine, k, v, base)
        for low in range(base, base + keys, tile):
            if low + tile < base + keys:
                state.score(mine, k, v, low + tile)
            state.weigh()
        tl.cast(tl.div(state.acc, state.weight, out=state.acc), o.dtype, out=state.staged)
        tl.store(o[first : first + rows, :], state.staged)


class _Buffers:
    """A rank's tiles, and the steps on them."""

    def __init__(self, rows: int, tile: int, d: int, dtype: ks.DType) -> None:
        self.tile, self.factor = tile, 1 / math.sqrt(d)
        self.queries = [tl.empty((rows, d), dtype, space="smem") for _ in range(2)]
        self.k, self.v = ([tl.empty((tile, d), dtype, space="smem") for _ in range(2)] for _ in range(2))
        self.staged = tl.empty((rows, d), dtype, space="smem")
        self.scores = [tl.empty((rows, tile), tl.float32, space="rf") for _ in range(2)]
        self.p = tl.empty((rows, tile), dtype, space="rf")
        self.acc = tl.empty((rows, d), tl.float32, space="rf")
        self.largest = [tl.empty((rows, 1), tl.float32, space="rf") for _ in range(2)]
        self.weight, self.alpha, self.added = (tl.empty((rows, 1), tl.float32, space="rf") for _ in range(3))
        self.zero, self.least = tl.zeros((1, 1), tl.float32), tl.full((1, 1), float("-inf"), tl.float32)
        self.scored = self.weighed = 0

    def begin(self) -> None:
        """Nothing seen yet."""
        for tile, value in (
            (self.acc, self.zero),
            (self.weight, self.zero),
            (self.largest[self.weighed % 2], self.least),
        ):
            tl.copy_to(tile, tl.broadcast_to(value, tile.shape))

    def score(self, queries: ks.TensorHandle, k: ks.HbmTensor, v: ks.HbmTensor, low: int) -> None:
        """A tile of K and V, and its scores."""
        at = self.scored % 2
        self.scored += 1
        tl.load(k[low : low + self.tile, :], out=self.k[at])
        tl.load(v[low : low + self.tile, :], out=self.v[at])
        tl.dot(queries, tl.trans(self.k[at]), out=self.scores[at])

    def weigh(self) -> None:
        """The oldest tile of scores: softmax, and what it adds to the output."""
        at = self.weighed % 2
        self.weighed += 1
        s, before, now = self.scores[at], self.largest[at], self.largest[1 - at]
        alpha = self.alpha
        tl.max(s, axis=1, keep_dims=True, out=now)
        tl.maximum(before, now, out=now)
        tl.exp(tl.mul(tl.sub(before, now, out=alpha), self.factor, out=alpha), out=alpha)
        tl.exp(tl.mul(tl.sub(s, now, out=s), self.factor, out=s), out=s)
        tl.sum(s, axis=1, keep_dims=True, out=self.added)
        tl.add(tl.mul(self.weight, alpha, out=self.weight), self.added, out=self.weight)
        tl.cast(s, self.p.dtype, out=self.p)
        tl.mul(self.acc, alpha, out=self.acc)
        tl.dot(self.p, self.v[at], acc=self.acc)
