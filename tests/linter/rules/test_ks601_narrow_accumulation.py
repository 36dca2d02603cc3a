"""KS601: sums that go around a loop in a narrow float."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]
X: Any = ks.hbm((8, 8), "f16")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule alone."""
    return functools.partial(lint, select=["KS6"])


def sweep(start: str, step: str, last: str = "tl.store(o[:, :], acc)", scope: bool = True) -> str:
    """A kernel that makes something, does a step three times (in a scope of its own, or not), and stores."""
    inner = "\n".join(f"{'        ' if scope else '    '}    {line}" for line in step.splitlines())
    opened = "        with tl.scratch_scope():\n" if scope else ""
    return f"@ks.kernel\ndef kernel(x, o):\n    {start}\n    for j in range(3):\n{opened}{inner}\n    {last}\n"


ZEROS = "acc = tl.zeros((8, 8), tl.float16)"


def test_a_narrow_sum_names_the_sum_the_copy_and_the_handle(lint: Lint) -> None:
    """With what to write instead, and where to convert."""
    report = lint(sweep(ZEROS, "new = acc * 0.5 + tl.load(x[:, :])\ntl.copy_to(acc, new)"), X, X)
    assert (
        str(report)
        == """\
warning[KS601]: `acc` is accumulated in f16 across iterations, 3 times
  --> kernel.py:9:19
   |
 6 |     acc = tl.zeros((8, 8), tl.float16)
   |           ---------------------------- made here, in f16
...
 9 |             new = acc * 0.5 + tl.load(x[:, :])
   |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ accumulated here
10 |             tl.copy_to(acc, new)
   |             -------------------- kept in f16 from here on
   |
  = help: make `acc` at line 6 in tl.float32, add in it at line 9, and convert once, after the loop: `acc.to(tl.float16)`

kernel: 1 warning"""
    )
    assert report.diagnostics[0].nodes == (4, 10, 16)


@pytest.mark.parametrize(
    "step",
    [
        "tl.copy_to(acc, acc + tl.load(x[:, :]))",
        "tl.copy_to(acc, tl.load(x[:, :]) - acc)",
        "tl.copy_to(acc, tl.fma(tl.load(x[:, :]), 2.0, acc))",
        "tl.copy_to(acc, tl.fma(acc, 0.5, tl.load(x[:, :])))",
        "tl.dot(tl.load(x[:, :]), tl.load(x[:, :]), acc=acc, out_dtype=tl.float16)",
        "tl.copy_to(acc, (acc.to(tl.float32) + tl.load(x[:, :])).to(tl.float16))",
        "tl.copy_to(acc, tl.where(acc > 1.0, acc, acc + tl.load(x[:, :])))",
        "tl.copy_to(acc[0:4, :], acc[0:4, :] + tl.load(x[0:4, :]))",
        "tl.copy_to(acc, tl.dot(tl.load(x[:, :]), tl.load(x[:, :]), out_dtype=tl.float16) + acc / 2.0)",
    ],
)
def test_every_way_to_accumulate_is_found(lint: Lint, step: str) -> None:
    """add, sub, fma, dot; scaled, selected, in a slice, or computed wide and kept narrow."""
    (finding,) = lint(sweep(ZEROS, step), X, X)
    assert finding.message == "`acc` is accumulated in f16 across iterations, 3 times"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8e4m3", "float8e5m2"])
def test_all_narrow_floats_are_found_and_wide_ones_and_integers_are_not(lint: Lint, dtype: str) -> None:
    """By what holds the value between iterations."""
    for held, fires in ((dtype, True), ("float32", False), ("int16", False)):
        tensor: Any = ks.hbm((8, 8), held)
        start = f"acc = tl.zeros((8, 8), tl.{held})"
        report = lint(sweep(start, "tl.copy_to(acc, acc + tl.load(x[:, :]))"), tensor, tensor)
        assert len(report) == fires


def test_an_assignment_that_goes_around_the_loop_is_found(lint: Lint) -> None:
    """Fresh bytes each time, one value all the same. Two sums of an iteration are one accumulation."""
    step = "acc = acc + tl.load(x[:, :])\nacc = acc + 1.0"
    (finding,) = lint(sweep(ZEROS, step, scope=False), X, X)
    assert finding.location is not None and finding.location.line == 8
    assert finding.help == (
        "start the loop from a tl.float32 value, so that line 8 adds in it, and convert once, after the loop: "
        "`acc.to(tl.float16)`"
    )


@pytest.mark.parametrize(
    ("what", "start", "step"),
    [
        ("a running maximum", ZEROS, "tl.copy_to(acc, tl.maximum(acc, tl.load(x[:, :])))"),
        ("a maximum of sums", ZEROS, "tl.copy_to(acc, tl.maximum(acc, tl.load(x[:, :]) + 1.0))"),
        ("a sum that takes nothing in", ZEROS, "tl.copy_to(acc, tl.load(x[:, :]) + 1.0)"),
        ("a wide sum of narrow values", "acc = tl.zeros((8, 8), tl.float32)", "tl.copy_to(acc, acc + tl.load(x[:, :]))"),
        ("a product with itself", ZEROS, "tl.copy_to(acc, acc * (acc * acc + 1.0))"),
        ("a normalisation", ZEROS, "tl.copy_to(acc, acc / (tl.sum(acc, axis=1, keep_dims=True) + 1.0))"),
        ("a reciprocal", ZEROS, "tl.copy_to(acc, 1.0 / acc + tl.load(x[:, :]))"),
        ("scaling alone", ZEROS, "tl.copy_to(acc, acc * 0.5)"),
        ("a wide accumulator of a dot", "acc = tl.zeros((8, 8), tl.float32)", "a = tl.load(x[:, :])\ntl.dot(a, a, acc=acc)"),
    ],
)  # fmt: skip
def test_what_is_no_sum_around_the_loop_is_silent(lint: Lint, what: str, start: str, step: str) -> None:
    """Rounding errors do not add up there."""
    last = "tl.store(o[:, :], acc.to(tl.float16))"
    assert len(lint(sweep(start, step, last), X, X)) == 0


def test_sums_of_different_lines_are_no_iterations(lint: Lint) -> None:
    """Nor is one iteration alone; the option asks for more of them."""
    kernel = """
        @ks.kernel
        def kernel(x, o):
            acc = tl.load(x[:, :])
            acc = acc + 1.0
            acc = acc + 2.0
            tl.store(o[:, :], acc)
    """
    assert len(lint(kernel, X, X)) == 0
    looped = sweep(ZEROS, "tl.copy_to(acc, acc + tl.load(x[:, :]))")
    assert [len(lint(looped, X, X, options={"KS601": {"iterations": n}})) for n in (2, 3, 4)] == [1, 1, 0]


def test_the_online_softmax_is_found_in_its_sum_and_output_and_not_in_its_maximum(lint: Lint) -> None:
    """m is a running maximum; l and the output are scaled sums."""
    kernel = """
        @ks.kernel
        def flash(x, o):
            m, l = tl.full((8, 1), -1000.0, tl.float16), tl.zeros((8, 1), tl.float16)
            for j in range(3):
                with tl.scratch_scope():
                    s = tl.load(x[:, :])
                    m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
                    p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
                    l_new = l * alpha + tl.sum(p, axis=1, keep_dims=True)
                    tl.copy_to(m, m_new)
                    tl.copy_to(l, l_new)
            tl.store(o[:, :], l + x_like(m))


        def x_like(m):
            return tl.zeros((8, 8), tl.float16) + m
    """
    (finding,) = lint(kernel, X, X)
    assert finding.location is not None and finding.location.line == 12


@pytest.mark.parametrize(("word", "said"), [("", False), (", out_dtype=tl.float16", True)])
def test_only_what_is_there_is_to_be_left_out(lint: Lint, word: str, said: bool) -> None:
    """A `tl.dot` without `out_dtype=` has none to leave out."""
    step = f"tl.dot(tl.load(x[:, :]), tl.load(x[:, :]), acc=acc{word})"
    (finding,) = lint(sweep("acc = tl.zeros((8, 8), tl.float16)", step), X, X)
    assert ("leave out `out_dtype=`" in finding.help) is said
    assert "in tl.float32" in finding.help and "convert once, after the loop" in finding.help
