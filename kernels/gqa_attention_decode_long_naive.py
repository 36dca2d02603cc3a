"""The naive twin of ``gqa_attention_decode_long``: its sweep and chain, without scopes. On purpose it cannot scale.

Every result of every tile keeps its bytes to the end of the kernel, so that scratch grows with the context. Lint its
launch ``128k`` to see it explained.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide


def reference(q: Array, k: Array, v: Array, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=False, scale=scale)}


@ks.launch(
    "small",
    ranks=4,
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((256, 128), "f16"),
    v=ks.hbm((256, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=32,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "128k",
    ranks=8,
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((131072, 128), "f16"),
    v=ks.hbm((131072, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=1024,
    reference=reference,
    tolerance=1e-4,
)
@ks.kernel
def gqa_attention_decode_long_naive_kernel(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    TILE_S_Q: int = 1,
    TILE_S_KV: int = 128,
    scale: float | None = None,
) -> None:
    """``o = softmax(q k^T scale) v``, with the arguments of ``gqa_attention_decode_long_kernel``.

    Scratch: nothing is ever given back. A rank holds the results, accumulators and stream buffers of all its tiles.
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=False)
    rank, ranks = tl.program_id(0), tl.num_programs(0)
    _, block = divide("queries", s_q, 1, TILE_S_Q)
    share, tile = divide("keys", s_kv, ranks, TILE_S_KV)
    rows = heads * block
    for row in range(0, s_q, block):
        q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
        m = tl.full((rows, 1), float("-inf"), tl.float32)
        l = tl.zeros((rows, 1), tl.float32)
        acc = tl.zeros((rows, d), tl.float32)
        for key in range(rank * share, (rank + 1) * share, tile):
            keys, values = tl.ref(k[key : key + tile, :]), tl.ref(v[key : key + tile, :])
            s = tl.composite("gemm", q_rows, keys, trans_b=True, epilogue=[("mul", factor)])
            m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
            p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
            l = l * alpha + tl.sum(p, axis=1, keep_dims=True)
            acc = acc * alpha + tl.composite("gemm", p.to(v.dtype), values)
            m = m_new
        if rank > 0:
            other_m = tl.recv("prev", (rows, 1), tl.float32)
            other_l = tl.recv("prev", (rows, 1), tl.float32)
            other_acc = tl.recv("prev", (rows, d), tl.float32)
            m_new = tl.maximum(m, other_m)
            mine, theirs = tl.exp(m - m_new), tl.exp(other_m - m_new)
            l = l * mine + other_l * theirs
            acc = acc * mine + other_acc * theirs
            m = m_new
        if rank < ranks - 1:
            tl.send("next", m)
            tl.send("next", l)
            tl.send("next", acc)
        else:
            tl.store(o[:, row : row + block, :], tl.reshape(acc / l, (heads, block, d)))
