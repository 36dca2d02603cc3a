"""Scopes where there are none: around a loop's body, or a second one in the middle of one that is too long."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray
from ..analyses.scopes import UnscopedLoop
from ..edits import Fix
from ..rule import LintContext
from .keeping import Kept, find_kept
from .rewriting import Rewriting, indentation
from .sites import Body, body_of, chain
from .syntax import COMPREHENSIONS, Loop, Syntax

__all__ = [
    "GrowingLoop",
    "growing_loop",
    "loop_around_both",
    "scope_statement",
    "split_scope",
    "with_carried",
    "wrap_in_scope",
]


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
        if row != stack:
            direct = direct and _calls(body, row, _function(graph, stack, row))
        found = _around(body, row, users)
        if found is not None:
            return GrowingLoop(body, found, direct)
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
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(name == function)


def with_carried(context: LintContext, loop: UnscopedLoop) -> UnscopedLoop:
    """The loop, with what an iteration reads of the one before among what is ``kept``: ``send(cur); cur = recv()``.

    Nothing in the order of nodes tells where an iteration begins, so the source does: such a line stands above the one
    that makes the allocations, or is that one, and then it does not come by the last of them."""
    graph = context.graph
    accesses, stacks = graph.accesses, graph.storages.stack
    carried = [loop.kept]
    for stack in np.unique(stacks[loop.rows]).tolist():
        rows = loop.rows[stacks[loop.rows] == stack]
        growing = growing_loop(context, rows)
        if growing is None or isinstance(growing.node, ast.expr):
            continue
        body, node = growing.body, growing.node
        made = body.statement(stack)
        touching = np.flatnonzero(np.isin(accesses.storage, rows))
        by = graph.nodes.stack[accesses.node[touching]]
        for user in np.unique(by).tolist():
            statement = body.statement(user) if user >= 0 and user != stack else None
            if statement is None or made is None or not body.lies_in(statement, node):
                continue
            read = np.unique(accesses.storage[touching[by == user]])
            above = (statement.lineno, statement.col_offset) < (made.lineno, made.col_offset)
            if (above and made not in body.syntax.above(statement)) or (statement is made and read[-1] != rows[-1]):
                carried.append(read)
    return attrs.evolve(loop, kept=np.unique(np.concatenate(carried)))


def _users(graph: Graph, rows: IntArray) -> list[int]:
    """The stack rows that access some allocations."""
    chosen = np.zeros(len(graph.storages), dtype=np.bool_)
    chosen[rows] = True
    accesses = graph.accesses
    return [int(s) for s in np.unique(graph.nodes.stack[accesses.node[chosen[accesses.storage]]]) if s >= 0]


def _around(body: Body, row: int, users: Iterable[int]) -> ast.For | ast.While | ast.expr | None:
    syntax, place = body.syntax, body.place(row)
    if place is None:
        return None
    around = syntax.enclosing(place)
    if place.function in ("<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>"):
        return next((n for n in around if isinstance(n, COMPREHENSIONS)), None)
    for node in around:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return None
        if isinstance(node, COMPREHENSIONS) and node.generators[0].iter not in around:  # that runs once, before
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


def wrap_in_scope(context: LintContext, rows: IntArray, kept: IntArray) -> Fix | None:
    """A scope around the body of each loop whose iterations make ``rows`` anew, and for each allocation of ``kept`` the
    copy by which it outlives them; None where one of those cannot be kept so."""
    found = _loops(context, rows)
    if not found or len({growing.body.syntax.file for growing in found}) > 1:
        return None
    syntax = found[0].body.syntax
    loops = sorted((loop for g in found if isinstance(loop := g.node, ast.For | ast.While)), key=lambda n: n.lineno)
    copies = _copies(context, found, loops, rows, kept)
    if copies is None or syntax.language is None:
        return None
    rewriting = Rewriting(syntax)
    header = f"with {syntax.language}.scratch_scope():"

    def deeper(statement: ast.stmt) -> str:
        return "".join(_unit(syntax, loop) for loop in loops if loop in syntax.above(statement))

    for loop in loops:
        _put_header(rewriting, loop, deeper(loop), header)
    for loop in loops:
        _indent(rewriting, loop)
    for copy in copies:
        copy.apply(rewriting, deeper)
    title = f"wrap {', and '.join(_body_text(Loop.of(loop)) for loop in loops)}, in `{header}`"
    return Fix("; ".join([title, *(copy.title for copy in copies)]), rewriting.edits())


def _loops(context: LintContext, rows: IntArray) -> list[GrowingLoop]:
    """The loops to wrap, each once; none where one cannot be wrapped."""
    stacks = context.graph.storages.stack
    found: dict[ast.AST, GrowingLoop] = {}
    made: dict[ast.AST, list[int]] = {}
    for stack in dict.fromkeys(stacks[rows].tolist()):
        growing = growing_loop(context, rows[stacks[rows] == stack])
        if growing is None or isinstance(growing.node, ast.expr) or not growing.direct:
            return []
        found.setdefault(growing.node, growing)
        made.setdefault(growing.node, []).append(stack)
    for node, growing in list(found.items()):
        body = growing.body
        for other in found:
            crossing = [stack for stack in made[other] if body.lies_in(body.statement(stack), node)]
            if not crossing or other not in body.syntax.above(node):
                continue
            # What this loop makes is read behind it: the outer one's scope has to do for both.
            count = [int(np.count_nonzero(stacks[rows] == group[0])) for group in (made[node], made[other])]
            if count[0] > 2 * count[1]:
                return []
            del found[node]
            break
    return list(found.values())


def _body_text(loop: Loop) -> str:
    lines = f"line {loop.first}" if loop.first == loop.last else f"lines {loop.first}-{loop.last}"
    return f"{lines}, the body of the loop at line {loop.line}"


def _copies(
    context: LintContext,
    found: Sequence[GrowingLoop],
    loops: Sequence[ast.For | ast.While],
    rows: IntArray,
    kept: IntArray,
) -> list[Kept] | None:
    """How the allocations that a later iteration needs outlive the scopes, each the outermost loop's around it."""
    stacks = context.graph.storages.stack
    kept_stacks = list(dict.fromkeys(stacks[kept].tolist()))
    copies: list[Kept] = []
    for stack in kept_stacks:
        around = [g for g in found if g.body.lies_in(g.body.statement(stack), g.node)]
        if not around:
            return None
        outermost = min(around, key=lambda growing: growing.node.lineno)
        assert isinstance(outermost.node, ast.For | ast.While)
        copy = find_kept(outermost.body, outermost.node, np.flatnonzero(stacks == stack).tolist())
        if copy is None:
            return None
        copies.append(copy)
    if len({copy.write.lineno for copy in copies}) < len(copies):
        return None
    # What else an inner loop makes may be needed by its own next iteration.
    told = {*stacks[rows].tolist(), *kept_stacks}
    others = [stack for stack in np.unique(stacks[stacks >= 0]).tolist() if stack not in told]
    inner = [g for g in found if any(loop in g.body.syntax.above(g.node) for loop in loops)]
    if any(g.body.lies_in(g.body.statement(stack), g.node) for g in inner for stack in others):
        return None
    return copies


def _unit(syntax: Syntax, loop: ast.For | ast.While) -> str:
    """By what a loop's body is indented."""
    outer = indentation(syntax, loop)
    if loop.body[0].lineno == loop.lineno:
        return "\t" if outer.startswith("\t") else "    "
    return indentation(syntax, loop.body[0]).removeprefix(outer) or "    "


def _put_header(rewriting: Rewriting, loop: ast.For | ast.While, deeper: str, header: str) -> None:
    """The line that opens the scope, above a loop's body, which may stand on the loop's own line."""
    syntax = rewriting.syntax
    start = rewriting.start(loop.body[0])
    before = syntax.lines[start[0] - 1][: start[1]]
    inner = f"{deeper}{indentation(syntax, loop)}{_unit(syntax, loop)}"
    if before.strip():
        body = f"{inner}{_unit(syntax, loop)}"
        rewriting.replace((start[0], len(before.rstrip())), start, f"\n{inner}{header}\n{body}")
    else:
        rewriting.put_line(_first_line(loop.body[0]), f"{inner}{header}")


def _indent(rewriting: Rewriting, loop: ast.For | ast.While) -> None:
    """Put a loop's body one level deeper."""
    syntax = rewriting.syntax
    first, last = _first_line(loop.body[0]), Loop.of(loop).last
    if syntax.lines[first - 1][: rewriting.start(loop.body[0])[1]].strip():
        return  # on the line of its loop
    frozen = _inside_strings(loop.body)
    for line in range(first, last + 1):
        if syntax.lines[line - 1].strip() and line not in frozen:
            rewriting.put(line, 0, _unit(syntax, loop))


def _first_line(statement: ast.stmt) -> int:
    lines: list[int] = [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    return min([statement.lineno, *lines])


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
    return next((n for n, child in enumerate(block.body) if child in above), None)


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
