"""Work grows with the kernel, whatever the shape of its accesses: counted, not timed.

Each case traces a kernel at a size and at twice that size. What is counted are the calls that an analysis makes, those
of numpy included, and the bytes that it takes at its highest: both repeat exactly, and a method that compares all with
all, or cuts everything at every bound, takes four times of one of them.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.timelines.chrome_trace import chrome_trace
from kernscope.ir.dependence.edges import find_edges

Shape = Callable[[int], ks.Graph]
Measure = Callable[[Callable[[ks.Graph], Any], ks.Graph], int]

F32 = tl.float32
BIG = ks.load_machine("ahbm-pe").override({"scratch.bytes": str(1 << 30)})

#: Twice the kernel, and what sorting and growing tables may add; four times is what must be found out.
TWICE = 2.6


def calls_of(work: Callable[[ks.Graph], Any], graph: ks.Graph) -> int:
    """How many calls of functions, Python's and C's, something makes."""
    count = 0

    def tell(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        work(graph)
    finally:
        sys.setprofile(before)
    return count


def bytes_of(work: Callable[[ks.Graph], Any], graph: ks.Graph) -> int:
    """How many bytes something holds at its highest, numpy's arrays included."""
    gc.collect()
    tracemalloc.start()
    try:
        work(graph)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def lint(graph: ks.Graph) -> ks.LintReport:
    """All rules, for the machine that the kernels here are traced for."""
    return ks.lint(graph, machine=BIG)


def rows(n: int) -> ks.Graph:
    """A tile filled row by row."""

    def kernel(x: Any, o: Any) -> None:
        whole = tl.zeros((n, 8), F32)
        for i in range(n):
            with tl.scratch_scope():
                tl.copy_to(whole[i : i + 1], tl.load(x))
        tl.store(o, whole)

    return ks.trace(kernel, ks.hbm((1, 8), "f32"), ks.hbm((n, 8), "f32"), machine=BIG)


def columns(n: int) -> ks.Graph:
    """A tile filled column by column."""

    def kernel(x: Any, o: Any) -> None:
        whole = tl.zeros((8, n), F32)
        for i in range(n):
            with tl.scratch_scope():
                tl.copy_to(whole[:, i : i + 1], tl.load(x))
        tl.store(o, whole)

    return ks.trace(kernel, ks.hbm((8, 1), "f32"), ks.hbm((8, n), "f32"), machine=BIG)


def columns_modified(n: int) -> ks.Graph:
    """Each column of a tile read, changed and written back."""

    def kernel(x: Any, o: Any) -> None:
        whole = tl.zeros((8, n), F32)
        for i in range(n):
            with tl.scratch_scope():
                tl.copy_to(whole[:, i : i + 1], whole[:, i : i + 1] + tl.load(x))
        tl.store(o, whole)

    return ks.trace(kernel, ks.hbm((8, 1), "f32"), ks.hbm((8, n), "f32"), machine=BIG)


def columns_of_fresh_bytes(n: int) -> ks.Graph:
    """In each scope a fresh tile, filled by four column writes of which none is contiguous."""

    def kernel(x: Any, o: Any) -> None:
        column = tl.load(x)
        for _ in range(n):
            with tl.scratch_scope():
                tile = tl.empty((8, 4), F32)
                for c in range(4):
                    tl.copy_to(tile[:, c : c + 1], column)
                tl.sum(tile, axis=0)
        tl.store(o, column)

    return ks.trace(kernel, ks.hbm((8, 1), "f32"), ks.hbm((8, 1), "f32"), machine=BIG)


def columns_of_reused_bytes(n: int) -> ks.Graph:
    """Three tiles, one after the other in the same bytes, each written whole and then column by column."""

    def kernel(x: Any, o: Any) -> None:
        column = tl.load(x)
        for _ in range(3):
            with tl.scratch_scope():
                whole = tl.zeros((8, n // 3), F32)
                for i in range(n // 3):
                    tl.copy_to(whole[:, i : i + 1], column)
                tl.store(o, whole)

    return ks.trace(kernel, ks.hbm((8, 1), "f32"), ks.hbm((8, n // 3), "f32"), machine=BIG)


def sub_tiles(n: int) -> ks.Graph:
    """A tile filled by sub-tiles of a grid sixteen wide."""

    def kernel(x: Any, o: Any) -> None:
        whole = tl.zeros((2 * (n // 16), 32), F32)
        for i in range(n // 16):
            for j in range(16):
                with tl.scratch_scope():
                    tl.copy_to(whole[2 * i : 2 * i + 2, 2 * j : 2 * j + 2], tl.load(x))
        tl.store(o, whole)

    return ks.trace(kernel, ks.hbm((2, 2), "f32"), ks.hbm((2 * (n // 16), 32), "f32"), machine=BIG)


def windows(n: int) -> ks.Graph:
    """Overlapping windows of four columns, read from one tile and written to another."""

    def kernel(x: Any, o: Any) -> None:
        source, target = tl.zeros((4, n + 4), F32), tl.zeros((4, n + 4), F32)
        for i in range(n):
            tl.copy_to(target[:, i : i + 4], source[:, i : i + 4])
        tl.store(o, target[:, 0:1])

    return ks.trace(kernel, ks.hbm((4, 1), "f32"), ks.hbm((4, 1), "f32"), machine=BIG)


def fan_out(n: int) -> ks.Graph:
    """A tile read by many, then overwritten and read by as many again."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x)
        for _ in range(2):
            for _ in range(n // 2):
                with tl.scratch_scope():
                    tl.exp(tile)
            tl.load(x, out=tile)
        tl.store(o, tile)

    return ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"), machine=BIG)


def read_modify_write(n: int) -> ks.Graph:
    """One tile changed in place again and again."""

    def kernel(x: Any, o: Any) -> None:
        total = tl.load(x)
        for _ in range(n):
            with tl.scratch_scope():
                tl.copy_to(total, total + 1.0)
        tl.store(o, total)

    return ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"), machine=BIG)


def tiles_of_hbm(n: int) -> ks.Graph:
    """Two ranks storing alternate rows of one tensor."""

    def kernel(x: Any, o: Any) -> None:
        me, row = tl.program_id(0), tl.load(x)
        for i in range(n // 2):
            tl.store(o[2 * i + me : 2 * i + me + 1], row)

    return ks.trace(kernel, ks.hbm((1, 8), "f32"), ks.hbm((n, 8), "f32"), ranks=2, machine=BIG)


SHAPES = [
    rows,
    columns,
    columns_modified,
    columns_of_fresh_bytes,
    columns_of_reused_bytes,
    sub_tiles,
    windows,
    fan_out,
    read_modify_write,
    tiles_of_hbm,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("measure", [calls_of, bytes_of])
def test_edges_grow_with_the_kernel(shape: Shape, measure: Measure) -> None:
    """Twice the accesses take twice the work to find their edges, rows or columns or anything else."""
    assert measure(find_edges, shape(1600)) <= TWICE * measure(find_edges, shape(800))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("measure", [calls_of, bytes_of])
def test_linting_grows_with_the_kernel(shape: Shape, measure: Measure) -> None:
    """As above, for all rules together (the edges are there already)."""
    small, large = shape(800), shape(1600)
    for graph in (small, large):
        lint(graph)  # finds its edges, reads the source file, and whatever else is done once
    assert measure(lint, large) <= TWICE * measure(lint, small)


def test_linting_columns_is_as_much_work_as_linting_rows() -> None:
    """A tile filled column by column takes no more than twice the work of one filled row by row, edges included."""
    lint(rows(800))
    for measure in (calls_of, bytes_of):
        assert measure(lint, columns(1600)) <= 2 * measure(lint, rows(1600))


@pytest.mark.parametrize("measure", [calls_of, bytes_of])
def test_linting_grows_with_the_depth_of_calls(measure: Measure) -> None:
    """Each of n nested scopes has a finding of its own, at the end of a stack of n calls."""

    def nested(n: int) -> ks.Graph:
        def kernel(x: Any, o: Any) -> None:
            tile = tl.load(x)

            def inner(depth: int) -> None:
                with tl.scratch_scope():
                    tl.exp(tile)
                    if depth < n:
                        inner(depth + 1)

            inner(0)
            tl.store(o, tile)

        return ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"), machine=BIG)

    small, large = nested(100), nested(200)
    assert len(lint(large)) == len(lint(small)) + 100
    assert measure(lint, large) <= TWICE * measure(lint, small)


@pytest.mark.parametrize("measure", [calls_of, bytes_of])
def test_linting_grows_with_the_source(measure: Measure, tmp_path: Path) -> None:
    """Each of n lines has a finding of its own."""

    def unrolled(n: int) -> ks.Graph:
        path = tmp_path / f"unrolled_{n}.py"
        lines = [f"    a{i} = tile + {i}.0" for i in range(n)]
        source = "\n".join(["def kernel(x, o):", "    tile = tl.load(x)", *lines, "    tl.store(o, tile)", ""])
        path.write_text(source, encoding="utf-8")
        names: dict[str, Any] = {"tl": tl}
        exec(compile(source, str(path), "exec"), names)
        return ks.trace(names["kernel"], ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"), machine=BIG)

    small, large = unrolled(150), unrolled(300)
    assert len(lint(large).of("KS302")) == len(lint(small).of("KS302")) + 150 == 300
    assert measure(lint, large) <= TWICE * measure(lint, small)


def test_chrome_trace_events_are_never_held_whole() -> None:
    """They come in pieces: twice the kernel makes more of them, not longer ones."""
    small, large = ([len(piece) for piece in chrome_trace([ks.schedule(rows(n))])] for n in (3000, 6000))
    assert len(large) > len(small)
    assert max(large) <= 1.1 * max(small)
