"""KS205: one command writes what it reads, in another place or order."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]
X: Any = ks.hbm((8, 8), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule alone."""
    return functools.partial(lint, select=["KS205"])


def body(text: str) -> str:
    """A kernel of two tensors ``(8, 8)`` with a handle ``a`` of all of ``x``; its first line is line 7."""
    lines = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return f"@ks.kernel\ndef kernel(x, o):\n    a = tl.load(x[:, :])\n{lines}    tl.store(o[:, :], a)\n"


def test_both_views_are_named(lint: Lint) -> None:
    """What is written, what is read, how far apart; one finding for all iterations."""
    report = lint(body("for i in range(3):\n    tl.copy_to(a[1:8, :], a[0:7, :])"), X, X)
    assert (
        str(report)
        == """\
error[KS205]: copy_to writes `a[1:8, 0:8]` and reads `a[0:7, 0:8]`, which shares bytes with it, in one command, 3 times
 --> kernel.py:8:9
  |
6 |     a = tl.load(x[:, :])
  |         ---------------- made here
...
8 |         tl.copy_to(a[1:8, :], a[0:7, :])
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ what is written begins +8 elements from what is read
  |
  = help: go through a handle of its own: `t = tl.empty(src.shape, src.dtype)`, `tl.copy_to(t, src)`, then `tl.copy_to(dst, t)`

kernel: 1 error"""
    )
    assert report.diagnostics[0].nodes == (1, 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "tl.copy_to(a[0:7, :], a[1:8, :])",
        "tl.copy_to(a[:, 1:8], a[:, 0:7])",
        "tl.copy_to(a, tl.trans(a))",
        "tl.copy_to(a, tl.broadcast_to(a[0:1, :], (8, 8)))",
        "tl.copy_to(a, tl.broadcast_to(a[3:4, :], (8, 8)))",
        "tl.copy_to(a[0:4, 0:4], tl.trans(a[0:4, 1:5]))",
        "tl.dot(a, a, acc=a)",
        "b = tl.load(o[:, :])\ntl.dot(a, b, acc=a)",
        "b = tl.load(o[:, :])\ntl.dot(b, tl.trans(a), acc=a)",
        "tl.dot(a[0:4, :], a[:, 0:4], acc=a[4:8, 2:6])",
        "tl.exp(a[0:7, :], out=a[1:8, :])",
        "tl.add(a, tl.trans(a), out=a)",
        "tl.mul(a, a[0:1, :], out=a)",
        "tl.sum(a, axis=0, keep_dims=True, out=a[0:1, :])",
        "tl.cumsum(a, out=a)",
        "tl.softmax(a, out=a)",
    ],
)
def test_it_fires_where_an_element_may_be_written_before_it_is_read(lint: Lint, text: str) -> None:
    """Another offset, another order, one element read for many."""
    assert lint(body(text), X, X).counts["error"] >= 1


@pytest.mark.parametrize(
    "text",
    [
        "tl.copy_to(a, a)",
        "tl.copy_to(a[2:4, :], a[2:4, :])",
        "tl.copy_to(a[0:1, :], a[0:1])",
        "tl.copy_to(a[0:1, :], a[0][None, :])",
        "tl.copy_to(a[0:1, :], tl.reshape(a[0], (1, 8)))",
        "tl.copy_to(a[:, 0:1], a[:, 0][:, None])",
        "tl.copy_to(tl.trans(a), tl.trans(a))",
        "tl.copy_to(a[0:4, :], a[4:8, :])",
        "tl.copy_to(a[:, 0:4], a[:, 4:8])",
        "tl.copy_to(a[0:4, 0:4], tl.trans(a[0:4, 4:8]))",
        "tl.copy_to(a, a + tl.trans(a))",
        "tl.copy_to(a, tl.exp(a))",
        "b = tl.load(o[:, :])\ntl.dot(b, b, acc=a)",
        "tl.dot(a[0:4, 0:4], a[4:8, 0:4], acc=a[0:4, 4:8])",
        "tl.load(x[0:7, :], out=a[1:8, :])",
        "tl.exp(a, out=a)",
        "tl.add(a, a, out=a)",
        "tl.where(a > 0.0, a, 0.0, out=a)",
        "tl.mul(a, a[0:1, :] * 2.0, out=a)",
        "tl.sum(a[1:8, :], axis=0, keep_dims=True, out=a[0:1, :])",
        "tl.exp(tl.trans(a), out=tl.trans(a))",
        "b = tl.composite('gemm', a, a, epilogue=[('mul', 2.0), 'exp'])\ntl.copy_to(a, b)",
    ],
)
def test_it_is_silent_where_every_element_is_its_own_or_none_is_shared(lint: Lint, text: str) -> None:
    """The same bytes in the same order; disjoint parts; fresh results; HBM."""
    assert len(lint(body(text), X, X)) == 0


@pytest.mark.parametrize(
    ("text", "says", "followed"),
    [
        ("tl.softmax(a, out=a)", "an element is read for many elements", "a = tl.softmax(a)"),
        ("tl.exp(a[0:7, :], out=a[1:8, :])", "begins +8 elements", "tl.exp(a[0:7, :])"),
    ],
)
def test_an_operation_with_out_is_told_to_leave_it_away(lint: Lint, text: str, says: str, followed: str) -> None:
    """What is wrong stands at the line; followed, the help leaves no finding."""
    report = lint(body(text), X, X)
    (found,) = report.diagnostics
    assert found.help.startswith("leave `out=` of") and says in str(report)
    assert len(lint(body(followed), X, X)) == 0


def test_the_ends_of_a_message_share_no_memory(lint: Lint) -> None:
    """A receive writes another rank's scratch than its send reads."""
    text = """
tl.send("next", a[0:7, :])
tl.recv("prev", (7, 8), tl.float32, out=a[1:8, :])
"""
    assert len(lint(body(text), X, ks.hbm((8, 8), "f32"), ranks=2)) == 0


def test_the_help_holds_when_it_is_followed(lint: Lint) -> None:
    """Through a handle of its own there is no finding, and the numbers are those of reading everything first."""
    followed = """
t = tl.empty((7, 8), tl.float32)
tl.copy_to(t, a[0:7, :])
tl.copy_to(a[1:8, :], t)
"""
    assert len(lint(body(followed), X, X)) == 0
