"""Uses of a handle after the exit of its scope, reads and writes alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...ir.forms.text import quote
from ...memory.liveness import Violation, ViolationKind
from ..analyses.violations_by_line import violations_by_line
from ..edits import Fix
from ..fixes.outliving import outlive_scopes
from ..rule import Finding, LintContext
from .counts import times

__all__ = ["uses_after_scope"]


def uses_after_scope(context: LintContext, kind: ViolationKind, done: str) -> Iterator[Finding]:
    """One finding for each line and line that made the handle. ``done`` to it: ``read`` or ``written``."""
    storages = context.graph.storages
    fixes: dict[int, Fix | None] = {}
    for fault, nodes in violations_by_line(context.graph, context.liveness, kind):
        made = int(storages.stack[fault.allocation])
        if made not in fixes:
            fixes[made] = outlive_scopes(context, made)
        fix = fixes[made]
        yield Finding(
            message=f"{context.name_of(fault.allocation)} is {done} by {context.op_of(fault.node)} after the exit of "
            f"its scope{times(len(nodes))}",
            places=context.places(
                (f"{done} here", context.stack_of(fault.node)),
                ("made here", made),
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


def _inside(context: LintContext, fault: Violation) -> str:
    line = context.line(context.stack_of(fault.node))
    return f"do inside the scope what {line} does"


def _opening(context: LintContext, fault: Violation) -> int:
    """The stack row of the scope that made the allocation."""
    scopes = context.graph.scopes
    return int(scopes.stack[int(context.graph.storages.scope[fault.allocation])])


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
