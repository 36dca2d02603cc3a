"""KS401, KS402 and KS403: messages between ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import kernscope as ks
from kernscope.analysis.analysis import Analysis
from kernscope.linter import LintReport
from kernscope.linter.analyses.lazy_messages import run_lazy

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only the rules of this family, where a test does not say otherwise: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS4"])


def codes(report: LintReport) -> list[str]:
    return [d.code for d in report]


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


# --- KS402 ------------------------------------------------------------------------------------------------------------

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


# --- KS403 ------------------------------------------------------------------------------------------------------------

STREAM = """
    @ks.kernel
    def stream(x, count, work):
        if tl.program_id(0) == 0:
            tile = tl.load(x[:])
            for _ in range(count):
                tl.send("next", tile)
        else:
            for _ in range(count):
                with tl.scratch_scope():
                    busy = tl.zeros((work,), tl.float32)
                    for _ in range(4 if work > 1 else 0):
                        tl.copy_to(busy, tl.sin(busy))
                    tl.recv("prev", (16,), tl.float32)
"""


def test_a_sender_that_waits_for_a_slot_is_told_by_how_much(lint: Lint) -> None:
    """Two slots: the third send waits for the first receive. What it waits is the time that the schedule says."""
    x = ks.hbm((16,), "f32")
    (finding,) = lint(STREAM, x, 4, 16_384, ranks=2)
    assert finding.code == "KS403"
    assert finding.severity == "info"
    assert [(place.location.line, place.role) for place in finding.locations] == [
        (9, "rank 0 waits here"),
        (16, "rank 1 frees the slot here"),
    ]
    assert len(finding.nodes) == 2
    assert '`tl.recv_async("prev", ...)`' in finding.help


def test_a_receiver_that_keeps_up_holds_nobody_back(lint: Lint) -> None:
    """Nor do as many messages as there are slots."""
    x = ks.hbm((16,), "f32")
    assert codes(lint(STREAM, x, 2, 16_384, ranks=2)) == []
    assert codes(lint(STREAM, x, 6, 1, ranks=2)) == []


def test_the_time_that_a_sender_is_held_back_is_that_without_slots_to_wait_for() -> None:
    """Taken from the lazy schedule by hand: the send's start, minus the end of what else it waits for."""

    def kernel(x: Any) -> None:
        if ks.tl.program_id(0) == 0:
            tile = ks.tl.load(x[:])
            for _ in range(3):
                ks.tl.send("next", tile)
        else:
            busy = ks.tl.sin(ks.tl.zeros((16_384,), ks.tl.float32))
            for _ in range(3):
                ks.tl.recv("prev", (16,), ks.tl.float32)
            ks.tl.sin(busy)

    graph = ks.trace(kernel, ks.hbm((16,), "f32"), ranks=2)
    lazy = ks.schedule(graph, policy="lazy")
    (held,) = run_lazy(Analysis(graph)).held_sends
    sends = [node.id for node in graph if node.op == "send"]
    assert held.node == sends[2]
    assert held.held_ps == int(lazy.start_ps[sends[2]] - lazy.end_ps[sends[1]])
    assert int(lazy.start_ps[sends[2]]) == int(lazy.end_ps[held.freed_by])


def test_a_kernel_without_messages_needs_no_machine() -> None:
    """The message rules look at nothing then; with messages an unknown machine is an error, not a guess."""

    def silent() -> None:
        ks.tl.zeros((4,), ks.tl.float32)

    def sending() -> None:
        ks.tl.send("next", ks.tl.zeros((4,), ks.tl.float32))
        ks.tl.recv("prev", (4,), ks.tl.float32)

    for kernel, fails in ((silent, False), (sending, True)):
        graph = ks.trace(kernel, ranks=2)
        unknown = attrs.evolve(graph, machine="of another repository")
        if fails:
            with pytest.raises(ks.MachineError, match="of another repository"):
                ks.lint(unknown)
        else:
            assert ks.lint(unknown).ok
