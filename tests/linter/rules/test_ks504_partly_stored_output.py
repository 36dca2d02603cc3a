"""KS504: an output of which a part is never stored."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import body

Lint = Callable[..., LintReport]
X: Any = ks.hbm((8, 8), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule alone."""
    return functools.partial(lint, select=["KS504"])


HALF = "tl.store(o[0:4, :], tl.load(x[0:4, :]))"


def test_what_is_never_stored_is_named_with_the_lines_that_store_the_rest(lint: Lint) -> None:
    """The boxes, and each line once."""
    text = """
for i in range(3):
    tl.store(o[2 * i : 2 * i + 2, :], tl.load(x[2 * i : 2 * i + 2, :]))
tl.store(o[6:8, 0:5], tl.load(x[6:8, 0:5]))
"""
    report = lint(body(text), X, X)
    assert (
        str(report)
        == """\
warning[KS504]: 6 of the 64 elements of `o` are never stored: `o[6:8, 5:8]`
 --> kernel.py:7:9
  |
7 |         tl.store(o[2 * i : 2 * i + 2, :], tl.load(x[2 * i : 2 * i + 2, :]))
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ stores the rest here, 3 times
8 |     tl.store(o[6:8, 0:5], tl.load(x[6:8, 0:5]))
  |     ------------------------------------------- stores the rest here
  |
  = help: store the rest, too (a ragged edge with `clip=True`), or, if it is meant to keep what it holds, give `o` its initial values: in the launch an array of shape (8, 8) in the place of ks.hbm

kernel: 1 warning"""
    )
    assert report.diagnostics[0].nodes == (1, 3, 5, 7)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (HALF, "o[4:8, 0:8]"),
        ("tl.store(o + 3, tl.load(x + 0, (61,)))", "o[0:1, 0:3]"),
        ("tl.store(o + 0, tl.load(x + 0, (61,)))", "o[7:8, 5:8]"),
        ("tl.store(o[:, 0], tl.load(x[:, 0]))", "o[0:8, 1:8]"),
        ("tl.store(o[4:10, :], tl.load(x[0:6, :]), clip=True)", "o[0:4, 0:8]"),
        # Loaded again, but only a part of it, and only what was stored before.
        (f"{HALF}\ntl.store(x[:, :], tl.load(x[:, :]) + tl.load(o[1:2, :]))", "o[4:8, 0:8]"),
    ],
)
def test_it_fires_where_a_part_is_never_stored(lint: Lint, text: str, missing: str) -> None:
    """Rows, columns, pointers, clipped stores."""
    (found,) = lint(body(text), X, X).diagnostics
    assert found.message.endswith(f"`{missing}`")


@pytest.mark.parametrize(
    "text",
    [
        # All of it, in whatever pieces, also more than once.
        "tl.store(o[:, :], tl.load(x[:, :]))",
        "for i in range(8):\n    tl.store(o[:, i], tl.load(x[:, i]))",
        "tl.store(o + 0, tl.load(x + 0, (40,)))\ntl.store(o + 30, tl.load(x + 30, (34,)))",
        "for i in range(3):\n    tl.store(o[3 * i : 3 * i + 3, :], tl.load(x[3 * i : 3 * i + 3, :], pad=0.0), clip=True)",
        # Nothing of it: that is another fault.
        "tl.load(x[:, :])",
        # Loaded before it is stored: it holds values.
        "h = tl.load(o[0:2, :])\ntl.store(o[0:2, :], h + 1.0)",
        "tl.store(o[0:2, :], tl.load(x[0:2, :]))\ntl.store(x[:, :], tl.load(o[:, :]))",
        # The kernel's own notes: all that is stored is loaded again.
        f"{HALF}\ntl.store(x[0:4, :], tl.load(o[0:4, :]))",
    ],
)
def test_it_is_silent_where_nothing_is_missing(lint: Lint, text: str) -> None:
    """Complete, in and out, or a place for notes."""
    assert len(lint(body(text), X, X)) == 0


def test_a_tensor_with_initial_values_keeps_them(lint: Lint) -> None:
    """The help, followed: an array in the place of the description."""
    assert len(lint(body(HALF), X, X)) == 1
    assert len(lint(body(HALF), X, np.zeros((8, 8), np.float32))) == 0


def test_a_store_beyond_the_edge_is_the_other_rules_fault(load_kernel: Any) -> None:
    """KS501 alone says that the store misses its place; KS502 alone that ranks store over each other."""
    beyond = ks.lint(lambda x, o: ks.tl.store(o[4:12, :], ks.tl.load(x[:, :])), X, X, select=["KS5"])
    assert [d.code for d in beyond] == ["KS501"]
    over = ks.lint(lambda x, o: ks.tl.store(o[0:4, :], ks.tl.load(x[0:4, :])), X, X, ranks=2, select=["KS50"])
    assert [d.code for d in over] == ["KS502"]


@pytest.mark.parametrize("beyond", ["tl.load(o[0:1, 0:12])", "tl.store(x[4:12, :], h)"])
def test_another_fault_beyond_an_edge_hides_nothing(lint: Lint, beyond: str) -> None:
    """A load beyond the output's edge, a store beyond another tensor's."""
    text = f"h = tl.load(x[:, :])\ntl.store(o[0:2, :], h[0:2, :])\n{beyond}"
    assert [d.code for d in lint(body(text), X, X, select=["KS501", "KS504"])] == ["KS501", "KS504"]


def test_the_ranks_together_store_all_of_it(lint: Lint) -> None:
    """The union of their stores counts; a rank that leaves its part out is found."""
    text = """
r = tl.program_id(0)
if r != {skip}:
    tl.store(o[4 * r : 4 * r + 4, :], tl.load(x[0:4, :]))
"""
    assert len(lint(body(text.format(skip=-1)), X, X, ranks=2)) == 0
    (found,) = lint(body(text.format(skip=1)), X, X, ranks=2).diagnostics
    assert "`o[4:8, 0:8]`" in found.message


def test_a_message_may_order_another_ranks_store_before_a_load(lint: Lint) -> None:
    """What another rank stores may be there when it is loaded; what nobody stores was there before."""
    text = """
if tl.program_id(0) == 0:
    h = tl.load(x[0:4, :])
    tl.store(o[0:4, :], h)
    tl.copy_to(h, h * 2.0)
    tl.send("next", h)
else:
    h = tl.recv("prev", (4, 8), tl.float32)
    tl.load({loaded}, out=h[0:1, :])
    tl.store(x[0:4, :], h)
"""
    (found,) = lint(body(text.format(loaded="o[0:1, :]")), X, X, ranks=2).diagnostics
    assert "`o[4:8, 0:8]`" in found.message
    assert len(lint(body(text.format(loaded="o[4:5, :]")), X, X, ranks=2)) == 0
