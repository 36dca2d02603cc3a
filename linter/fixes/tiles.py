"""The command that finds the largest tile that fits, for a kernel that has its tile as a parameter."""

from __future__ import annotations

import ast

from ..rule import LintContext
from ..source_places import shown_path
from .sites import body_of, chain

__all__ = ["fit_command"]


def fit_command(context: LintContext, stack: int) -> str | None:
    """``kernscope fit FILE::KERNEL --param tile --range 64:512:64`` for the kernel that a stack row was called from:
    its first parameter with a whole number of 2 or more as default, from an eighth of that on; None for none."""
    rows = chain(context.graph, stack)
    body = body_of(context, rows[0]) if rows else None
    statement = body.statement(rows[0]) if body is not None else None
    function = body.syntax.function(statement) if body is not None and statement is not None else None
    if body is None or not isinstance(function, ast.FunctionDef):
        return None
    for name, default in _defaults(function.args):
        if isinstance(default, ast.Constant) and type(default.value) is int and default.value >= 2:
            step = max(1, default.value // 8)
            place = f"{shown_path(body.syntax.file)}::{context.graph.kernel}"
            return f"kernscope fit {place} --param {name} --range {step}:{default.value}:{step}"
    return None


def _defaults(arguments: ast.arguments) -> list[tuple[str, ast.expr]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    keyword = [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return [(argument.arg, default) for argument, default in (*keyword, *pairs)]
