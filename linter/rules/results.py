"""KS203, KS301 and KS302: results that nobody reads. Where a result also escapes its scope, KS201 or KS202 speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...memory.liveness import ViolationKind
from ..analyses.allocations import call_parts, line_numbers
from ..edits import Fix
from ..fixes.deleting import delete_lines
from ..fixes.keeping import write_over
from ..rule import Finding, LintContext, Option, Rule, times
from ..source import shares_its_line

__all__ = ["RULES"]

#: Large enough for any node.
_NEVER = np.iinfo(np.int64).max


@attrs.frozen(eq=False)
class _Unread:
    """What nobody reads. ``copies``: the copies (nodes) that KS203 speaks of; ``loads``: the loads of KS301;
    ``allocations``: the storage rows of KS302."""

    copies: IntArray
    loads: IntArray
    allocations: IntArray


def _find_unread(context: LintContext, *, messages: bool) -> _Unread:
    graph = context.graph
    storages, accesses = graph.storages, graph.accesses
    reading = np.flatnonzero((accesses.mode == Mode.READ) & ~OPERATIONS.waits[_ops(graph, accesses.node)])
    last_read = np.full(len(storages), -1, dtype=np.int64)
    last_read[accesses.storage[reading]] = accesses.node[reading]  # rows are in program order: the last one stays
    freed = np.where(storages.freed >= 0, storages.freed, _NEVER).astype(np.int64)
    escaped = _escaped(context)

    copies = _dead_copies(graph, last_read, freed, escaped)
    overwritten = np.array([lost.node for lost in context.overwritten_loads], dtype=np.int64)
    loads = np.setdiff1d(_dead_loads(graph, freed, escaped), overwritten)
    blamed = escaped.copy()
    for nodes in (copies, loads, overwritten):
        blamed[_destination(graph, nodes)] = True
    # A composite's buffers are its own business, of which it may need one only.
    unread = graph.in_scratch & (last_read < 0) & ~blamed & (call_parts(graph) == 0)
    if not messages:
        received = accesses.mode == Mode.WRITE
        received &= OPERATIONS.receives[_ops(graph, accesses.node)]
        unread[accesses.storage[received]] = False
    # A line whose result is read in some iteration, or on some rank, cannot be left out.
    line = line_numbers(graph)
    used = np.unique(line[(last_read >= 0) | blamed])
    return _Unread(copies, loads, np.flatnonzero(unread & ~np.isin(line, used[used >= 0])))


def _ops(graph: Graph, nodes: IntArray) -> IntArray:
    codes: IntArray = graph.nodes.op[nodes]
    return codes


def _escaped(context: LintContext) -> IntArray:
    """By storage whether KS201 or KS202 speaks of it."""
    escaped = np.zeros(len(context.graph.storages), dtype=np.bool_)
    for kind in (ViolationKind.USE_AFTER_SCOPE, ViolationKind.WRITE_AFTER_SCOPE):
        escaped[context.liveness.violation_columns.of(kind).allocation] = True
    return escaped


def _destination(graph: Graph, nodes: IntArray) -> IntArray:
    """The storage that each of these nodes writes: its last access."""
    storage: IntArray = graph.accesses.storage[graph.access_start[nodes + 1] - 1]
    return storage


def _dead_loads(graph: Graph, freed: IntArray, escaped: IntArray) -> IntArray:
    """Loads of which no element is read before their destination's scope exits."""
    loads = np.flatnonzero(OPERATIONS.loads[graph.nodes.op])
    target = _destination(graph, loads)
    loads = loads[(freed[target] < _NEVER) & (freed[target] > loads) & ~escaped[target]]
    return _without_reader(graph, loads, freed, Reason.DATA)


def _dead_copies(graph: Graph, last_read: IntArray, freed: IntArray, escaped: IntArray) -> IntArray:
    """Copies made in the very scope that frees their destination, after which nothing reads it; of a line that once
    copies what is read later (in all iterations but the last, say) none."""
    nodes, storages = graph.nodes, graph.storages
    every = np.flatnonzero(OPERATIONS.copies[nodes.op])
    every = every[nodes.command[every] == every]
    target = _destination(graph, every)
    own = (nodes.scope[every] == storages.scope[target]) & (freed[target] < _NEVER) & (freed[target] > every)
    candidates = every[own & ~escaped[target]]
    unread = np.intersect1d(
        _without_reader(graph, candidates, freed, Reason.DATA),
        np.union1d(
            candidates[last_read[_destination(graph, candidates)] <= candidates],
            _without_reader(graph, candidates, freed, Reason.WAW),
        ),
    )
    useful = np.setdiff1d(every, unread)
    line = line_numbers(graph)
    pairs = _pairs(nodes.stack[every], line[target])
    useful_pairs = pairs[np.searchsorted(every, useful)]
    return unread[~np.isin(pairs[np.searchsorted(every, unread)], useful_pairs)]


def _pairs(a: IntArray, b: IntArray) -> IntArray:
    width = int(b.max(initial=0)) + 2
    return a.astype(np.int64) * width + b


def _without_reader(graph: Graph, nodes: IntArray, freed: IntArray, reason: Reason) -> IntArray:
    """Those of the nodes from which no edge of a reason leads to a node before their destination's scope exits."""
    if not len(nodes):
        return nodes
    edges = graph.edges
    until = np.full(len(graph.nodes), -1, dtype=np.int64)
    until[nodes] = freed[_destination(graph, nodes)]
    has = np.zeros(len(graph.nodes), dtype=np.bool_)
    # A `wait` reads nothing itself.
    chosen = (edges.reason == reason) & (edges.target < until[edges.source])
    chosen &= ~OPERATIONS.waits[_ops(graph, edges.target)]
    has[edges.source[chosen]] = True
    return nodes[~has[nodes]]


def _by_line(*columns: IntArray) -> list[IntArray]:
    """Places of equal rows, in order of the first of them."""
    if not len(columns[0]):
        return []
    _, first, which = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    groups = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    return [groups[number] for number in np.argsort(first, kind="stable").tolist()]


# --- KS203 ------------------------------------------------------------------------------------------------------------


def _copy_to_inner(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    copies = _find_unread(context, messages=False).copies
    target = _destination(graph, copies)
    for group in _by_line(graph.nodes.stack[copies], graph.storages.stack[target]):
        node, storage = int(copies[group[0]]), int(target[group[0]])
        made = int(graph.storages.stack[storage])
        opened = context.line(int(graph.scopes.stack[graph.storages.scope[storage]]))
        advice = f"leave out this copy and {context.name_of(storage)}"
        fix = delete_lines(context, [context.stack_of(node), made], advice)
        yield Finding(
            message=f"nothing reads {context.name_of(storage)} between this copy_to and the scope exit that frees it"
            f"{times(len(group))}",
            places=context.places(
                ("copied here", context.stack_of(node)),
                ("made here, in the same scope", made),
                ("freed here, with what was copied", context.stack_of(int(graph.storages.freed[storage]))),
            ),
            nodes=tuple(copies[group].tolist()),
            help=f"to keep the value, copy it to a handle that is made above {opened} and read after the scope; else "
            f"{advice}",
            fixes=() if fix is None else (fix,),
        )


# --- KS301 ------------------------------------------------------------------------------------------------------------


def _load_outlives_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    loads = _find_unread(context, messages=False).loads
    target = _destination(graph, loads)
    for group in _by_line(graph.nodes.stack[loads], graph.storages.stack[target]):
        node, storage = int(loads[group[0]]), int(target[group[0]])
        loaded, made = context.stack_of(node), int(graph.storages.stack[storage])
        every = _loads_at(graph, loaded)
        places = [("loaded here", loaded)]
        if made != loaded:
            places.append(("into what is made here", made))
        places.append(("scope closed here", context.stack_of(int(graph.storages.freed[storage]))))
        fix = None if every > len(group) else delete_lines(context, [loaded], _delete(context, loaded, "load"))
        some = f"{len(group):,} of the {every:,} loads here are lost: " if every > len(group) else ""
        yield Finding(
            message=f"{some}nothing reads {context.name_of(storage)} before the exit of its scope"
            f"{times(len(group)) if not some else ''}",
            places=context.places(*places),
            nodes=tuple(loads[group].tolist()),
            help=_load_help(context, loaded, some=bool(some)),
            fixes=() if fix is None else (fix,),
        )


def _loads_at(graph: Graph, stack: int) -> int:
    return int(np.count_nonzero((graph.nodes.stack == stack) & OPERATIONS.loads[graph.nodes.op]))


def _load_help(context: LintContext, stack: int, *, some: bool) -> str:
    line = context.line(stack)
    if some:
        return (
            f"put {line} under an `if` that leaves out the loads that no later line needs (of a loop that loads one "
            "tile ahead, the last one)"
        )
    deleted = _delete(context, stack, "load")
    return f"{deleted}, or read its result before the scope exits: who writes these bytes next waits for the load"


# --- KS302 ------------------------------------------------------------------------------------------------------------


def _unused_result(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph, storages = context.graph, context.graph.storages
    rows = _find_unread(context, messages=bool(options["messages"])).allocations
    writers_of = _writers_by_storage(graph)
    for group in _by_line(line_numbers(graph)[rows]):
        row = int(rows[group[0]])
        made = int(storages.stack[row])
        writers = sorted({node for one in rows[group].tolist() for node in writers_of(one)})
        writer = next(iter(writers_of(row)), -1)
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
        return f"{_delete(context, made, 'handle')}, or use the handle"
    if context.stack_of(writer) != made:
        written = context.line(context.stack_of(writer))
        return f"leave out {line} and what writes to it from {written} on, or read it"
    name = quote(graph.names[graph.storages.name[row]])
    use = f"store or use `{name}`" if name.isidentifier() else "give the result a name and use it"
    deleted = _delete(context, made, graph[writer].op)
    if meant is not None:
        why = "an assignment takes fresh bytes, and the handle that was read stays as it is"
        return f"{meant.title}: {why}; else {deleted}"
    return f"{deleted}, or {use}"


def _unused_fixes(context: LintContext, row: int, writer: int, made: int, meant: Fix | None) -> tuple[Fix, ...]:
    if writer >= 0 and context.stack_of(writer) != made:
        return ()
    what = "handle" if writer < 0 else context.graph[writer].op
    deleted = delete_lines(context, [made], _delete(context, made, what))
    return tuple(fix for fix in (meant, deleted) if fix is not None)


def _delete(context: LintContext, stack: int, what: str) -> str:
    """What to delete: a line, or where that holds other code, too, what is at fault in it."""
    location = context.location(stack)
    shared = location is not None and shares_its_line(location)
    return f"delete {f'this {what} of ' if shared else ''}{context.line(stack)}"


# --- declarations -----------------------------------------------------------------------------------------------------

RULES = (
    Rule(
        code="KS203",
        name="copy-to-inner",
        severity="warning",
        summary="`copy_to` writes a handle that the very same scope exit frees, and nothing reads it before",
        what="""
Looks at every `copy_to` into a handle that was made in the scope in which the copy stands. If nothing reads the handle
between the copy and the exit of that scope, nothing of the copy persists. A line whose copies are read in some
iteration is left alone, and so is a handle of which KS201 or KS202 speaks.
""",
        why="""
`copy_to` is how a value outlives a scope. Into a handle of the same scope it saves nothing: the exit frees source and
destination alike, and the next iteration starts from bytes that belong to nobody.
""",
        example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float32)
    for j in range(4):
        with tl.scratch_scope():
            kept = tl.empty((128, 128), tl.float32)
            tl.copy_to(kept, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total)
""",
        fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float32)
    for j in range(4):
        with tl.scratch_scope():
            tl.copy_to(total, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total)
""",
        check=_copy_to_inner,
    ),
    Rule(
        code="KS301",
        name="load-outlives-scope",
        severity="warning",
        summary="a load has no reader when its scope exits: its result is lost, and the next writer of its bytes has "
        "to wait for it",
        what="""
Looks, element by element, for a reader of every load before the exit of the scope that frees its destination. Of the
loads of one line only those without a reader are reported. Silent where KS201 or KS202 speaks of the same handle.
""",
        why="""
The DMA engine moves bytes for nothing. And the exit does not wait for it: whoever takes these bytes next does, so that
a load that nobody needs holds up one that somebody does.
""",
        example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tile = tl.load(x[rows, :])
            tl.load(x[0:128, :])
            tl.store(o[rows, :], tile * 2.0)
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
            tile = tl.load(x[rows, :])
            tl.store(o[rows, :], tile * 2.0)
""",
        check=_load_outlives_scope,
    ),
    Rule(
        code="KS302",
        name="unused-result",
        severity="warning",
        summary="there is an allocation that nothing ever reads",
        what="""
Reports lines whose results nothing reads: no operation, no store, no message. A line whose result is read in some
iteration, or on some rank, is left alone; so are received messages, which may be there for the order alone (the
option asks for them, too). Silent where KS201, KS202, KS203 or KS301 speaks of the same handle.
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
    ),
)
