"""KS101: ranks whose scratch passes the budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from ...memory.liveness import Growth, ViolationColumns, ViolationKind
from ..analyses.growth_to_blame import growth_to_blame
from ..analyses.scopes import UnscopedLoop, find_unscoped_loops, peak_with_copies
from ..edits import Fix
from ..fixes.scoping import growing_loop, with_carried, wrap_in_scope
from ..fixes.syntax import Loop
from ..rule import Finding, LintContext, Rule
from ..wording.counts import on_ranks
from ..wording.loops import loop_named, wrap_body
from ..wording.scratch_lines import ScratchLine, how_to_fit, lines_holding, with_line

__all__ = ["RULE"]

#: How many lines that hold scratch are shown one by one; the rest is summed up.
_LINES_SHOWN = 10


def _overflow(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for all ranks that first pass a memory's budget at the same line."""
    for here in context.in_every_memory():
        yield from _overflow_in(here)


def _overflow_in(context: LintContext) -> Iterator[Finding]:
    over = context.liveness.violation_columns.of(ViolationKind.OVERFLOW)
    over = over.take(np.flatnonzero(context.graph.storages.memory[over.allocation] == context.liveness.memory))
    rows = np.sort(over.allocation)
    ranks, first = np.unique(context.graph.storages.rank[rows], return_index=True)
    groups: dict[int, list[int]] = {}
    for rank, row in zip(ranks.tolist(), rows[first].tolist(), strict=True):
        groups.setdefault(int(context.graph.storages.stack[row]), []).append(rank)
    for group in groups.values():
        yield _overflow_of(context, group, over)


def _overflow_of(context: LintContext, ranks: list[int], over: ViolationColumns) -> Finding:
    graph, live = context.graph, context.liveness
    budget = live.budget_bytes
    fullest = max(ranks, key=lambda rank: (live.peak_bytes_by_rank[rank], -rank))
    needed = live.peak_bytes_by_rank[fullest]
    first = int(over.allocation[over.rank == fullest].min())
    asked = int(live.held_bytes[first])
    in_use = int(graph.storages.address[first])
    growth = growth_to_blame(live.growth(fullest))
    unscoped = _unscoped(context, growth) if growth is not None else []
    growing = growing_loop(context, np.setdiff1d(unscoped[0].rows, unscoped[0].kept)) if unscoped else None
    loop = loop_named(context, growing, growth.allocation) if growth is not None else None
    fix = None
    if unscoped and peak_with_copies(graph, live, unscoped, fullest) <= budget:
        kept = np.unique(np.concatenate([one.kept for one in unscoped]))
        fix = wrap_in_scope(context, np.setdiff1d(np.concatenate([one.rows for one in unscoped]), kept), kept)
    lines = lines_holding(context, live.held_at_peak(fullest))
    hidden = lines[_LINES_SHOWN:]
    message = (
        f"{context.memory_name} overflow{on_ranks(ranks, graph.ranks)}: {needed:,} B needed, the budget is {budget:,} B"
    )
    if growth is not None:
        message += f"; {_worded(growth, loop)}"
    if hidden:
        hold = "line not shown holds" if len(hidden) == 1 else "lines not shown hold"
        message += f"; {len(hidden):,} {hold} {sum(line.held_bytes for line in hidden):,} B"
    name = context.name_of(first)
    below = f"with {in_use:,} B in use" if graph.is_scoped else f"behind {in_use:,} B"
    primary = f"passes the budget here: {name} takes {asked:,} B {below}"
    nodes = np.unique(over.node[np.isin(over.rank, ranks) & (over.node >= 0)])
    return Finding(
        message=message,
        places=context.places(
            (primary, int(graph.storages.stack[first])), *((line.role, line.stack) for line in lines[:_LINES_SHOWN])
        ),
        nodes=tuple(nodes.tolist()),
        help=_overflow_help(context, unscoped, loop, lines, fix),
        fixes=() if fix is None else (fix,),
    )


def _unscoped(context: LintContext, growth: Growth) -> list[UnscopedLoop]:
    """The loop of a growth as one whose iterations make what no later one needs, as often as the growth's rank runs it,
    the growth's own run first; empty where all of it is needed."""
    graph = context.graph
    stacks, rank = graph.storages.stack, int(graph.storages.rank[growth.allocation])
    found = [loop for loop in find_unscoped_loops(graph, context.liveness, 2) if loop.rank == rank]
    own = [
        loop
        for loop in found
        if loop.scope == growth.scope and stacks[growth.allocation] in stacks[np.union1d(loop.rows, loop.kept)]
    ]
    if not own:
        return []
    line = stacks[own[0].starts[0]]
    others = [loop for loop in found if loop is not own[0] and stacks[loop.starts[0]] == line]
    return [with_carried(context, loop) for loop in (own[0], *others)]


def _worded(growth: Growth, loop: Loop | None) -> str:
    if loop is None or growth.location is None:
        return str(growth)
    return str(attrs.evolve(growth, location=attrs.evolve(growth.location, line=loop.line)))


def _overflow_help(
    context: LintContext, unscoped: list[UnscopedLoop], loop: Loop | None, lines: list[ScratchLine], fix: Fix | None
) -> str:
    budget = context.liveness.budget_bytes
    giant = max(lines, key=lambda line: line.largest_bytes)
    smaller = _smaller(context, giant)
    if giant.largest_bytes > budget:
        why = ", which no scope can help" if context.graph.is_scoped else ""
        return f"{with_line(context, giant)} alone takes {giant.largest_bytes:,} B{why}: {smaller}"
    if fix is not None:
        return fix.title
    if not context.graph.is_scoped:
        return f"{smaller}; {with_line(context, lines[0])} holds the most at the peak"
    if not unscoped:
        return (
            f"{smaller}; or give bytes back earlier: put lines whose results are needed only for a while in "
            f"`with tl.scratch_scope():`; {with_line(context, lines[0])} is the largest"
        )
    advice = wrap_body(loop, context.line(int(context.graph.storages.stack[unscoped[0].starts[0]])))
    if any(len(one.kept) for one in unscoped):
        advice += ", and `tl.copy_to` what the next iteration needs into handles made before the loop"
    scoped = peak_with_copies(context.graph, context.liveness, unscoped, unscoped[0].rank)
    return advice if scoped <= budget else f"{advice}; that leaves {scoped:,} B, so {smaller}, too"


def _smaller(context: LintContext, line: ScratchLine) -> str:
    """What to do about tiles that are too large."""
    return f"load and compute in smaller tiles: {how_to_fit(context, line)}"


RULE = Rule(
    code="KS101",
    name="scratch-overflow",
    severity="error",
    summary="the scratch cursor passes the budget",
    what="""
Follows the cursor of each rank's bump allocator through the trace and reports where it first passes the scratch
budget of the target: how much is needed in all, how much there is, and the lines that hold the most at the peak.
Where a loop takes more with each iteration it says how much, and in which iteration the budget is passed. A budget
filled to its last byte is fine.
""",
    why="""
On a device there is no more scratch: the kernel does not run. Every result takes fresh bytes, rounded up to the
alignment, and nothing is given back before the end of its scope, so a sweep without scopes needs scratch in
proportion to its length.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("long", x=ks.hbm((128, 4096), "f32"), o=ks.hbm((128, 1), "f32"))
@ks.kernel
def row_max(x, o):
    m = tl.full((128, 1), float("-inf"), tl.float32)
    for j in range(32):
        tile = tl.load(x[:, j * 128 : (j + 1) * 128])
        tl.copy_to(m, tl.maximum(m, tl.max(tile, axis=1, keep_dims=True)))
    tl.store(o[:, :], m)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("long", x=ks.hbm((128, 4096), "f32"), o=ks.hbm((128, 1), "f32"))
@ks.kernel
def row_max(x, o):
    m = tl.full((128, 1), float("-inf"), tl.float32)
    for j in range(32):
        with tl.scratch_scope():
            tile = tl.load(x[:, j * 128 : (j + 1) * 128])
            tl.copy_to(m, tl.maximum(m, tl.max(tile, axis=1, keep_dims=True)))
    tl.store(o[:, :], m)
""",
    check=_overflow,
)
