"""Lines that can go without a trace: nothing else reads what they make, and nothing is left unread by their going."""

from __future__ import annotations

import ast

import numpy as np

from ...ir.graph import Graph
from ...ir.location import Location
from ...ir.ops import OPERATIONS
from ...ir.tables import Mode, Reason, StorageKind
from ..allocations import line_numbers
from .edits import Fix
from .rewriting import Rewriting
from .sites import nodes_through
from .syntax import Syntax, loaded_names, syntax_of

__all__ = ["delete_line"]

_PLAIN_CALLS = ("slice", "range", "min", "max", "len", "int", "float", "abs", "round", "divmod")
#: Whoever leaves these out changes what a kernel does.
_EFFECTS = ("store", "send", "recv", "recv_async", "wait", "scope_enter", "scope_exit")


def delete_line(graph: Graph, location: Location | None, title: str) -> Fix | None:
    """The deletion of the statement that is, or assigns, the call at a place; None where the statement does more, or
    where the kernel or another finding would notice."""
    syntax = syntax_of(location.file) if location is not None else None
    if location is None or syntax is None:
        return None
    node, statement = syntax.node_at(location), syntax.statement(location)
    if statement is None or not _is_all_of(syntax, statement, node) or not _has_plain_calls(syntax, statement):
        return None
    if not _leaves_no_trace(graph, location.file, statement):
        return None
    rewriting = Rewriting(syntax)
    rewriting.delete(statement)
    return Fix(title, rewriting.edits())


def _is_all_of(syntax: Syntax, statement: ast.stmt, node: ast.AST | None) -> bool:
    if isinstance(statement, ast.Expr):
        return statement.value is node or statement is node
    if isinstance(statement, ast.Assign):
        name = statement.targets[0] if len(statement.targets) == 1 else None
        return statement.value is node and isinstance(name, ast.Name) and not _is_read(syntax, statement, name.id)
    return False


def _is_read(syntax: Syntax, statement: ast.stmt, name: str) -> bool:
    """Whether another statement of the function reads a name."""
    function = syntax.function(statement)
    around: ast.AST = syntax.tree if function is None else function
    own = set(ast.walk(statement))
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) and n not in own
        for n in ast.walk(around)
    ) or any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in ast.walk(around))


def _has_plain_calls(syntax: Syntax, statement: ast.stmt) -> bool:
    """Whether a statement calls the language, methods of handles and plain functions only: no helper of the author's,
    which may do more than it shows."""
    language = (syntax.language or "").split(".")[0]
    for node in ast.walk(statement):
        if isinstance(node, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await):
            return False
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if isinstance(func, ast.Name) and func.id in _PLAIN_CALLS:
            continue
        if not isinstance(func, ast.Attribute) or (func.attr != "to" and language not in loaded_names(func)):
            return False
    return True


def _leaves_no_trace(graph: Graph, file: str, statement: ast.stmt) -> bool:
    """Whether no other node reads what the statement's nodes make, and all that they read is still read by others."""
    nodes, accesses, storages, edges = graph.nodes, graph.accesses, graph.storages, graph.edges
    gone = nodes_through(graph, file, statement)
    if np.isin(nodes.op[gone], [OPERATIONS.code(name) for name in _EFFECTS]).any():
        return False
    data = edges.reason == Reason.DATA
    if np.any(data & gone[edges.source] & ~gone[edges.target]):
        return False
    touched = np.unique(accesses.storage[gone[accesses.node]])
    scratch = touched[storages.kind[touched] == StorageKind.SCRATCH]
    made = storages.stack[scratch] >= 0
    by_statement = np.isin(storages.stack[scratch], np.unique(nodes.stack[gone]))
    others = scratch[made & ~by_statement]
    still_read = np.unique(accesses.storage[~gone[accesses.node] & (accesses.mode == Mode.READ)])
    line = line_numbers(graph)
    if not np.isin(line[others], line[still_read]).all():
        return False
    # A load has to be read in its own scope, each time.
    feeders = np.unique(edges.source[data & gone[edges.target] & ~gone[edges.source]])
    loads = feeders[nodes.op[feeders] == OPERATIONS.code("load")]
    read_on = edges.source[data & ~gone[edges.target]]
    return bool(np.isin(loads, read_on).all())
