"""KS804: hints to the compiler that the data contradicts."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _contradicted(fact: LaunchFact) -> Finding:
    said = "does not hold" if fact.what == "assume" else f"is contradicted by {fact.number:,}"
    return Finding(
        message=f"tl.{quote(fact.what)} {said}, {fact.where}",
        places=fact_places(fact, "promised here"),
        help="take the promise away, or launch with values that keep it: the compiler believes it",
    )


RULE = Rule(
    code="KS804",
    name="false-hint",
    severity="error",
    summary="a hint such as `tl.multiple_of` or `tl.assume` is not true",
    what="""
Judges Triton launches: `tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy` (of single numbers and lines of them)
and `tl.assume` are compared with the values that every program has.
""",
    why="""
The compiler believes a hint: it loads wider vectors, leaves out a branch, or takes one address for several. What comes
of a false one is a misaligned access or wrong numbers, on a device only.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, o_ptr, stride, N: tl.constexpr):
    at = tl.multiple_of(tl.program_id(0) * stride, 16) + tl.arange(0, N)
    tl.store(o_ptr + at, tl.load(x_ptr + at))


copy[(4,)](np.ones(96, np.float32), np.zeros(96, np.float32), 24, N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, o_ptr, stride, N: tl.constexpr):
    at = tl.multiple_of(tl.program_id(0) * stride, 8) + tl.arange(0, N)
    tl.store(o_ptr + at, tl.load(x_ptr + at))


copy[(4,)](np.ones(96, np.float32), np.zeros(96, np.float32), 24, N=16)
""",
    fact=FactKind.HINT,
    of_fact=_contradicted,
)
