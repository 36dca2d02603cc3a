"""Flash attention on Ascend: the cube core multiplies, its two vector cores do the softmax, and what they hand each
other goes through global memory, in rings of buffers.

After kernels/manual/common/flash_atten of github.com/hw-native-sys/pto-isa: Q K^T, softmax, P V and the update of the
sums as four stages, 128 queries a core, 256 keys a tile in two halves on the cube, four tiles ahead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl
from kernscope.kernels.attention_numbers import attention

Array = np.ndarray[Any, np.dtype[Any]]


def reference(q: Array, k: Array, v: Array, **others: Any) -> dict[str, Array]:
    """Plain attention in f32."""
    return {"o": attention(q, k, v, causal=False, scale=None)}


def tensors(queries: int, keys: int, cores: int, *, d: int = 128, rows: int = 128, tile: int = 256) -> dict[str, Any]:
    """Q, K, V and O, and the rings in global memory: five tiles of scores, of P and of P V for each core."""
    return {
        "q": ks.hbm((queries, d), "f16"),
        "k": ks.hbm((keys, d), "f16"),
        "v": ks.hbm((keys, d), "f16"),
        "o": ks.hbm((queries, d), "f32"),
        "scores": ks.hbm((cores, RING, rows, tile), "f32"),
        "weights": ks.hbm((cores, RING, rows, tile), "f16"),
        "products": ks.hbm((cores, RING, rows, d), "f32"),
    }


#: One more than the tiles that the first stage is ahead.
RING = 5


@ks.launch("asc-fa-128-1024", machine="ascend-910b2", ranks=1, **tensors(128, 1024, 1))
@ks.launch("asc-fa-128-8192", machine="ascend-910b2", ranks=1, **tensors(128, 8192, 1))
@ks.launch("asc-fa-2048-8192", machine="ascend-910b2", ranks=16, **tensors(2048, 8192, 16))
@ks.launch("asc-fa-4096-4096", machine="ascend-910b2", ranks=24, **tensors(4096, 4096, 24))
@ks.launch("asc-fa-32768-32768", machine="ascend-910b2", ranks=2, **tensors(256, 32768, 2))
@ks.launch(
    "small",
    machine="ascend-910b2",
    ranks=2,
    rows=32,
    tile=64,
    reference=reference,
    tolerance=2e-3,
    **tensors(96, 512, 2, d=32, rows=32, tile=64),
)
@ks.kernel
def ascend_attention(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    scores: ks.HbmTensor,
    weights: ks.HbmTensor,
    products: ks.HbmTensor,
    *,
    rows: int = 128,
    tile: int = 256,
) -> None:
    """``o = softmax(q k^T / sqrt(D)) v`` of one head: blocks of ``rows`` queries dealt to the ranks, ``tile`` keys a
    step.

    L1 holds the queries and two tiles each of K, of P and of V; L0 the queries, two halves of K or V and one of P; L0C
    two halves of the scores, in turn with P V. In UB two halves each of a tile of scores, of P and of P V, and the
    sums.
    """
    for block in range(tl.program_id(0), q.shape[0] // rows, tl.num_programs(0)):
        with tl.scratch_scope("block of queries"):
            _block(q, k, v, o, (scores, weights, products), block * rows, rows, tile)


def _block(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    rings: tuple[ks.HbmTensor, ks.HbmTensor, ks.HbmTensor],
    first: int,
    rows: int,
    tile: int,
) -> None:
    scores, weights, products = rings
    d, part, rank = q.shape[1], rows // 2, tl.program_id(0)
    tiles = k.shape[0] // tile
    cube = _Cube(q[first : first + rows, :], tile)
    parts = [_Part(part, d, 1 / math.sqrt(d)) for _ in range(2)]
    seen = [tl.empty((part, tile), tl.float32, space="ub") for _ in range(2)]
    made = [tl.empty((part, tile), tl.float16, space="ub") for _ in range(2)]
    updates = [tl.empty((part, d), tl.float32, space="ub") for _ in range(2)]
    ahead = min(RING - 1, tiles)
    for j in range(tiles + ahead):
        if j < tiles:
            cube.score(k[j * tile : (j + 1) * tile, :], scores, rank, j)
            for at, own in enumerate(parts):
                here = slice(at * part, (at + 1) * part)
                tl.load(scores[rank, j % RING, here, :], out=seen[at])
                own.soften(seen[at], made[at], j)
                tl.store(weights[rank, j % RING, here, :], made[at])
        done = j - ahead
        if done >= 0:
            cube.weigh(weights, v[done * tile : (done + 1) * tile, :], products, rank, done)
            for at, own in enumerate(parts):
                here = slice(at * part, (at + 1) * part)
                tl.load(products[rank, done % RING, here, :], out=updates[at])
                own.update(updates[at], done)
    for at, own in enumerate(parts):
        tl.store(o[first + at * part : first + (at + 1) * part, :], own.total())


class _Cube:
    """The cube core's buffers and its two stages."""

    def __init__(self, q: ks.HbmRegion, tile: int) -> None:
        (rows, d), dtype = q.shape, q.tensor.dtype
        self.half = tile // 2
        self.k, self.v = ([tl.empty((tile, d), dtype, space="l1") for _ in range(2)] for _ in range(2))
        self.p = [tl.empty((rows, tile), dtype, space="l1") for _ in range(2)]
        self.queries = tl.move(tl.load(q, space="l1"), "l0a")
        self.right = [tl.empty((self.half, d), dtype, space="l0b") for _ in range(2)]
        self.left = tl.empty((rows, self.half), dtype, space="l0a")
        self.banks = [tl.empty((rows, d), tl.float32, space="l0c") for _ in range(2)]
        assert self.half == d, "one shape serves the scores' halves and P V"
        self.turn = self.bank = 0

    def _next(self) -> ks.TensorHandle:
        self.turn += 1
        return self.right[self.turn % 2]

    def _sum(self) -> ks.TensorHandle:
        self.bank += 1
        return self.banks[self.bank % 2]

    def score(self, keys: ks.HbmRegion, scores: ks.HbmTensor, rank: int, j: int) -> None:
        """Q K^T of a tile, a half at a time."""
        k = tl.load(keys, out=self.k[j % 2])
        for low in range(0, 2 * self.half, self.half):
            right, made = tl.move(k[low : low + self.half, :], out=self._next()), self._sum()
            tl.dot(self.queries, tl.trans(right), out=made)
            tl.store(scores[rank, j % RING, :, low : low + self.half], made)

    def weigh(self, weights: ks.HbmTensor, values: ks.HbmRegion, products: ks.HbmTensor, rank: int, j: int) -> None:
        """P V of a tile."""
        p = tl.load(weights[rank, j % RING, :, :], out=self.p[j % 2])
        v, made = tl.load(values, out=self.v[j % 2]), self._sum()
        for low in range(0, 2 * self.half, self.half):
            left = tl.move(p[:, low : low + self.half], out=self.left)
            right = tl.move(v[low : low + self.half, :], out=self._next())
            if low:
                tl.dot(left, right, acc=made)
            else:
                tl.dot(left, right, out=made)
        tl.store(products[rank, j % RING, :, :], made)


class _Part:
    """What the vector cores keep of half of the queries: the largest score, the sum, the output so far, and by how much
    each tile that is on its way makes those before it smaller."""

    def __init__(self, rows: int, d: int, factor: float) -> None:
        self.factor = factor
        self.largest = [tl.full((rows, 1), float("-inf"), tl.float32, space="ub") for _ in range(2)]
        self.weight, self.out = (tl.zeros((rows, n), tl.float32, space="ub") for n in (1, d))
        self.alpha = [tl.empty((rows, 1), tl.float32, space="ub") for _ in range(RING)]
        self.added = tl.empty((rows, 1), tl.float32, space="ub")

    def soften(self, s: ks.TensorHandle, p: ks.TensorHandle, j: int) -> None:
        """P of a tile of scores, in place until it is rounded."""
        before, now, alpha = self.largest[j % 2], self.largest[(j + 1) % 2], self.alpha[j % RING]
        tl.max(s, axis=1, keep_dims=True, out=now)
        tl.maximum(before, now, out=now)
        tl.exp(tl.mul(tl.sub(before, now, out=alpha), self.factor, out=alpha), out=alpha)
        tl.exp(tl.mul(tl.sub(s, now, out=s), self.factor, out=s), out=s)
        tl.sum(s, axis=1, keep_dims=True, out=self.added)
        tl.add(tl.mul(self.weight, alpha, out=self.weight), self.added, out=self.weight)
        tl.cast(s, p.dtype, out=p)

    def update(self, product: ks.TensorHandle, j: int) -> None:
        """The output so far with a tile's P V."""
        tl.add(tl.mul(self.out, self.alpha[j % RING], out=self.out), product, out=self.out)

    def total(self) -> ks.TensorHandle:
        """The output."""
        return tl.div(self.out, self.weight, out=self.out)
