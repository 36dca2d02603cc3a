"""Graphs that cannot be rebuffered: what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

import kernscope as ks
from kernscope import tl


def _refused(kernel: Any) -> ks.LifetimeError:
    graph = ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"))
    with pytest.raises(ks.LifetimeError) as caught:
        ks.rebuffer(graph, 2)
    return caught.value


def test_each_fault_is_shown_once_by_rule_and_line() -> None:
    """In a loop, too; the message counts them all."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            lost = tl.load(x[:, :])
        for _ in range(3):
            tl.store(o[:, :], lost)
        unwritten = tl.empty((8, 8), tl.float32)
        tl.store(o[:, :], unwritten)

    error = _refused(kernel)
    first = kernel.__code__.co_firstlineno
    assert "KS201 use-after-scope (3 x), KS204 read-before-write (1 x)" in error.message
    assert sorted((rule[:5], place.line - first) for rule, place in error.places) == [("KS201", 4), ("KS204", 6)]
    assert error.help.startswith("kernscope lint")


@pytest.mark.parametrize("count", [1, 4, 5, 6, 12])
def test_so_many_places_are_shown_and_no_more(count: int) -> None:
    """The first five."""
    lines = "".join(f"    tl.store(o[:, :], lost)  # {n}\n" for n in range(count))
    head = (
        "from kernscope import tl\ndef kernel(x, o):\n    with tl.scratch_scope():\n        lost = tl.load(x[:, :])\n"
    )
    space: dict[str, Any] = {}
    exec(compile(head + lines, "many.py", "exec"), space)
    error = _refused(space["kernel"])
    assert f"KS201 use-after-scope ({count} x)" in error.message
    assert [place.line for _, place in error.places] == [5 + n for n in range(min(count, 5))]
