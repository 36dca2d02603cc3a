"""KS103 and KS104: where a scope would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.tables import IntArray
from ..analyses.scopes import (
    DeadAtPeak,
    UnscopedLoop,
    dead_at_peak,
    find_unscoped_loops,
    peak_with_copies,
    peak_with_scopes,
)
from ..edits import Fix
from ..fixes.scoping import growing_loop, loop_around_both, split_scope, wrap_in_scope
from ..fixes.syntax import Loop
from ..rule import Finding, LintContext, Option, Rule
from .scratch import growth_to_blame, lines_holding, loop_named, on_ranks, wrap_body

__all__ = ["RULES"]

_LINES_SHOWN = 5
_NAMES_SHOWN = 4
#: From how many allocations of one line on KS103 reports a loop, unless its option says otherwise.
_TOLD_FROM = 3


def _names(context: LintContext, rows: IntArray) -> str:
    """Allocations by name, each name once, for a sentence."""
    names = list(dict.fromkeys(context.name_of(int(row)) for row in rows.tolist()))
    shown = names[:_NAMES_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more


# --- KS103 ------------------------------------------------------------------------------------------------------------


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
            groups.setdefault(int(graph.storages.stack[loop.starts[0]]), []).append(loop)
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
    kept = _names(context, loop.kept)
    return f"{advice}; {kept} must not go with it: make a handle before the loop and `tl.copy_to` into it"


# --- KS104 ------------------------------------------------------------------------------------------------------------


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
    loops = find_unscoped_loops(context.graph, context.liveness, _TOLD_FROM)
    return any(np.isin(found.rows, loop.rows).any() for loop in loops if loop.scope == found.scope)


def _oversized_help(context: LintContext, found: DeadAtPeak, opened: int, last_use: int) -> str:
    loop = loop_around_both(context, opened, last_use, int(context.graph.storages.stack[found.top]))
    if loop is not None:
        return f"{wrap_body(loop, context.line(last_use))}, as far as its handles are not needed after it"
    advice = f"close the scope after {context.line(last_use)}, and open another one for what follows"
    if not len(found.kept):
        return advice
    kept = _names(context, found.kept)
    return f"{advice}; {kept} must outlive it: make a handle before the scope and `tl.copy_to` into it"


# --- declarations -----------------------------------------------------------------------------------------------------

RULES = (
    Rule(
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
        options=(Option("times", _TOLD_FROM, "from how many allocations of one line on it is reported", lower=2),),
    ),
    Rule(
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
        options=(
            Option("percent", 20, "by how much the peak would have to fall, in percent of it", lower=0, upper=100),
        ),
    ),
)
