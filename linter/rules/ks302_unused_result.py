"""KS302: allocations that nothing ever reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import Mode
from ..analyses.allocations import line_numbers
from ..analyses.unread import find_unread
from ..edits import Fix
from ..fixes.deleting import delete_lines
from ..fixes.keeping import write_over
from ..rule import Finding, LintContext, Option, Rule
from ..wording.counts import times
from ..wording.deletions import deletion

__all__ = ["RULE"]


def _unused_result(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph, storages = context.graph, context.graph.storages
    rows = find_unread(
        context.graph, context.liveness, context.overwritten_loads, messages=bool(options["messages"])
    ).allocations
    writers_of = _writers_by_storage(graph)
    for group in distinct_rows(line_numbers(graph)[rows]).in_order_met():
        row = int(rows[group[0]])
        made = int(storages.stack[row])
        writers = sorted({node for one in rows[group].tolist() for node in writers_of(one)})
        writer = next(iter(writers_of(row)), -1)
        if writer >= 0 and graph[writer].op == "fetch":  # what an atomic found: the atomic itself is what was asked for
            continue
        held = int(graph.held_bytes[rows[group]].max())
        meant = write_over(context, rows[group].tolist()) if graph.is_scoped else None
        what = f"the result of {graph[writer].op}" if writer >= 0 else "an empty handle"
        yield Finding(
            message=f"nothing reads {context.name_of(row)}, {what}, which takes {held:,} B{times(len(group))}",
            places=context.places(("made here", made), *_first_writer(context, writer, made)),
            nodes=tuple(writers),
            help=_unused_help(context, row, writer, made, meant),
            fixes=_unused_fixes(context, row, writer, made, meant),
        )


def _writers_by_storage(graph: Graph) -> Callable[[int], list[int]]:
    """What tells the nodes that write a storage, in program order."""
    accesses = graph.accesses
    writes = np.flatnonzero(accesses.mode == Mode.WRITE)
    writes = writes[np.argsort(accesses.storage[writes], kind="stable")]
    nodes = accesses.node[writes]
    start = np.searchsorted(accesses.storage[writes], np.arange(len(graph.storages) + 1))
    return lambda storage: nodes[start[storage] : start[storage + 1]].tolist()


def _first_writer(context: LintContext, writer: int, made: int) -> list[tuple[str, int]]:
    stack = context.stack_of(writer) if writer >= 0 else made
    return [("only written, from here on", stack)] if stack != made else []


def _unused_help(context: LintContext, row: int, writer: int, made: int, meant: Fix | None) -> str:
    graph = context.graph
    line = context.line(made)
    if writer < 0:
        return f"{deletion(context, made, 'handle')}, or use the handle"
    if context.stack_of(writer) != made:
        written = context.line(context.stack_of(writer))
        return f"leave out {line} and what writes to it from {written} on, or read it"
    if OPERATIONS.receives[graph.nodes.op[writer]]:
        waited = np.any(OPERATIONS.waits[graph.nodes.op[graph.accesses.node[graph.accesses.storage == row]]])
        wait = "" if waited or graph[writer].op == "recv" else "`tl.wait` for it and "
        return f"{wait}use what it brings; or leave out this receive and the send that it meets"
    name = quote(graph.names[graph.storages.name[row]])
    use = f"store or use `{name}`" if name.isidentifier() else "give the result a name and use it"
    deleted = deletion(context, made, graph[writer].op)
    if meant is not None:
        why = "an assignment takes fresh bytes, and the handle that was read stays as it is"
        return f"{meant.title}: {why}; else {deleted}"
    return f"{deleted}, or {use}"


def _unused_fixes(context: LintContext, row: int, writer: int, made: int, meant: Fix | None) -> tuple[Fix, ...]:
    if writer >= 0 and context.stack_of(writer) != made:
        return ()
    what = "handle" if writer < 0 else context.graph[writer].op
    deleted = delete_lines(context, [made], deletion(context, made, what))
    return tuple(fix for fix in (meant, deleted) if fix is not None)


RULE = Rule(
    code="KS302",
    name="unused-result",
    severity="warning",
    summary="there is an allocation that nothing ever reads",
    what="""
Reports lines whose results nothing reads: no operation, no store, no message. A line whose result is read in some
iteration, or on some rank, is left alone; so are received messages, which may be there for the order alone (the
option asks for them, too), but for a `tl.recv_async` that nobody waits for: it orders nothing. Silent where KS201,
KS202, KS203 or KS301 speaks of the same handle.
""",
    why="""
The work is done and the scratch is held all the same. Mostly it is a result that was meant to be used: an assignment
that should have been a `copy_to`, a name misspelt.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((128, 1), "f32"))
@ks.kernel
def row_max(x, o):
    tile = tl.load(x[:, :])
    shifted = tile + 1.0
    tl.store(o[:, :], tl.max(tile, axis=1, keep_dims=True))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((128, 1), "f32"))
@ks.kernel
def row_max(x, o):
    tile = tl.load(x[:, :])
    shifted = tile + 1.0
    tl.store(o[:, :], tl.max(shifted, axis=1, keep_dims=True))
""",
    check=_unused_result,
    options=(Option("messages", False, "whether received messages that nothing reads are reported, too"),),
)
