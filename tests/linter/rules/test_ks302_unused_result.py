"""KS302: results that nobody reads."""

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


def test_an_unused_result_is_named_with_what_it_costs(lint: Lint) -> None:
    """Of the same name or not: nobody reads either."""
    text = """
best = tl.zeros((8, 8), tl.float32)
for j in range(3):
    best = tl.maximum(tl.load(x[:, :]), 0.0)
tl.store(o[:, :], tl.load(x[:, :]))
"""
    assert (
        str(lint(body(text), X, X))
        == """\
warning[KS302]: nothing reads `best`, the result of fill, which takes 256 B
 --> kernel.py:6:12
  |
6 |     best = tl.zeros((8, 8), tl.float32)
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ made here
  |
  = help: delete line 6, or store or use `best`

warning[KS302]: nothing reads `best`, the result of maximum, which takes 256 B, 3 times
 --> kernel.py:8:16
  |
8 |         best = tl.maximum(tl.load(x[:, :]), 0.0)
  |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ made here
  |
  = help: delete line 8, or store or use `best`

kernel: 2 warnings"""
    )


def test_an_empty_handle_that_is_never_read(lint: Lint) -> None:
    """Also one that is only written, with the line that does."""
    unused, written = lint(
        body("a = tl.empty((8, 8), tl.float32)\nb = tl.empty((8, 8), tl.float32)\ntl.copy_to(b, tl.load(x[:, :]))"),
        X,
        X,
    )
    assert (unused.message, unused.nodes) == ("nothing reads `a`, an empty handle, which takes 256 B", ())
    assert written.message == "nothing reads `b`, the result of copy_to, which takes 256 B"
    assert [place.role for place in written.locations] == ["made here", "only written, from here on"]
    assert written.help == "leave out line 7 and what writes to it from line 8 on, or read it"


def test_a_composite_whose_result_nobody_reads(lint: Lint) -> None:
    """Its own buffers are read; its result is not."""
    (finding,) = lint(body("c = tl.composite('gemm', tl.ref(x[:, :]), tl.ref(x[:, :]))"), X, X)
    assert (finding.code, finding.message[:18]) == ("KS302", "nothing reads `c`,")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("read on one rank", "a = tl.load(x[:, :])\nif tl.program_id(0) == 0:\n    tl.store(o[:, :], a)"),
        ("read in one iteration", "for j in range(3):\n    a = tl.load(x[:, :])\n    if j == 2:\n        tl.store(o[:, :], a)"),
        ("received for the order", "tl.send('next', tl.load(x[:, :]))\ntl.recv('prev', (8, 8), 'f32')"),
        ("posted and waited for", "future = tl.recv_async('prev', (8, 8), 'f32')\ntl.send('next', tl.load(x[:, :]))\ntl.wait(future)"),
        ("one buffer of a composite's two", "tl.store(o[:, :], tl.composite('gemm', tl.ref(x[:, :]), tl.ref(x[:, :])))"),
    ],
)  # fmt: skip
def test_lines_that_are_needed_are_silent(lint: Lint, what: str, text: str) -> None:
    """Whoever deleted such a line would break the kernel."""
    assert codes(lint(body(text), X, X, ranks=2)) == []


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("tl.recv('prev', (8, 8), 'f32')", "use what it brings; or leave out this receive and the send that it meets"),
        (
            "tl.wait(tl.recv_async('prev', (8, 8), 'f32'))",
            "use what it brings; or leave out this receive and the send that it meets",
        ),
        (
            "tl.recv_async('prev', (8, 8), 'f32')",
            "`tl.wait` for it and use what it brings; or leave out this receive and the send that it meets",
        ),
    ],
)
def test_a_receive_is_not_deleted_alone(lint: Lint, text: str, help: str) -> None:
    """Its send would be left without a partner."""
    kernel = body(f"tl.send('next', tl.load(x[:, :]))\n{text}")
    (finding,) = lint(kernel, X, X, ranks=2, options={"KS302": {"messages": True}})
    assert (finding.help, finding.fixes) == (help, ())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("future = tl.recv_async('prev', (8, 8), 'f32')", ["KS302"]),
        ("future = tl.recv_async('prev', (8, 8), 'f32')\ntl.wait(future)", []),
        ("h = tl.zeros((8, 8), 'f32')\ntl.recv_async('prev', (8, 8), 'f32', out=h)\ntl.store(o[:, :], h)", []),
        ("future = tl.recv_async('prev', (8, 8), 'f32')\nif tl.program_id(0):\n    tl.wait(future)", []),
        ("for j in range(1):\n    future = tl.recv_async('prev', (8, 8), 'f32')\n    if j:\n        tl.wait(future)", ["KS302"]),
    ],
)  # fmt: skip
def test_a_receive_that_nobody_waits_for_is_found(lint: Lint, text: str, found: list[str]) -> None:
    """It brings nothing and orders nothing; on any rank, in any iteration, one is enough."""
    assert codes(lint(body(f"tl.send('next', tl.load(x[:, :]))\n{text}"), X, X, ranks=2)) == found


def test_received_messages_that_nobody_reads_are_an_option(lint: Lint) -> None:
    """Off by default: receiving frees a slot, and orders the ranks."""
    kernel = body("tl.send('next', tl.load(x[:, :]))\ntl.recv('prev', (8, 8), 'f32')")
    assert codes(lint(kernel, X, X, ranks=2, options={"KS302": {"messages": True}})) == ["KS302"]
