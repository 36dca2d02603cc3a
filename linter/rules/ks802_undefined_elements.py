"""KS802: elements that a masked load leaves undefined, and that are used."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _undefined(fact: LaunchFact) -> Finding:
    load = "a masked load" if fact.other_place is None else f"the masked load in line {fact.other_place.line}"
    return Finding(
        message=f"{quote(fact.what)} uses what {load} leaves undefined, {fact.where}",
        places=fact_places(fact, "used here", "left undefined here, where the mask is false"),
        help="say in the load what the elements that are masked off count as: tl.load(pointers, mask=mask, other=0.0), "
        "-inf in a maximum; or mask them off where they are used, too: tl.store(pointers, values, mask=mask)",
    )


RULE = Rule(
    code="KS802",
    name="undefined-elements",
    severity="error",
    summary="elements that a masked load without `other=` leaves undefined are used",
    what="""
Judges Triton launches. A load with `mask=` and without `other=` leaves the elements that are masked off undefined. That
is followed through what is computed from them, element by element, also through sums, products and sorting, for every
program: reported is where one is stored, decides a branch, or goes into an address. Elements that are masked off again
where they would be used are no fault.
""",
    why="""
Some backends fill such elements with zeros, others with whatever was there. A sum, a maximum or a product over them is
right on the first and wrong on the second, and only for sizes that are no multiple of the block.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def row_sum(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n)
    tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))


row_sum[(4,)](np.ones(4 * 13, np.float32), np.zeros(4, np.float32), 13, N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def row_sum(x_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    tl.store(o_ptr + tl.program_id(0), tl.sum(x, 0))


row_sum[(4,)](np.ones(4 * 13, np.float32), np.zeros(4, np.float32), 13, N=16)
""",
    fact=FactKind.UNDEFINED,
    of_fact=_undefined,
)
