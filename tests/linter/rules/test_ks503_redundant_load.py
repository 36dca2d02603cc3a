"""KS503: the same region again, although a handle still holds it."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import body

Lint = Callable[..., LintReport]
X: Any = ks.hbm((8, 8), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule alone."""
    return functools.partial(lint, select=["KS503"])


def test_a_second_load_names_the_first_and_its_handle(lint: Lint) -> None:
    """One finding for all iterations, with the bytes that move for nothing."""
    text = """
w = tl.load(x[0:4, :])
for j in range(3):
    with tl.scratch_scope():
        tl.store(o[0:4, :], tl.load(x[0:4, :]) + w)
"""
    report = lint(body(text), X, X)
    assert (
        str(report)
        == """\
info[KS503]: `x[0:4, 0:8]` is loaded again although `w` still holds it unchanged, 3 times, 384 B in all
 --> kernel.py:9:33
  |
6 |     w = tl.load(x[0:4, :])
  |         ------------------ loaded here, into a handle that is still there
...
9 |             tl.store(o[0:4, :], tl.load(x[0:4, :]) + w)
  |                                 ^^^^^^^^^^^^^^^^^^ loaded again here
  |
  = help: at line 9 use `w` of line 6 instead of the load

kernel: 1 info"""
    )
    assert report.diagnostics[0].nodes == (2, 7, 12)


def test_a_line_that_loads_the_same_in_every_iteration(lint: Lint) -> None:
    """Without a scope the handles of all iterations are still there."""
    (finding,) = lint(body("for j in range(3):\n    tl.store(o[:, :], tl.load(x[:, :]))"), X, X)
    assert finding.message.startswith("`x[0:8, 0:8]` is loaded again although the handle of an earlier iteration")
    assert finding.help == "above the loop at line 6 write `x_tile = tl.load(x[:, :])`, and at line 7 use `x_tile`"
    assert finding.nodes == (2, 4)


@pytest.mark.parametrize(
    ("what", "text", "fires"),
    [
        ("the same", "a = tl.load(x[:, :])\nb = tl.load(x[:, :])\ntl.store(o[:, :], a + b)", True),
        ("another part", "a = tl.load(x[0:4, :])\nb = tl.load(x[4:8, :])\ntl.store(o[0:4, :], a + b)", False),
        ("a smaller part", "a = tl.load(x[:, :])\nb = tl.load(x[0:4, :])\ntl.store(o[0:4, :], a[0:4, :] + b)", False),
        ("another padding", "a = tl.load(x[4:12, :], pad=0.0)\nb = tl.load(x[4:12, :], pad=1.0)\ntl.store(o[:, :], a + b)", False),
        ("the same padding", "a = tl.load(x[4:12, :], pad=0.0)\nb = tl.load(x[4:12, :], pad=0.0)\ntl.store(o[:, :], a + b)", True),
        ("the first is freed", "with tl.scratch_scope():\n    tl.store(o[:, :], tl.load(x[:, :]))\ntl.store(o[:, :], tl.load(x[:, :]))", False),
        ("the first is changed", "a = tl.load(x[:, :])\ntl.copy_to(a, a + 1.0)\nb = tl.load(x[:, :])\ntl.store(o[:, :], a + b)", False),
        ("half of the first is changed", "a = tl.load(x[:, :])\ntl.copy_to(a[0:4, :], a[4:8, :])\nb = tl.load(x[:, :])\ntl.store(o[:, :], a + b)", False),
        ("its other half is changed", "a = tl.empty((16, 8), 'f32')\ntl.load(x[:, :], out=a[0:8, :])\ntl.load(o[:, :], out=a[8:16, :])\nb = tl.load(x[:, :])\ntl.store(o[:, :], a[0:8, :] + b)", True),
        ("into the same again", "a = tl.load(x[:, :])\ntl.load(x[:, :], out=a)\ntl.store(o[:, :], a)", True),
        ("buffers in turn", "b = [tl.empty((4, 8), 'f32') for _ in range(2)]\nfor j in range(4):\n    tl.load(x[j : j + 4, :], out=b[j % 2])\n    tl.store(o[0:4, :], b[j % 2])", False),
        ("stored to in between", "a = tl.load(x[:, :])\ntl.store(x[0:1, :], a[1:2, :])\nb = tl.load(x[:, :])\ntl.store(o[:, :], a + b)", False),
        ("stored to beside it", "a = tl.load(x[0:4, :])\ntl.store(x[4:8, :], a)\nb = tl.load(x[0:4, :])\ntl.store(o[0:4, :], a + b)", True),
        ("stored to before both", "tl.store(x[:, :], tl.zeros((8, 8), 'f32'))\na = tl.load(x[:, :])\nb = tl.load(x[:, :])\ntl.store(o[:, :], a + b)", True),
        ("streamed by composites", "a = tl.load(x[:, :])\nfor j in range(2):\n    tl.store(o[:, :], tl.composite('gemm', a, tl.ref(x[:, :]), tile=(4, 8, 8)))", False),
        ("an older handle holds it", "a = tl.load(x[:, :])\nfor j in range(2):\n    with tl.scratch_scope():\n        tl.store(o[:, :], tl.load(x[:, :]) + a)", True),
        ("by pointer", "a = tl.load(x + 8, (8,), 'f32')\nb = tl.load(x + 8, (8,), 'f32')\ntl.store(o[0, :], a + b)", True),
    ],
)  # fmt: skip
def test_what_holds_a_region_and_what_no_longer_does(lint: Lint, what: str, text: str, fires: bool) -> None:
    """The same region, unchanged in scratch and in HBM, in a scope that is still open."""
    assert bool(len(lint(body(text), X, X))) is fires


@pytest.mark.parametrize(("rows", "fires"), [(4, False), (0, True)])
def test_what_another_rank_stores_to_is_left_alone(lint: Lint, rows: int, fires: bool) -> None:
    """Nothing says when it does; another part of the tensor is nobody's concern."""
    text = f"""
if tl.program_id(0) == 0:
    a = tl.load(x[4:8, :])
    b = tl.load(x[4:8, :])
    tl.store(o[0:4, :], a + b)
else:
    tl.store(x[{rows} : {rows + 4}, :], tl.zeros((4, 8), tl.float32))
"""
    assert bool(len(lint(body(text), X, X, ranks=2))) is fires


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("x[2:4, 8:16]", "`x[2:4, 8:16]`"),
        ("x[2]", "`x[2:3, 0:64]`"),
        ("x + 130, (20,)", "`x[2:3, 2:22]`"),
        ("x + 60, (20,)", "elements 60 to 80 of `x`"),
        ("x + 960, (1000,)", "elements 960 to 1,960 of `x`"),
        ("row[0:1, 3:9]", "`row[0:1, 3:9]`"),
        ("row + 3, (6,)", "`row[0:1, 3:9]`"),
    ],
)
def test_regions_are_named_as_boxes_where_they_are(lint: Lint, region: str, said: str) -> None:
    """Else by the elements that they span."""
    text = f"@ks.kernel\ndef kernel(x, row):\n    a, b = tl.load({region}), tl.load({region})\n    tl.copy_to(a, b)\n"
    (finding,) = lint(text, ks.hbm((64, 64), "f32"), ks.hbm((1, 64), "f32"), select=["KS503"])
    assert finding.message.startswith(f"{said} is loaded again although `a` still holds it unchanged, ")
