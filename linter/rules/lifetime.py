"""KS2xx: is scratch reused safely. The faults themselves are found by the liveness pass; here they are worded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...memory.liveness import Violation, ViolationKind
from ..edits import Fix
from ..fixes.filling import zeros_for_empty
from ..fixes.keeping import as_fix, find_kept
from ..fixes.scoping import scope_statement
from ..fixes.sites import body_of
from ..rule import Finding, LintContext, Rule, times

__all__ = ["RULES"]


def _grouped(context: LintContext, kind: ViolationKind) -> Iterator[tuple[Violation, tuple[int, ...]]]:
    """For each faulty line and line that made the allocation: the first violation of the kind, and the nodes of all.
    Grouped in columns: one line can be at fault a hundred thousand times."""
    graph = context.graph
    columns = context.liveness.violation_columns.of(kind)
    if kind is ViolationKind.WRITE_AFTER_SCOPE:
        # What a command both reads and writes (`dot(acc=)`) is one fault: the read.
        reads = context.liveness.violation_columns.of(ViolationKind.USE_AFTER_SCOPE)
        width = len(graph.storages) + 1
        both = np.isin(columns.node * width + columns.allocation, reads.node * width + reads.allocation)
        columns = columns.take(np.flatnonzero(~both))
    if not len(columns):
        return
    lines = np.column_stack((graph.nodes.stack[columns.node], graph.storages.stack[columns.allocation]))
    _, first, which = np.unique(lines, axis=0, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    groups = np.split(columns.node[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1])
    order = np.argsort(first, kind="stable")
    for fault, number in zip(columns.take(first[order]).records(), order.tolist(), strict=True):
        yield fault, tuple(np.unique(groups[number]).tolist())


def _op(context: LintContext, node: int | None) -> str:
    return "nothing" if node is None else context.graph[node].op


# --- KS201, KS202 -----------------------------------------------------------------------------------------------------


def _use_after_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    kept: dict[int, Fix | None] = {}
    for fault, nodes in _grouped(context, ViolationKind.USE_AFTER_SCOPE):
        name = context.name_of(fault.allocation)
        fix = _kept(context, fault, kept)
        yield Finding(
            message=f"{name} is read by {_op(context, fault.node)} after the exit of its scope{times(len(nodes))}",
            places=context.places(
                ("read here", context.stack_of(fault.node)),
                ("made here", int(context.graph.storages.stack[fault.allocation])),
                ("scope closed here", context.stack_of(fault.scope_exit)),
                *_reuse(context, fault),
            ),
            nodes=nodes,
            help=_keep_help(context, fault, fix),
            fixes=() if fix is None else (fix,),
        )


def _write_after_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    kept: dict[int, Fix | None] = {}
    for fault, nodes in _grouped(context, ViolationKind.WRITE_AFTER_SCOPE):
        storages = context.graph.storages
        name = context.name_of(fault.allocation)
        fix = _kept(context, fault, kept)
        yield Finding(
            message=f"{name} is written by {_op(context, fault.node)} after the exit of its scope{times(len(nodes))}",
            places=context.places(
                ("written here", context.stack_of(fault.node)),
                ("made here", int(storages.stack[fault.allocation])),
                ("scope closed here", context.stack_of(fault.scope_exit)),
                *_reuse(context, fault),
            ),
            nodes=nodes,
            help=_keep_help(context, fault, fix),
            fixes=() if fix is None else (fix,),
        )


def _reuse(context: LintContext, fault: Violation) -> list[tuple[str, int]]:
    if fault.reused_by is None:
        return []
    role = f"bytes reused here, by {context.name_of(fault.reused_by)}"
    return [(role, int(context.graph.storages.stack[fault.reused_by]))]


def _opening(context: LintContext, fault: Violation) -> int:
    """The stack row of the scope that made the allocation."""
    scopes = context.graph.scopes
    return int(scopes.stack[int(context.graph.storages.scope[fault.allocation])])


def _kept(context: LintContext, fault: Violation, known: dict[int, Fix | None]) -> Fix | None:
    """The change by which all allocations of the faulty one's line outlive the scopes that they are used after.
    ``known`` are those found before, by stack row."""
    made = int(context.graph.storages.stack[fault.allocation])
    if made not in known:
        known[made] = _keep_line(context, made)
    return known[made]


def _keep_line(context: LintContext, made: int) -> Fix | None:
    graph = context.graph
    last: dict[int, int] = {}
    for kind in (ViolationKind.USE_AFTER_SCOPE, ViolationKind.WRITE_AFTER_SCOPE):
        columns = context.liveness.violation_columns.of(kind)
        late = graph.storages.stack[columns.allocation] == made
        for row, node in zip(columns.allocation[late].tolist(), columns.node[late].tolist(), strict=True):
            last[row] = max(node, last.get(row, -1))
    _, opened = min(_outermost_exited(graph, row, node) for row, node in last.items())
    body = body_of(context, opened)
    block = scope_statement(body, opened) if body is not None else None
    if body is None or block is None:
        return None
    kept = find_kept(body, block, np.flatnonzero(graph.storages.stack == made).tolist())
    return None if kept is None else as_fix(kept)


def _outermost_exited(graph: Graph, row: int, node: int) -> tuple[int, int]:
    """The outermost of an allocation's scopes that is closed when a node runs: how deep it is, and the stack row that
    opened it."""
    scope = int(graph.storages.scope[row])
    while (above := int(graph.scopes.parent[scope])) >= 0 and 0 <= graph.scopes.exit[above] < node:
        scope = above
    depth, above = 0, scope
    while (above := int(graph.scopes.parent[above])) >= 0:
        depth += 1
    return depth, int(graph.scopes.stack[scope])


def _inside(context: LintContext, fault: Violation) -> str:
    line = context.line(context.stack_of(fault.node))
    return f"do inside the scope what {line} does"


def _keep_help(context: LintContext, fault: Violation, fix: Fix | None) -> str:
    """How the value outlives its scope: the change where there is one, else what it takes."""
    graph = context.graph
    outer = _outer_twin(context, fault.allocation)
    name = quote(graph.names[graph.storages.name[fault.allocation]])
    if fix is not None:
        if outer is None:
            return f"{fix.title}; or {_inside(context, fault)}"
        outside = context.line(int(graph.storages.stack[outer]))
        return (
            f"{fix.title}: an assignment takes fresh bytes, which this scope gives back; it does not change the "
            f"`{name}` of {outside}"
        )
    layout = graph.layouts[graph.storages.layout[fault.allocation]]
    made, opened = context.line(int(graph.storages.stack[fault.allocation])), context.line(_opening(context, fault))
    result = f"`{name}`" if name.isidentifier() else f"what {made} makes"
    return (
        f"to keep {result}, make a handle above {opened}, `tl.empty({layout.shape}, {layout.dtype!r})`, "
        f"`tl.copy_to` it there inside the scope, and use that handle after it; or {_inside(context, fault)}"
    )


def _outer_twin(context: LintContext, allocation: int) -> int | None:
    """An allocation of the same name and layout that was made before, in a scope around this one: what an assignment
    such as ``acc += x`` means to change, and does not."""
    storages, scopes = context.graph.storages, context.graph.scopes
    if not context.graph.names[storages.name[allocation]]:
        return None
    around: list[int] = []
    scope = int(scopes.parent[storages.scope[allocation]])
    while scope >= 0:
        around.append(scope)
        scope = int(scopes.parent[scope])
    same = (
        (storages.name[:allocation] == storages.name[allocation])
        & (storages.layout[:allocation] == storages.layout[allocation])
        & np.isin(storages.scope[:allocation], around)
    )
    rows = np.flatnonzero(same)
    return int(rows[-1]) if len(rows) else None


# --- KS204 ------------------------------------------------------------------------------------------------------------


def _read_before_write(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for fault, nodes in _grouped(context, ViolationKind.READ_BEFORE_WRITE):
        graph = context.graph
        name = context.name_of(fault.allocation)
        made = int(graph.storages.stack[fault.allocation])
        places = [("read here", context.stack_of(fault.node)), ("made here, with nothing in it", made)]
        written = context.stack_of(fault.written_by)
        fix = None
        if fault.written_by is not None:
            places.append(("written only here, later", written))
        if fault.written_by is None or context.line(written) == context.line(context.stack_of(fault.node)):
            fix = zeros_for_empty(context.location(made))
        yield Finding(
            message=f"{name} is read by {_op(context, fault.node)} before all of it was written{times(len(nodes))}",
            places=context.places(*places),
            nodes=nodes,
            help=_unwritten_help(context, fault, fix),
            fixes=() if fix is None else (fix,),
        )


def _unwritten_help(context: LintContext, fault: Violation, fix: Fix | None) -> str:
    graph = context.graph
    read, written = context.stack_of(fault.node), context.stack_of(fault.written_by)
    if fault.written_by is not None and context.line(read) != context.line(written):
        # Zeros would hide that the wrong bytes are read: an order of lines, or a slot of a buffer.
        return (
            f"write these bytes before {context.line(read)} reads them: {context.line(written)} comes too late, or "
            "belongs to another part of the handle"
        )
    layout = graph.layouts[graph.storages.layout[fault.allocation]]
    made = context.line(int(graph.storages.stack[fault.allocation]))
    zeros = fix.title if fix is not None else f"make it with `tl.zeros({layout.shape}, {layout.dtype!r})` at {made}"
    return f"fill it first, or {zeros}"


# --- declarations -----------------------------------------------------------------------------------------------------

RULES = (
    Rule(
        code="KS201",
        name="use-after-scope",
        severity="error",
        summary="a handle, or a view of it, is read after its scope's exit",
        what="""
Reports every operation that reads a handle, or any view of one (a slice, a transpose, a reshape), after the exit of
the scope that the handle was made in: where it was made, where the scope closed, which line took the bytes since
then, and where it is read. A handle made outside a scope and written inside it is no fault.
""",
        why="""
The scope's exit gives the bytes back. The next allocation takes them, and the read silently gets what that one holds.
As long as nobody has taken them yet the value is still there, which is why such a kernel passes its test until it is
changed.
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
            total += tl.load(x[:, j * 128 : (j + 1) * 128])
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
        check=_use_after_scope,
    ),
    Rule(
        code="KS202",
        name="write-after-scope",
        severity="error",
        summary="a handle, or a view of it, is written after its scope's exit",
        what="""
Reports every operation that names a handle as its destination (`copy_to`, `load(out=)`, `recv(out=)`, `dot(acc=)`)
after the exit of the scope that the handle was made in.
""",
        why="""
The bytes may belong to another allocation by then: the write destroys its value, and whoever reads that one gets a
wrong result, far from the line at fault.
""",
        example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 256), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def halves(x, o):
    with tl.scratch_scope():
        buffer = tl.load(x[:, 0:128])
        tl.store(o[:, :], buffer)
    tl.load(x[:, 128:256], out=buffer)
""",
        fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 256), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def halves(x, o):
    buffer = tl.empty((128, 128), tl.float32)
    with tl.scratch_scope():
        tl.load(x[:, 0:128], out=buffer)
        tl.store(o[:, :], buffer)
    tl.load(x[:, 128:256], out=buffer)
""",
        check=_write_after_scope,
    ),
    Rule(
        code="KS204",
        name="read-before-write",
        severity="error",
        summary="bytes of an `empty` handle are read before anything wrote them",
        what="""
`tl.empty` allocates and writes nothing. This rule follows, element by element, what has been written since through
the handle and its views, and reports every operation that reads an element before. Slices are told apart: writing one
half and reading that half is fine.
""",
        why="""
What is read is whatever an earlier allocation left in those bytes: another value with every change of the kernel, and
often zero in a first test.
""",
        example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def pad_below(x, o):
    both = tl.empty((256, 128), tl.float32)
    tl.load(x[:, :], out=both[0:128, :])
    tl.store(o[:, :], both)
""",
        fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 128), "f32"), o=ks.hbm((256, 128), "f32"))
@ks.kernel
def pad_below(x, o):
    both = tl.empty((256, 128), tl.float32)
    tl.load(x[:, :], out=both[0:128, :])
    tl.copy_to(both[128:256, :], tl.zeros((128, 128), tl.float32))
    tl.store(o[:, :], both)
""",
        check=_read_before_write,
    ),
)
