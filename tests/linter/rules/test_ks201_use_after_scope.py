"""KS201: each golden shows all that a reader needs: made, closed, reused, read."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import codes

Lint = Callable[..., LintReport]


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    """f32 tensors of these shapes."""
    return [ks.hbm(shape, "f32") for shape in shapes]


def test_a_stale_read_names_all_four_places(lint: Lint) -> None:
    """Read, made, scope closed, bytes reused; and how to keep the value."""
    kernel = """
        @ks.kernel
        def stale(x, o):
            with tl.scratch_scope():
                a = tl.load(x[:, :])
                s = tl.exp(a)
            b = tl.load(x[:, :])
            c = b + b
            tl.store(o[:, :], s)
    """
    assert (
        str(lint(kernel, *tensors((4, 8), (4, 8)), select=["KS2"]))
        == """\
error[KS201]: `s` is read by store after the exit of its scope
  --> kernel.py:11:5
   |
 6 |     with tl.scratch_scope():
   |     ------------------------ scope closed here
...
 8 |         s = tl.exp(a)
   |             --------- made here
...
10 |     c = b + b
   |         ----- bytes reused here, by `c`
11 |     tl.store(o[:, :], s)
   |     ^^^^^^^^^^^^^^^^^^^^ read here
   |
  = help: above line 6 make `s = tl.empty((4, 8), tl.float32)`, and at line 8 write `tl.copy_to(s, ...)` with what is now assigned to `s`; or do inside the scope what line 11 does

stale: 1 error"""
    )


def test_an_assignment_that_means_to_change_an_outer_handle_is_told_so(lint: Lint) -> None:
    """`acc += x` makes fresh bytes: the help names the copy_to, and both lines called `acc`."""
    kernel = """
        @ks.kernel
        def total(x, o):
            acc = tl.zeros((8,), tl.float32)
            for j in range(3):
                with tl.scratch_scope():
                    acc += tl.load(x[j * 8 : (j + 1) * 8])
            tl.store(o[:], acc)
    """
    report = lint(kernel, *tensors((24,), (8,)))
    assert [(d.message, d.nodes) for d in report] == [
        ("`acc` is read by add after the exit of its scope, 2 times", (7, 11)),
        ("`acc` is read by store after the exit of its scope", (13,)),
    ]
    assert {d.help for d in report} == {
        "at line 9 write `tl.copy_to(acc, ...)` with what is now assigned to `acc`: an assignment takes fresh bytes, "
        "which this scope gives back; it does not change the `acc` of line 6"
    }


def test_a_fault_in_a_loop_is_one_finding_with_all_its_nodes(lint: Lint) -> None:
    """And so it is on several ranks."""
    kernel = """
        @ks.kernel
        def loop(x, o):
            for _ in range(3):
                with tl.scratch_scope():
                    a = tl.load(x[:])
                tl.store(o[:], a)
    """
    report = lint(kernel, *tensors((8,), (8,)), ranks=2, select=["KS2"])
    assert [(d.message, d.nodes) for d in report] == [
        ("`a` is read by store after the exit of its scope, 6 times", (3, 7, 11, 15, 19, 23))
    ]


def test_a_helper_is_blamed_at_its_own_line_and_its_callers_are_named(lint: Lint) -> None:
    """The innermost line of the author's, then the calls that led there; two callers are two faults."""
    kernel = """
        def keep(o, value):
            tl.store(o[:], value)


        @ks.kernel
        def helped(x, o):
            with tl.scratch_scope():
                a = tl.load(x[:])
            keep(o, a)
            keep(o, a)
    """
    report = lint(kernel, *tensors((8,), (8,)))
    assert codes(report) == ["KS201", "KS201"]
    first, second = report
    assert first.location is not None
    assert (first.location.line, first.location.function) == (5, "keep")
    assert "  = called from kernel.py:12:5 in helped" in str(first).splitlines()
    assert "  = called from kernel.py:13:5 in helped" in str(second).splitlines()
