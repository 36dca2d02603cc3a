"""KS805: assertions of a kernel that do not hold."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _failed(fact: LaunchFact) -> Finding:
    said = f": {quote(fact.what)}" if fact.what else ""
    return Finding(
        message=f"tl.device_assert does not hold, {fact.where}{said}",
        places=fact_places(fact, "asserted here"),
        help="the condition is the kernel's own: launch it with data that keeps it, or mend what breaks it",
    )


RULE = Rule(
    code="KS805",
    name="failed-assertion",
    severity="error",
    summary="a `tl.device_assert` does not hold",
    what="""
Judges Triton launches: `tl.device_assert` is looked at in every program, whether or not the launch is in debug mode.
""",
    why="""
A device looks at assertions in debug mode only, and then stops the whole launch. Without it the kernel goes on with
what its author thought impossible.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def gather(x_ptr, i_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.load(i_ptr + tl.arange(0, N))
    tl.device_assert(i < n, "index out of range")
    tl.store(o_ptr + tl.arange(0, N), tl.load(x_ptr + i, mask=i < n, other=0.0))


gather[(1,)](np.ones(16, np.float32), np.arange(1, 17), np.zeros(16, np.float32), 16, N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def gather(x_ptr, i_ptr, o_ptr, n, N: tl.constexpr):
    i = tl.load(i_ptr + tl.arange(0, N))
    tl.device_assert(i < n, "index out of range")
    tl.store(o_ptr + tl.arange(0, N), tl.load(x_ptr + i, mask=i < n, other=0.0))


gather[(1,)](np.ones(16, np.float32), np.arange(16), np.zeros(16, np.float32), 16, N=16)
""",
    fact=FactKind.ASSERTION,
    of_fact=_failed,
)
