"""The kernels of ``interpreter.py``, in Triton's language, and their launches: run by a process of its own a side.

python interpreted_kernels.py kernscope|triton RESULT.npz TIMES NAME...
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

try:
    import torch
except ImportError:
    torch = None

SIDE = sys.argv[1] if len(sys.argv) > 1 else ""
ENTERED = contextlib.ExitStack()
SESSION: Any = None
if SIDE == "kernscope":
    import kernscope as ks

    SESSION = ENTERED.enter_context(ks.triton.session())

import triton  # noqa: E402  the session stands in for it
import triton.language as tl  # noqa: E402


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + y."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b, of dense matrices."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BK
        b_ptrs += BK * N
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total, mask=inside)


@triton.jit
def softmax_kernel(out_ptr, in_ptr, stride, n, BLOCK: tl.constexpr):
    """A row's softmax."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(in_ptr + row * stride + columns, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + columns, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layer_norm_kernel(out_ptr, in_ptr, weight_ptr, bias_ptr, n, eps, BLOCK: tl.constexpr):
    """A row's layer norm, in three passes."""
    start = tl.program_id(0) * n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        total += tl.load(in_ptr + start + columns, mask=columns < n, other=0.0)
    mean = tl.sum(total, axis=0) / n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(in_ptr + start + columns, mask=columns < n, other=0.0)
        x = tl.where(columns < n, x - mean, 0.0)
        total += x * x
    scale = 1 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for off in range(0, n, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        mask = columns < n
        x = tl.load(in_ptr + start + columns, mask=mask, other=0.0)
        weight = tl.load(weight_ptr + columns, mask=mask, other=0.0)
        bias = tl.load(bias_ptr + columns, mask=mask, other=0.0)
        tl.store(out_ptr + start + columns, (x - mean) * scale * weight + bias, mask=mask)


@triton.jit
def dropout_kernel(out_ptr, in_ptr, n, p, seed, BLOCK: tl.constexpr):
    """Elements kept with probability 1 - p."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(in_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, tl.where(tl.rand(seed, offsets) > p, x / (1 - p), 0.0), mask=mask)


@triton.jit
def count_kernel(counts_ptr, in_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """How many elements fall into each bin, counted with atomics."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(in_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(counts_ptr + x % BINS, 1, mask=mask)


@attrs.frozen
class Case:
    """A launch: its arrays, of which ``out`` comes out, and how it is launched on them as tensors."""

    arrays: Callable[[], dict[str, Any]]
    launch: Callable[..., Any]


def _numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


CASES = {
    "add": Case(
        lambda: {"x": _numbers(1 << 20), "y": _numbers(1 << 20, seed=1), "out": np.zeros(1 << 20, np.float32)},
        lambda x, y, out: add_kernel[(8192,)](x, y, out, 1 << 20, BLOCK=128),
    ),
    "matmul": Case(
        lambda: {"a": _numbers(512, 512), "b": _numbers(512, 512, seed=1), "out": np.zeros((512, 512), np.float32)},
        lambda a, b, out: matmul_kernel[(32, 32)](a, b, out, 512, 512, 512, BM=16, BN=16, BK=32),
    ),
    "softmax": Case(
        lambda: {"x": _numbers(4096, 781), "out": np.zeros((4096, 781), np.float32)},
        lambda x, out: softmax_kernel[(4096,)](out, x, 781, 781, BLOCK=1024),
    ),
    "layer_norm": Case(
        lambda: {
            "x": _numbers(2048, 1024),
            "w": _numbers(1024, seed=1),
            "b": _numbers(1024, seed=2),
            "out": np.zeros((2048, 1024), np.float32),
        },
        lambda x, w, b, out: layer_norm_kernel[(2048,)](out, x, w, b, 1024, 1e-5, BLOCK=256),
    ),
    "dropout": Case(
        lambda: {"x": _numbers(1 << 20), "out": np.zeros(1 << 20, np.float32)},
        lambda x, out: dropout_kernel[(4096,)](out, x, 1 << 20, 0.25, 123, BLOCK=256),
    ),
    "atomics": Case(
        lambda: {
            "x": np.random.default_rng(0).integers(0, 1 << 20, 1 << 18).astype(np.int32),
            "out": np.zeros(512, np.int32),
        },
        lambda x, out: count_kernel[(2048,)](out, x, 1 << 18, BINS=512, BLOCK=128),
    ),
}


def main(side: str, result: str, times: int, names: Sequence[str]) -> None:
    """Run the named launches and write their seconds (the least of ``times``) and what came out; for kernscope also
    the seconds of a launch with its findings and its schedules."""
    found: dict[str, Any] = {}
    for name in names:
        case = CASES[name]
        seconds, whole = [], []
        for _ in range(times):
            arrays = case.arrays()
            given = arrays if torch is None else {key: torch.from_numpy(array) for key, array in arrays.items()}
            began = time.process_time()
            case.launch(**given)
            seconds.append(time.process_time() - began)
            if SESSION is not None:
                launch = SESSION.launches[-1]
                launch.lint()
                _ = launch.makespan_ps
                whole.append(time.process_time() - began)
                SESSION.forget()
        found[f"{name}.seconds"], found[f"{name}.out"] = min(seconds), arrays["out"]
        found[f"{name}.whole"] = min(whole, default=0.0)
    np.savez(result, **found)


if __name__ == "__main__":
    with ENTERED:
        main(SIDE, sys.argv[2], int(sys.argv[3]), sys.argv[4:])
