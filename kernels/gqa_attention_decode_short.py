"""Grouped-query attention, decode, short context: K/V of the head lie in the rank's own HBM; no messages.

Llama-3-70B: 8 query heads of size 128 share one KV head, and one PE works on it.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide
from kernscope.kernels.online_softmax import extend, fresh, weigh


def reference(q: Array, k: Array, v: Array, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=False, scale=scale)}


@ks.launch(
    "small",
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((128, 128), "f16"),
    v=ks.hbm((128, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=32,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "8k",
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((8192, 128), "f16"),
    v=ks.hbm((8192, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=1024,
    reference=reference,
    tolerance=2e-4,
)
@ks.kernel
def gqa_attention_decode_short_kernel(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    TILE_S_Q: int = 1,
    TILE_S_KV: int = 128,
    scale: float | None = None,
) -> None:
    """``o = softmax(q k^T scale) v``: q and o of shape (8, S_q, 128), k and v (S_kv, 128); f16 in, f32 out.

    Decoding asks for one token: S_q = 1, and its query sees every key. (So do all queries of a larger S_q: masks are
    the prefill kernels' part.) A block holds the 8 heads of TILE_S_Q queries as R = 8 * TILE_S_Q rows. Both products
    are composites that stream K and V from HBM; several ranks share the blocks.

    Scratch, whatever S_kv: the query rows and (m, l, O) persist for a block (launch 8k: 6,208 B); scoped per tile of
    K/V, the two products with their stream buffers and accumulators, the scores' successors and the new (m, l, O)
    (266,464 B).
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=False)
    queries, block = divide("queries", s_q, tl.num_programs(0), TILE_S_Q)
    _, tile = divide("keys", s_kv, 1, TILE_S_KV)
    rows = heads * block
    begin_row = tl.program_id(0) * queries
    for row in range(begin_row, begin_row + queries, block):
        with tl.scratch_scope("query block"):
            q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
            state = fresh(rows, d)
            for key in range(0, s_kv, tile):
                with tl.scratch_scope("K/V tile"):
                    keys, values = tl.ref(k[key : key + tile, :]), tl.ref(v[key : key + tile, :])
                    s = tl.composite("gemm", q_rows, keys, trans_b=True, epilogue=[("mul", factor)])
                    weights = weigh(state, s)
                    extend(state, weights, tl.composite("gemm", weights.p.to(v.dtype), values))
            tl.store(o[:, row : row + block, :], tl.reshape(state.acc / state.l, (heads, block, d)))
