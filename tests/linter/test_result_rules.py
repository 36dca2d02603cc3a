"""KS203, KS301 and KS302: copies, loads and other results that nobody reads."""

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
    """The rules of results, and those that go before them."""
    return functools.partial(lint, select=["KS2", "KS301", "KS302"])


def codes(report: LintReport) -> list[str]:
    return [d.code for d in report]


def body(text: str) -> str:
    """A kernel of two tensors ``(8, 8)``; its first line is line 6."""
    lines = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return f"@ks.kernel\ndef kernel(x, o):\n{lines}"


# --- KS203 ------------------------------------------------------------------------------------------------------------


def test_a_copy_into_a_handle_of_the_same_scope_names_copy_handle_and_exit(lint: Lint) -> None:
    """One finding for all iterations, with where to move the handle."""
    kernel = """
        @ks.kernel
        def total(x, o):
            acc = tl.zeros((8,), tl.float32)
            for j in range(3):
                with tl.scratch_scope():
                    kept = tl.empty((8,), tl.float32)
                    tl.copy_to(kept, acc + tl.load(x[j, :]))
            tl.store(o[0, :], acc)
    """
    report = lint(kernel, X, X)
    assert (
        str(report)
        == """\
warning[KS203]: nothing reads `kept` between this copy_to and the scope exit that frees it, 3 times
  --> kernel.py:10:13
   |
 8 |         with tl.scratch_scope():
   |         ------------------------ freed here, with what was copied
 9 |             kept = tl.empty((8,), tl.float32)
   |                    -------------------------- made here, in the same scope
10 |             tl.copy_to(kept, acc + tl.load(x[j, :]))
   |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ copied here
   |
  = help: to keep the value, copy it to a handle that is made above line 8 and read after the scope; else leave out this copy and `kept`

total: 1 warning"""
    )
    assert report.diagnostics[0].nodes == (4, 9, 14)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("it is read before", "with tl.scratch_scope():\n    a = tl.zeros((8, 8), 'f32')\n    tl.copy_to(a, tl.load(x[:, :]))\n    tl.store(o[:, :], a)"),
        ("it outlives the scope", "a = tl.empty((8, 8), 'f32')\nwith tl.scratch_scope():\n    tl.copy_to(a, tl.load(x[:, :]))\ntl.store(o[:, :], a)"),
        ("an outer scope frees it", "with tl.scratch_scope():\n    a = tl.empty((8, 8), 'f32')\n    with tl.scratch_scope():\n        tl.copy_to(a, tl.load(x[:, :]))\n    tl.store(o[:, :], a)"),
        ("only the last copy of a loop is not read", "with tl.scratch_scope():\n    a = tl.load(x[:, :])\n    for _ in range(3):\n        b = a + 1.0\n        tl.store(o[:, :], b)\n        tl.copy_to(a, b)"),
        ("the half that was copied is read", "with tl.scratch_scope():\n    a = tl.empty((8, 8), 'f32')\n    tl.copy_to(a[0:4, :], tl.load(x[0:4, :]))\n    tl.store(o[0:4, :], a[0:4, :])"),
        ("it is read through a view", "with tl.scratch_scope():\n    a = tl.empty((8, 8), 'f32')\n    tl.copy_to(a, tl.load(x[:, :]))\n    tl.store(o[:, :], tl.trans(a))"),
        ("it is sent", "with tl.scratch_scope():\n    a = tl.empty((8, 8), 'f32')\n    tl.copy_to(a, tl.load(x[:, :]))\n    tl.send('next', a)\n    tl.store(o[:, :], tl.recv('prev', (8, 8), 'f32'))"),
    ],
)  # fmt: skip
def test_a_copy_that_something_comes_of_is_silent(lint: Lint, what: str, text: str) -> None:
    """Read in time, or not freed by the scope that it stands in."""
    assert codes(lint(body(text), X, X, ranks=2)) == []


def test_the_half_that_nobody_reads_is_found(lint: Lint) -> None:
    """Elements count, not handles."""
    text = """
with tl.scratch_scope():
    a = tl.zeros((8, 8), "f32")
    tl.copy_to(a[0:4, :], tl.load(x[0:4, :]))
    tl.store(o[4:8, :], a[4:8, :])
"""
    (finding,) = lint(body(text), X, X)
    assert (finding.code, finding.location and finding.location.line) == ("KS203", 8)


def test_a_copy_whose_handle_is_read_after_the_scope_is_left_to_ks201(lint: Lint) -> None:
    """One fault, one finding; and none of the unused result it would be otherwise."""
    text = """
with tl.scratch_scope():
    a = tl.zeros((8, 8), "f32")
    tl.copy_to(a, tl.load(x[:, :]))
tl.store(o[:, :], a)
"""
    assert codes(lint(body(text), X, X)) == ["KS201"]


# --- KS301 ------------------------------------------------------------------------------------------------------------


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


# --- KS302 ------------------------------------------------------------------------------------------------------------


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


def test_received_messages_that_nobody_reads_are_an_option(lint: Lint) -> None:
    """Off by default: receiving frees a slot, and orders the ranks."""
    kernel = body("tl.send('next', tl.load(x[:, :]))\ntl.recv('prev', (8, 8), 'f32')")
    assert codes(lint(kernel, X, X, ranks=2, options={"KS302": {"messages": True}})) == ["KS302"]
