"""Flash attention that loads one tile ahead: two persistent buffers each for K and V, filled in turn.

In the plain kernel a tile's loads land in bytes that the tile before has just used, so they wait for it. Here they
have bytes of their own, and a load of the next tile runs while this one is computed.
"""

from __future__ import annotations

import math

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import Array, attention


def reference(q: Array, k: Array, v: Array, scale: float | None = None) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=False, scale=scale)}


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
    "small",
    q=ks.hbm((32, 32), "f16"),
    k=ks.hbm((128, 32), "f16"),
    v=ks.hbm((128, 32), "f16"),
    o=ks.hbm((32, 32), "f32"),
    tile=32,
    reference=reference,
    tolerance=1e-3,
)
@ks.kernel
def flash_attention_prefetch(
    q: ks.HbmTensor, k: ks.HbmTensor, v: ks.HbmTensor, o: ks.HbmTensor, *, tile: int = 128, scale: float | None = None
) -> None:
    """``o = softmax(q k^T scale) v`` for one block of queries: q and o of shape (S_q, D), k and v (S_kv, D); o in f32.

    Tiles of ``tile`` keys; they must divide.

    Scratch, whatever S_kv: the query tile, (m, l, O) and the four buffers persist (launch 2k: 230,400 B); scoped per
    tile of K/V, the scores and their successors, the new (m, l, O) (495,104 B).
    """
    (s_q, d), s_kv = q.shape, k.shape[0]
    tile = min(tile, s_kv)
    if k.shape != (s_kv, d) or v.shape != (s_kv, d) or o.shape != q.shape:
        raise ks.ShapeError(
            f"flash_attention_prefetch of q {q.shape}, k {k.shape}, v {v.shape} into o {o.shape}",
            help="give q and o of shape (S_q, D), k and v of shape (S_kv, D)",
        )
    if s_kv % tile:
        raise ks.ShapeError(f"{s_kv} keys in tiles of {tile}", help="tiles must divide the keys")
    factor = 1 / math.sqrt(d) if scale is None else scale
    q_tile = tl.load(q[:, :])
    k_tiles = [tl.empty((tile, d), k.dtype) for _ in range(2)]
    v_tiles = [tl.empty((tile, d), v.dtype) for _ in range(2)]
    m = tl.full((s_q, 1), float("-inf"), tl.float32)
    l = tl.zeros((s_q, 1), tl.float32)
    acc = tl.zeros((s_q, d), tl.float32)
    tl.load(k[:tile, :], out=k_tiles[0])
    tl.load(v[:tile, :], out=v_tiles[0])
    for j in range(s_kv // tile):
        ahead = (j + 1) * tile
        if ahead < s_kv:
            tl.load(k[ahead : ahead + tile, :], out=k_tiles[(j + 1) % 2])
            tl.load(v[ahead : ahead + tile, :], out=v_tiles[(j + 1) % 2])
        with tl.scratch_scope("K/V tile"):
            s = tl.dot(q_tile, tl.trans(k_tiles[j % 2])) * factor
            m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
            p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
            l_new = l * alpha + tl.sum(p, axis=1, keep_dims=True)
            acc_new = acc * alpha + tl.dot(p.to(v.dtype), v_tiles[j % 2])
            tl.copy_to(m, m_new)
            tl.copy_to(l, l_new)
            tl.copy_to(acc, acc_new)
    tl.store(o[:, :], acc / l)
