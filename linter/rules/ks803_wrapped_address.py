"""KS803: integers of 32 bits that wrap around on their way to an address."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _wrapped(fact: LaunchFact) -> Finding:
    return Finding(
        message=f"an int32 wraps around on its way to an address of `{quote(fact.what)}`, {fact.where}",
        places=fact_places(fact, "accessed here", "wraps around here"),
        help="make one factor an int64 before they are multiplied: tl.program_id(0).to(tl.int64), or "
        "stride.to(tl.int64)",
    )


RULE = Rule(
    code="KS803",
    name="wrapped-address",
    severity="error",
    summary="an int32 wraps around on its way to an address",
    what="""
Judges Triton launches. Integers of 32 bits wrap around as on a device; reported is the access whose address was
computed from such a one, with the line at which it wrapped.
""",
    why="""
`tl.program_id` is an int32, and so is every argument that fits: their product wraps around from 2^31 elements on. The
kernel passes all tests on small tensors, and reads and writes foreign memory on large ones.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def copy_row(x_ptr, o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0) * stride * 4 % 64
    tl.store(o_ptr + row + tl.arange(0, N), tl.load(x_ptr + row + tl.arange(0, N)))


copy_row[(2,)](np.ones(80, np.float32), np.zeros(80, np.float32), 2**30 + 8, N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def copy_row(x_ptr, o_ptr, stride, N: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * stride * 4 % 64
    tl.store(o_ptr + row + tl.arange(0, N), tl.load(x_ptr + row + tl.arange(0, N)))


copy_row[(2,)](np.ones(80, np.float32), np.zeros(80, np.float32), 2**30 + 8, N=16)
""",
    fact=FactKind.WRAPPED,
    of_fact=_wrapped,
)
