"""KS805: assertions of a kernel that do not hold."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def kernel(i_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.load(i_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.device_assert(i < n, "index out of range")
    tl.store(o_ptr + tl.program_id(0) * N + tl.arange(0, N), i)


kernel[(4,)](np.arange(32, dtype=np.int32), np.zeros(32, np.int32), {n}, N=8)
"""


@pytest.mark.parametrize(("n", "programs"), [(32, 0), (31, 1), (8, 3), (0, 4)])
def test_it_is_looked_at_in_every_program(lint_triton, n, programs):
    """With the assertion's line, its message, and how many programs break it."""
    found = lint_triton(KERNEL.format(n=n)).of("KS805")
    said = f"in {programs} of 4 programs, first in program {4 - programs}: index out of range"
    assert [(d.location.line, said in d.message) for d in found] == ([(8, True)] if programs else [])
