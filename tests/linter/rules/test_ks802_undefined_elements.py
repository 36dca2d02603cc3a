"""KS802: elements that a masked load leaves undefined, and that are used."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n{other})
    {use}


kernel[(3,)](np.ones({size}, np.float32), np.zeros(24, np.float32), {size}, N=8)
"""


@pytest.mark.parametrize(
    ("use", "other", "by"),
    [
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))", "", "sum"),
        ("tl.store(o_ptr + tl.program_id(0), tl.max(x * 2.0, 0))", "", "max"),
        ("tl.store(o_ptr + i, x)", "", "the store to o_ptr"),
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))", ", other=0.0", None),
        ("tl.store(o_ptr + i, x, mask=i < n)", "", None),
        ("tl.store(o_ptr + tl.program_id(0), tl.sum(tl.where(i < n, x, 0.0), 0))", "", None),
    ],
)
def test_what_fires_and_what_does_not(lint_triton, use, other, by):
    """A use of undefined elements, in the programs that have some; not where they were masked off again."""
    found = lint_triton(KERNEL.format(use=use, other=other, size=20), select=["KS802"])
    said = [f"{by} uses what a masked load without other= left undefined, in 1 of 3 programs, first in program 2"]
    assert [d.message for d in found] == (said if by else [])
    assert not lint_triton(KERNEL.format(use=use, other=other, size=24), select=["KS802"]).diagnostics


def test_what_lies_outside_is_no_masked_load(lint_triton):
    """It is one fault, and told once."""
    report = lint_triton(KERNEL.format(use="tl.store(o_ptr + i, x)", other="", size=20).replace(", mask=i < n", ""))
    assert [d.code for d in report if d.severity == "error"] == ["KS501"]
