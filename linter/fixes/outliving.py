"""What is used after its scope, kept until then."""

from __future__ import annotations

import numpy as np

from ...ir.graph import Graph
from ...memory.liveness import ViolationKind
from ..edits import Fix
from ..rule import LintContext
from .keeping import as_fix, find_kept
from .scoping import scope_statement
from .sites import body_of

__all__ = ["outlive_scopes"]


def outlive_scopes(context: LintContext, made: int) -> Fix | None:
    """The change by which all allocations of a line (a stack row) outlive the scopes that they are used after."""
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
