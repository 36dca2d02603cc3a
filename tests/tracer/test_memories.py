"""Ranks with several memories of their own: each has a cursor, a budget and bytes that no other shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.analysis.analysis import Analysis
from kernscope.backends.execution.execute import execute
from kernscope.ir.dtypes import float32
from kernscope.ir.layout import Layout
from kernscope.ir.memories import Memory
from kernscope.ir.target import Target
from kernscope.ir.verifier.verify import verify
from kernscope.linter import lint_graph
from kernscope.linter.analyses.scopes import find_unscoped_loops
from kernscope.memory.liveness import liveness
from kernscope.tracer.recording.current import current
from kernscope.tracer.trace import record_kernel

TARGET = Target(
    memories=(Memory("hbm", is_global=True), Memory("sbuf", 1 << 16, 32), Memory("psum", 1024, 64)), results="sbuf"
)
PSUM = 2


def in_psum(*shape: int) -> Any:
    """Fresh bytes in the second memory."""
    return current().allocate(Layout.dense(shape, float32), memory=PSUM)


def traced(kernel: Callable[..., Any], *args: Any, on_overflow: str = "raise", ranks: int = 1) -> ks.Graph:
    graph = record_kernel(kernel, args, {}, target=TARGET, machine="", ranks=ranks, on_overflow=on_overflow)
    assert verify(graph) == []
    return graph


def doubled(x: Any, o: Any) -> None:
    """o = 2 x, tile by tile, by way of the second memory."""
    for i in range(4):
        with tl.scratch_scope():
            kept = in_psum(16)
            tile = tl.load(x[i * 16 : (i + 1) * 16])
            tl.copy_to(kept, tile + tile)
            tl.store(o[i * 16 : (i + 1) * 16], kept)


def test_each_memory_has_a_cursor_and_scopes_rewind_them_all() -> None:
    """Addresses of one memory do not depend on what the others hold; sizes round up to each memory's alignment."""
    graph = traced(doubled, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"))
    places = {"psum": 2, "sbuf": 1}
    for name, place in places.items():
        rows = np.flatnonzero(graph.storages.memory == place)
        assert set(graph.storages.address[rows].tolist()) == ({0} if name == "psum" else {0, 64})
    live = liveness(graph)
    assert (live.peak_bytes, live.in_memory("psum").peak_bytes) == (128, 64)
    assert [one.memory for one in live.in_every_memory()] == [1, 2]
    assert graph.storage(2).memory.name == "psum"


def test_bytes_of_two_memories_are_never_the_same_bytes() -> None:
    """Equal addresses in two memories make no edge and no conflict; equal ones in one memory do."""
    graph = traced(doubled, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"))
    memory_of = graph.storages.memory
    touched = [
        {int(memory_of[s]) for s in graph.accesses.storage[graph.access_start[n] : graph.access_start[n + 1]]} - {0}
        for n in range(len(graph))
    ]
    recycled = np.flatnonzero(graph.edges.recycled)
    assert len(recycled)
    for edge in recycled.tolist():
        assert touched[int(graph.edges.source[edge])] & touched[int(graph.edges.target[edge])]


@pytest.mark.parametrize("poison", [False, True])
def test_execution_keeps_the_memories_apart(poison: bool) -> None:
    """The numbers are right, and with poison no access is stale and no read finds unwritten bytes."""
    graph = traced(doubled, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"), ranks=2)
    x = np.arange(64, dtype=np.float32)
    ran = execute(graph, {"x": x}, "program", poison)
    assert np.array_equal(ran.outputs["o"], 2 * x)
    assert (ran.stale_reads, ran.stale_writes, ran.unwritten_reads) == ((), (), ())
    assert ran.high_water_bytes == (128, 64) * 2


def test_overflow_and_its_finding_name_the_memory() -> None:
    """The small memory is full while the large one is nearly empty."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[0:16])
        for _ in range(17):
            kept = in_psum(16)
            tl.copy_to(kept, tile)
            tl.store(o[0:16], kept)

    arguments = ks.hbm((64,), "f32"), ks.hbm((64,), "f32")
    with pytest.raises(ks.ScratchOverflowError, match=r"psum overflow on rank 0.*needs 64 B, 1,024 B of 1,024 B"):
        traced(kernel, *arguments)
    graph = traced(kernel, *arguments, on_overflow="record")
    live = liveness(graph)
    assert (live.fits, live.peak_bytes < live.budget_bytes) == (False, True)
    (finding,) = lint_graph(Analysis(graph), select=["KS101"])
    assert finding.message.startswith("psum overflow: 1,088 B needed, the budget is 1,024 B")


def test_a_loop_that_grows_is_told_of_the_memory_that_it_fills() -> None:
    """Each memory by itself: what grows in the one is not counted in the other."""

    def kernel(x: Any, o: Any) -> None:
        for i in range(4):
            kept = in_psum(16)
            tile = tl.load(x[i * 16 : (i + 1) * 16])
            tl.copy_to(kept, tile)
            tl.store(o[i * 16 : (i + 1) * 16], kept)

    graph = traced(kernel, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"))
    live = liveness(graph)
    for memory in ("sbuf", "psum"):
        here = live.in_memory(memory)
        (loop,) = find_unscoped_loops(graph, here, 2)
        assert {graph.storage(row).memory.name for row in loop.rows.tolist()} == {memory}
        assert len(loop.rows) == len(loop.starts) == 4
    assert len(lint_graph(Analysis(graph), select=["KS103"])) == 2


def test_reads_after_a_scope_are_found_in_either_memory() -> None:
    """What took the bytes is looked for in the same memory only."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            lost = in_psum(16)
            tl.copy_to(lost, tl.load(x[0:16]))
        other = tl.load(x[16:32])
        tl.store(o[16:32], other)
        taker = in_psum(16)
        tl.copy_to(taker, other)
        tl.store(o[0:16], lost)
        tl.store(o[32:48], taker)

    graph = traced(kernel, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"))
    (fault,) = liveness(graph).violations
    assert fault.kind == "use_after_scope"
    assert fault.reused_by is not None and graph.storage(fault.reused_by).memory.name == "psum"
    ran = execute(graph, {"x": np.zeros(64, np.float32)}, "program", True)
    assert ran.stale_reads == (fault.node,)


def test_a_handle_and_the_text_name_the_memory_and_the_saved_form_keeps_it(tmp_path: Any) -> None:
    """`handle.space`; an address of another memory than that of results carries its name; saved and loaded, equal."""
    spaces = []

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[0:16])
        kept = in_psum(16)
        spaces.extend((x.space, tile.space, kept.space))
        tl.copy_to(kept, tile)
        tl.store(o[0:16], kept)

    graph = traced(kernel, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"))
    assert spaces == ["hbm", "sbuf", "psum"]
    assert "target scratch=65536 align=32 psum=1024 align=64 topology=ring" in str(graph)
    assert "kept@psum:0x0 f32[16]" in str(graph)
    graph.save(tmp_path / "graph")
    assert ks.load(tmp_path / "graph") == graph


def test_a_memory_that_the_ranks_have_not_is_refused() -> None:
    """By name with the nearest, by place with the names there are; the global memory has no liveness."""
    live = liveness(traced(doubled, ks.hbm((64,), "f32"), ks.hbm((64,), "f32")))
    with pytest.raises(ks.OptionError, match="psum"):
        live.in_memory("psmu")
    with pytest.raises(ks.OptionError, match="sbuf, psum"):
        live.in_memory(0)
