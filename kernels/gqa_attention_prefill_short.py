"""Grouped-query attention, prefill, short context: K/V of the head lie in the rank's own HBM; no messages.

Llama-3-70B: 8 query heads of size 128 share one KV head, and one PE works on it.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide
from kernscope.kernels.online_softmax import extend, fresh, mask_later_keys, positions, weigh


def reference(q: Array, k: Array, v: Array, causal: bool = True, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=causal, scale=scale)}


@ks.launch(
    "small",
    q=ks.hbm((8, 32, 128), "f16"),
    k=ks.hbm((64, 128), "f16"),
    v=ks.hbm((64, 128), "f16"),
    o=ks.hbm((8, 32, 128), "f32"),
    TILE_S_Q=4,
    TILE_S_KV=16,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "1k",
    q=ks.hbm((8, 64, 128), "f16"),
    k=ks.hbm((1024, 128), "f16"),
    v=ks.hbm((1024, 128), "f16"),
    o=ks.hbm((8, 64, 128), "f32"),
    reference=reference,
    tolerance=5e-4,
)
@ks.launch(
    "8k",
    q=ks.hbm((8, 16, 128), "f16"),
    k=ks.hbm((8192, 128), "f16"),
    v=ks.hbm((8192, 128), "f16"),
    o=ks.hbm((8, 16, 128), "f32"),
    reference=reference,
    tolerance=2e-4,
)
@ks.kernel
def gqa_attention_prefill_short_kernel(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    TILE_S_Q: int = 16,
    TILE_S_KV: int = 128,
    causal: bool = True,
    scale: float | None = None,
) -> None:
    """``o = softmax(q k^T scale) v``: q and o of shape (8, S_q, 128), k and v (S_kv, 128); f16 in, f32 out.

    A block holds the 8 heads of TILE_S_Q query positions as R = 8 * TILE_S_Q rows; query i stands at position
    S_kv - S_q + i. Both products are composites that stream K and V from HBM; several ranks share the blocks.

    Scratch, whatever S_kv: the query rows with their positions and (m, l, O) persist for a block (launches 1k and 8k:
    100,864 B); scoped per tile of K/V, the two products with their stream buffers and accumulators, the scores'
    successors and the new (m, l, O) (675,840 B).
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=causal)
    queries, block = divide("queries", s_q, tl.num_programs(0), TILE_S_Q)
    _, tile = divide("keys", s_kv, 1, TILE_S_KV)
    rows = heads * block
    begin_row = tl.program_id(0) * queries
    for row in range(begin_row, begin_row + queries, block):
        position = s_kv - s_q + row
        with tl.scratch_scope("query block"):
            q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
            query_positions = positions(position, heads, block) if causal else None
            state = fresh(rows, d)
            for key in range(0, min(position + block, s_kv) if causal else s_kv, tile):
                with tl.scratch_scope("K/V tile"):
                    s = tl.composite(
                        "gemm",
                        q_rows,
                        tl.ref(k[key : key + tile, :]),
                        trans_b=True,
                        tile=(128, 64, 128),
                        epilogue=[("mul", factor)],
                    )
                    if query_positions is not None and key + tile - 1 > position:
                        s = mask_later_keys(s, query_positions, key)
                    values = tl.ref(v[key : key + tile, :])
                    weights = weigh(state, s)
                    product = tl.composite("gemm", weights.p.to(v.dtype), values, tile=(128, 128, 64))
                    extend(state, weights, product)
            tl.store(o[:, row : row + block, :], tl.reshape(state.acc / state.l, (heads, block, d)))
