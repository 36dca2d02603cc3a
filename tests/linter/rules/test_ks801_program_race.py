"""KS801: programs of a launch that meet in memory."""

from __future__ import annotations

import pytest

KERNELS = """
@triton.jit
def overlapping(x_ptr, o_ptr, STEP: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i))


@triton.jit
def accumulate(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.sum(tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N)), 0)
    tl.store(o_ptr, tl.load(o_ptr) + x)


@triton.jit
def atomic(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.sum(tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N)), 0)
    tl.atomic_add(o_ptr, x)


@triton.jit
def halves(x_ptr, o_ptr, N: tl.constexpr):
    half = tl.program_id(0) * 2 * N + tl.arange(0, N)
    tl.store(o_ptr + half, tl.load(x_ptr + half))
    tl.store(o_ptr + N + half + tl.program_id(1), tl.load(x_ptr + half))


x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
"""
UNORDERED = "which program {} writes, and nothing orders them; {} of {} programs meet so"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("overlapping[(3,)](x, out, STEP=8, N=8)", []),
        ("overlapping[(1,)](x, out, STEP=0, N=8)", []),
        ("atomic[(3,)](x, out, N=8)", []),
        ("overlapping[(3,)](x, x, STEP=8, N=8)", []),
        ("halves[(2, 1)](x, out, N=8)", []),
        (
            "overlapping[(3,)](x, out, STEP=7, N=8)",
            [(8, 8, f"program 0 writes element 7 of `o_ptr`, {UNORDERED.format(1, 3, 3)}")],
        ),
        (
            "accumulate[(3,)](x, out, N=8)",
            [
                (14, 14, f"program 0 writes element 0 of `o_ptr`, {UNORDERED.format(2, 3, 3)}"),
                (14, 14, f"program 0 reads element 0 of `o_ptr`, {UNORDERED.format(2, 3, 3)}"),
            ],
        ),
        (
            "overlapping[(2,)](x[4:], x, STEP=4, N=4)",
            [(8, 8, f"program 0 reads element 4 of `x_ptr`, {UNORDERED.format(1, 2, 2)}")],
        ),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, call, said):
    """Two programs of which one writes what the other writes or reads, without atomics; not one program alone, nor
    programs that keep apart."""
    found = lint_triton(KERNELS + call + "\n").of("KS801")
    assert [(d.location.line, d.locations[-1].location.line, d.message) for d in found] == said
    assert {d.severity for d in found} <= {"error"}


def test_both_lines_are_shown(lint_triton):
    """What one program writes in one line and another one in another."""
    (finding,) = lint_triton(KERNELS + "halves[(1, 2)](x, out, N=8)\n").of("KS801")[:1]
    assert "of `o_ptr`" in finding.message and "(0, 1, 0)" in finding.message


def test_it_is_silenced_where_it_is_meant(lint_triton):
    """By a comment on the line, as every rule; and chosen by its code."""
    meant = KERNELS.replace("tl.load(x_ptr + i))", "tl.load(x_ptr + i))  # kernscope: ignore[KS801]", 1)
    call = "overlapping[(3,)](x, out, STEP=7, N=8)\n"
    report = lint_triton(meant + call)
    assert not report.of("KS801") and [d.code for d in report.suppressed] == ["KS801"]
    assert not lint_triton(KERNELS + call, ignore=["KS8"]).of("KS801")
    assert {d.code for d in lint_triton(KERNELS + call, select=["program-race"])} == {"KS801"}


LOCKED = """
@triton.jit
def locked(x_ptr, o_ptr, lock_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + i)
    {before}
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(o_ptr + i, tl.load(o_ptr + i) + x)
    tl.atomic_xchg(lock_ptr, 0)


locked[(3,)](np.ones(24, np.float32), np.zeros(8, np.float32), np.zeros(1, np.int32), N=8)
"""
TICKETS = """
@triton.jit
def tickets(x_ptr, part_ptr, o_ptr, count_ptr, N: tl.constexpr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(part_ptr + pid, tl.sum(tl.load(x_ptr + pid * N + tl.arange(0, N)), 0))
    if tl.atomic_add(count_ptr, 1) == PROGRAMS - 1:
        tl.store(o_ptr, tl.sum(tl.load(part_ptr + tl.arange(0, PROGRAMS)), 0))


tickets[(4,)](np.ones(32, np.float32), np.zeros(4, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int32), N=8,
              PROGRAMS=4)
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (LOCKED.format(before="pass"), set()),
        (LOCKED.format(before="tl.store(o_ptr + i, x)"), {9}),
        (LOCKED.format(before="tl.store(x_ptr + i, x)"), {8, 9}),
        (TICKETS, set()),
        (TICKETS.replace("part_ptr + pid, tl.sum", "part_ptr, tl.sum"), {8}),
    ],
)
def test_what_locks_and_tickets_may_order_is_left_out(lint_triton, text, lines):
    """With a word about it; what programs do before they ask for one is in no order with what others do then."""
    report = lint_triton(text, select=["KS801"])
    assert {place.location.line for d in report for place in d.locations[:1]} == lines
    assert any("locks and tickets" in note for note in report.notes)
