"""KS203: copies that nothing comes of."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
import itertools
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


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_one_dead_copy_among_others_is_found_whatever_stands_beside_it(lint: Lint, order: tuple[int, ...]) -> None:
    """Of four handles, copied to one after the other in any order, only the one that nothing reads is told of."""
    made = "".join(f"    kept{i} = tl.empty((8, 8), 'f32')\n" for i in range(4))
    copied = "".join(f"    tl.copy_to(kept{i}, tile)\n" for i in order)
    read = "".join(f"    tl.store(o[:, :], kept{i})\n" for i in range(1, 4))
    report = lint(body(f"tile = tl.load(x[:, :])\nwith tl.scratch_scope():\n{made}{copied}{read}"), X, X)
    assert [finding.message.partition("`")[2].partition("`")[0] for finding in report] == ["kept0"]
    assert codes(report) == ["KS203"]
