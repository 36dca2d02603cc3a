"""KS202: each golden shows all that a reader needs: made, closed, written."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    """f32 tensors of these shapes."""
    return [ks.hbm(shape, "f32") for shape in shapes]


def test_a_stale_write_names_made_closed_and_written(lint: Lint) -> None:
    """Through a view as well."""
    kernel = """
        @ks.kernel
        def stale(x):
            with tl.scratch_scope():
                a = tl.load(x[:, :])
            tl.load(x[0:1, :], out=a[1:2, :])
    """
    assert (
        str(lint(kernel, *tensors((4, 8)), ignore=["KS505"]))
        == """\
error[KS202]: `a` is written by load after the exit of its scope
 --> kernel.py:8:5
  |
6 |     with tl.scratch_scope():
  |     ------------------------ scope closed here
7 |         a = tl.load(x[:, :])
  |             ---------------- made here
8 |     tl.load(x[0:1, :], out=a[1:2, :])
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ written here
  |
  = help: above line 6 make `a = tl.empty((4, 8), tl.float32)`, and at line 7 write `tl.load(..., out=a)`; or do inside the scope what line 8 does

stale: 1 error"""
    )
