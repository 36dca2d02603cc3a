"""Grouped-query attention, decode, long context: K/V split over the ranks, partial results reduced along a chain.

Llama-3-70B: 8 query heads of size 128 share one KV head; C cubes hold its keys, and one PE of each works on them.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide
from kernscope.kernels.online_softmax import extend, merge, unpack, weigh


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
    "8k",
    ranks=8,
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((8192, 128), "f16"),
    v=ks.hbm((8192, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=1024,
    reference=reference,
    tolerance=2e-4,
)
@ks.launch(
    "32k",
    ranks=8,
    q=ks.hbm((8, 1, 128), "f16"),
    k=ks.hbm((32768, 128), "f16"),
    v=ks.hbm((32768, 128), "f16"),
    o=ks.hbm((8, 1, 128), "f32"),
    TILE_S_KV=1024,
    reference=reference,
    tolerance=1e-4,
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
    tolerance=5e-5,
)
@ks.kernel
def gqa_attention_decode_long_kernel(
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

    Rank c of C owns rows [c * S_kv / C, (c + 1) * S_kv / C) of K and V and sweeps them in tiles. Then the state travels
    from rank 0 to rank C - 1, each rank merging its own; the last one stores the result. Decoding asks for one token:
    S_q = 1, and its query sees every key. (So do all queries of a larger S_q: masks are the prefill kernels' part.) A
    block holds the 8 heads of TILE_S_Q queries as R = 8 * TILE_S_Q rows. Both products are composites that stream K
    and V from HBM.

    Scratch of a rank, whatever S_kv: the query rows and (m, l, O) persist for a block (launches 8k, 32k and 128k:
    6,208 B); scoped per tile of K/V, the two products with their stream buffers and accumulators, the scores'
    successors and the new (m, l, O) (266,464 B).
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=False)
    rank, ranks = tl.program_id(0), tl.num_programs(0)
    _, block = divide("queries", s_q, 1, TILE_S_Q)
    share, tile = divide("keys", s_kv, ranks, TILE_S_KV)
    rows = heads * block
    for row in range(0, s_q, block):
        with tl.scratch_scope("query block"):
            q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
            packed = tl.zeros((rows, d + 2), tl.float32)  # O, m and l side by side: one message
            state = unpack(packed)
            with tl.scratch_scope("start"):
                tl.copy_to(state.m, tl.full((rows, 1), float("-inf"), tl.float32))
            for key in range(rank * share, (rank + 1) * share, tile):
                with tl.scratch_scope("K/V tile"):
                    keys, values = tl.ref(k[key : key + tile, :]), tl.ref(v[key : key + tile, :])
                    s = tl.composite("gemm", q_rows, keys, trans_b=True, epilogue=[("mul", factor)])
                    weights = weigh(state, s)
                    extend(state, weights, tl.composite("gemm", weights.p.to(v.dtype), values))
            if rank > 0:
                with tl.scratch_scope("chain step"):
                    merge(state, unpack(tl.recv("prev", (rows, d + 2), tl.float32)))
            if rank < ranks - 1:
                tl.send("next", packed)
            else:
                tl.store(o[:, row : row + block, :], tl.reshape(state.acc / state.l, (heads, block, d)))
