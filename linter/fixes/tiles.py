"""The command that finds the largest tile that fits, for a kernel that has its tile as a parameter."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ..rule import LintContext
from ..source_places import shown_path
from .sites import body_of, chain

__all__ = ["fit_command"]

#: An eighth.
_HALVINGS = 3


def fit_command(context: LintContext, stack: int) -> str | None:
    """``kernscope fit FILE::KERNEL --launch NAME --param tile --range 64:512:x2`` for the kernel that a stack row was
    called from, with all that was given when it was linted: a parameter whose value, the launch's or else the default,
    is a whole number of 2 or more, from an eighth of that on. None where there is none, and where it is not
    known how the kernel is asked for."""
    asked = context.invocation
    rows = chain(context.graph, stack)
    body = body_of(context, rows[0]) if rows else None
    statement = body.statement(rows[0]) if body is not None else None
    function = body.syntax.function(statement) if body is not None and statement is not None else None
    if asked is None or not asked.is_known or body is None or not isinstance(function, ast.FunctionDef):
        return None
    found = _varied(function.args, asked.arguments)
    if found is None:
        return None
    name, value = found
    target = f"{shown_path(body.syntax.file)}::{context.graph.kernel}"
    return asked.command("fit", target, name, "--param", name, "--range", _range_up_to(value))


def _range_up_to(value: int) -> str:
    """From an eighth of a value up to it: halves of halves, which divide whatever the value does, or where it is odd,
    equal steps."""
    halvings = next(n for n in range(_HALVINGS, -1, -1) if value % (1 << n) == 0 and value >> n)
    if halvings:
        return f"{value >> halvings}:{value}:x2"
    step = max(1, value >> _HALVINGS)
    return f"{step}:{value}:{step}"


def _varied(arguments: ast.arguments, given: Mapping[str, Any]) -> tuple[str, int] | None:
    """The parameter to vary with its value: the first with a default, keyword-only ones before others, else the only
    one without."""
    defaults = {name: default.value for name, default in _defaults(arguments) if isinstance(default, ast.Constant)}
    names = [each.arg for each in (*arguments.kwonlyargs, *arguments.posonlyargs, *arguments.args)]
    sizes = [
        (name, value) for name in names if type(value := given.get(name, defaults.get(name))) is int and value >= 2
    ]
    with_default = [(name, value) for name, value in sizes if type(defaults.get(name)) is int]
    if with_default:
        return with_default[0]
    return sizes[0] if len(sizes) == 1 else None


def _defaults(arguments: ast.arguments) -> list[tuple[str, ast.expr]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = list(zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True))
    keyword = [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return [(argument.arg, default) for argument, default in (*keyword, *pairs)]
