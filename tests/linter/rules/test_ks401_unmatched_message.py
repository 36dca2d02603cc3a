"""KS401: messages without a partner, or with one that expects another tile."""

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


SHIFT = """
    @ks.kernel
    def shift(sends, recvs, shape=(4,), dtype="f32"):
        rank = tl.program_id(0)
        tile = tl.zeros((4,), tl.float32)
        for _ in range(sends[rank]):
            tl.send("next", tile)
        for _ in range(recvs[rank]):
            tl.recv("prev", shape, dtype)
"""


def test_messages_that_meet_are_silent(lint: Lint) -> None:
    """As many sent as received, on every channel."""
    assert codes(lint(SHIFT, (1, 2, 0), (0, 1, 2), ranks=3)) == []


def test_sends_without_recv_are_one_finding_a_line(lint: Lint) -> None:
    """The first ones sent find a partner: the last ones are left over. With what to add, and on which rank."""
    assert (
        str(lint(SHIFT, (3, 0), (0, 1), ranks=2))
        == """\
error[KS401]: send to "next" of rank 0: rank 1 never receives it (3 sent, 1 received on this channel), 2 times
 --> kernel.py:9:9
  |
9 |         tl.send("next", tile)
  |         ^^^^^^^^^^^^^^^^^^^^^ sent here
  |
  = help: on rank 1 add `tl.recv("prev", (4,), tl.float32)`, or do not send there: guard this line by tl.program_id(0)

shift: 1 error"""
    )


def test_recvs_without_send_are_found_on_a_channel_nobody_sends_on(lint: Lint) -> None:
    """Nothing waits for them in a schedule, so this is no deadlock."""
    (finding,) = lint(SHIFT, (0, 0), (0, 2), ranks=2)
    assert finding.code == "KS401"
    assert finding.message == (
        'recv from "prev" of rank 1: rank 0 never sends it (0 sent, 2 received on this channel), 2 times'
    )
    assert finding.help.startswith('on rank 0 add `tl.send("next", ...)`')


@pytest.mark.parametrize(("shape", "dtype"), [((2, 2), "f32"), ((5,), "f32"), ((4,), "f16"), ((4,), "i32")])
def test_both_ends_must_agree_on_shape_and_dtype(lint: Lint, shape: tuple[int, ...], dtype: str) -> None:
    """Also where the bytes would be as many."""
    (finding,) = lint(SHIFT, (2, 0), (0, 2), shape=shape, dtype=dtype, ranks=2)
    assert finding.code == "KS401"
    assert finding.message == f"rank 0 sends f32[4], rank 1 receives {dtype}{list(shape)}, 2 times"
    assert [place.role for place in finding.locations] == ["received here", "sent here"]
    assert len(finding.nodes) == 4


def test_a_posted_receive_counts_as_one(lint: Lint) -> None:
    """`recv_async` meets its send whether or not anybody waits for it."""
    kernel = """
        @ks.kernel
        def posted(waits):
            tile = tl.zeros((4,), tl.float32)
            future = tl.recv_async("prev", (4,), tl.float32)
            tl.send("next", tile)
            if waits:
                tl.wait(future)
    """
    assert codes(lint(kernel, True, ranks=3)) == []
    assert codes(lint(kernel, False, ranks=3)) == []
