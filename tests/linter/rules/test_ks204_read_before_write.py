"""KS204: what is read before all of it was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    """f32 tensors of these shapes."""
    return [ks.hbm(shape, "f32") for shape in shapes]


def test_a_read_before_the_write_names_the_write_that_comes_too_late(lint: Lint) -> None:
    """Which line to move, or how to make the handle."""
    kernel = """
        @ks.kernel
        def early(x, o):
            buffer = tl.empty((2, 8), tl.float16)
            tl.load(x[0:1, :], out=buffer[0:1, :])
            tl.store(o[:, :], buffer)
            tl.load(x[1:2, :], out=buffer[1:2, :])
    """
    x, o = ks.hbm((2, 8), "f16"), ks.hbm((2, 8), "f16")
    assert (
        str(lint(kernel, x, o))
        == """\
error[KS204]: `buffer` is read by store before all of it was written
 --> kernel.py:8:5
  |
6 |     buffer = tl.empty((2, 8), tl.float16)
  |              ---------------------------- made here, with nothing in it
...
8 |     tl.store(o[:, :], buffer)
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^ read here
9 |     tl.load(x[1:2, :], out=buffer[1:2, :])
  |     -------------------------------------- written only here, later
  |
  = help: write these bytes before line 8 reads them: line 9 comes too late, or belongs to another part of the handle

early: 1 error"""
    )


def test_an_accumulator_that_was_never_set_is_found(lint: Lint) -> None:
    """`dot(acc=)` reads what it accumulates into; the help does not ask to move a line before itself."""
    kernel = """
        @ks.kernel
        def accumulate(x, o):
            a = tl.load(x[:, :])
            acc = tl.empty((8, 8), tl.float32)
            for _ in range(2):
                tl.dot(a, a, acc=acc)
            tl.store(o[:, :], acc)
    """
    (finding,) = lint(kernel, *tensors((8, 8), (8, 8)))
    assert (finding.code, finding.nodes) == ("KS204", (1,))
    assert finding.help == "fill it first, or make it with `tl.zeros((8, 8), tl.float32)` at line 7"


def test_well_formed_use_of_scopes_is_silent(lint: Lint) -> None:
    """Made outside, written inside; views of outer handles; nested scopes; halves of an empty buffer; prefetching."""
    kernel = """
        @ks.kernel
        def fine(x, o):
            m = tl.zeros((4,), tl.float32)
            buffers = [tl.empty((2, 4), tl.float32) for _ in range(2)]
            tl.load(x[0:2, :], out=buffers[0])
            for j in range(3):
                with tl.scratch_scope():
                    tl.load(x[j : j + 2, :], out=buffers[(j + 1) % 2])
                    row = tl.reshape(buffers[j % 2][1:2, :], (4,))
                    with tl.scratch_scope():
                        tl.copy_to(m, tl.maximum(m, row))
                    half = tl.empty((4, 4), tl.float32)
                    tl.copy_to(half[0:2, :], buffers[0])
                    tl.store(o[0:2, :], half[0:2, :])
            tl.store(o[2, :], m)
    """
    assert str(lint(kernel, *tensors((4, 4), (3, 4)), ignore=["KS303", "KS503"])) == "fine: no findings"
