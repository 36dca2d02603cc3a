"""Lines that can go without a trace: nothing else reads what they make, and nothing is left unread by their going."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from ...ir.graph import Graph
from ...ir.ops import OPERATIONS, Family, Space
from ...ir.tables import IntArray, Mode, Reason
from ..analyses.allocations import line_numbers
from ..edits import Fix
from ..rule import LintContext
from .rewriting import Rewriting
from .sites import nodes_through
from .syntax import Syntax, loaded_names, stored_names, syntax_of

__all__ = ["delete_lines"]

_PLAIN_CALLS = ("slice", "range", "min", "max", "len", "int", "float", "abs", "round", "divmod")
#: Whoever leaves these out changes what a kernel does.
_EFFECTS = OPERATIONS.mask(lambda op: op.writes_to is Space.GLOBAL or op.family in (Family.MESSAGE, Family.MARKER))


def delete_lines(context: LintContext, stacks: Sequence[int], title: str) -> Fix | None:
    """The deletion of the statements that are, or assign, the calls of some stack rows; None where one does more, or
    where the kernel or another finding would notice."""
    graph = context.graph
    places = [context.location(stack) for stack in dict.fromkeys(stacks)]
    syntax = syntax_of(places[0]) if places[0] is not None else None
    if syntax is None:
        return None
    statements: list[ast.stmt] = []
    for place in places:
        if place is None or place.file != syntax.file:
            return None
        node, statement = syntax.node_at(place), syntax.statement(place)
        if statement is None or not _does_only(statement, node) or not _has_plain_calls(syntax, statement):
            return None
        statements.append(statement)
    if any(_is_read(syntax, statements, name) for s in statements for name in stored_names(s)):
        return None
    blocks = [syntax.block(statement) for statement in statements]
    if any(all(child in statements for child in block) and len(block) > 1 for block in blocks):
        return None  # which of them stays as `pass`?
    gone = np.logical_or.reduce([nodes_through(graph, syntax.file, statement) for statement in statements])
    if not _leaves_no_trace(graph, gone, stacks):
        return None
    rewriting = Rewriting(syntax)
    for statement in statements:
        rewriting.delete(statement)
    return Fix(title, rewriting.edits())


def _does_only(statement: ast.stmt, node: ast.AST | None) -> bool:
    """Whether a statement is, or assigns to a name, what a node makes."""
    if isinstance(statement, ast.Assign):
        return statement.value is node and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    if isinstance(statement, ast.AugAssign):
        return statement is node and isinstance(statement.target, ast.Name)
    return isinstance(statement, ast.Expr) and statement.value is node


def _is_read(syntax: Syntax, statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether another statement of the function reads a name."""
    function = syntax.function(statements[0])
    around: ast.AST = syntax.tree if function is None else function
    own = {node for statement in statements for node in ast.walk(statement)}
    return any(
        not isinstance(n, ast.Name) or (isinstance(n.ctx, ast.Load) and n not in own)
        for n in syntax.naming(name, around)
    )


def _has_plain_calls(syntax: Syntax, statement: ast.stmt) -> bool:
    """Whether a statement calls the language, methods of handles and plain functions only: no helper of the author's,
    which may do more than it shows."""
    language = (syntax.language or "").split(".")[0]
    for node in ast.walk(statement):
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Await):
            return False
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if isinstance(func, ast.Name) and func.id in _PLAIN_CALLS:
            continue
        if not isinstance(func, ast.Attribute) or (func.attr != "to" and language not in loaded_names(func)):
            return False
    return True


def _leaves_no_trace(graph: Graph, gone: IntArray, stacks: Sequence[int]) -> bool:
    """Whether no node that stays reads what those that go make, and all that these read is still read by others."""
    nodes, accesses, storages, edges = graph.nodes, graph.accesses, graph.storages, graph.edges
    if _EFFECTS[nodes.op[gone]].any():
        return False
    data = edges.reason == Reason.DATA
    if np.any(data & gone[edges.source] & ~gone[edges.target]):
        return False
    touched = np.unique(accesses.storage[gone[accesses.node]])
    used_still = np.unique(accesses.storage[~gone[accesses.node]])
    if not np.isin(touched[~graph.in_scratch[touched]], used_still).all():
        return False  # a tensor that nothing would load or store
    scratch = touched[graph.in_scratch[touched]]
    made = storages.stack[scratch] >= 0
    mine = np.isin(storages.stack, stacks)
    if np.any(mine[accesses.storage] & ~gone[accesses.node]):
        return False
    by_statement = np.isin(storages.stack[scratch], np.union1d(nodes.stack[gone], stacks))
    others = scratch[made & ~by_statement]
    still_read = np.unique(accesses.storage[~gone[accesses.node] & (accesses.mode == Mode.READ)])
    line = line_numbers(graph)
    if not np.isin(line[others], line[still_read]).all():
        return False
    # A load has to be read in its own scope, each time.
    feeders = np.unique(edges.source[data & gone[edges.target] & ~gone[edges.source]])
    loads = feeders[OPERATIONS.loads[nodes.op[feeders]]]
    read_on = edges.source[data & ~gone[edges.target]]
    return bool(np.isin(loads, read_on).all())
