"""The naive twin of ``gqa_attention_prefill_long``: a ring of whole slices, no scopes. On purpose it cannot scale.

Each rank passes on its whole slice of K/V, so that a message and its buffer grow with the context; and every result of
every tile keeps its bytes to the end of the kernel. Lint its launch ``128k`` to see both explained.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide
from kernscope.kernels.online_softmax import mask_later_keys, positions


def reference(q: Array, k: Array, v: Array, causal: bool = True, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=causal, scale=scale)}


@ks.launch(
    "small",
    ranks=4,
    q=ks.hbm((8, 16, 128), "f16"),
    k=ks.hbm((64, 128), "f16"),
    v=ks.hbm((64, 128), "f16"),
    o=ks.hbm((8, 16, 128), "f32"),
    TILE_S_Q=4,
    TILE_S_KV=16,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "128k",
    ranks=8,
    q=ks.hbm((8, 128, 128), "f16"),
    k=ks.hbm((131072, 128), "f16"),
    v=ks.hbm((131072, 128), "f16"),
    o=ks.hbm((8, 128, 128), "f32"),
    TILE_S_KV=256,
    reference=reference,
    tolerance=1e-4,
)
@ks.kernel
def gqa_attention_prefill_long_naive_kernel(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    TILE_S_Q: int = 16,
    TILE_S_KV: int = 64,
    causal: bool = True,
    scale: float | None = None,
) -> None:
    """``o = softmax(q k^T scale) v``, with the arguments of ``gqa_attention_prefill_long_kernel``.

    Scratch: nothing is ever given back. A rank holds C slices of S_kv / C rows of K and V, and all results.
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=causal)
    rank, ranks = tl.program_id(0), tl.num_programs(0)
    queries, block = divide("queries", s_q, ranks, TILE_S_Q)
    share, tile = divide("keys", s_kv, ranks, TILE_S_KV)
    rows = heads * block
    for row in range(rank * queries, (rank + 1) * queries, block):
        position = s_kv - s_q + row
        q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
        query_positions = positions(position, heads, block)
        m = tl.full((rows, 1), float("-inf"), tl.float32)
        l = tl.zeros((rows, 1), tl.float32)
        acc = tl.zeros((rows, d), tl.float32)
        kv = tl.empty((2, share, d), k.dtype)
        tl.load(k[rank * share : (rank + 1) * share, :], out=kv[0])
        tl.load(v[rank * share : (rank + 1) * share, :], out=kv[1])
        for step in range(ranks):
            if step < ranks - 1:
                tl.send("next", kv)
            for start in range(0, share, tile):
                first_key = (rank - step) % ranks * share + start
                if causal and first_key >= position + block:
                    continue
                s = tl.dot(q_rows, tl.trans(kv[0, start : start + tile])) * factor
                if causal:
                    s = mask_later_keys(s, query_positions, first_key)
                m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
                p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
                l = l * alpha + tl.sum(p, axis=1, keep_dims=True)
                acc = acc * alpha + tl.dot(p.to(v.dtype), kv[1, start : start + tile])
                m = m_new
            if step < ranks - 1:
                kv = tl.recv("prev", kv.shape, k.dtype)
        tl.store(o[:, row : row + block, :], tl.reshape(acc / l, (heads, block, d)))
