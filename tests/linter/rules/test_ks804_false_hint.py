"""KS804: hints to the compiler that the data contradicts."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def kernel(x_ptr, o_ptr, stride, N: tl.constexpr):
    at = tl.program_id(0) * stride
    {hint}
    i = at + tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i))


kernel[(3,)](np.ones(96, np.float32), np.zeros(96, np.float32), {stride}, N=8)
"""


@pytest.mark.parametrize(
    ("hint", "stride", "said"),
    [
        ("at = tl.multiple_of(at, 16)", 24, "tl.multiple_of is contradicted by 24, in 1 of 3 programs"),
        ("at = tl.multiple_of(at, 8)", 24, None),
        ("tl.assume(at < 40)", 24, "tl.assume does not hold, in 1 of 3 programs, first in program 2"),
        ("tl.assume(at < 49)", 24, None),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, hint, stride, said):
    """A hint that some program's value contradicts, at its line."""
    found = lint_triton(KERNEL.format(hint=hint, stride=stride)).of("KS804")
    assert [(d.location.line, d.message.startswith(said)) for d in found] == ([(8, True)] if said else [])
