"""Handles that begin with zeros instead of with nothing."""

from __future__ import annotations

import ast

from ...ir.location import Location
from .edits import Fix
from .rewriting import Rewriting
from .syntax import syntax_of

__all__ = ["zeros_for_empty"]


def zeros_for_empty(location: Location | None) -> Fix | None:
    """``tl.zeros`` instead of the ``tl.empty`` at a place: it takes the same arguments."""
    syntax = syntax_of(location.file) if location is not None else None
    call = syntax.node_at(location) if syntax is not None and location is not None else None
    if syntax is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr != "empty":
        return None
    rewriting = Rewriting(syntax)
    line, column = rewriting.stop(call.func)
    rewriting.replace((line, column - len("empty")), (line, column), "zeros")
    wanted = syntax.text(call).replace(".empty", ".zeros", 1)
    return Fix(f"make it with `{' '.join(wanted.split())}` at line {call.lineno}", rewriting.edits())
