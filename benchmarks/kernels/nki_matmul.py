"""NKI's tutorial of a matrix product on a NeuronCore, three of its versions: loads in the innermost loop, loads
hoisted, all dimensions in blocks.

After src/nki_samples/tutorials/matrix_multiplication of github.com/aws-neuron/nki-samples: the left operand comes
transposed, a product takes tiles of 128 x 128 and 128 x 512 and is summed in PSUM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]
#: Rows of the stationary tile, depth, and columns of the moving tile of one instruction.
TILE_M, TILE_K, TILE_N = 128, 128, 512


def product(lhs_t: Array, rhs: Array) -> dict[str, Array]:
    """``lhs_t.T @ rhs``, summed in f64 and rounded once."""
    return {"result": (lhs_t.T.astype(np.float64) @ rhs.astype(np.float64)).astype(np.float32)}


def tensors(m: int, k: int, n: int) -> dict[str, Any]:
    """The operands, the left one transposed, and the result, in f32."""
    return {
        "lhs_t": ks.hbm((k, m), "f32"),
        "rhs": ks.hbm((k, n), "f32"),
        "result": ks.hbm((m, n), "f32"),
    }


LARGE = tensors(4096, 8192, 8192)
SMALL: dict[str, Any] = {**tensors(256, 256, 1024), "reference": product, "tolerance": 1e-4}


def _banks() -> list[ks.TensorHandle]:
    """Four banks of PSUM, used in turn: a sum is made while the one before is on its way out."""
    return [tl.empty((TILE_M, TILE_N), tl.float32, space="psum") for _ in range(4)]


def _added(bank: ks.TensorHandle, left: ks.TensorHandle, right: ks.TensorHandle, first: bool) -> None:
    """A product into a bank: over what was there, or added to it."""
    if first:
        tl.dot(tl.trans(left), right, out=bank)
    else:
        tl.dot(tl.trans(left), right, acc=bank)


def _out(result: ks.HbmTensor, row: int, col: int, acc: ks.TensorHandle, staged: ks.TensorHandle) -> None:
    """Out of PSUM, and out to HBM."""
    tl.copy_to(staged, acc)
    tl.store(result[row : row + TILE_M, col : col + TILE_N], staged)


def _tiles(many: int, width: int, dtype: ks.DType) -> list[ks.TensorHandle]:
    return [tl.empty((TILE_K, width), dtype) for _ in range(many)]


@ks.launch("trn2-mm-v2", machine="trn2", **LARGE)
@ks.launch("small", machine="trn2", **SMALL)
@ks.kernel
def nki_matmul_tiled(lhs_t: ks.HbmTensor, rhs: ks.HbmTensor, result: ks.HbmTensor) -> None:
    """Each product loads both of its tiles: they go through eight buffers in turn."""
    (k, m), n = lhs_t.shape, rhs.shape[1]
    lefts, rights = _tiles(8, TILE_M, lhs_t.dtype), _tiles(8, TILE_N, rhs.dtype)
    banks, staged = _banks(), _tiles(4, TILE_N, result.dtype)
    step = 0
    for number, (row, col) in enumerate((i, j) for i in range(0, m, TILE_M) for j in range(0, n, TILE_N)):
        bank = banks[number % 4]
        for s in range(0, k, TILE_K):
            left, right = lefts[step % 8], rights[step % 8]
            step += 1
            tl.load(lhs_t[s : s + TILE_K, row : row + TILE_M], out=left)
            tl.load(rhs[s : s + TILE_K, col : col + TILE_N], out=right)
            _added(bank, left, right, s == 0)
        _out(result, row, col, bank, staged[number % 4])


@ks.launch("trn2-mm-v3", machine="trn2", **LARGE)
@ks.launch("small", machine="trn2", **SMALL)
@ks.kernel
def nki_matmul_hoisted(lhs_t: ks.HbmTensor, rhs: ks.HbmTensor, result: ks.HbmTensor) -> None:
    """A row of tiles of the result loads its left tiles once, a tile of the result its right ones before its products.
    Two sets of left tiles in turn."""
    (k, m), n = lhs_t.shape, rhs.shape[1]
    lefts = [_tiles(k // TILE_K, TILE_M, lhs_t.dtype) for _ in range(2)]
    right = _tiles(k // TILE_K, TILE_N, rhs.dtype)
    banks, staged = _banks(), _tiles(4, TILE_N, result.dtype)
    number = 0
    for i, row in enumerate(range(0, m, TILE_M)):
        left = lefts[i % 2]
        for s, tile in enumerate(left):
            tl.load(lhs_t[s * TILE_K : (s + 1) * TILE_K, row : row + TILE_M], out=tile)
        for col in range(0, n, TILE_N):
            for s, tile in enumerate(right):
                tl.load(rhs[s * TILE_K : (s + 1) * TILE_K, col : col + TILE_N], out=tile)
            bank = banks[number % 4]
            for s, (a, b) in enumerate(zip(left, right, strict=True)):
                _added(bank, a, b, s == 0)
            _out(result, row, col, bank, staged[number % 4])
            number += 1


@ks.launch("trn2-mm-v5", machine="trn2", **LARGE)
@ks.launch("small", machine="trn2", blocks=(1, 2, 2), **SMALL)
@ks.kernel
def nki_matmul_blocked(
    lhs_t: ks.HbmTensor, rhs: ks.HbmTensor, result: ks.HbmTensor, *, blocks: tuple[int, int, int] = (16, 2, 8)
) -> None:
    """Blocks of so many tiles along M, N and K: what K has left of them is added up in SBUF."""
    (k, m), n = lhs_t.shape, rhs.shape[1]
    tiles_m, tiles_n, tiles_k = blocks
    many = m // TILE_M
    sums = [_tiles(tiles_n, TILE_N, result.dtype) for _ in range(many)]
    rights = _tiles(tiles_k, TILE_N * tiles_n, rhs.dtype)
    lefts, banks = _tiles(tiles_k, TILE_M * tiles_m, lhs_t.dtype), _banks()
    number = 0
    for col in range(0, n, TILE_N * tiles_n):
        for s in range(0, k, TILE_K * tiles_k):
            for at, right in enumerate(rights):
                deep = s + at * TILE_K
                tl.load(rhs[deep : deep + TILE_K, col : col + TILE_N * tiles_n], out=right)
            for row in range(0, m, TILE_M * tiles_m):
                for at, left in enumerate(lefts):
                    deep = s + at * TILE_K
                    tl.load(lhs_t[deep : deep + TILE_K, row : row + TILE_M * tiles_m], out=left)
                for j in range(tiles_n):
                    for i in range(tiles_m):
                        total = sums[row // TILE_M + i][j]
                        bank = banks[number % 4]
                        number += 1
                        for at, (a, b) in enumerate(zip(lefts, rights, strict=True)):
                            left = a[:, i * TILE_M : (i + 1) * TILE_M]
                            _added(bank, left, b[:, j * TILE_N : (j + 1) * TILE_N], at == 0)
                        if s:
                            tl.add(bank, total, out=total)
                        else:
                            tl.copy_to(total, bank)
        for i, row_of_sums in enumerate(sums):
            for j, total in enumerate(row_of_sums):
                at = col + j * TILE_N
                tl.store(result[i * TILE_M : (i + 1) * TILE_M, at : at + TILE_N], total)
