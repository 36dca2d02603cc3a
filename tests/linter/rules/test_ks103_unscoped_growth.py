"""KS103: loops that want a scope."""

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


def test_a_loop_without_scope_is_told_what_it_takes_and_where_a_scope_goes(lint: Lint) -> None:
    """Per iteration, when it would overflow, the peak with a scope, and which lines to wrap."""
    text = """
for j in range(4):
    tile = tl.load(x[:, :])
    tl.store(o[:, :], tl.exp(tile) * 2.0)
"""
    report = lint(body(text), X, X)
    assert (
        str(report)
        == """\
warning[KS103]: scratch grows by 49,152 B per iteration of line 6 (4 iterations), and all of it is dead before the next one; it would overflow at iteration 22; a scope brings the peak from 196,608 B down to 49,152 B
 --> kernel.py:7:16
  |
7 |         tile = tl.load(x[:, :])
  |                ^^^^^^^^^^^^^^^^ allocates anew in every iteration
  |                ---------------- holds 65,536 B: 4 x `tile`
8 |         tl.store(o[:, :], tl.exp(tile) * 2.0)
  |                           ------------ holds 65,536 B: 4 x an unnamed f32[64,64]
  |                           ------------------ holds 65,536 B: 4 x an unnamed f32[64,64]
  |
  = help: wrap lines 7-8, the body of the loop at line 6, in `with tl.scratch_scope():`

kernel: 1 warning"""
    )
    assert report.diagnostics[0].nodes == tuple(i for i in range(16) if i % 4 != 3)


def test_the_iteration_that_would_overflow_is_the_one_that_does(lint: Lint) -> None:
    """The forecast of a short loop, held against a longer one: 21 iterations fit, 22 do not."""
    kernel = """
        @ks.kernel
        def kernel(x, o, count):
            for j in range(count):
                tl.store(o[:, :], tl.exp(tl.load(x[:, :])) * 2.0)
    """
    for count, expected in ((3, ["KS103"]), (21, ["KS103"]), (22, ["KS101"])):
        report = lint(kernel, X, X, count)
        assert codes(report) == expected
        assert f"overflow{'' if count < 22 else 's'} at iteration 22" in report.diagnostics[0].message


def test_a_loop_that_grows_unevenly_has_no_forecast(lint: Lint) -> None:
    """Nothing is said of an iteration that would overflow where tiles grow from one to the next; the rest is."""
    text = """
for j in range(4):
    tile = tl.load(x[: {rows}, :])
    tl.store(o[: {rows}, :], tl.exp(tile))
"""
    for rows, forecast in (("8", True), ("8 + 8 * j", False), ("8 if j < 2 else 16", False)):
        (finding,) = lint(body(text.format(rows=rows)), X, X, ignore=["KS104"])
        assert ("would overflow" in finding.message) is forecast
        assert "scratch grows by" in finding.message and "a scope brings the peak" in finding.message


def test_the_peak_with_a_scope_is_the_peak_of_the_kernel_with_one(lint: Lint) -> None:
    """Also with handles before, between and after, and with an inner loop."""

    def written(scoped: bool) -> str:
        inner = ["a = tl.load(x[:, :])", "for i in range(2):", "    tl.store(o[:, :], tl.exp(a))"]
        indent = "        " if scoped else "    "
        lines = ["m = tl.load(x[0:1, :])", "for j in range(4):"] + ["    with tl.scratch_scope():"] * scoped
        lines += [indent + line for line in inner] + ["tl.store(o[0:1, :], tl.load(x[0:1, :]) + m)"]
        return body("\n".join(lines))

    (finding,) = lint(written(False), X, X)
    tall: Any = ks.hbm((64, 64), "f32")
    peak = int(finding.message.rsplit("down to ", 1)[1].removesuffix(" B").replace(",", ""))
    assert peak >= peak_of(written(True), tall)
    assert peak - peak_of(written(True), tall) <= 2 * 16_384  # the scope of the last iteration closes as well


def test_what_must_outlive_the_iteration_is_named(lint: Lint) -> None:
    """The running maximum is no part of what a scope may take, nor is what is read after the loop."""
    text = """
best = tl.load(x[:, :])
for j in range(4):
    tile = tl.load(x[:, :])
    best = tl.maximum(best, tl.exp(tile))
    last = tile * 2.0
tl.store(o[:, :], best + last)
"""
    (finding,) = lint(body(text), X, X)
    assert finding.help == (
        "wrap lines 8-10, the body of the loop at line 7, in `with tl.scratch_scope():`; at line 9 write "
        "`tl.copy_to(best, ...)` with what is now assigned to `best`; above line 7 make `last = tl.empty((64, 64), "
        "tl.float32)`, and at line 10 write `tl.copy_to(last, ...)` with what is now assigned to `last`"
    )


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a scope in each iteration", "for j in range(4):\n    with tl.scratch_scope():\n        tl.store(o[:, :], tl.load(x[:, :]))"),
        ("two iterations", "for j in range(2):\n    tl.store(o[:, :], tl.load(x[:, :]))"),
        ("all are needed at the end", "tiles = [tl.load(x[j : j + 8, :]) for j in range(4)]\nfor t in tiles:\n    tl.store(o[0:8, :], t)"),
        ("each is made of the one before", "a = tl.load(x[:, :])\nfor j in range(4):\n    a = a + 1.0\ntl.store(o[:, :], a)"),
        ("a line each", "tl.store(o[:, :], tl.load(x[:, :]))\ntl.store(o[:, :], tl.load(x[:, :]))\ntl.store(o[:, :], tl.load(x[:, :]))"),
        ("buffers in turn", "b = [tl.empty((64, 64), 'f32') for _ in range(3)]\nfor j in range(6):\n    tl.load(x[:, :], out=b[j % 3])\n    tl.store(o[:, :], b[j % 3])"),
        ("one composite of many tiles", "tl.store(o[:, :], tl.composite('gemm', tl.ref(x[:, :]), tl.ref(x[:, :]), tile=(8, 8, 8)))"),
    ],
)  # fmt: skip
def test_loops_that_need_no_scope_are_silent(lint: Lint, what: str, text: str) -> None:
    """Or that have one."""
    assert "KS103" not in codes(lint(body(text), X, X))


def test_composites_in_a_loop_are_found(lint: Lint) -> None:
    """With all that each of them holds: its result, accumulator and buffers."""
    text = "for j in range(3):\n    tl.store(o[:, :], tl.composite('gemm', tl.ref(x[:, :]), tl.ref(x[:, :])))"
    (finding,) = lint(body(text), X, X)
    assert finding.code == "KS103"
    assert "98,304 B per iteration" in finding.message


def test_one_finding_for_all_ranks_and_scope_instances(lint: Lint) -> None:
    """An inner loop without a scope of its own, in an outer one with one."""
    text = """
for i in range(2):
    with tl.scratch_scope():
        for j in range(3):
            tl.store(o[0:8, :], tl.load(x[0:8, :]))
"""
    (finding,) = lint(body(text), X, X, ranks=2)
    assert "per iteration of line 8 on all 2 ranks (3 iterations)" in finding.message
    assert len(finding.nodes) == 12


def test_how_many_allocations_are_growth_is_an_option(lint: Lint) -> None:
    """From two on."""
    kernel = body("for j in range(4):\n    tl.store(o[:, :], tl.load(x[:, :]))")
    assert [len(lint(kernel, X, X, options={"KS103": {"times": n}})) for n in (2, 4, 5)] == [1, 1, 0]
