"""An accumulator in f32 that is converted once, where its sum is used."""

from __future__ import annotations

import ast

from ...ir.dtypes import DType
from ..edits import Fix
from ..rule import LintContext
from .rewriting import Rewriting
from .sites import Body, body_of
from .syntax import Syntax, loaded_names

__all__ = ["widen_accumulator"]

#: Where ``tl.zeros``, ``tl.full`` and ``tl.empty`` have their dtype, if it is not named.
_DTYPE_AT = {"zeros": 1, "empty": 1, "full": 2}


def widen_accumulator(context: LintContext, made: int, sums: tuple[int, ...], dtype: DType, title: str) -> Fix | None:
    """``tl.float32`` for the handle that the stack row ``made`` makes, and ``.to(dtype)`` where it is read outside of
    the loop in which the rows ``sums`` add to it; None where it is read otherwise within the loop, or is not made so
    plainly."""
    body = body_of(context, made)
    place = body.place(made) if body is not None else None
    if body is None or place is None or body.syntax.language is None:
        return None
    syntax = body.syntax
    call, statement = syntax.node_at(place), syntax.statement(place)
    if not isinstance(call, ast.Call) or not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    argument, target = _dtype_of(syntax, call), statement.targets[0]
    if argument is None or len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return None
    adding = [body.statement(stack) for stack in sums]
    uses = _uses(syntax, statement, target.id)
    loop = _loop(body, statement, adding)
    if loop is None or uses is None:
        return None
    inside = [use for use in uses if loop in syntax.above(use)]
    if any(not _is_plain(syntax, use, adding) for use in inside):
        return None
    if any(not _is_operand(syntax, use) for use in uses if use not in inside):
        return None  # what is only put into a list may never be read: its conversion would be for nothing
    rewriting = Rewriting(syntax)
    rewriting.replace(rewriting.start(argument), rewriting.stop(argument), f"{syntax.language}.float32")
    short = f".to({syntax.language}.{repr(dtype).removeprefix('tl.')})"
    for use in uses:
        if use not in inside:
            rewriting.put(*rewriting.stop(use), short)
    return Fix(title, rewriting.edits())


def _dtype_of(syntax: Syntax, call: ast.Call) -> ast.expr | None:
    name = syntax.text(call.func).removeprefix(f"{syntax.language}.")
    named = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
    if name not in _DTYPE_AT or any(keyword.arg is None for keyword in call.keywords):
        return None
    return named[0] if named else (call.args[_DTYPE_AT[name]] if len(call.args) > _DTYPE_AT[name] else None)


def _uses(syntax: Syntax, made: ast.Assign, name: str) -> list[ast.Name] | None:
    """Where a function reads a name that it gives once; None where another statement gives it, too."""
    function = syntax.function(made)
    around: ast.AST = syntax.tree if function is None else function
    names = [n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == name]
    written = [n for n in names if not isinstance(n.ctx, ast.Load)]
    others = {n.arg for n in ast.walk(around) if isinstance(n, ast.arg)}
    others |= {n.name for n in ast.walk(around) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    if len(written) != 1 or name in others:
        return None
    return [n for n in names if isinstance(n.ctx, ast.Load)]


def _loop(body: Body, made: ast.stmt, adding: list[ast.stmt | None]) -> ast.stmt | None:
    """The outermost loop around all statements that add, and not around the one that makes."""
    found = None
    first = adding[0] if adding else None
    for node in body.syntax.above(first) if first is not None else ():
        inside = isinstance(node, ast.For | ast.While) and all(body.lies_in(one, node) for one in adding)
        if inside and not body.lies_in(made, node):
            assert isinstance(node, ast.stmt)
            found = node
    return found


def _is_operand(syntax: Syntax, use: ast.Name) -> bool:
    """Whether a use, or a view of it, goes into an operation, a function or back to the caller."""
    passed: ast.AST = use
    for node in syntax.above(use):
        if isinstance(node, ast.Call):
            language = (syntax.language or "").split(".")[0]
            return isinstance(node.func, ast.Name) or node.func is passed or language in loaded_names(node.func)
        if not isinstance(node, ast.Subscript | ast.Attribute | ast.keyword):
            return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Return)
        passed = node
    return False


def _is_plain(syntax: Syntax, use: ast.Name, adding: list[ast.stmt | None]) -> bool:
    """Whether a use is part of the sum: in one of its statements, which convert nothing and name no dtype."""
    statement = next((n for n in syntax.above(use) if isinstance(n, ast.stmt)), None)
    if statement is None or statement not in adding:
        return False
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    named = {keyword.arg for call in calls for keyword in call.keywords}
    converts = any(isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cast") for call in calls)
    return not converts and not named & {"out_dtype", "dtype"}
