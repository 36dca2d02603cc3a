"""Grouped-query attention, prefill, long context: the sequence split over a ring of ranks, K/V passed on tile by tile.

Llama-3-70B: 8 query heads of size 128 share one KV head; C cubes hold its keys and queries, and one PE of each works on
them. Source: ring attention (Liu et al., arXiv:2310.01889), at the granularity of a tile instead of a whole slice.
"""

from __future__ import annotations

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention
from kernscope.kernels.attention_shapes import attention_of, divide
from kernscope.kernels.online_softmax import State, begin, extend, mask_later_keys, positions, weigh


def reference(q: Array, k: Array, v: Array, causal: bool = True, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=causal, scale=scale)}


@ks.launch(
    "small",
    ranks=4,
    q=ks.hbm((8, 32, 128), "f16"),
    k=ks.hbm((128, 128), "f16"),
    v=ks.hbm((128, 128), "f16"),
    o=ks.hbm((8, 32, 128), "f32"),
    TILE_S_Q=4,
    TILE_S_KV=16,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "self",
    ranks=4,
    q=ks.hbm((8, 128, 128), "f16"),
    k=ks.hbm((128, 128), "f16"),
    v=ks.hbm((128, 128), "f16"),
    o=ks.hbm((8, 128, 128), "f32"),
    TILE_S_KV=16,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "8k",
    ranks=8,
    q=ks.hbm((8, 128, 128), "f16"),
    k=ks.hbm((8192, 128), "f16"),
    v=ks.hbm((8192, 128), "f16"),
    o=ks.hbm((8, 128, 128), "f32"),
    reference=reference,
    tolerance=2e-4,
)
@ks.launch(
    "32k",
    ranks=8,
    q=ks.hbm((8, 128, 128), "f16"),
    k=ks.hbm((32768, 128), "f16"),
    v=ks.hbm((32768, 128), "f16"),
    o=ks.hbm((8, 128, 128), "f32"),
    reference=reference,
    tolerance=1e-4,
)
@ks.launch(
    "128k",
    ranks=8,
    q=ks.hbm((8, 128, 128), "f16"),
    k=ks.hbm((131072, 128), "f16"),
    v=ks.hbm((131072, 128), "f16"),
    o=ks.hbm((8, 128, 128), "f32"),
    reference=reference,
    tolerance=5e-5,
)
@ks.kernel
def gqa_attention_prefill_long_kernel(
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
    """``o = softmax(q k^T scale) v``: q and o of shape (8, S_q, 128), k and v (S_kv, 128); f16 in, f32 out.

    Rank c of C owns rows [c * S_kv / C, (c + 1) * S_kv / C) of K and V, and the same share of the queries and of the
    output; query i stands at position S_kv - S_q + i. For a block of TILE_S_Q query positions (R = 8 * TILE_S_Q rows),
    each tile of TILE_S_KV rows of K/V visits all ranks before the next one starts, as one message from neighbour to
    neighbour: at most one message is in flight in a direction. A tile that no query of the block sees only passes.

    Scratch of a rank, whatever S_kv: the query rows with their positions, the two K/V buffers, (m, l, O) and the
    bootstrap's temporaries persist for a block (launches 8k, 32k and 128k: 313,856 B); scoped per ring step, the scores
    and their successors and the new (m, l, O) (388,864 B).
    """
    heads, s_q, s_kv, d, factor = attention_of(q, k, v, o, scale, causal=causal)
    rank, ranks = tl.program_id(0), tl.num_programs(0)
    queries, block = divide("queries", s_q, ranks, TILE_S_Q)
    share, tile = divide("keys", s_kv, ranks, TILE_S_KV)
    rows, tiles = heads * block, share // tile
    for row in range(rank * queries, (rank + 1) * queries, block):
        position = s_kv - s_q + row  # of the block's first query
        with tl.scratch_scope("query block"):
            q_rows = tl.reshape(tl.load(q[:, row : row + block, :]), (rows, d))
            query_positions = positions(position, heads, block) if causal else None
            # K and V of a tile side by side; one buffer is worked on and sent while the other is filled.
            here, there = (tl.empty((2, tile, d), k.dtype) for _ in range(2))
            _load_tile(k, v, rank * share, here)
            state: State | None = None
            for number in range(tiles):
                for step in range(ranks):
                    arriving = None
                    if step < ranks - 1:
                        tl.send("next", here)
                        arriving = tl.recv_async("prev", here.shape, k.dtype, out=there)
                    elif number < tiles - 1:
                        _load_tile(k, v, rank * share + (number + 1) * tile, there)
                    first_key = (rank - step) % ranks * share + number * tile
                    if state is None:
                        # The bootstrap, outside any per-tile scope: what it makes is the persistent (m, l, O).
                        s = _scores(q_rows, here, factor, query_positions, position, first_key)
                        p, m, l = begin(s)
                        state = State(m, l, tl.dot(p.to(v.dtype), here[1]))
                    elif not causal or first_key < position + block:
                        with tl.scratch_scope("ring step"):
                            s = _scores(q_rows, here, factor, query_positions, position, first_key)
                            weights = weigh(state, s)
                            extend(state, weights, tl.dot(weights.p.to(v.dtype), here[1]))
                    if arriving is not None:
                        tl.wait(arriving)
                    here, there = there, here
            assert state is not None
            tl.store(o[:, row : row + block, :], tl.reshape(state.acc / state.l, (heads, block, d)))


def _load_tile(k: ks.HbmTensor, v: ks.HbmTensor, first: int, buffer: ks.TensorHandle) -> None:
    """Fill a buffer ``(2, T, D)`` with the rows of K and of V from ``first`` on."""
    last = first + buffer.shape[1]
    tl.load(k[first:last, :], out=buffer[0])
    tl.load(v[first:last, :], out=buffer[1])


def _scores(
    q_rows: ks.TensorHandle,
    tile: ks.TensorHandle,
    factor: float,
    query_positions: ks.TensorHandle | None,
    position: int,
    first_key: int,
) -> ks.TensorHandle:
    """The scaled scores ``(R, T)`` of a tile, masked where some query of the block comes before some key of it."""
    s = tl.dot(q_rows, tl.trans(tile[0])) * factor
    if query_positions is None or first_key + tile.shape[1] - 1 <= position:
        return s
    return mask_later_keys(s, query_positions, first_key)
