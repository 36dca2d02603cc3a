"""KS806: floats that programs of a launch add to one element by atomics, in no order."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _chance(fact: LaunchFact) -> Finding:
    return Finding(
        message=f"the order of programs decides how a sum is rounded: programs {fact.program} and {fact.other_program} "
        f"add to element {fact.number:,} of `{quote(fact.what)}`, {fact.where}",
        places=fact_places(fact, "added here"),
        help="where results have to repeat bit for bit, let each program store its part, and add the parts in a second "
        "launch",
    )


RULE = Rule(
    code="KS806",
    name="unordered-sum",
    severity="info",
    summary="programs of a launch add floats to one element by atomics",
    what="""
Judges Triton launches, which are run for all of their programs. Reports a `tl.atomic_add` of floats by which two
programs add to one element; one finding a line. Integers, and maxima and minima, are the same in every order and are
not reported; nor are programs that take locks.
""",
    why="""
A sum of floats depends on its order, and atomics come in any: two runs differ in their last bits. That is often
accepted, but a test that compares bits fails by chance.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(o_ptr, tl.sum(x, 0))


total[(4,)](np.ones(64, np.float32), np.zeros(1, np.float32), N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))


total[(4,)](np.ones(64, np.float32), np.zeros(4, np.float32), N=16)
""",
    fact=FactKind.CHANCE,
    of_fact=_chance,
)
