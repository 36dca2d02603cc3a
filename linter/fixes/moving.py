"""Loads at another place: above the work that they could run beside, before a loop, or not at all.

A load's place in HBM is Python's business. It is moved only across statements that give none of its names a value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from ..edits import Fix
from ..rule import LintContext
from .rewriting import Rewriting, indentation
from .sites import Body, body_of
from .syntax import COMPREHENSIONS, Syntax, loaded_names, stored_names

__all__ = ["load_above", "load_before_loop", "use_held"]


def _load_at(body: Body, stack: int) -> tuple[ast.Call, ast.stmt] | None:
    """The call of ``load`` of a stack row, whose result is fresh, and its statement."""
    place = body.place(stack)
    call, statement = (None, None) if place is None else (body.syntax.node_at(place), body.statement(stack))
    if not isinstance(call, ast.Call) or statement is None or body.syntax.language is None:
        return None
    named = body.syntax.text(call.func) == f"{body.syntax.language}.load"
    fresh = all(keyword.arg not in ("out", None) for keyword in call.keywords)
    plain = not any(isinstance(n, ast.NamedExpr | ast.Lambda) for n in ast.walk(call))
    around = [n for n in body.syntax.above(call) if isinstance(n, ast.expr)]
    always = not any(isinstance(n, (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)) for n in around)
    return (call, statement) if named and fresh and plain and always else None


def _fixed_names(syntax: Syntax, call: ast.Call) -> set[str]:
    """What a load's place depends on."""
    return loaded_names(call) - {(syntax.language or "").split(".")[0]}


def _whole(statement: ast.stmt, call: ast.Call) -> ast.Name | None:
    """The name that a statement assigns a call to, if it does nothing else."""
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    return target if isinstance(target, ast.Name) else None


def load_above(context: LintContext, load: int, other: int) -> Fix | None:
    """The load of one stack row above the statement of another one, of the same block and above it; one within a
    larger expression gets a name there. None where it depends on what lies between, or what does is run repeatedly."""
    body = body_of(context, load)
    found = None if body is None else _load_at(body, load)
    if body is None or found is None:
        return None
    call, statement = found
    syntax, first = body.syntax, body.statement(other)
    block = syntax.block(statement)
    while first is not None and first not in block:
        above = syntax.parents.get(first)
        first = above if isinstance(above, ast.stmt) else None
    if first is None or first not in block or block.index(first) >= block.index(statement):
        return None
    between = block[block.index(first) : block.index(statement)]
    names = _fixed_names(syntax, call)
    given = {name for other_statement in between for name in stored_names(other_statement)}
    if names & given or any(_may_write_python(syntax, s) or _stores_to(s, names) for s in between):
        return None
    if len({s.lineno for s in (first, block[max(0, block.index(first) - 1)])}) < min(2, block.index(first) + 1):
        return None  # it shares its line with the statement before
    rewriting = Rewriting(syntax)
    target = _whole(statement, call)
    used = {name for s in between for name in (*loaded_names(s), *stored_names(s))}
    if target is not None and target.id not in used:
        rewriting.put_line(first.lineno, f"{indentation(syntax, first)}{_one_line(syntax, statement)}")
        rewriting.delete(statement)
        words = f"move line {statement.lineno} above line {first.lineno}"
    else:
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.Return):
            return None  # the header of a loop or a condition is more than one line
        name = _name_for(syntax, call)
        rewriting.put_line(first.lineno, f"{indentation(syntax, first)}{name} = {_one_line(syntax, call)}")
        rewriting.replace(rewriting.start(call), rewriting.stop(call), name)
        load_text = _one_line(syntax, call)
        words = f"above line {first.lineno} write `{name} = {load_text}`, and at line {statement.lineno} use `{name}`"
    return Fix(f"{words}: a load does not block, its first use does", rewriting.edits())


def _may_write_python(syntax: Syntax, statement: ast.stmt) -> bool:
    """Whether a statement can change what a name means without assigning it: a call of the author's own."""
    language = (syntax.language or "").split(".")[0]
    for node in ast.walk(statement):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Return | ast.Break | ast.Continue | ast.Yield):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "to" or language in loaded_names(node.func):
                continue
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") not in ("slice", "range", "min", "max", "len"):
            return True
    return False


def _stores_to(statement: ast.stmt, names: set[str]) -> bool:
    """Whether a statement stores to a place in HBM that shares a name with these."""
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return any(
        getattr(call.func, "attr", "") == "store" and names & {n for a in call.args[:1] for n in loaded_names(a)}
        for call in calls
    )


def _one_line(syntax: Syntax, node: ast.expr | ast.stmt) -> str:
    text = syntax.text(node)
    return ast.unparse(node) if "\n" in text else text


def _name_for(syntax: Syntax, call: ast.Call) -> str:
    """A free name for what a load brings: after its tensor."""
    tensor = (
        next((n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)), "loaded") if call.args else "loaded"
    )
    taken = {n.id for n in ast.walk(syntax.tree) if isinstance(n, ast.Name)} | stored_names(syntax.tree)
    name, number = f"{tensor}_tile", 2
    while name in taken:
        name, number = f"{tensor}_tile_{number}", number + 1
    return name


def use_held(context: LintContext, again: int, held: int, pairs: Sequence[tuple[int, int]]) -> Fix | None:
    """The handle of one load in the place of another load that always brings the same bytes: ``pairs`` are (load, the
    load whose handle holds the same), of the stack rows ``again`` and ``held``.

    None unless all executions repeat, the name still means that handle there, and neither is written as long as the
    other is read.
    """
    graph, body = context.graph, body_of(context, held)
    loads = np.flatnonzero(graph.nodes.stack == again)
    first, second = (None, None) if body is None else (_load_at(body, held), _load_at(body, again))
    if body is None or first is None or second is None or len(loads) != len(pairs):
        return None
    name = _whole(first[1], first[0])
    if name is None or body.syntax.function(first[1]) is not body.syntax.function(second[1]):
        return None
    function = body.syntax.function(first[1])
    writers = [n for n in ast.walk(function or body.syntax.tree) if isinstance(n, ast.Name) and n.id == name.id]
    if sum(not isinstance(n.ctx, ast.Load) for n in writers) != 1 or (function and name.id in _parameters(function)):
        return None
    holders = np.flatnonzero(graph.nodes.stack == held)
    latest = np.searchsorted(holders, [load for load, _ in pairs]) - 1  # ids are rank-major: within the rank, if any
    for (load, holder), place in zip(pairs, latest.tolist(), strict=True):
        if place < 0 or holders[place] != holder or not _interchangeable(context, load, holder):
            return None
    rewriting = Rewriting(body.syntax)
    rewriting.replace(rewriting.start(second[0]), rewriting.stop(second[0]), name.id)
    line = second[0].lineno
    title = f"at line {line} use `{name.id}` of line {first[1].lineno} instead of the load"
    return Fix(title, rewriting.edits())


def _parameters(function: ast.AST) -> set[str]:
    return {n.arg for n in ast.walk(function) if isinstance(n, ast.arg)}


def _interchangeable(context: LintContext, load: int, holder: int) -> bool:
    """Whether two loads' handles lie in one memory, and hold the same for as long as the second one is used."""
    graph = context.graph
    accesses = graph.accesses
    storage, other = (int(accesses.storage[int(graph.access_start[node + 1]) - 1]) for node in (load, holder))
    if graph.storages.memory[storage] != graph.storages.memory[other]:
        return False
    last = context.readers.last_access(storage)
    freed = int(graph.storages.freed[other])
    writes = context.readers.writers(other)
    once = len(context.readers.writers(storage)) == 1
    return once and (freed < 0 or freed > last) and not np.any((writes > holder) & (writes <= last))


def load_before_loop(context: LintContext, stack: int, repeats: int) -> Fix | None:
    """A load that does not depend on its loop's iterations above the loop; None unless all but the first of each rank
    repeat. One within a larger expression gets a name there."""
    graph, body = context.graph, body_of(context, stack)
    found = None if body is None else _load_at(body, stack)
    if body is None or found is None:
        return None
    call, statement = found
    syntax, target = body.syntax, _whole(statement, call)
    loads = np.flatnonzero(graph.nodes.stack == stack)
    if len(loads) - repeats != len(np.unique(graph.nodes.rank[loads])):
        return None
    loop = syntax.parents[statement]
    if not isinstance(loop, ast.For | ast.While) or statement not in loop.body:
        return None
    outermost, names = loop, _fixed_names(syntax, call)
    while isinstance(above := syntax.parents[outermost], ast.For | ast.While) and outermost in above.body:
        outermost = above
    if names & stored_names(outermost) or any(_written_again(context, int(n)) for n in loads):
        return None
    rewriting = Rewriting(syntax)
    before = indentation(syntax, outermost)
    if target is None:
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
            return None
        name, text = _name_for(syntax, call), _one_line(syntax, call)
        rewriting.put_line(outermost.lineno, f"{before}{name} = {text}")
        rewriting.replace(rewriting.start(call), rewriting.stop(call), name)
        written = f"above the loop at line {outermost.lineno} write `{name} = {text}`"
        return Fix(f"{written}, and at line {call.lineno} use `{name}`", rewriting.edits())
    around = syntax.function(statement) or syntax.tree
    same = [n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == target.id]
    if sum(not isinstance(n.ctx, ast.Load) for n in same) != 1:
        return None
    rewriting.put_line(outermost.lineno, f"{before}{_one_line(syntax, statement)}")
    rewriting.delete(statement)
    return Fix(f"move line {statement.lineno} above the loop at line {outermost.lineno}", rewriting.edits())


def _written_again(context: LintContext, load: int) -> bool:
    accesses = context.graph.accesses
    storage = accesses.storage[int(context.graph.access_start[load + 1]) - 1]
    return len(context.readers.writers(int(storage))) > 1
