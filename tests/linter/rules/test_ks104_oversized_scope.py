"""KS104: scopes that could close earlier."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import body, codes, peak_of

Lint = Callable[..., LintReport]


X: Any = ks.hbm((64, 64), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """The rules of this family."""
    return functools.partial(lint, select=["KS101", "KS103", "KS104"])


TWO_STEPS = """
with tl.scratch_scope():
    left = tl.load(x[:, :])
    tl.store(o[:, :], tl.exp(left))
    right = tl.load(x[:, 0:32])
    tl.store(o[:, 0:32], tl.exp(right))
"""


def test_a_scope_that_could_close_earlier_is_told_where(lint: Lint) -> None:
    """How much is dead, after which line it is, and the peak without it."""
    report = lint(body(TWO_STEPS), X, X)
    assert (
        str(report)
        == """\
info[KS104]: at the peak of 49,152 B, 32,768 B of this scope are dead but held; given back in time, the peak is 32,768 B
  --> kernel.py:6:5
   |
 6 |     with tl.scratch_scope():
   |     ^^^^^^^^^^^^^^^^^^^^^^^^ scope opened here
 7 |         left = tl.load(x[:, :])
   |                ---------------- holds 16,384 B: `left`
 8 |         tl.store(o[:, :], tl.exp(left))
   |         ------------------------------- all of that is used for the last time here
   |                           ------------ holds 16,384 B: an unnamed f32[64,64]
...
10 |         tl.store(o[:, 0:32], tl.exp(right))
   |                              ------------- the peak is reached here
   |
  = help: close the scope after line 8, and open another one for what follows

kernel: 1 info"""
    )


def test_what_the_rest_needs_is_named_and_its_copy_is_counted(lint: Lint) -> None:
    """A small result of a large tile can be kept; the forecast holds for the kernel written so."""
    text = """
with tl.scratch_scope():
    left = tl.load(x[:, :])
    total = tl.sum(left, axis=1, keep_dims=True)
    tl.store(o[:, :], tl.load(o[:, :]) + total)
"""
    (finding,) = lint(body(text), X, X)
    assert finding.help == (
        "close the scope after line 8, and open another one for what follows; `total` must outlive it: make a handle "
        "before the scope and `tl.copy_to` into it"
    )
    split = """
kept = tl.empty((64, 1), tl.float32)
with tl.scratch_scope():
    left = tl.load(x[:, :])
    tl.copy_to(kept, tl.sum(left, axis=1, keep_dims=True))
with tl.scratch_scope():
    tl.store(o[:, :], tl.load(o[:, :]) + kept)
"""
    assert finding.message.endswith(f"the peak is {peak_of(body(split), X):,} B")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("no scope", TWO_STEPS.replace("with tl.scratch_scope():", "if True:")),
        ("two scopes", TWO_STEPS.replace("    right", "with tl.scratch_scope():\n    right")),
        ("all of it is needed", "with tl.scratch_scope():\n    a = tl.load(x[:, :])\n    tl.store(o[:, :], tl.exp(a) + a)"),
        ("keeping costs as much", "with tl.scratch_scope():\n    a = tl.load(x[:, :]) + 1.0\n    tl.store(o[:, :], a * 2.0)"),
        ("the peak is elsewhere", TWO_STEPS + "big = tl.load(x[:, :])\ntl.store(o[:, :], tl.exp(big) + tl.exp(big) + tl.exp(big))"),
    ],
)  # fmt: skip
def test_scopes_whose_end_is_right_are_silent(lint: Lint, what: str, text: str) -> None:
    """Or that are not where the peak is."""
    assert "KS104" not in codes(lint(body(text), X, X))


GROWTH = "with tl.scratch_scope():\n    for j in range(8):\n        tl.store(o[j, :], tl.exp(tl.load(x[j, :])))\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GROWTH + "    tl.store(o[:, :], tl.load(x[:, :]))", ["KS103"]),
        (GROWTH + TWO_STEPS.strip("\n").removeprefix("with tl.scratch_scope():\n"), ["KS103"]),
        (GROWTH + TWO_STEPS, ["KS103", "KS104"]),
    ],
)
def test_what_a_loop_left_behind_is_the_loops_fault(load_kernel: Any, text: str, found: list[str]) -> None:
    """KS103 speaks of it, of that scope only."""
    header = "import kernscope as ks\nfrom kernscope import tl\n\n"
    assert codes(ks.lint(load_kernel(header + body(text)), X, X, select=["KS103", "KS104"])) == found


def test_how_much_must_be_won_is_an_option(lint: Lint) -> None:
    """In percent of the peak: a third here."""
    kernel = body(TWO_STEPS)
    assert [len(lint(kernel, X, X, options={"KS104": {"percent": n}})) for n in (0, 33, 34)] == [1, 1, 0]
