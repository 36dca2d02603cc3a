"""KS301: loads that nobody reads in their scope."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import body, codes

Lint = Callable[..., LintReport]


X: Any = ks.hbm((8, 8), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """The rules of results, and those that go before them."""
    return functools.partial(lint, select=["KS2", "KS301", "KS302"])


def test_a_load_that_nobody_reads_in_its_scope(lint: Lint) -> None:
    """Where it is, where its scope closes, and what to do; KS302 says nothing of it."""
    text = """
for j in range(2):
    with tl.scratch_scope():
        lost = tl.load(x[:, :])
        tl.store(o[:, :], tl.zeros((8, 8), tl.float32))
"""
    assert (
        str(lint(body(text), X, X))
        == """\
warning[KS301]: nothing reads `lost` before the exit of its scope, 2 times
 --> kernel.py:8:20
  |
7 |         with tl.scratch_scope():
  |         ------------------------ scope closed here
8 |             lost = tl.load(x[:, :])
  |                    ^^^^^^^^^^^^^^^^ loaded here
  |
  = help: delete line 8, or read its result before the scope exits: who writes these bytes next waits for the load

kernel: 1 warning"""
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("kept, lost = tl.load(x[:, :]), tl.load(x[0:4, :])", "delete this load of line 7, or "),
        ("kept = tl.load(x[:, :]); lost = tl.load(x[0:4, :])", "delete this load of line 7, or "),
        ("kept = tl.load(x[:, :])\n    lost: ks.Handle = tl.load(x[0:4, :])  # why", "delete line 8, or "),
        ("kept = tl.load(x[:, :])\n    lost = again = (tl.load(x[0:4, :]))", "delete line 8, or "),
    ],
)
def test_a_line_that_holds_other_code_is_not_to_be_deleted(lint: Lint, line: str, told: str) -> None:
    """Else the load that is needed would go with the one that is not."""
    report = lint(body(f"with tl.scratch_scope():\n    {line}\n    tl.store(o[:, :], kept)\n"), X, X)
    assert [d.help.startswith(told) for d in report if d.code == "KS301"] == [True]


def test_a_prefetch_that_runs_one_tile_too_far_is_told_which_loads_are_lost(lint: Lint) -> None:
    """Only the last one, with the remedy for a loop that loads ahead."""
    text = """
with tl.scratch_scope("outer"):
    buffers = [tl.empty((8, 8), tl.float32) for _ in range(2)]
    tl.load(x[:, :], out=buffers[0])
    for j in range(4):
        tl.load(x[:, :], out=buffers[(j + 1) % 2])
        tl.store(o[:, :], buffers[j % 2])
"""
    (finding,) = lint(body(text), X, X)
    assert (
        finding.message
        == "1 of the 4 loads here are lost: nothing reads an unnamed f32[8,8] before the exit of its scope"
    )
    assert finding.nodes == (8,)
    assert finding.help.startswith("put line 10 under an `if`")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("read", "with tl.scratch_scope():\n    tl.store(o[:, :], tl.load(x[:, :]))"),
        ("half of it read", "with tl.scratch_scope():\n    a = tl.load(x[:, :])\n    tl.store(o[0:4, :], a[0:4, :])"),
        ("into an outer handle", "a = tl.empty((8, 8), 'f32')\nwith tl.scratch_scope():\n    tl.load(x[:, :], out=a)\ntl.store(o[:, :], a)"),
        ("streamed by a composite", "with tl.scratch_scope():\n    tl.store(o[:, :], tl.composite('gemm', tl.ref(x[:, :]), tl.ref(x[:, :])))"),
        ("accumulated into", "b = tl.load(o[:, :])\nwith tl.scratch_scope():\n    a = tl.load(x[:, :])\n    tl.dot(b, b, acc=a)\n    tl.store(o[:, :], a)"),
    ],
)  # fmt: skip
def test_loads_that_are_read_in_time_are_silent(lint: Lint, what: str, text: str) -> None:
    """By whatever reads them, of whatever part."""
    assert codes(lint(body(text), X, X)) == []


def test_a_load_that_is_overwritten_before_anybody_reads_it_is_lost(lint: Lint) -> None:
    """Its destination is read, its own elements are not."""
    text = """
with tl.scratch_scope():
    a = tl.load(x[:, :])
    tl.load(x[:, :], out=a)
    tl.store(o[:, :], a)
"""
    (finding,) = lint(body(text), X, X, select=["KS3"], ignore=["KS303"])
    assert (finding.code, finding.nodes) == ("KS304", (1,))


def test_use_after_scope_goes_before_the_lost_load(lint: Lint) -> None:
    """201 over 301 over 302; a load without a scope is an unused result."""
    stale = "with tl.scratch_scope():\n    a = tl.load(x[:, :])\ntl.store(o[:, :], a)"
    lost = "with tl.scratch_scope():\n    a = tl.load(x[:, :])"
    unused = "a = tl.load(x[:, :])"
    assert [codes(lint(body(text), X, X)) for text in (stale, lost, unused)] == [["KS201"], ["KS301"], ["KS302"]]
