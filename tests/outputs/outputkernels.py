"""Three small kernels that together use what an output can show: scopes, loops, helpers, messages, faults."""

from __future__ import annotations

import kernscope as ks
from kernscope import tl

__all__ = ["faulty", "reduction", "ring", "ring_before"]


def widened(row: ks.HbmRegion) -> ks.TensorHandle:
    """A helper: its lines stand under its callers'."""
    tile = tl.load(row)
    return tl.cast(tile, tl.float32)


@ks.kernel
def _ring(x: ks.HbmTensor, w: ks.HbmTensor, o: ks.HbmTensor, *, steps: int, scale: float) -> None:
    rank = tl.program_id(0)
    acc = tl.zeros((32, 32), tl.float32)
    weights = tl.load(w[:, :])
    for step in range(steps):
        with tl.scratch_scope("step"):
            tile = widened(x[rank, step * 32 : (step + 1) * 32, :])
            part = tl.dot(tile, weights)
            high = tl.max(part, axis=1)
            with tl.scratch_scope("soft"):
                part = tl.exp(part - high[:, None]) * scale
                tl.copy_to(acc, acc + part / tl.sum(part, axis=1)[:, None])
    tl.send("next", acc)
    left = tl.recv("prev", (32, 32), tl.float32)
    mean = (acc + left) * 0.5
    tl.store(o[rank, :, :], tl.where(mean > 0.25, mean, 0.0))


def _ring_graph(steps: int, scale: float) -> ks.Graph:
    tensors = ks.hbm((2, 32 * steps, 32), "bf16"), ks.hbm((32, 32), "f32"), ks.hbm((2, 32, 32), "f32")
    return ks.trace(_ring, *tensors, steps=steps, scale=scale, ranks=2)


def ring() -> ks.Graph:
    """Two ranks that sum tiles and pass the sums on."""
    return _ring_graph(2, 0.125)


def ring_before() -> ks.Graph:
    """The same with fewer steps: what a report compares with."""
    return _ring_graph(1, 0.25)


@ks.kernel
def _reduction(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    total = tl.load(x[0, :])
    for row in range(1, 7):
        tile = tl.load(x[row, :], pad=0.0) if row % 2 else tl.load(x[row, 0:96])
        if row % 2 == 0:
            wide = tl.zeros((128,), tl.float32)
            tl.copy_to(wide[0:96], tile)
            tile = wide
        total = tl.maximum(total, tl.tanh(tile))
    tl.store(o[:], total)


def reduction() -> ks.Graph:
    """A loop without scopes, whose tiles are of two shapes."""
    return ks.trace(_reduction, ks.hbm((7, 128), "f32"), ks.hbm((128,), "f32"))


@ks.kernel
def _faulty(x: ks.HbmTensor, o: ks.HbmTensor, p: ks.HbmTensor) -> None:
    with tl.scratch_scope("early"):
        gone = tl.load(x[0, :])
    again = tl.load(x[0, :])
    never = tl.empty((64,), tl.float16)
    tl.store(o[0, :], never)
    tl.load(x[1, :])
    unused = again * 2.0
    del unused
    tl.store(o[1, :], gone + again)
    total = tl.zeros((64,), tl.float16)
    for row in range(10):
        total = total + tl.load(x[row, :])
    if tl.program_id(0) == 0:
        tl.send("next", total)
    tl.store(o[2, :], total)
    tl.store(o[2, :], again)
    tl.store(p[2 * tl.program_id(0), :], total)


def faulty() -> ks.Graph:
    """Two ranks that make the commonest mistakes."""
    tensors = ks.hbm((10, 64), "f16"), ks.hbm((4, 64), "f16"), ks.hbm((4, 64), "f16")
    return ks.trace(_faulty, *tensors, ranks=2)
