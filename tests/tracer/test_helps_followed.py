"""What an error's help tells to write is what works: each mistake beside the line that the help gives for it."""

# ruff: noqa: E501  (a mistake a line)

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks

X = np.arange(32, dtype=np.float32).reshape(4, 8) / 8
SQUARE = X @ X.T

#: (the mistake, what its help says, the same done so, what `o` then holds; None: any). `x` is f32 (4, 8), `i` i32.
MISTAKES: list[tuple[str, str, str, Any]] = [
    ("tl.load(x) @ tl.trans(tl.load(x))", "write tl.dot(a, b)", "h = tl.dot(tl.load(x), tl.trans(tl.load(x)))", SQUARE),
    ("h = tl.load(x); h[0, :] = h[1, :]", "tl.copy_to(handle[...], value)", "h = tl.load(x); tl.copy_to(h[0, :], h[1, :])", X[[1, 1, 2, 3]]),
    ("x[0:4, :] = tl.load(x)", "tl.store(t[a:b, :], handle)", "h = tl.load(x); tl.store(x[0:4, :], h)", X),
    ("h = divmod(tl.load(x), 2.0)[0]", "write a // b and a % b", "h = tl.load(x) // 2.0", X // 2),
    ("h = round(tl.load(x))", "write tl.round(h)", "h = tl.round(tl.load(x))", np.round(X)),
    ("h = tl.load(x); h = (h > 1.0) + (h > 2.0)", "h.to(tl.int32)", "h = tl.load(x); h = (h > 1.0).to(tl.int32) + (h > 2.0).to(tl.int32)", (X > 1).astype(int) + (X > 2)),
    ("h = tl.load(x); h = tl.dot(h > 1.0, tl.trans(h > 1.0))", "h.to(tl.int8)", "h = tl.load(x); h = tl.dot((h > 1.0).to(tl.int8), tl.trans(h > 1.0).to(tl.int8))", (X > 1).astype(int) @ (X > 1).T.astype(int)),
    ("h = tl.load(x); h = tl.dot(h, h)", "tl.trans swaps", "h = tl.load(x); h = tl.dot(h, tl.trans(h))", SQUARE),
    ("h = tl.load(x); h = tl.dot(h.to(tl.float16), tl.trans(h))", "h.to(tl.float16)", "h = tl.load(x); h = tl.dot(h.to(tl.float16), tl.trans(h).to(tl.float16))", SQUARE),
    ("h = tl.load(x); h = tl.where(h, h, 0.0)", "tl.where(x > 0, a, b)", "h = tl.load(x); h = tl.where(h > 0, h, 0.0)", X),
    ("h = tl.load(x) if x else None", "if mask is not None", "h = tl.load(x) if x is not None else None", X),
    ("h = tl.load(x[0, None])", "load it, then h[:, None]", "h = tl.load(x[0])[:, None]", X[0][:, None]),
    ("h = sum(tl.load(row) for row in x)", "loop over range(t.shape[0]) and load t[i]", "h = sum(tl.load(x[i]) for i in range(x.shape[0]))", X.sum(axis=0)),
    ("h = tl.reshape(tl.trans(tl.load(x)), (32,))", "dst = tl.empty(h.shape, h.dtype); tl.copy_to(dst, h)", "h = tl.trans(tl.load(x)); dst = tl.empty(h.shape, h.dtype); tl.copy_to(dst, h); h = tl.reshape(dst, (32,))", X.T.reshape(32)),
    ("h = tl.load(x + 8)", "tl.load(t + n, (rows, cols))", "h = tl.load(x + 8, (2, 8))", X[1:3]),
    ("h = tl.load(x + 8, (2, 8), pad=0.0)", "slice the tensor: t[a:b, :]", "h = tl.load(x[1:3, :], pad=0.0)", X[1:3]),
    ("h = tl.load(x) & 1", "h.to(tl.int32)", "h = tl.load(x).to(tl.int32) & 1", X.astype(int) & 1),
    ("h = tl.load(x[2:6, :])", "load with pad=", "h = tl.load(x[2:6, :], pad=0.0)", np.concatenate([X[2:], 0 * X[:2]])),
    ("h = tl.load(x); tl.store(x[2:6, :], h)", "store with clip=True", "h = tl.load(x); tl.store(x[2:6, :], h, clip=True)", X),
    ("h = tl.load(x).to(tl.int32); tl.store(x, h)", '.to("f32")', 'h = tl.load(x).to(tl.int32); tl.store(x, h.to("f32"))', None),
    ("h = tl.load(i); tl.load(x, out=h)", "convert", "h = tl.load(i).to(tl.float32); tl.load(x, out=h)", X),
    ("h = tl.load(i, dtype='f32')", "h.to(...)", "h = tl.load(i).to('f32')", np.ones((4, 8))),
    ("h = tl.load(i[0:4, 0:4]) + tl.load(x)", "must be equal or 1", "h = tl.load(i[0:4, 0:1]) + tl.load(x)", X + 1),
    ("h = tl.sum(tl.load(x), axis=1) + tl.load(x)", "h[:, None] adds one", "h = tl.sum(tl.load(x), axis=1)[:, None] + tl.load(x)", X + X.sum(axis=1)[:, None]),
    ("h = tl.composite('gemm', tl.ref(x), tl.ref(x))", "trans_b=True takes b as (N, K)", "h = tl.composite('gemm', tl.ref(x), tl.ref(x), trans_b=True)", SQUARE),
    ("h = tl.composite('gemm', tl.ref(x), tl.ref(x), trans_b=True, epilogue='exp')", "it is a list of steps: ['exp']", "h = tl.composite('gemm', tl.ref(x), tl.ref(x), trans_b=True, epilogue=['exp'])", None),
    ("h = tl.load(x)[0:4:2, :]", "only slices of step 1 are views", "h = tl.load(x)[0:4:1, :]", X),
    ("h = tl.load(x[::-1, :])", "tl.flip(h, dim) reverses it", "h = tl.flip(tl.load(x[:, :]), 0)", X[::-1]),
    ("h = tl.load(x[0:-1, :])", "t[-64:], t[:-1]", "h = tl.load(x[:-1, :])", X[:-1]),
    ("h = tl.load(x)[0:9, :]", "keep 0 <= start < stop <= size", "h = tl.load(x)[0:4, :]", X),
    ("h = tl.trans(tl.load(x)[0])", "h[:, None] makes a column of a row", "h = tl.load(x)[0][:, None]", X[0][:, None]),
    ("h = tl.broadcast_to(tl.load(x)[0:1, :], (4, 8)); tl.copy_to(h, tl.load(x))", "write to what it is a view of", "v = tl.load(x)[0:1, :]; tl.copy_to(v, tl.load(x)[1:2, :]); h = tl.broadcast_to(v, (4, 8))", X[[1, 1, 1, 1]]),
    ("h = tl.dot(tl.load(i), tl.trans(tl.load(i)), out_dtype='f32')", "out_dtype can be", "h = tl.dot(tl.load(i), tl.trans(tl.load(i)), out_dtype='i32')", np.full((4, 4), 8)),
    ("h = tl.reshape(tl.load(x))", "tl.reshape(x, (rows, cols))", "h = tl.reshape(tl.load(x), (8, 4))", X.reshape(8, 4)),
]  # fmt: skip


def trace(lines: str, *, store: bool = True, strict: bool = False) -> ks.Graph:
    """A kernel of these lines, whose ``h`` is stored to ``o`` as f32."""
    text = "def kernel(x, i, o):\n" + textwrap.indent(lines, "    ") + "\n"
    space: dict[str, Any] = {"tl": ks.tl}
    exec(text + ("    tl.store(o[0 : h.nbytes // 4], tl.reshape(dense(h), (-1,)))\n" if store else ""), space)
    space["dense"] = lambda h: ks.tl.maximum(h.to(ks.tl.float32), float("-inf"))
    return ks.trace(space["kernel"], X.copy(), np.ones((4, 8), np.int32), ks.hbm((64,), "f32"), strict=strict)


@pytest.mark.parametrize(("mistake", "said", "done", "holds"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_the_help_says_what_works(mistake: str, said: str, done: str, holds: Any) -> None:
    """The mistake's help has the words, and the line made of them traces and gives the numbers that were meant."""
    with pytest.raises(ks.KernscopeError) as caught:
        trace(mistake, store=False)
    assert said in caught.value.help
    graph = trace(done)
    assert ks.lint(graph).ok
    if holds is not None:
        out = ks.run(graph)["o"]
        np.testing.assert_allclose(out[: np.asarray(holds).size], np.asarray(holds).reshape(-1), rtol=1e-3)


def test_an_overflow_is_helped_by_a_scope_in_each_iteration() -> None:
    """With what the help keeps by copy_to."""
    loop = "h = tl.zeros((8,), 'f32')\nfor _ in range(16):\n"
    body = "t = tl.full((256, 256), 1.0, 'f32')\n"
    with pytest.raises(ks.ScratchOverflowError) as caught:
        trace(loop + textwrap.indent(body + "h = h + t[0, 0:8]", "    "))
    assert "with tl.scratch_scope()" in caught.value.help and "tl.copy_to" in caught.value.help
    scoped = "with tl.scratch_scope():\n" + textwrap.indent(body + "tl.copy_to(h, h + t[0, 0:8])", "    ")
    graph = trace(loop + textwrap.indent(scoped, "    "))
    assert ks.run(graph)["o"][:8].tolist() == [16.0] * 8


def test_a_use_after_a_scope_is_helped_by_a_handle_before_it() -> None:
    """As strict tracing says."""
    with pytest.raises(ks.UseAfterScopeError) as caught:
        trace("with tl.scratch_scope():\n    h = tl.load(x)\n", strict=True)
    assert "make it before the scope and tl.copy_to into it" in caught.value.help
    kept = "h = tl.empty((4, 8), 'f32')\nwith tl.scratch_scope():\n    tl.copy_to(h, tl.load(x))"
    assert ks.lint(trace(kept, strict=True)).ok


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ("tile", 'tile.to("f16")'),
        ("tile * 2.0", '(tile * 2.0).to("f16")'),
        ("tl.exp(tile)", 'tl.exp(tile).to("f16")'),
        ("src=tile[0:4, :]", 'tile[0:4, :].to("f16")'),
        ("*[tile]", 'convert what is stored, with .to("f16")'),
    ],
)
def test_a_store_of_another_dtype_names_what_the_author_wrote(tmp_path: Path, stored: str, named: str) -> None:
    """The expression itself, in brackets where a method of it needs them; followed, it stores."""

    def traced(text: str) -> ks.Graph:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        path.write_text(f"def kernel(x, o):\n    tile = tl.load(x)\n    tl.store(o[:, :], {text})\n")
        space: dict[str, Any] = {"tl": ks.tl}
        exec(compile(path.read_text(), str(path), "exec"), space)
        return ks.trace(space["kernel"], ks.hbm((4, 8), "f32"), ks.hbm((4, 8), "f16"))

    with pytest.raises(ks.DTypeError) as caught:
        traced(stored)
    assert caught.value.help.endswith(named)
    if not stored.startswith("*"):
        assert ks.lint(traced(named)).ok
