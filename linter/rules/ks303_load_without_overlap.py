"""KS303: loads that could have run beside other work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray
from ...machine.units import format_ps
from ..analyses.late_loads import LateLoads, find_late_loads
from ..edits import Fix
from ..fixes.moving import load_above
from ..fixes.syntax import enclosing_loop
from ..rule import Finding, LintContext, Option, Rule

__all__ = ["RULE"]


def _load_without_overlap(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding a line. A kernel without loads needs no machine."""
    graph = context.graph
    if not OPERATIONS.loads[graph.nodes.op].any():
        return
    run = context.lazy_run
    if run.times is None:
        return
    late = find_late_loads(graph, run)
    if not len(late.node):
        return
    makespan = int((run.times.start_ps + run.problem.dag.duration_ps).max())
    stacks = graph.nodes.stack[late.node]
    for stack in stacks[np.sort(np.unique(stacks, return_index=True)[1])].tolist():
        group = np.flatnonzero(stacks == stack)
        lost = np.bincount(graph.nodes.rank[late.node[group]], weights=late.lost_ps[group])
        if lost.max() * 100 >= makespan * int(options["percent"]):
            yield _finding(context, late, group, stack, int(lost.max()), makespan)


def _finding(
    context: LintContext, late: LateLoads, group: IntArray, stack: int, lost_ps: int, makespan_ps: int
) -> Finding:
    graph = context.graph
    worst = int(group[np.lexsort((late.node[group], -late.lost_ps[group]))[0]])
    node = int(late.node[worst])
    storage = graph[node].writes[0].storage.row
    earlier, reader = context.stack_of(int(late.before[worst])), context.stack_of(int(late.reader[worst]))
    count = f"{len(group):,} times" if len(group) > 1 else "once"
    of_rank = " of a rank" if graph.ranks > 1 else ""
    same_place = len(np.unique(graph.nodes.stack[late.before[group]])) == 1
    fix = (
        load_above(context, stack, earlier) if same_place and not _before_in_loop(context, node, worst, late) else None
    )
    places = [
        ("loaded here", stack),
        ("waited for here", reader),
        (f"from here on it could have run, {format_ps(int(late.late_ps[worst]))} earlier", earlier),
    ]
    return Finding(
        message=f"under `lazy` the load of {context.name_of(storage)} is issued later than it could start, and waited "
        f"for, {count}: up to {format_ps(lost_ps)}{of_rank} ({lost_ps * 100 / makespan_ps:.0f} % of the makespan) lost",
        places=context.places(*(place for place in places if place[1] != stack or place[0] == "loaded here")),
        nodes=tuple(late.node[group].tolist()),
        help=_help(context, node, int(late.before[worst]), fix),
        fixes=() if fix is None else (fix,),
    )


def _before_in_loop(context: LintContext, node: int, worst: int, late: LateLoads) -> bool:
    """Whether what the load could run beside lies in an earlier iteration: the load's line ran in between."""
    graph = context.graph
    between = slice(int(late.before[worst]), node)
    return bool(np.any(graph.nodes.stack[between] == graph.nodes.stack[node]))


def _help(context: LintContext, node: int, earlier: int, fix: Fix | None) -> str:
    if fix is not None:
        return fix.title
    stack, other = context.stack_of(node), context.stack_of(earlier)
    load = context.location(stack)
    instances = np.flatnonzero(context.graph.nodes.stack == stack)
    if np.any(instances < node) and load is not None and enclosing_loop(load) is not None and earlier < node:
        if not context.graph.is_scoped:  # who places its tiles also rotates them
            return "let loads run ahead of their loop: num_stages=2, of `tl.range` or of the launch, keeps two copies"
        return (
            f"load one tile ahead: above {context.line(other)} of the iteration before, with "
            "`tl.load(..., out=buffer)` into one of two buffers made before the loop, taken in turn"
        )
    op = context.graph[earlier].op
    return (
        f"let the load of {context.line(stack)} come before the {op} of {context.line(other)}"
        f"{_by(context, other, stack)}: load first, then compute; a load does not block, its first use does"
    )


def _by(context: LintContext, other: int, stack: int) -> str:
    """Which call of a line is meant, where it is called from several or the load's line is the same."""
    place, load = context.location(other), context.location(stack)
    if place is None or load is None or not place.stack or (place.file, place.line) != (load.file, load.line):
        return ""
    return f" (in the call from line {place.stack[0].line} before)"


RULE = Rule(
    code="KS303",
    name="load-without-overlap",
    severity="info",
    summary="under the `lazy` policy a load is waited for, and its edges would have let it start earlier: 15 % of "
    "the makespan is lost at its line (an option)",
    what="""
Schedules the graph under `lazy`, in which a load does not block and its first use waits. Reports loads that a reader
waits for, and that only the CPU held back: their bytes and the DMA engine were free before, but the line came later in
the program. What is lost is the smaller of the two times, summed over the loads of a line.
""",
    why="""
The DMA engine idles while the kernel computes, and then the kernel waits for the DMA engine. It is no fault; a hint
where moving a line, or loading one tile ahead, buys time.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((256, 256), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def mix(x, o):
    left = tl.load(x[:, 0:128])
    left = tl.tanh(left)
    right = tl.load(x[:, 128:256])
    tl.store(o[:, :], left * right)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((256, 256), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def mix(x, o):
    left = tl.load(x[:, 0:128])
    right = tl.load(x[:, 128:256])
    left = tl.tanh(left)
    tl.store(o[:, :], left * right)
""",
    check=_load_without_overlap,
    options=(Option("percent", 15, "how much must be lost at a line, in percent of the makespan", lower=0, upper=100),),
)
