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
UNORDERED = "which program {} writes, and nothing orders them"


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
            [(8, 8, f"program 0 writes element 7 of `o_ptr`, {UNORDERED.format(1)}")],
        ),
        (
            "accumulate[(3,)](x, out, N=8)",
            [
                (14, 14, f"program 0 writes element 0 of `o_ptr`, {UNORDERED.format(2)}"),
                (14, 14, f"program 0 reads element 0 of `o_ptr`, {UNORDERED.format(2)}"),
            ],
        ),
        (
            "overlapping[(2,)](x[4:], x, STEP=4, N=4)",
            [(8, 8, f"program 0 reads element 4 of `x_ptr`, {UNORDERED.format(1)}")],
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
