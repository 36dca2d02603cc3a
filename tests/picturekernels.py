"""Kernels whose pictures are tested, and names that try to break a picture."""

from __future__ import annotations

from typing import Any

import attrs

import kernscope as ks
from kernscope import tl

__all__ = ["HOSTILE", "messages", "nested", "renamed", "straight", "sweep", "unequal", "unscoped"]

#: Names that mean something in DOT, SVG, HTML, Python's templates or a terminal.
HOSTILE = (
    "quote \" and '",
    "a<b>&c",
    "back\\slash",
    "trailing\\",
    "std::vector<int>::push",
    "line\nbreak\tand tab",
    "</script><script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    "&lt;already &amp; escaped&#33;",
    "{record|field}",
    "<b>html-like</b>",
    "\\N \\G \\l \\\\",
    "$title ${x} %s {0}",
    "naïve 漢字 ü",
    "\x00\x1b[31m",
    "lone \ud800 surrogate",
    "--> ]]> <!--",
    "long " * 40,
)


@ks.kernel
def _sweep(x: ks.HbmTensor, o: ks.HbmTensor, *, tiles: int) -> None:
    total = tl.zeros((8, 8), tl.float32)
    for j in range(tiles):
        with tl.scratch_scope("tile"):
            a = tl.load(x[j * 8 : (j + 1) * 8, :])
            tl.copy_to(total, total + tl.exp(tl.dot(a, a)))
    tl.store(o[:, :], total)


def sweep(tiles: int) -> ks.Graph:
    """One scope an iteration, all of them alike: 2 + 7 * tiles nodes, 2 * tiles of them markers."""
    return ks.trace(_sweep, ks.hbm((8 * tiles, 8), "f32"), ks.hbm((8, 8), "f32"), tiles=tiles)


@ks.kernel
def _nested(x: ks.HbmTensor, o: ks.HbmTensor, *, rows: int, cols: int) -> None:
    for i in range(rows):
        with tl.scratch_scope("row"):
            total = tl.zeros((4, 4), tl.float32)
            for j in range(cols):
                with tl.scratch_scope("col"):
                    tl.copy_to(total, total + tl.load(x[i * 4 : i * 4 + 4, j * 4 : j * 4 + 4]))
            tl.store(o[i * 4 : i * 4 + 4, :], total)


def nested(rows: int, cols: int) -> ks.Graph:
    """Scopes in scopes, all alike."""
    return ks.trace(_nested, ks.hbm((4 * rows, 4 * cols), "f32"), ks.hbm((4 * rows, 4), "f32"), rows=rows, cols=cols)


@ks.kernel
def _unequal(x: ks.HbmTensor, o: ks.HbmTensor, *, widths: tuple[int, ...]) -> None:
    for width in widths:
        with tl.scratch_scope("piece"):
            tl.store(o[:, :width], tl.exp(tl.load(x[:, :width])))


def unequal(*widths: int) -> ks.Graph:
    """Scopes from one line whose shapes differ where the widths do."""
    return ks.trace(_unequal, ks.hbm((4, 64), "f32"), ks.hbm((4, 64), "f32"), widths=widths)


@ks.kernel
def _messages(x: ks.HbmTensor, o: ks.HbmTensor, *, steps: int) -> None:
    rank = tl.program_id(0)
    mine = tl.load(x[rank * 8 : rank * 8 + 8, :])
    for _ in range(steps):
        with tl.scratch_scope("step"):
            tl.send("next", mine)
            tl.copy_to(mine, tl.exp(tl.recv("prev", (8, 8), tl.float32)))
    tl.store(o[rank * 8 : rank * 8 + 8, :], mine)


def messages(ranks: int = 3, steps: int = 4) -> ks.Graph:
    """Every rank hands a tile round a ring: message, credit and fifo edges."""
    shape = (8 * ranks, 8)
    return ks.trace(_messages, ks.hbm(shape, "f32"), ks.hbm(shape, "f32"), steps=steps, ranks=ranks)


@ks.kernel
def _unscoped(x: ks.HbmTensor, o: ks.HbmTensor, *, rows: int, steps: int) -> None:
    for i in range(rows):
        value = tl.load(x[i : i + 1, :])
        for _ in range(steps):
            value = tl.exp(value)
        tl.store(o[i : i + 1, :], value)


def unscoped(rows: int, steps: int) -> ks.Graph:
    """A loop around a loop, without any scope."""
    return ks.trace(_unscoped, ks.hbm((rows, 4), "f32"), ks.hbm((rows, 4), "f32"), rows=rows, steps=steps)


def straight(length: int) -> ks.Graph:
    """A kernel without scopes in which nothing repeats: every operation has a line of its own."""
    lines = [
        "def straight(o):",
        " x = tl.zeros((4, 4), tl.float32)",
        *[" x = tl.exp(x)"] * length,
        " tl.store(o[:, :], x)",
    ]
    names: dict[str, Any] = {"tl": tl}
    exec(compile("\n".join(lines), "straight.py", "exec"), names)
    return ks.trace(names["straight"], ks.hbm((4, 4), "f32"))


def renamed(graph: ks.Graph, name: str) -> ks.Graph:
    """The same graph with every name in it (kernel, tensors, scopes, files, functions) replaced by one; but for the
    first, tensors have a number behind it, as no two can have the same name."""
    tensors = list(graph.tensors)[1:]
    names = (f"{name}{tensors.index(known)}" if known in tensors else name if known else "" for known in graph.names)
    return attrs.evolve(graph, kernel=name, names=tuple(names))
