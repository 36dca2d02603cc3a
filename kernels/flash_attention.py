"""Flash attention on one PE: an online softmax over tiles of K/V whose scratch does not grow with the context."""

from __future__ import annotations

import math

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention


def reference(q: Array, k: Array, v: Array, causal: bool = False, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=causal, scale=scale)}


@ks.launch(
    "2k",
    q=ks.hbm((128, 128), "f16"),
    k=ks.hbm((2048, 128), "f16"),
    v=ks.hbm((2048, 128), "f16"),
    o=ks.hbm((128, 128), "f32"),
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "2k-causal",
    q=ks.hbm((512, 128), "f16"),
    k=ks.hbm((2048, 128), "f16"),
    v=ks.hbm((2048, 128), "f16"),
    o=ks.hbm((512, 128), "f32"),
    causal=True,
    reference=reference,
    tolerance=1e-3,
)
@ks.launch(
    "small",
    q=ks.hbm((64, 32), "f16"),
    k=ks.hbm((128, 32), "f16"),
    v=ks.hbm((128, 32), "f16"),
    o=ks.hbm((64, 32), "f32"),
    causal=True,
    rows=32,
    tile=32,
    reference=reference,
    tolerance=1e-3,
)
@ks.kernel
def flash_attention(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    *,
    tile: int = 128,
    rows: int = 128,
    causal: bool = False,
    scale: float | None = None,
) -> None:
    """``o = softmax(q k^T scale) v``: q and o of shape (S_q, D), k and v (S_kv, D); o in f32.

    Blocks of ``rows`` queries, tiles of ``tile`` keys; both must divide. Query i stands at position S_kv - S_q + i.

    Scratch, whatever S_kv: the query tile and (m, l, O) persist for a block (launch 2k: 99,328 B); scoped per tile of
    K/V, the two tiles, the scores and their successors, the new (m, l, O) (2k: 560,640 B; 2k-causal: 643,584 B).
    """
    (s_q, d), s_kv = q.shape, k.shape[0]
    rows, tile = min(rows, s_q), min(tile, s_kv)
    if k.shape != (s_kv, d) or v.shape != (s_kv, d) or o.shape != q.shape:
        raise ks.ShapeError(
            f"flash_attention of q {q.shape}, k {k.shape}, v {v.shape} into o {o.shape}",
            help="give q and o of shape (S_q, D), k and v of shape (S_kv, D)",
        )
    if min(rows, tile) < 1 or s_q % rows or s_kv % tile or (causal and s_q > s_kv):
        raise ks.ShapeError(
            f"{s_q} queries in blocks of {rows} and {s_kv} keys in tiles of {tile}",
            help="blocks and tiles must divide, and a causal kernel needs a key for each query",
        )
    factor = 1 / math.sqrt(d) if scale is None else scale
    for row in range(0, s_q, rows):
        position = s_kv - s_q + row  # of the block's first query
        with tl.scratch_scope("query block"):
            q_tile = tl.load(q[row : row + rows, :])
            m = tl.full((rows, 1), float("-inf"), tl.float32)
            l = tl.zeros((rows, 1), tl.float32)
            acc = tl.zeros((rows, d), tl.float32)
            for key in range(0, min(position + rows, s_kv) if causal else s_kv, tile):
                with tl.scratch_scope("K/V tile"):
                    k_tile, v_tile = tl.load(k[key : key + tile, :]), tl.load(v[key : key + tile, :])
                    s = tl.dot(q_tile, tl.trans(k_tile)) * factor
                    if causal and key + tile - 1 > position:
                        visible = tl.arange(position, position + rows)[:, None] >= tl.arange(key, key + tile)[None, :]
                        s = tl.where(visible, s, float("-inf"))
                    m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
                    p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
                    l_new = l * alpha + tl.sum(p, axis=1, keep_dims=True)
                    acc_new = acc * alpha + tl.dot(p.to(v.dtype), v_tile)
                    tl.copy_to(m, m_new)
                    tl.copy_to(l, l_new)
                    tl.copy_to(acc, acc_new)
            tl.store(o[row : row + rows, :], acc / l)
