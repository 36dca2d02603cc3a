"""KS803: integers of 32 bits that wrap around on their way to an address."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def offset_of(row, stride):
    return row * stride


@triton.jit
def kernel(x_ptr, o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0){cast}
    at = offset_of(row, stride){after} + tl.arange(0, N)
    tl.store(o_ptr + at, tl.load(x_ptr + at))


kernel[({programs},)](np.ones(96, np.float32), np.zeros(96, np.float32), {stride}, N=8)
"""


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"stride": 2**30 + 8, "programs": 5, "after": " % 64"}, 2),
        ({"stride": 2**30 + 8, "programs": 2, "after": " % 64"}, None),
        ({"stride": 2**30 + 8, "programs": 5, "after": " % 64", "cast": ".to(tl.int64)"}, None),
        ({"stride": 8, "programs": 5}, None),
        ({"stride": 2**30, "programs": 2, "after": " * 4"}, 1),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, options, first):
    """The programs in which it wraps, wherever that leads; both lines, the product's through the function it is in."""
    given = {"cast": "", "after": "", **options}
    found = lint_triton(KERNEL.format(**given), select=["KS8", "KS501"]).diagnostics
    if first is None:
        assert not found
        return
    assert [d.code for d in found] == ["KS803", "KS803"]
    assert all(f"first in program {first}" in d.message for d in found)
    assert {d.location.line for d in found} == {14}
    assert {d.locations[1].location.line for d in found} == {7 if first == 2 else 13}
