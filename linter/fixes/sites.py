"""Where in a function's own source the rows of a graph come from: the frame of a call stack at a given depth."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.source.location import Location
from ...ir.tables import IntArray
from ..findings import Place
from ..rule import LintContext
from .syntax import Syntax, loaded_names, syntax_of

__all__ = ["Body", "body_of", "chain", "nodes_through", "parameter_places"]


def chain(graph: Graph, stack: int) -> tuple[int, ...]:
    """The rows of the stack table that lead to one, the outermost first."""
    found: list[int] = []
    while stack >= 0:
        found.append(stack)
        stack = int(graph.stacks.caller[stack])
    return tuple(reversed(found))


class Body:
    """One activation's function: all rows of the stack table that it runs have the same callers, at the same depth."""

    def __init__(self, context: LintContext, stack: int, syntax: Syntax) -> None:
        self.graph = context.graph
        self.readers = context.readers
        self.syntax = syntax
        self.callers = chain(self.graph, stack)[:-1]
        self.frame = _frame(self.graph, stack)
        self._statements: dict[int, ast.stmt | None] = {}
        self._loads: dict[ast.stmt, set[str]] = {}

    def place(self, stack: int) -> Location | None:
        """Where this function stands while a stack row runs: its own line, or that of its call; None outside of it."""
        rows = chain(self.graph, stack)
        depth = len(self.callers)
        if rows[:depth] != self.callers or len(rows) <= depth:
            return None
        found = _frame(self.graph, rows[depth])
        same = (found.file, found.function) == (self.frame.file, self.frame.function)
        return found if same else None

    def statement(self, stack: int) -> ast.stmt | None:
        """The statement of this function that a stack row runs in."""
        if stack not in self._statements:
            place = self.place(stack)
            self._statements[stack] = None if place is None else self.syntax.statement(place)
        return self._statements[stack]

    def statement_of(self, node: int) -> ast.stmt | None:
        """The statement of this function that runs a node."""
        return self.statement(int(self.graph.nodes.stack[node]))

    def loads(self, statement: ast.stmt, name: str) -> bool:
        """Whether a statement reads a name."""
        if statement not in self._loads:
            self._loads[statement] = loaded_names(statement)
        return name in self._loads[statement]

    def lies_in(self, statement: ast.stmt | None, block: ast.AST) -> bool:
        """Whether a statement stands somewhere within another one."""
        return statement is not None and block in self.syntax.above(statement)


def _frame(graph: Graph, stack: int) -> Location:
    found = graph.location(stack)
    assert found is not None
    return found


def body_of(context: LintContext, stack: int) -> Body | None:
    """The function that the innermost frame of a stack row is in; None where its source is not known."""
    if stack < 0:
        return None
    syntax = syntax_of(_frame(context.graph, stack))
    return None if syntax is None else Body(context, stack, syntax)


def parameter_places(context: LintContext, stack: int, names: Sequence[str], role: str) -> tuple[Place, ...]:
    """Where the function that a stack row was called from declares parameters of these names; those not found, and all
    where the source is not known, are left out."""
    rows = chain(context.graph, stack)
    body = body_of(context, rows[0]) if rows else None
    statement = body.statement(rows[0]) if body is not None else None
    function = body.syntax.function(statement) if body is not None and statement is not None else None
    if body is None or not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return ()
    known = function.args
    declared = {each.arg: each for each in (*known.posonlyargs, *known.args, *known.kwonlyargs)}
    return tuple(
        Place(
            role,
            attrs.evolve(
                body.frame,
                line=each.lineno,
                column=each.col_offset,
                end_line=each.end_lineno or each.lineno,
                end_column=each.end_col_offset or -1,
                stack=(),
            ),
        )
        for name in names
        if (each := declared.get(name)) is not None
    )


def nodes_through(graph: Graph, file: str, statement: ast.stmt) -> IntArray:
    """The nodes that a statement runs, itself or by calls, whoever called its function. ``(len(graph),)`` bool."""
    frames, stacks = graph.frames, graph.stacks
    of_file = np.array([name == file for name in graph.names], dtype=np.bool_)
    end_line = statement.end_lineno or statement.lineno
    after = (frames.line > statement.lineno) | (
        (frames.line == statement.lineno) & (frames.column >= statement.col_offset)
    )
    before = (frames.line < end_line) | ((frames.line == end_line) & (frames.column < (statement.end_col_offset or 0)))
    here = of_file[frames.file] & after & before
    through = here[stacks.frame].tolist()
    for row, caller in enumerate(stacks.caller.tolist()):  # a caller's row lies before its callee's
        through[row] = through[row] or (caller >= 0 and through[caller])
    by_stack = np.append(np.array(through, dtype=np.bool_), False)
    found: IntArray = by_stack[graph.nodes.stack]
    return found
