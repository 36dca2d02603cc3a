"""KS104: scopes that hold what is dead at the peak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..analyses.scopes import (
    GROWTH_FROM,
    DeadAtPeak,
    dead_at_peak,
    find_unscoped_loops,
)
from ..fixes.scoping import loop_around_both, split_scope
from ..rule import Finding, LintContext, Option, Rule
from ..wording.counts import on_ranks
from ..wording.loops import wrap_body
from ..wording.scratch_lines import handle_names, lines_holding

__all__ = ["RULE"]

_LINES_SHOWN = 5


def _oversized_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for all ranks whose peaks of a memory lie in the same scope of the source."""
    for here in context.in_every_memory():
        yield from _oversized_scope_in(here, int(options["percent"]))


def _oversized_scope_in(context: LintContext, percent: int) -> Iterator[Finding]:
    graph, live = context.graph, context.liveness
    groups: dict[tuple[int, int], list[DeadAtPeak]] = {}
    for rank in range(graph.ranks):
        found = dead_at_peak(graph, live, rank)
        if found is None:
            continue
        peak = live.peak_bytes_by_rank[rank]
        if (peak - found.peak_bytes) * 100 >= peak * percent:
            opened = int(graph.scopes.stack[found.scope])
            groups.setdefault((opened, context.stack_of(found.last_node)), []).append(found)
    for (opened, last_use), group in groups.items():
        worst = max(group, key=lambda found: (live.peak_bytes_by_rank[found.rank], -found.rank))
        peak = live.peak_bytes_by_rank[worst.rank]
        if _told_by_growth(context, worst):
            continue
        lines = lines_holding(context, worst.rows)
        top = int(graph.storages.stack[worst.top])
        fix = None if len(worst.kept) else split_scope(context, opened, last_use, top)
        holds = [(line.role, line.stack) for line in lines[:_LINES_SHOWN] if line.stack != last_use]
        yield Finding(
            message=f"at the peak of {_of_memory(context)}{peak:,} B{on_ranks([f.rank for f in group], graph.ranks)}, "
            f"{worst.dead_bytes:,} B of this scope are dead but held; given back in time, the peak is "
            f"{worst.peak_bytes:,} B",
            places=context.places(
                ("scope opened here", opened),
                ("all of that is used for the last time here", last_use),
                ("the peak is reached here", top),
                *holds,
            ),
            nodes=tuple(sorted(found.last_node for found in group)),
            help=fix.title if fix is not None else _oversized_help(context, worst, opened, last_use),
            fixes=() if fix is None else (fix,),
        )


def _of_memory(context: LintContext) -> str:
    """``tcm, `` where there are several memories to tell apart."""
    return f"{context.memory_name}, " if len(context.graph.target.scratch_memories) > 1 else ""


def _told_by_growth(context: LintContext, found: DeadAtPeak) -> bool:
    """Whether what is dead is what an unscoped loop left behind: KS103 speaks of that."""
    loops = find_unscoped_loops(context.graph, context.liveness, GROWTH_FROM)
    return any(np.isin(found.rows, loop.rows).any() for loop in loops if loop.scope == found.scope)


def _oversized_help(context: LintContext, found: DeadAtPeak, opened: int, last_use: int) -> str:
    loop = loop_around_both(context, opened, last_use, int(context.graph.storages.stack[found.top]))
    if loop is not None:
        return f"{wrap_body(loop, context.line(last_use))}, as far as its handles are not needed after it"
    advice = f"close the scope after {context.line(last_use)}, and open another one for what follows"
    if not len(found.kept):
        return advice
    kept = handle_names(context, found.kept)
    return f"{advice}; {kept} must outlive it: make a handle before the scope and `tl.copy_to` into it"


RULE = Rule(
    code="KS104",
    name="oversized-scope",
    severity="info",
    summary="at the peak, bytes of the innermost open scopes are dead but held, and without them the peak would be "
    "20 % lower (an option)",
    what="""
Looks at the instant at which a rank's scratch peaks, and at the scopes that are open then, from the innermost outward:
how many of their bytes nobody will use again, after which line the scope could have closed, and the peak with that.
""",
    why="""
It is no fault: the kernel fits. But the peak decides how large a tile can be, and dead bytes count like all others
until their scope closes.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 512), "f32"))
@ks.kernel
def two_steps(x, o):
    with tl.scratch_scope():
        left = tl.load(x[:, 0:256])
        tl.store(o[:, 0:256], tl.exp(left))
        right = tl.load(x[:, 256:512])
        tl.store(o[:, 256:512], tl.exp(right))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 512), "f32"))
@ks.kernel
def two_steps(x, o):
    with tl.scratch_scope():
        left = tl.load(x[:, 0:256])
        tl.store(o[:, 0:256], tl.exp(left))
    with tl.scratch_scope():
        right = tl.load(x[:, 256:512])
        tl.store(o[:, 256:512], tl.exp(right))
""",
    check=_oversized_scope,
    options=(Option("percent", 20, "by how much the peak would have to fall, in percent of it", lower=0, upper=100),),
)
