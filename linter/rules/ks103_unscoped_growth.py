"""KS103: loops that take more scratch with each iteration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..analyses.growth_to_blame import growth_to_blame
from ..analyses.scopes import (
    GROWTH_FROM,
    UnscopedLoop,
    find_unscoped_loops,
    peak_with_copies,
    peak_with_scopes,
)
from ..edits import Fix
from ..fixes.scoping import growing_loop, with_carried, wrap_in_scope
from ..fixes.syntax import Loop
from ..rule import Finding, LintContext, Option, Rule
from ..wording.counts import on_ranks
from ..wording.loops import loop_named, wrap_body
from ..wording.scratch_lines import handle_names, lines_holding

__all__ = ["RULE"]

_LINES_SHOWN = 5


def _unscoped_growth(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding a loop and memory, for all ranks and scope instances that run it."""
    for here in context.in_every_memory():
        yield from _unscoped_growth_in(here, int(options["times"]))


def _unscoped_growth_in(context: LintContext, times: int) -> Iterator[Finding]:
    graph, live = context.graph, context.liveness
    groups: dict[int, list[UnscopedLoop]] = {}
    told = _told_by_overflow(context)
    for loop in find_unscoped_loops(graph, live, times):
        if not told.intersection(graph.storages.stack[loop.rows].tolist()):
            groups.setdefault(int(graph.storages.stack[loop.starts[0]]), []).append(with_carried(context, loop))
    for loops in groups.values():
        yield _growth_of(context, loops)


def _told_by_overflow(context: LintContext) -> set[int]:
    """The lines (stack rows) that KS101 blames for an overflow."""
    live, told = context.liveness, set()
    for rank, peak in enumerate(live.peak_bytes_by_rank):
        growth = growth_to_blame(live.growth(rank)) if peak > live.budget_bytes else None
        if growth is not None:
            told.add(int(context.graph.storages.stack[growth.allocation]))
    return told


def _growth_of(context: LintContext, loops: list[UnscopedLoop]) -> Finding:
    graph, live = context.graph, context.liveness
    storages = graph.storages
    ranks = sorted({loop.rank for loop in loops})
    fullest = max(ranks, key=lambda rank: (live.peak_bytes_by_rank[rank], -rank))
    mine = [loop for loop in loops if loop.rank == fullest]
    longest = max(mine, key=lambda loop: (len(loop.starts), -int(loop.rows[0])))
    given = np.setdiff1d(longest.rows, longest.kept)
    each = int(live.held_bytes[longest.rows].sum()) // len(longest.starts)
    growing = growing_loop(context, given if len(given) else longest.rows)
    loop = loop_named(context, growing, int(longest.starts[0]))
    of = f"line {loop.line}" if loop is not None else context.line(int(storages.stack[longest.starts[0]]))
    kept = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(one.kept for one in loops)]))
    fix = wrap_in_scope(context, np.setdiff1d(np.concatenate([one.rows for one in loops]), kept), kept)
    peak = live.peak_bytes_by_rank[fullest]
    scoped = (peak_with_scopes if fix is None else peak_with_copies)(graph, live, mine, fullest)
    message = (
        f"{context.memory_name} grows by {each:,} B per iteration of {of}{on_ranks(ranks, graph.ranks)} "
        f"({len(longest.starts):,} iterations), and all of it is dead before the next one"
    )
    overflow = _overflow_iteration(context, longest)
    if overflow is not None:
        message += f"; {overflow}"
    if scoped < peak:
        message += f"; a scope brings the peak from {peak:,} B down to {scoped:,} B"
    stacks, first = np.unique(storages.stack[longest.rows], return_index=True)
    lines = lines_holding(context, given if len(given) else longest.rows)
    primary = int(stacks[np.argmin(first)])
    places = [("allocates anew in every iteration", primary)]
    places += [(line.role, line.stack) for line in lines[:_LINES_SHOWN]]
    return Finding(
        message=message,
        places=context.places(*places),
        nodes=_makers(context, loops),
        help=_growth_help(context, longest, loop, fix),
        fixes=() if fix is None else (fix,),
    )


def _makers(context: LintContext, loops: list[UnscopedLoop]) -> tuple[int, ...]:
    """The nodes that made the allocations (an ``empty`` has none)."""
    graph = context.graph
    rows = np.concatenate([loop.rows for loop in loops])
    writer = context.liveness.first_write[rows]
    made = writer[(writer >= 0) & (graph.nodes.stack[writer] == graph.storages.stack[rows])]
    return tuple(np.unique(made).tolist())


def _overflow_iteration(context: LintContext, loop: UnscopedLoop) -> str | None:
    """In which iteration the budget is passed, or would be if the loop ran on; None where it grows unevenly."""
    graph, live = context.graph, context.liveness
    storages, budget = graph.storages, live.budget_bytes
    steps = np.diff(storages.address[loop.starts])
    ends = storages.address[loop.rows] + live.held_bytes[loop.rows]
    over = np.flatnonzero(ends > budget)
    if len(over):
        number = int(np.searchsorted(loop.starts, loop.rows[over[0]], side="right"))
        return f"overflows at iteration {number:,}"
    step = int(steps[0])
    if step <= 0 or not (steps == step).all():
        return None
    need = int(ends.max()) - int(storages.address[loop.starts[-1]])
    number = (budget - int(storages.address[loop.starts[0]]) - need) // step + 2
    return f"it would overflow at iteration {number:,}"


def _growth_help(context: LintContext, loop: UnscopedLoop, source: Loop | None, fix: Fix | None) -> str:
    if fix is not None:
        return fix.title
    advice = wrap_body(source, context.line(int(context.graph.storages.stack[loop.starts[0]])))
    if not len(loop.kept):
        return advice
    kept = handle_names(context, loop.kept)
    return f"{advice}; {kept} must not go with it: make a handle before the loop and `tl.copy_to` into it"


RULE = Rule(
    code="KS103",
    name="unscoped-growth",
    severity="warning",
    summary="the same call stack and scope instance allocates three times or more (an option), each allocation "
    "dead before the next",
    what="""
Compares the allocations that one line makes in one scope. Where there are three or more, and each was used for the last
time before the next one was made, they could share bytes: a loop's body wants a scope. Says what each iteration takes,
when it overflows, and the peak with a scope. Silent for a loop that KS101 blames for an overflow.
""",
    why="""
Every result takes fresh bytes, and nothing is given back before the scope closes. The kernel needs scratch in
proportion to its length: it fits today, and not for the next longer context.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        rows = slice(i * 128, (i + 1) * 128)
        tl.store(o[rows, :], tl.load(x[rows, :]) * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :]) * 2.0)
""",
    check=_unscoped_growth,
    options=(Option("times", GROWTH_FROM, "from how many allocations of one line on it is reported", lower=2),),
)
