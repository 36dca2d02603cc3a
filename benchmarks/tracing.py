"""Tracing and edges: beside other tracers of Python, and beside themselves at growing sizes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Row, installed, interleaved, seconds

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel

__all__ = ["rows"]


def _ours(keys: int) -> ks.Graph:
    return ks.trace(flash_attention.launch("2k"), k=ks.hbm((keys, 128), "f16"), v=ks.hbm((keys, 128), "f16"))


def _unrolled(backend: Any, q: Any, k: Any, v: Any, tile: int = 128) -> Any:
    """The same loop over tiles, as the array library's tracer sees it."""
    m, total, acc = q[:, :1] * 0 - 1e30, q[:, :1] * 0, q * 0
    for key in range(0, k.shape[0], tile):
        s = (q @ k[key : key + tile].T) * 0.088
        m_new = backend.maximum(m, backend.amax(s, 1)[:, None])
        p, alpha = backend.exp(s - m_new), backend.exp(m - m_new)
        total = total * alpha + backend.sum(p, 1)[:, None]
        acc = acc * alpha + p @ v[key : key + tile]
        m = m_new
    return acc / total


def _jax(keys: int) -> Callable[[], int]:
    jax: Any = importlib.import_module("jax")
    jnp = importlib.import_module("jax.numpy")
    shapes = [np.zeros((128, 128), np.float32), *(np.zeros((keys, 128), np.float32) for _ in range(2))]
    return lambda: len(jax.make_jaxpr(lambda q, k, v: _unrolled(jnp, q, k, v))(*shapes).jaxpr.eqns)


def _torch(keys: int) -> Callable[[], int]:
    torch: Any = importlib.import_module("torch")
    make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
    shapes = [torch.zeros(128, 128), torch.zeros(keys, 128), torch.zeros(keys, 128)]
    return lambda: len(make_fx(lambda q, k, v: _unrolled(torch, q, k, v))(*shapes).graph.nodes)


def rows(quick: bool) -> list[Row]:
    """Operations per second beside jax and torch.fx; edges and whole traces at growing sizes."""
    keys = 128 * (64 if quick else 256)
    nodes = len(_ours(keys))
    ours = min(interleaved([lambda: _ours(keys)], 3))
    found = [Row(f"tracing, {nodes:,} nodes", f"{nodes / ours:,.0f} nodes/s", "")]
    for name, module, make in (("jax.make_jaxpr", "jax", _jax), ("torch.fx", "torch", _torch)):
        if not installed(module):
            found.append(Row("  per operation", "-", f"{name}: {module} is not installed"))
            continue
        trace = make(keys)
        count = trace()
        theirs = seconds(trace)
        found.append(Row("  per operation", f"{theirs / count / (ours / nodes):.0f} x", f"{name}, the same loop"))
    kernel = gqa_attention_prefill_long_kernel
    for keys in (8192, 32768) if quick else (8192, 32768, 131072, 360448):
        graphs: list[ks.Graph] = []
        arguments = {name: ks.hbm((keys, 128), "f16") for name in ("k", "v")}

        def trace(arguments: dict[str, Any] = arguments, graphs: list[ks.Graph] = graphs) -> None:
            graphs[:] = [ks.trace(kernel.launch("8k"), max_nodes=2_000_000, **arguments)]

        traced = seconds(trace)
        found_edges = seconds(lambda graphs=graphs: len(graphs[0].edges))
        scheduled = seconds(lambda graphs=graphs: ks.schedule(graphs[0], effort="fast"))
        n = len(graphs[0])
        found.append(
            Row(
                f"prefill_long of {keys:,} keys: {n:,} nodes",
                f"{1e6 * traced / n:.1f} us/node traced",
                f"edges {1e6 * found_edges / n:.1f}, scheduled {1e6 * scheduled / n:.1f} us/node",
            )
        )
    return found
