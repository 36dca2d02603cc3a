"""Saved graphs changed at random and sealed again: the checksum is right, the contents need not be."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from tritonkernels import launched
from tritonkernels import tl as triton_language

import kernscope as ks
from kernscope import tl
from kernscope.face.triton.launch_facts import launch_facts
from kernscope.ir.forms.saved import TABLES

__all__ = ["mutations", "originals", "sealed", "split"]

_NUMBERS: list[Any] = [0, 1, -1, 2, 3, 7, 255, 1 << 15, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 47, 1 << 48, 1 << 63]
_NUMBERS += [-(1 << 63), 10**30, 1.5, float("inf"), float("nan"), -0.0]
_OTHERS: list[Any] = ["", "x", "load", "float32", "\x1b]0;t\x07", "\n::error::x", "/dev/zero", "\ud800", "a" * 5000]
_OTHERS += [None, True, False, [], [[]], [[0, 1]], [[0, "x"]], {}, {"float": "0x1p2000"}, {"float": "nan"}]
_OTHERS += [{"dtype": "int32"}, {"dtype": "no"}, [0], [1, 2, 3], [[0, {"float": "0x1p0"}]], [1] * 70]


def split(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A file's header and columns."""
    start = data.index(b"\n") + 1
    size = int.from_bytes(data[start : start + 8], "little")
    return json.loads(data[start + 8 : start + 8 + size]), data[start + 8 + size : -32]


def sealed(header: Any, columns: bytes) -> bytes:
    """A file of these, with a checksum that holds."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode("utf-8", "surrogatepass")
    body = b"kernscope-graph\n" + len(text).to_bytes(8, "little") + text + columns
    return body + hashlib.sha256(body).digest()


@ks.kernel
def _sums(x: Any, o: Any) -> None:
    total = tl.zeros((8,), tl.float32)
    for j in range(3):
        with tl.scratch_scope("step"):
            part = tl.load(x[j * 4 : j * 4 + 4, :], pad=0.0)
            tl.copy_to(total, total + tl.sum(tl.where(part > 0.5, part * 2.0, -part), axis=0))
    tl.store(o[:], total)


@ks.kernel
def _ring(x: Any, o: Any) -> None:
    rank = tl.program_id(0)
    tl.send("next", tl.load(x[rank]))
    future = tl.recv_async("prev", (8,), "f32")
    tl.store(o[rank], tl.exp(tl.wait(future)))


@ks.kernel
def _products(a: Any, b: Any, o: Any) -> None:
    with tl.scratch_scope():
        c = tl.composite("gemm", tl.ref(a), tl.ref(b), tile=(8, 8, 8), epilogue=["exp", ("mul", 0.5)])
        tl.store(o[:, :], c)
    tl.store(o[0:8, 0:8], tl.dot(tl.load(a[0:8, 0:8]), tl.trans(tl.load(b[0:8, 0:8]))), clip=True)


@ks.kernel
def _integers(i: Any, o: Any) -> None:
    h = tl.load(i + 4, (2, 8))
    for _ in range(3):
        with tl.scratch_scope():
            h2 = tl.load(i[0:2, :])
            tl.store(o[0:2, :], tl.maximum(h, h2 & 7).to("f16"))


def _racing(x_ptr: Any, o_ptr: Any, n: Any, N: Any) -> None:
    i = triton_language.program_id(0) * (N - 1) + triton_language.arange(0, N)
    triton_language.store(o_ptr + i, triton_language.load(x_ptr + i, mask=i < n))


def _of_launch() -> ks.Graph:
    """The graph of a program of a Triton launch, with what its data told: three kinds of facts."""
    out = np.zeros(20, np.float32)
    made = launched(_racing, 3, np.ones(20, np.float32), out, 18, N=8)
    facts = launch_facts(made)
    assert {fact.kind for fact in facts.facts} == {"race", "outside", "undefined"}
    return attrs.evolve(made.graph(0), facts=facts)


@cache
def originals(folder: Path) -> tuple[bytes, ...]:
    """Files of small graphs that have, together, all that a graph can have."""
    h = ks.hbm
    mesh: Any = ks.load_machine("ahbm-mesh")
    summed = ks.trace(_sums, h((10, 8), "f32"), h((8,), "f32"))
    graphs = [
        summed,
        ks.trace(_ring, h((4, 8), "f32"), h((4, 8), "f32"), ranks=4),
        ks.trace(_products, h((16, 16), "f16"), h((16, 16), "f16"), h((16, 16), "f32"), machine=mesh, ranks=1),
        attrs.evolve(summed, branches=ks.branches(_sums, h((10, 8), "f32"), h((8,), "f32"))),
        _of_launch(),
        ks.rebuffer(ks.trace(_integers, h((4, 8), "i32"), h((4, 8), "f16")), 2),
    ]
    files = []
    for number, graph in enumerate(graphs):
        path = folder / f"{number}.ksg"
        graph.save(path)
        files.append(path.read_bytes())
    return tuple(files)


def mutations(folder: Path, count: int, seed: int) -> Iterator[bytes]:
    """Files with one to three changes each, of the header or of the columns."""
    draw = random.Random(seed)
    files = [split(data) for data in originals(folder)]
    for _ in range(count):
        header, columns = draw.choice(files)
        header = json.loads(json.dumps(header))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            kind = draw.random()
            if kind < 0.5:
                columns = _changed_column(draw, header, columns)
            elif kind < 0.95:
                _change_header(draw, header)
            else:
                cut = draw.randrange(len(columns) + 1)
                columns = (
                    columns[:cut] + draw.randbytes(draw.choice((0, 1, 8))) + columns[cut + draw.choice((0, 1, 8)) :]
                )
        text = json.dumps(header).encode()
        if draw.random() < 0.03:
            place = draw.randrange(len(text))
            text = (
                text[:place] + draw.choice((b"", b"[" * 20_000, b"\xff", b'"', b"9" * 6000, b"{")) + text[place + 1 :]
            )
        yield sealed(text, columns)


def _change_header(draw: random.Random, header: Any) -> None:
    """Change one value somewhere in the header; sections are as likely as each other, whatever their size."""
    holder: Any = header
    key: Any = draw.choice(list(holder))
    while isinstance(holder[key], dict | list) and holder[key] and draw.random() < 0.85:
        holder = holder[key]
        key = draw.choice(list(holder)) if isinstance(holder, dict) else draw.randrange(len(holder))
    what = draw.random()
    if what < 0.1:
        del holder[key]
    elif what < 0.15 and isinstance(holder, list):
        holder.insert(key, holder[draw.randrange(len(holder))])
    elif what < 0.3 and isinstance(holder, list):
        holder[key] = holder[draw.randrange(len(holder))]
    elif what < 0.4 and isinstance(holder, dict):
        holder[draw.choice(["scalars", "shape", "value", "extra", "axis"])] = draw.choice(_OTHERS + _NUMBERS)
    elif isinstance(holder[key], int) and what < 0.7:
        holder[key] += draw.choice((-1, 1, 2, 16))
    else:
        holder[key] = draw.choice(_NUMBERS if what < 0.75 else _OTHERS)


def _changed_column(draw: random.Random, header: Any, columns: bytes) -> bytes:
    """One value of one column becomes another one: a neighbour's, one beside it, or one at an end of its type."""
    at, table = 0, draw.choice(list(TABLES))
    for name, kind in TABLES.items():
        rows = header["rows"].get(name, 0) if isinstance(header.get("rows"), dict) else 0
        rows = rows if isinstance(rows, int) and 0 < rows < 10_000 else 0
        column = draw.choice(list(kind.dtypes)) if name == table else ""
        for each, dtype in kind.dtypes.items():
            size = rows * np.dtype(dtype).itemsize
            if each == column and rows and at + size <= len(columns):
                values = np.frombuffer(columns, dtype=dtype, count=rows, offset=at).copy()
                row = draw.randrange(rows)
                ends = np.iinfo(values.dtype)
                near = int(values[row]) + draw.choice((-1, 1, 2, 16))
                choices = [int(draw.choice(values)), near, 0, ends.min, ends.max, -1, 1, int(values.max()) + 1]
                values[row] = min(max(draw.choice(choices), int(ends.min)), int(ends.max))
                return columns[:at] + values.tobytes() + columns[at + size :]
            at += size
    return columns
