"""The state-space model of Mamba on a NeuronCore, three versions of NKI's tutorial: all loads in the inner loop, a
tile's loads hoisted, long sequences in pieces.

After src/nki_samples/tutorials/fused_mamba of github.com/aws-neuron/nki-samples. Rows of B and C are spread over the
partitions by the tensor engine: a product with a column of ones, into PSUM. ``delta * u`` does not depend on the state:
versions 2 and 3 make it once.
"""

from __future__ import annotations

from typing import Any

import kernscope as ks
from kernscope import tl

#: Channels of a tile, and columns of a piece of a sequence.
ROWS, COLS = 128, 512


def tensors(channels: int, length: int, states: int = 16) -> dict[str, Any]:
    """The inputs and the output in f32, of one batch."""
    wide = ks.hbm((channels, length), "f32")
    flat = ks.hbm((states, length), "f32")
    return {"delta": wide, "u": wide, "a": ks.hbm((channels, states), "f32"), "b": flat, "c": flat, "out": wide}


class _Set:
    """What a pass over a piece of a sequence uses besides its inputs and its sums."""

    def __init__(self, space: str) -> None:
        tile, row = (ROWS, COLS), (1, COLS)
        self.a, self.last = (tl.empty((ROWS, 1), tl.float32) for _ in range(2))
        self.decay, self.term, self.h = (tl.empty(tile, tl.float32) for _ in range(3))
        self.shown = tl.empty(tile, tl.float32, space=space)
        self.rows = [tl.empty(row, tl.float32) for _ in range(2)]
        self.spread = [tl.empty(tile, tl.float32, space="psum") for _ in range(2)]


class _Passes:
    """The passes, with two sets that take turns. ``space``: where what is added to the sums lies."""

    def __init__(self, space: str = "sbuf") -> None:
        self.ones = tl.full((ROWS, 1), 1.0, tl.float32)
        self.sets = [_Set(space) for _ in range(2)]
        self.turn = 0

    def run(
        self,
        column: ks.HbmRegion,
        b: ks.HbmRegion,
        c: ks.HbmRegion,
        delta: ks.TensorHandle,
        weighted: ks.TensorHandle,
        total: ks.TensorHandle,
        initial: ks.TensorHandle | None = None,
    ) -> ks.TensorHandle:
        """One state over a piece: its share is added to ``total``; the state at the end."""
        self.turn += 1
        own = self.sets[self.turn % 2]
        tl.load(column, out=own.a)
        spread = [
            tl.dot(self.ones, tl.load(row, out=into), out=there)
            for row, into, there in zip((b, c), own.rows, own.spread, strict=True)
        ]
        tl.exp_fma(delta, own.a, 0.0, out=own.decay)
        tl.mul(weighted, spread[0], out=own.term)
        tl.recurrence(own.decay, own.term, initial, axis=1, out=own.h)
        tl.add(total, tl.mul(own.h, spread[1], out=own.shown), out=total)
        return own.h[:, COLS - 1 :]


@ks.launch("trn1-mamba-v1-4096-512", machine="trn1", **tensors(4096, 512))
@ks.launch("small", machine="trn1", **tensors(256, 512, 2))
@ks.kernel
def nki_mamba_v1(
    delta: ks.HbmTensor, u: ks.HbmTensor, a: ks.HbmTensor, b: ks.HbmTensor, c: ks.HbmTensor, out: ks.HbmTensor
) -> None:
    """State by state: delta and u are loaded, and multiplied, for each anew; the sums of all channels stay in SBUF."""
    tiles, states = range(0, delta.shape[0], ROWS), a.shape[1]
    passes = _Passes()
    totals = [tl.zeros((ROWS, COLS), tl.float32) for _ in tiles]
    inputs = [[tl.empty((ROWS, COLS), tl.float32) for _ in range(3)] for _ in range(2)]
    for state in range(states):
        row = slice(state, state + 1)
        for number, top in enumerate(tiles):
            here = slice(top, top + ROWS)
            x, y, weighted = inputs[number % 2]
            tl.load(delta[here, :], out=x)
            tl.load(u[here, :], out=y)
            tl.mul(x, y, out=weighted)
            passes.run(a[here, row], b[row, :], c[row, :], x, weighted, totals[number])
    for top, total in zip(tiles, totals, strict=True):
        tl.store(out[top : top + ROWS, :], total)


@ks.launch("trn1-mamba-v2-4096-512", machine="trn1", **tensors(4096, 512))
@ks.launch("small", machine="trn1", **tensors(256, 512, 2))
@ks.kernel
def nki_mamba_v2(
    delta: ks.HbmTensor, u: ks.HbmTensor, a: ks.HbmTensor, b: ks.HbmTensor, c: ks.HbmTensor, out: ks.HbmTensor
) -> None:
    """Tile by tile of channels: delta and u are loaded, and multiplied, once for all states."""
    _by_tiles(delta, u, a, b, c, out, _Passes())


@ks.launch("trn1-mamba-v3-4096-1024", machine="trn1", **tensors(4096, 1024))
@ks.launch("small", machine="trn1", **tensors(256, 1024, 2))
@ks.kernel
def nki_mamba_v3(
    delta: ks.HbmTensor, u: ks.HbmTensor, a: ks.HbmTensor, b: ks.HbmTensor, c: ks.HbmTensor, out: ks.HbmTensor
) -> None:
    """As version 2, in pieces of the sequence that go on from each other; what is added lies in PSUM."""
    _by_tiles(delta, u, a, b, c, out, _Passes("psum"))


def _by_tiles(
    delta: ks.HbmTensor,
    u: ks.HbmTensor,
    a: ks.HbmTensor,
    b: ks.HbmTensor,
    c: ks.HbmTensor,
    out: ks.HbmTensor,
    passes: _Passes,
) -> None:
    (channels, length), states = delta.shape, a.shape[1]
    sets = [[tl.empty((ROWS, length), tl.float32) for _ in range(4)] for _ in range(2)]
    zero = tl.zeros((1, 1), tl.float32)
    for number, top in enumerate(range(0, channels, ROWS)):
        here = slice(top, top + ROWS)
        x, y, weighted, total = sets[number % 2]
        tl.load(delta[here, :], out=x)
        tl.load(u[here, :], out=y)
        tl.mul(x, y, out=weighted)
        tl.copy_to(total, tl.broadcast_to(zero, total.shape))
        for state in range(states):
            row, last = slice(state, state + 1), None
            for low in range(0, length, COLS):
                part = slice(low, low + COLS)
                tiles = (x[:, part], weighted[:, part], total[:, part])
                last = passes.run(a[here, row], b[row, part], c[row, part], *tiles, last)
        tl.store(out[here, :], total)
