"""KS505: kernels that store nothing, and tensors that nothing uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


X = ks.hbm((8, 8), "f32")


def found(code: str, kernel: Callable[..., Any], *args: Any, **options: Any) -> list[str]:
    return [d.message for d in ks.lint(kernel, *args, select=[code], **options)]


@pytest.mark.parametrize(
    "body",
    [
        lambda x, o: tl.load(x),
        lambda x, o: tl.copy_to(tl.zeros((8, 8), "f32"), tl.load(x)),
        lambda x, o: tl.composite("gemm", tl.ref(x), tl.ref(x)),
        lambda x, o: tl.exp(tl.load(x)),
    ],
)
def test_a_kernel_without_a_store_is_found(body: Callable[[Any, Any], Any]) -> None:
    """Whatever else it does; the tensor that it should have stored is named, and so is the last line that works."""
    (finding,) = ks.lint(lambda x, o: body(x, o), X, X, select=["KS505"])
    assert "stores nothing" in finding.message and "`o`" in finding.message and finding.location is not None
    assert "tl.store(o" in finding.help


def test_a_sender_without_a_store_is_found_when_no_rank_has_one() -> None:
    """Ranks that send to one that stores are no fault."""

    def ring(x: Any, o: Any, *, stores: bool) -> None:
        if tl.program_id(0) == 0:
            tl.send("next", tl.load(x))
        else:
            h = tl.recv("prev", (8, 8), "f32")
            if stores:
                tl.store(o, h)

    assert found("KS505", ring, X, X, stores=False, ranks=2) and not found("KS505", ring, X, X, stores=True, ranks=2)


def test_a_tensor_that_nothing_uses_is_found(lint: Lint) -> None:
    """One finding for each; tensors that are only loaded, only stored, or streamed are none."""

    def kernel(x: Any, y: Any, o: Any, p: Any, q: Any) -> None:
        tl.store(o, tl.load(x) + tl.composite("gemm", tl.ref(y), tl.ref(y)))

    assert [m.partition("`")[2].partition("`")[0] for m in found("KS505", kernel, X, X, X, X, X)] == ["p", "q"]


def test_a_fault_at_a_tensor_is_a_use_of_it() -> None:
    """KS501 speaks of what is stored or loaded outside it."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[8:16, :], tl.load(x))

    assert not found("KS505", kernel, X, X) and found("KS501", kernel, X, X)


def test_kernels_that_use_all_they_are_given_are_silent() -> None:
    """In place, by pointer, ragged; and what has no tensors has nothing to store to."""
    assert not found("KS505", lambda x: tl.store(x, tl.load(x) + 1.0), X)
    assert not found("KS505", lambda x, o: tl.store(o + 8, tl.load(x + 3, (4,))), X, X)
    assert not found("KS505", lambda x, o: tl.store(o[4:12, :], tl.load(x[4:12, :], pad=0.0), clip=True), X, X)
    assert not found("KS505", lambda: tl.zeros((4,), "f32"))


def test_the_parameter_that_nothing_uses_is_underlined(lint: Callable[..., LintReport]) -> None:
    """Where the function declares it, whatever calls lie between."""
    kernel = """
        def through(o, h):
            tl.store(o[:, :], h)

        @ks.kernel
        def kernel(x, low,
                   high):
            through(low, tl.load(x[:, :]))
    """
    (finding,) = lint(kernel, X, X, X, select=["KS505"])
    (place,) = [place for place in finding.locations if place.role == "the parameter"]
    assert (place.location.line, place.location.column, place.location.end_column) == (9, 11, 15)
    assert "high):\n   |            ^^^^ the parameter" in str(finding) or "---- the parameter" in str(finding)
