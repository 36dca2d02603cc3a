"""KS403: senders that a full channel holds back."""

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

from .rulecases import codes

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only the rules of this family, where a test does not say otherwise: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS4"])


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
        unknown = attrs.evolve(graph, machine="of another repository", machine_toml="")
        if fails:
            with pytest.raises(ks.MachineError, match="of another repository"):
                ks.lint(unknown)
        else:
            assert ks.lint(unknown).ok
