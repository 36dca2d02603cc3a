"""KS806: floats that programs add to one element by atomics."""

from __future__ import annotations

import pytest

KERNEL = """
@triton.jit
def kernel(x_ptr, o_ptr, n, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_{how}(o_ptr + tl.program_id(0) // n, tl.{fold}(x, 0))


kernel[(4,)](np.ones(32, np.{dtype}), np.zeros(4, np.{dtype}), {n}, N=8)
"""


@pytest.mark.parametrize(("n", "programs"), [(1, 0), (2, 4), (3, 3), (4, 4)])
def test_sums_of_several_programs_are_told(lint_triton, n, programs):
    """With the line, and how many programs add to an element of another one."""
    found = lint_triton(KERNEL.format(how="add", fold="sum", dtype="float32", n=n)).of("KS806")
    said = f"in {programs} of 4 programs, first in program 0"
    assert [(d.location.line, d.severity, said in d.message) for d in found] == (
        [(8, "info", True)] if programs else []
    )


@pytest.mark.parametrize(("how", "fold", "dtype"), [("add", "sum", "int32"), ("max", "max", "float32")])
def test_what_no_order_changes_is_not_told(lint_triton, how, fold, dtype):
    """Integers, and what is the same in every order."""
    report = lint_triton(KERNEL.format(how=how, fold=fold, dtype=dtype, n=4))
    assert [d.code for d in report if d.code.startswith("KS8")] == []
