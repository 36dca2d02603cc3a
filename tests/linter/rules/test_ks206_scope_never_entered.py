"""KS206: scopes that no `with` enters."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


X = ks.hbm((8, 8), "f32")


def found(code: str, kernel: Callable[..., Any], *args: Any, **options: Any) -> list[str]:
    return [d.message for d in ks.lint(kernel, *args, select=[code], **options)]


def test_a_scope_without_with_is_found() -> None:
    """Once a line, with the count; also in a helper, and of one of several."""

    def kernel(x: Any, o: Any) -> None:
        for _ in range(3):
            tl.scratch_scope("lost")
            with tl.scratch_scope("entered"):
                tl.store(o, tl.load(x))

    (finding,) = ks.lint(kernel, X, X, select=["KS206"])
    assert "3 times" in finding.message and finding.location is not None
    assert finding.location.line == kernel.__code__.co_firstlineno + 2 and "`with tl.scratch_scope():`" in finding.help
    assert len(ks.lint(kernel, X, X, select=["KS206"], ranks=2)) == 1


def test_scopes_that_are_entered_are_silent() -> None:
    """By `with`, by an exit stack, later, again, by hand; and those made outside a kernel."""
    outside = tl.scratch_scope("outside")

    def kernel(x: Any, o: Any) -> None:
        later = tl.scratch_scope("later")
        with outside, ExitStack() as stack:
            stack.enter_context(tl.scratch_scope())
            h = tl.load(x)
            with later:
                tl.store(o, h)
            with later:
                tl.store(o, h)
        by_hand = tl.scratch_scope()
        by_hand.__enter__()
        by_hand.__exit__(None, None, None)

    assert not found("KS206", kernel, X, X) and not found("KS206", kernel, X, X, ranks=3)


def test_a_saved_graph_keeps_the_finding(tmp_path: Any) -> None:
    """What was never entered is part of the graph."""

    def kernel(x: Any, o: Any) -> None:
        tl.scratch_scope()
        tl.store(o, tl.load(x))

    graph = ks.trace(kernel, X, X)
    graph.save(tmp_path / "g.ksg")
    again = ks.load(tmp_path / "g.ksg")
    assert again == graph and [d.message for d in ks.lint(again)] == [d.message for d in ks.lint(graph)] != []


@pytest.mark.parametrize("times", [1, 2])
def test_a_scope_left_more_often_than_entered_is_refused(times: int) -> None:
    """With the line; by whatever name."""

    def kernel(x: Any, *, name: str) -> None:
        scope = tl.scratch_scope(name)
        if times == 2:
            scope.__enter__()
            scope.__exit__(None, None, None)
        scope.__exit__(None, None, None)

    for name in ("", "mine"):
        with pytest.raises(ks.ScopeError, match="left") as caught:
            ks.trace(kernel, X, name=name)
        assert caught.value.places[0][1].line == kernel.__code__.co_firstlineno + 5


def test_a_scope_entered_twice_and_left_once_is_refused() -> None:
    """It is still open at the end: the line that entered it last is named."""

    def kernel(x: Any) -> None:
        scope = tl.scratch_scope("twice")
        scope.__enter__()
        scope.__enter__()
        scope.__exit__(None, None, None)

    with pytest.raises(ks.ScopeError, match="still open") as caught:
        ks.trace(kernel, X)
    assert caught.value.places[0][1].line == kernel.__code__.co_firstlineno + 2
