"""KS1xx: does scratch suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from ...memory.liveness import Growth, ViolationColumns, ViolationKind
from ..analyses.scopes import UnscopedLoop, find_unscoped_loops, peak_with_copies
from ..edits import Fix
from ..fixes.scoping import GrowingLoop, growing_loop, wrap_in_scope
from ..fixes.syntax import Loop, enclosing_loop
from ..fixes.tiles import fit_command
from ..rule import Finding, LintContext, Option, Rule

__all__ = ["RULES", "Line", "growth_to_blame", "lines_holding", "loop_named", "on_ranks", "wrap_body"]

#: How many lines that hold scratch are shown one by one; the rest is summed up.
_LINES_SHOWN = 10


# --- KS101 ------------------------------------------------------------------------------------------------------------


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
    unscoped = _unscoped(context, growth) if growth is not None else None
    growing = None if unscoped is None else growing_loop(context, np.setdiff1d(unscoped.rows, unscoped.kept))
    loop = loop_named(context, growing, growth.allocation) if growth is not None else None
    fix = None
    if unscoped is not None and peak_with_copies(graph, live, [unscoped], unscoped.rank) <= budget:
        fix = wrap_in_scope(context, np.setdiff1d(unscoped.rows, unscoped.kept), unscoped.kept)
    lines = lines_holding(context, live.held_at_peak(fullest))
    hidden = lines[_LINES_SHOWN:]
    message = (
        f"{context.memory_name} overflow{on_ranks(ranks, graph.ranks)}: {needed:,} B needed, the budget is {budget:,} B"
    )
    if growth is not None:
        message += f"; {_worded(growth, loop)}"
    if hidden:
        message += f"; {len(hidden):,} lines not shown hold {sum(line.held_bytes for line in hidden):,} B"
    name = context.name_of(first)
    primary = f"passes the budget here: {name} takes {asked:,} B with {in_use:,} B in use"
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


def _unscoped(context: LintContext, growth: Growth) -> UnscopedLoop | None:
    """The loop of a growth as one whose iterations make what no later one needs; None where all of it is needed."""
    stacks = context.graph.storages.stack
    for loop in find_unscoped_loops(context.graph, context.liveness, 2):
        if loop.scope == growth.scope and stacks[growth.allocation] in stacks[np.union1d(loop.rows, loop.kept)]:
            return loop
    return None


def loop_named(context: LintContext, growing: GrowingLoop | None, row: int) -> Loop | None:
    """The loop to speak of: that in whose body all happens, else the innermost around the line that makes a storage."""
    if growing is not None:
        return growing.loop
    place = context.location(int(context.graph.storages.stack[row]))
    return None if place is None else enclosing_loop(place)


def growth_to_blame(growths: tuple[Growth, ...]) -> Growth | None:
    """The loop in which the overflow happens, else the one that takes the most."""
    total = {growth.allocation: growth.bytes_per_iteration * growth.iterations for growth in growths}
    ordered = sorted(
        growths, key=lambda growth: (growth.overflow_iteration is None, -total[growth.allocation], growth.allocation)
    )
    return ordered[0] if ordered else None


def _worded(growth: Growth, loop: Loop | None) -> str:
    if loop is None or growth.location is None:
        return str(growth)
    return str(attrs.evolve(growth, location=attrs.evolve(growth.location, line=loop.line)))


def _overflow_help(
    context: LintContext, unscoped: UnscopedLoop | None, loop: Loop | None, lines: list[Line], fix: Fix | None
) -> str:
    budget = context.liveness.budget_bytes
    giant = max(lines, key=lambda line: line.largest_bytes)
    smaller = _smaller(context, giant)
    if giant.largest_bytes > budget:
        why = ", which no scope can help" if context.graph.is_scoped else ""
        return f"{_at(context, giant)} alone takes {giant.largest_bytes:,} B{why}: {smaller}"
    if fix is not None:
        return fix.title
    if not context.graph.is_scoped:
        return f"{smaller}; {_at(context, lines[0])} holds the most when it overflows"
    if unscoped is None:
        return (
            f"{smaller}; or give bytes back earlier: put lines whose results are needed only for a while in "
            f"`with tl.scratch_scope():`; {_at(context, lines[0])} is the largest"
        )
    advice = wrap_body(loop, context.line(int(context.graph.storages.stack[unscoped.starts[0]])))
    if len(unscoped.kept):
        advice += ", and `tl.copy_to` what the next iteration needs into handles made before the loop"
    scoped = peak_with_copies(context.graph, context.liveness, [unscoped], unscoped.rank)
    return advice if scoped <= budget else f"{advice}; that leaves {scoped:,} B, so {smaller}, too"


def _at(context: LintContext, line: Line) -> str:
    place = context.location(line.stack)
    return line.name + (f" (line {place.line})" if place is not None else "")


def _smaller(context: LintContext, line: Line) -> str:
    """What to do about tiles that are too large."""
    return f"load and compute in smaller tiles: {_finds(context, line)}"


def _finds(context: LintContext, line: Line) -> str:
    command = fit_command(context, line.stack)
    if command is None:
        return "`kernscope fit` finds the largest that fits, where it is a parameter"
    return f"`{command}` finds the largest that fits"


def wrap_body(loop: Loop | None, where: str) -> str:
    """The edit that puts a loop's body in a scope; ``where`` names a line of it, for a loop that is not known."""
    if loop is None:
        return f"wrap the body of the loop around {where} in `with tl.scratch_scope():`"
    body = f"line {loop.first}" if loop.first == loop.last else f"lines {loop.first}-{loop.last}"
    return f"wrap {body}, the body of the loop at line {loop.line}, in `with tl.scratch_scope():`"


@attrs.frozen
class Line:
    """What one call stack holds: how many allocations, their bytes together, those of the largest one."""

    stack: int
    name: str
    count: int
    held_bytes: int
    largest_bytes: int

    @property
    def role(self) -> str:
        many = f"{self.count:,} x " if self.count > 1 else ""
        return f"holds {self.held_bytes:,} B: {many}{self.name}"


def lines_holding(context: LintContext, rows: np.ndarray[Any, np.dtype[Any]]) -> list[Line]:
    """By call stack what the allocations hold, the most first."""
    storages, held = context.graph.storages, context.graph.held_bytes
    stacks, first, which = np.unique(storages.stack[rows], return_index=True, return_inverse=True)
    count = np.bincount(which)
    total, largest = np.zeros(len(stacks), dtype=np.int64), np.zeros(len(stacks), dtype=np.int64)
    np.add.at(total, which, held[rows])
    np.maximum.at(largest, which, held[rows])
    lines = [
        Line(stack, context.name_of(int(rows[first[i]])), int(count[i]), int(total[i]), int(largest[i]))
        for i, stack in enumerate(stacks.tolist())
    ]
    return sorted(lines, key=lambda line: (-line.held_bytes, line.stack))


def on_ranks(ranks: list[int], of: int) -> str:
    if of == 1:
        return ""
    if len(ranks) == of:
        return f" on all {of} ranks"
    return f" on rank {ranks[0]}" if len(ranks) == 1 else f" on {len(ranks)} of {of} ranks, the first is {ranks[0]}"


# --- KS102 ------------------------------------------------------------------------------------------------------------


def _near_limit(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for here in context.in_every_memory():
        yield from _near_limit_in(here, int(options["percent"]))


def _near_limit_in(context: LintContext, percent: int) -> Iterator[Finding]:
    live, graph = context.liveness, context.graph
    budget, peak = live.budget_bytes, live.peak_bytes
    if peak > budget or peak * 100 <= budget * percent:
        return
    rank = live.fullest_rank
    rows = live.held_at_peak(rank)
    lines = lines_holding(context, rows)
    of_rank = f" on rank {rank}" if graph.ranks > 1 else ""
    node = live.peak_node_by_rank[rank]
    yield Finding(
        message=f"{context.memory_name} peaks at {peak:,} B{of_rank}, {peak * 100 / budget:.1f} % of the budget of "
        f"{budget:,} B",
        places=context.places(
            ("the peak is reached here", int(graph.storages.stack[rows[-1]])),
            *((line.role, line.stack) for line in lines[:3]),
        ),
        nodes=() if node < 0 else (node,),
        help=f"{budget - peak:,} B are left for a larger tile; {_at(context, lines[0])} is the largest, and "
        f"{_finds(context, lines[0])}",
    )


# --- declarations -----------------------------------------------------------------------------------------------------

RULES = (
    Rule(
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
    ),
    Rule(
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
    ),
)
