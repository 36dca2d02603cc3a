"""KS102: ranks whose scratch is nearly full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..rule import Finding, LintContext, Option, Rule
from ..wording.scratch_lines import how_to_fit, lines_holding, with_line

__all__ = ["RULE"]


def _near_limit(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for here in context.in_every_memory():
        yield from _near_limit_in(here, int(options["percent"]))


def _near_limit_in(context: LintContext, percent: int) -> Iterator[Finding]:
    live, graph = context.liveness, context.graph
    budget, peak = live.budget_bytes, live.peak_bytes
    if peak > budget or peak * 100 <= budget * percent:
        return
    rank = live.fullest_rank
    lines = lines_holding(context, live.held_at_peak(rank))
    of_rank = f" on rank {rank}" if graph.ranks > 1 else ""
    node = live.peak_node_by_rank[rank]
    yield Finding(
        message=f"{context.memory_name} peaks at {peak:,} B{of_rank}, {peak * 100 / budget:.1f} % of the budget of "
        f"{budget:,} B",
        places=context.places(
            ("the peak is reached here", int(graph.storages.stack[live.peak_allocation(rank)])),
            *((line.role, line.stack) for line in lines[:3]),
        ),
        nodes=() if node < 0 else (node,),
        help=f"{budget - peak:,} B are left for a larger tile; {with_line(context, lines[0])} is the largest, and "
        f"{how_to_fit(context, lines[0])}",
    )


RULE = Rule(
    code="KS102",
    name="scratch-near-limit",
    severity="info",
    summary="the peak is above 90 % of the budget (an option), and does not pass it",
    what="""
Compares the peak of the fullest rank with the scratch budget of the target. Silent where KS101 speaks.
""",
    why="""
It is no fault: scratch is there to be used. But the next larger tile, one more operand or a wider dtype will not fit,
and it is good to know that before trying.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("wide", x=ks.hbm((250, 1024), "f32"), o=ks.hbm((250, 1024), "f32"))
@ks.kernel
def copy(x, o):
    tl.store(o[:, :], tl.load(x[:, :]))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("wide", x=ks.hbm((250, 1024), "f32"), o=ks.hbm((250, 1024), "f32"))
@ks.kernel
def copy(x, o):
    for i in range(2):
        with tl.scratch_scope():
            rows = slice(i * 125, (i + 1) * 125)
            tl.store(o[rows, :], tl.load(x[rows, :]))
""",
    check=_near_limit,
    options=(Option("percent", 90, "how much of the budget the peak may take, in percent", lower=0, upper=100),),
)
