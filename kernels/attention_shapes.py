"""What the grouped-query attention kernels take: shapes, and how they divide. Others are refused, with the reason."""

from __future__ import annotations

import math
from typing import NamedTuple

import kernscope as ks

__all__ = ["Attention", "attention_of", "divide"]


class Attention(NamedTuple):
    """One KV head's attention: query heads that share it, query positions, keys, head size; and the scale of scores."""

    heads: int
    s_q: int
    s_kv: int
    d: int
    scale: float


def attention_of(
    q: ks.HbmTensor, k: ks.HbmTensor, v: ks.HbmTensor, o: ks.HbmTensor, scale: float | None, *, causal: bool
) -> Attention:
    """The attention of q and o ``(heads, S_q, D)``, k and v ``(S_kv, D)``. Raises ``ShapeError`` for other shapes, and
    for a causal one with more queries than keys: its first queries would see nothing."""
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}, o {o.shape}"
    if q.ndim != 3 or o.shape != q.shape or k.shape != v.shape or k.ndim != 2 or k.shape[1] != q.shape[2]:
        raise ks.ShapeError(
            f"attention of {shapes}", help="give q and o of shape (heads, S_q, D), k and v of shape (S_kv, D)"
        )
    heads, s_q, d = q.shape
    s_kv = k.shape[0]
    if causal and s_q > s_kv:
        raise ks.ShapeError(
            f"causal attention of {s_q} queries over {s_kv} keys ({shapes})",
            help="query i stands at position S_kv - S_q + i: give at least as many keys as queries",
        )
    return Attention(heads, s_q, s_kv, d, 1 / math.sqrt(d) if scale is None else scale)


def divide(what: str, count: int, ranks: int, tile: int) -> tuple[int, int]:
    """``count`` rows over the ranks: the rows of one rank, and the tile to walk them in, which is at most that.

    Raises ``ShapeError`` where the ranks do not divide the rows, or the tile does not divide a rank's rows.
    """
    if tile < 1:
        raise ks.ShapeError(f"{what} in tiles of {tile}", help="a tile has at least one row")
    share, rest = divmod(count, ranks)
    if rest or not share:
        raise ks.ShapeError(
            f"{count} {what} do not divide among {ranks} ranks", help=f"give a multiple of {ranks}, or other ranks="
        )
    tile = min(tile, share)
    if share % tile:
        raise ks.ShapeError(
            f"{share} {what} of a rank ({count} over {ranks}) do not divide into tiles of {tile}",
            help=f"give tiles that divide {share}",
        )
    return share, tile
