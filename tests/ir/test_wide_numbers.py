"""Numbers of 64 bits through a whole kernel: traced, saved, loaded, executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

WIDE = {"f64": np.float64, "i64": np.int64, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


@pytest.mark.parametrize("name", WIDE)
def test_a_kernel_on_wide_numbers_is_exact_and_survives_saving(name: str, tmp_path: Path) -> None:
    """Products, sums, choices and constants: numpy's own, bit for bit; the same from a file."""
    twin = WIDE[name]
    top: Any = np.pi * 1e200 if name == "f64" else int(np.iinfo(twin).max)
    x = (np.arange(1, 33).reshape(4, 8) * (top / 40 if name == "f64" else top // 40)).astype(twin)

    def kernel(x: Any, o: Any, s: Any, d: Any) -> None:
        h = tl.load(x[:, :])
        tl.store(o, tl.where(h > top / 2 if name == "f64" else h > top // 2, h, top) - tl.full((4, 8), 3, name))
        tl.store(s, tl.sum(h, axis=1).to(name))
        tl.store(d, tl.dot(h, h.T).to(name))

    outputs = {"o": ks.hbm((4, 8), name), "s": ks.hbm((4,), name), "d": ks.hbm((4, 4), name)}
    graph = ks.trace(kernel, x, **outputs)
    graph.save(tmp_path / "graph.ks")
    with np.errstate(all="ignore"):
        wanted = {
            "o": np.where(x > (top / 2 if name == "f64" else top // 2), x, twin(top)) - twin(3),
            "s": x.sum(axis=1, dtype=np.int32 if name == "u16" else twin).astype(twin),
            "d": (x @ x.T if name != "u16" else x.astype(np.int32) @ x.T.astype(np.int32)).astype(twin),
        }
    for made in (graph, ks.load(tmp_path / "graph.ks")):
        found = ks.run(made, {"x": x})
        for output, value in wanted.items():
            np.testing.assert_array_equal(found[output], value)
            assert found[output].dtype == twin


@pytest.mark.parametrize(("dtype", "value"), [("f32", 2**100), ("f64", 2**1000), ("u64", 2**64 - 1), ("i64", -(2**63))])
def test_a_kernels_own_numbers_are_saved_however_large(dtype: str, value: int, tmp_path: Path) -> None:
    """As operands and as what a tile is filled with: what could be traced can be loaded."""

    def kernel(o: Any) -> None:
        tl.store(o, tl.maximum(tl.full((4,), value, dtype), value))

    graph = ks.trace(kernel, ks.hbm((4,), dtype))
    graph.save(tmp_path / "graph.ks")
    again = ks.load(tmp_path / "graph.ks")
    assert again.attributes == graph.attributes
    np.testing.assert_array_equal(ks.run(again)["o"], ks.run(graph)["o"])


def test_products_run_at_the_rate_of_their_dtype() -> None:
    """A machine may say how fast it multiplies each of them."""

    def kernel(x: Any, o: Any) -> None:
        h = tl.load(x[:, :])
        tl.store(o, tl.dot(h, h))

    def gemm_ps(dtype: str, rate: str) -> int:
        machine = ks.load_machine("ahbm-pe").override({"gemm.startup_cycles": "0", f"gemm.rate.{dtype}": rate})
        graph = ks.trace(kernel, ks.hbm((64, 64), dtype), ks.hbm((64, 64), dtype), machine=machine)
        times = ks.schedule(graph, machine=machine, policy="list")
        (dot,) = [node.id for node in graph if node.op == "dot"]
        return int(times.end_ps[dot] - times.start_ps[dot])

    assert gemm_ps("f64", "0.25") == 8 * gemm_ps("f64", "2")
    assert gemm_ps("i64", "0.5") == 2 * gemm_ps("i64", "1")
