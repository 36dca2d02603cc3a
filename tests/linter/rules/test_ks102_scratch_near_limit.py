"""KS102: is scratch nearly full."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only the rules of this family, where a test does not say otherwise: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS1"])


ONE_LOAD = """
    @ks.kernel
    def one(x, more):
        x_tile = tl.load(x[:])
        if more:
            tl.zeros((4,), tl.float32)
"""


def test_a_peak_near_the_budget_is_told(lint: Lint) -> None:
    """With the share of the budget, what is left, and who holds the most."""
    assert (
        str(lint(ONE_LOAD, ks.hbm((1_000_000,), "u8"), False))
        == """\
info[KS102]: scratch peaks at 1,000,000 B, 95.4 % of the budget of 1,048,576 B
 --> kernel.py:6:14
  |
6 |     x_tile = tl.load(x[:])
  |              ^^^^^^^^^^^^^ the peak is reached here
  |              ------------- holds 1,000,000 B: `x_tile`
  |
  = help: 48,576 B are left for a larger tile; `x_tile` (line 6) is the largest, and `kernscope fit` finds the largest that fits, where it is a parameter

one: 1 info"""
    )


@pytest.mark.parametrize(
    ("nbytes", "more", "percent", "fires"),
    [
        (524_288, False, 50, False),  # exactly half
        (524_288, True, 50, True),  # 16 bytes more
        (943_718, False, 90, True),  # rounded up to 943,728: above 943,718.4
        (943_712, False, 90, False),
        (1_048_576, False, 99, True),  # full is near, and no overflow
        (1_048_576, False, 100, False),
        (16, False, 0, True),
    ],
)
def test_near_is_above_the_percentage_of_the_option(
    lint: Lint, nbytes: int, more: bool, percent: int, fires: bool
) -> None:
    """Of rounded bytes, without rounding the percentage."""
    report = lint(ONE_LOAD, ks.hbm((nbytes,), "u8"), more, options={"KS102": {"percent": percent}})
    assert [d.code for d in report] == ["KS102"] * fires


def test_near_the_limit_is_silent_where_the_budget_is_passed(lint: Lint) -> None:
    """One fault, one finding."""
    assert [d.code for d in lint(ONE_LOAD, ks.hbm((1_048_576,), "u8"), True)] == ["KS101"]
    assert [d.code for d in lint(ONE_LOAD, ks.hbm((1_048_576,), "u8"), True, select=["KS102"])] == []


def test_a_kernel_that_allocates_nothing_is_clean(lint: Lint) -> None:
    """Also at a limit of 0 percent."""
    kernel = """
        @ks.kernel
        def nothing(x):
            pass
    """
    assert len(lint(kernel, ks.hbm((4,), "f32"), options={"KS102": {"percent": 0}})) == 0
