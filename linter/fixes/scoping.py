"""Scopes where there are none: around a loop's body, or a second one in the middle of one that is too long."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray
from ..rule import LintContext
from .edits import Fix
from .keeping import Kept, find_kept
from .rewriting import Rewriting, indentation
from .sites import Body, body_of, chain
from .syntax import COMPREHENSIONS, Loop, Syntax

__all__ = ["GrowingLoop", "growing_loop", "loop_around_both", "scope_statement", "split_scope", "wrap_in_scope"]


@attrs.frozen(eq=False)
class GrowingLoop:
    """The loop whose iterations make allocations anew, in the function ``body``: a ``for`` or ``while``, or a
    comprehension, into which no scope can be put. ``direct``: each of its iterations runs the line once, as far as the
    source shows; else a scope around its body may hold several."""

    body: Body
    node: ast.For | ast.While | ast.expr
    direct: bool

    @property
    def loop(self) -> Loop | None:
        """The loop's lines, where it has a body."""
        return None if isinstance(self.node, ast.expr) else Loop.of(self.node)


def growing_loop(context: LintContext, rows: IntArray) -> GrowingLoop | None:
    """The innermost loop around the line that makes ``rows`` (of one line or several of one loop) in whose body all of
    their uses lie: outward from that line through the calls that lead to it."""
    graph = context.graph
    stack = int(graph.storages.stack[rows[0]])
    users = _users(graph, rows)
    direct = True
    for row in reversed(chain(graph, stack)):
        body = body_of(context, row)
        if body is None:
            return None
        place = body.place(row)
        assert place is not None
        if row != stack:
            direct = direct and _calls(body, row, _function(graph, stack, row))
        found = _around(body, row, users)
        if found is not None:
            return GrowingLoop(body, found, direct)
        if place.function == "<lambda>":
            direct = False
    return None


def _function(graph: Graph, stack: int, caller: int) -> str:
    """The function that a stack row called on the way to another one."""
    rows = chain(graph, stack)
    place = graph.location(rows[rows.index(caller) + 1])
    return "" if place is None else place.function


def _calls(body: Body, row: int, function: str) -> bool:
    """Whether a frame calls a function by its name, once: not through ``map``, a decorator's wrapper or a lambda."""
    place = body.place(row)
    node = body.syntax.node_at(place) if place is not None else None
    if function in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"):
        return False
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(name == function)


def _users(graph: Graph, rows: IntArray) -> list[int]:
    """The stack rows that access some allocations."""
    chosen = np.zeros(len(graph.storages), dtype=np.bool_)
    chosen[rows] = True
    accesses = graph.accesses
    return [int(s) for s in np.unique(graph.nodes.stack[accesses.node[chosen[accesses.storage]]]) if s >= 0]


def _around(body: Body, row: int, users: Iterable[int]) -> ast.For | ast.While | ast.expr | None:
    syntax, place = body.syntax, body.place(row)
    if place is None or place.function == "<lambda>":
        return None
    if place.function in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"):
        found = next((n for n in syntax.enclosing(place) if isinstance(n, COMPREHENSIONS)), None)
        return found
    for node in syntax.enclosing(place):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(node, COMPREHENSIONS):
            return node
        if isinstance(node, ast.For | ast.While) and all(_in_body(body, user, node) for user in users):
            return node
    return None


def _in_body(body: Body, stack: int, loop: ast.For | ast.While) -> bool:
    statement = body.statement(stack)
    if statement is None:
        return False
    above = [statement, *body.syntax.above(statement)]
    return any(child in above for child in loop.body)


def wrap_in_scope(growing: GrowingLoop, kept: IntArray) -> Fix | None:
    """A scope around a loop's body, and for each allocation of ``kept`` the copy by which it outlives it; None where
    one of those cannot be kept so."""
    if isinstance(growing.node, ast.expr) or not growing.direct:
        return None
    body, loop = growing.body, growing.node
    syntax = body.syntax
    if syntax.language is None:
        return None
    copies = _copies(body, loop, kept)
    if copies is None:
        return None
    rewriting = Rewriting(syntax)
    _indent(rewriting, loop.body, indentation(syntax, loop), f"with {syntax.language}.scratch_scope():")
    for copy in copies:
        copy.apply(rewriting)
    lines = growing.loop
    assert lines is not None
    which = f"line {lines.first}" if lines.first == lines.last else f"lines {lines.first}-{lines.last}"
    title = f"wrap {which}, the body of the loop at line {lines.line}, in `with {syntax.language}.scratch_scope():`"
    return Fix("; ".join([title, *(copy.title for copy in copies)]), rewriting.edits())


def _copies(body: Body, loop: ast.For | ast.While, kept: IntArray) -> list[Kept] | None:
    """How the allocations that a later iteration needs outlive a scope around a loop's body."""
    stacks = body.graph.storages.stack
    found: list[Kept] = []
    for stack in dict.fromkeys(stacks[kept].tolist()):
        copy = find_kept(body, loop, np.flatnonzero(stacks == stack).tolist())
        if copy is None:
            return None
        found.append(copy)
    return found if len({copy.write.lineno for copy in found}) == len(found) else None


def _indent(rewriting: Rewriting, statements: Sequence[ast.stmt], outer: str, header: str) -> None:
    """Put statements one level deeper, below a header."""
    syntax = rewriting.syntax
    first, last = _first_line(statements[0]), statements[-1].end_lineno or statements[-1].lineno
    start = rewriting.start(statements[0])
    before = syntax.lines[start[0] - 1][: start[1]]
    if before.strip():  # on the line of its loop
        unit = "\t" if outer.startswith("\t") else "    "
        head = len(before.rstrip())
        rewriting.replace((start[0], head), start, f"\n{outer}{unit}{header}\n{outer}{unit}{unit}")
        return
    inner = indentation(syntax, statements[0])
    unit = inner.removeprefix(outer) or "    "
    rewriting.put_line(first, f"{inner}{header}")
    frozen = _inside_strings(statements)
    for line in range(first, last + 1):
        if syntax.lines[line - 1].strip() and line not in frozen:
            rewriting.put(line, 0, unit)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _inside_strings(statements: Iterable[ast.stmt]) -> set[int]:
    """The lines that begin within a string: blanks before them would be part of it."""
    found: set[int] = set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
                found.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
    return found


# --- one scope becomes two --------------------------------------------------------------------------------------------


def scope_statement(body: Body, stack: int) -> ast.With | None:
    """The ``with`` statement that opens a scope, given the stack row that opened it."""
    statement = body.statement(stack)
    if not isinstance(statement, ast.With):
        return None
    calls = [item.context_expr for item in statement.items if isinstance(item.context_expr, ast.Call)]
    names = [body.syntax.text(call.func) for call in calls]
    return statement if any(name.split(".")[-1] == "scratch_scope" for name in names) else None


def loop_around_both(context: LintContext, opened: int, *stacks: int) -> Loop | None:
    """The loop within a scope's block, if it is one statement of it, in which all these stack rows run."""
    body = body_of(context, opened)
    block = scope_statement(body, opened) if body is not None else None
    if body is None or block is None:
        return None
    children = {_child(body.syntax, block, body.statement(stack)) for stack in stacks}
    number = children.pop()
    child = block.body[number] if not children and number is not None else None
    return Loop.of(child) if isinstance(child, ast.For | ast.While) else None


def _child(syntax: Syntax, block: ast.With, statement: ast.stmt | None) -> int | None:
    """Which of a block's statements one lies in."""
    if statement is None:
        return None
    above = [statement, *syntax.above(statement)]
    for number, child in enumerate(block.body):
        if child in above:
            return number
    return None


def split_scope(context: LintContext, opened: int, last_use: int, peak: int) -> Fix | None:
    """Close the scope that the stack row ``opened`` opens after the statement of ``last_use``, and open another for
    what follows, which must hold the row ``peak``; None where the scope's handles are used on both sides."""
    body = body_of(context, opened)
    block = scope_statement(body, opened) if body is not None else None
    if body is None or block is None or body.syntax.language is None:
        return None
    syntax = body.syntax
    number, top = _child(syntax, block, body.statement(last_use)), _child(syntax, block, body.statement(peak))
    if number is None or top is None or top <= number or len(block.items) > 1 or block.items[0].optional_vars:
        return None
    before, after = block.body[number], block.body[number + 1]
    if _first_line(after) <= (before.end_lineno or before.lineno) or before.lineno == block.lineno:
        return None
    if _crosses(body, block, opened, number):
        return None
    rewriting = Rewriting(syntax)
    header = f"with {syntax.language}.scratch_scope():"
    rewriting.put_line(_first_line(after), f"{indentation(syntax, block)}{header}")
    line = before.end_lineno or before.lineno
    return Fix(f"close the scope after line {line}, and open another one for what follows", rewriting.edits())


def _crosses(body: Body, block: ast.With, opened: int, number: int) -> bool:
    """Whether a handle that a block's first statements make is used by the others."""
    graph = body.graph
    storages, accesses = graph.storages, graph.accesses
    scopes = np.flatnonzero(graph.scopes.stack == opened)
    mine = np.isin(storages.scope, scopes)
    rows = np.flatnonzero(mine[accesses.storage])
    pairs = np.column_stack((storages.stack[accesses.storage[rows]], graph.nodes.stack[accesses.node[rows]]))
    for made, used in np.unique(pairs, axis=0).tolist():
        made_in = _child(body.syntax, block, body.statement(made))
        used_in = _child(body.syntax, block, body.statement(used))
        if made_in is None or used_in is None or (made_in <= number < used_in):
            return True
    return False
