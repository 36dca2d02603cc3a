"""KS801: programs of a launch that meet in memory."""

from __future__ import annotations

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ..rule import Finding, Rule
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _race(fact: LaunchFact) -> Finding:
    does = "reads" if fact.reads else "writes"
    return Finding(
        message=f"program {fact.other_program} {does} element {fact.number:,} of `{quote(fact.what)}`, which program "
        f"{fact.program} writes, and nothing orders them; {fact.share} meet so",
        places=fact_places(fact, f"{'read' if fact.reads else 'written'} here", "the other program writes here"),
        help="give each program elements of its own; where all add to one result, tl.atomic_add does",
    )


RULE = Rule(
    code="KS801",
    name="program-race",
    severity="error",
    summary="a program of a launch writes what another one writes or reads, without atomics",
    what="""
Judges Triton launches, which are run for all of their programs. Reports two programs of which one writes an element
that the other writes or reads, with both lines, both programs, and the element. One finding for each pair of lines;
with `tl.atomic_*` there is none. What a program does after it has learnt what an atomic found (`tl.atomic_cas` of a
lock, a ticket of `tl.atomic_add`) is left out, and the report says so: what that orders is not known.
""",
    why="""
A device runs the programs of a launch in any order, and several at a time. What such a kernel computes is chance: right
on one device, with one size of the grid, and wrong on the next.
""",
    example="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.store(o_ptr, tl.load(o_ptr) + tl.sum(x, 0))


total[(4,)](np.ones(64, np.float32), np.zeros(1, np.float32), N=16)
""",
    fix="""
import numpy as np
import triton
import triton.language as tl


@triton.jit
def total(x_ptr, o_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    tl.atomic_add(o_ptr, tl.sum(x, 0))


total[(4,)](np.ones(64, np.float32), np.zeros(1, np.float32), N=16)
""",
    fact=FactKind.RACE,
    of_fact=_race,
)
