"""KS402: ranks that wait for each other in a cycle."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from kernscope.linter import LintReport

from .rulecases import codes

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only the rules of this family, where a test does not say otherwise: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS4"])


RING = """
    @ks.kernel
    def ring(steps, first):
        tile = tl.zeros((4,), tl.float32)
        for _ in range(steps):
            if first == "send" or (first == "mixed" and tl.program_id(0) == 0):
                tl.send("next", tile)
                tl.recv("prev", (4,), tl.float32, out=tile)
            else:
                tl.recv("prev", (4,), tl.float32, out=tile)
                tl.send("next", tile)
"""


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_ring_that_receives_first_is_a_deadlock_of_all_its_lines(lint: Lint, ranks: int) -> None:
    """One finding, with every rank's part."""
    (finding,) = lint(RING, 3, "recv", ranks=ranks)
    assert finding.code == "KS402"
    assert {place.location.line for place in finding.locations} == {12, 13}
    assert {role.split(":")[0] for role in (place.role for place in finding.locations)} == {
        f"rank {rank}" for rank in range(ranks)
    }


@pytest.mark.parametrize("first", ["send", "mixed"])
def test_a_ring_in_which_somebody_sends_first_is_none(lint: Lint, first: str) -> None:
    """For any number of steps."""
    assert "KS402" not in codes(lint(RING, 5, first, ranks=3))


def test_full_channels_can_deadlock_too(lint: Lint) -> None:
    """Two slots hold two messages, not three."""
    kernel = """
        @ks.kernel
        def burst(count):
            tile = tl.zeros((4,), tl.float32)
            for _ in range(count):
                tl.send("next", tile)
            for _ in range(count):
                tl.recv("prev", (4,), tl.float32)
    """
    assert codes(lint(kernel, 2, ranks=2)) == []
    (finding,) = lint(kernel, 3, ranks=2)
    assert finding.code == "KS402"
    assert any("credit" in place.role for place in finding.locations)


def test_a_deadlock_on_a_channel_with_unmatched_messages_is_left_to_their_rule(lint: Lint) -> None:
    """One fault, one finding."""
    kernel = """
        @ks.kernel
        def both():
            tile = tl.zeros((4,), tl.float32)
            tl.recv("prev", (4,), tl.float32)
            tl.send("next", tile)
            if tl.program_id(0) == 0:
                tl.send("next", tile)
    """
    assert codes(lint(kernel, ranks=2)) == ["KS401"]
