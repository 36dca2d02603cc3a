"""A word more or less: zeros instead of nothing, a store that clips, a comment without a code."""

from __future__ import annotations

import ast
import re

from ...ir.source.digests import lines_at
from ...ir.source.location import Location
from ..edits import Edit, Fix
from ..suppressions import Suppression
from .rewriting import Rewriting
from .syntax import syntax_of

__all__ = ["clip_store", "pad_load", "without_code", "zeros_for_empty"]


def zeros_for_empty(location: Location | None) -> Fix | None:
    """``tl.zeros`` instead of the ``tl.empty`` at a place: it takes the same arguments."""
    syntax = syntax_of(location) if location is not None else None
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


def clip_store(location: Location | None) -> Fix | None:
    """``clip=True`` for the store at a place."""
    return _with_keyword(location, "store", "clip", "True", "for a ragged edge add `clip=True` to the store")


def pad_load(location: Location | None, value: str) -> Fix | None:
    """``pad=`` of a value for the load at a place, where what it brings from outside reaches nothing that is stored."""
    title = f"for a ragged edge add `pad={value}` to the load"
    return _with_keyword(location, "load", "pad", value, title, "; it is in no element that is stored")


def _with_keyword(
    location: Location | None, function: str, keyword: str, value: str, title: str, why: str = ""
) -> Fix | None:
    """One more keyword for the call of a function of ``tl`` at a place."""
    syntax = syntax_of(location) if location is not None else None
    call = syntax.node_at(location) if syntax is not None and location is not None else None
    if syntax is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    keywords = {each.arg for each in call.keywords}
    if call.func.attr != function or keywords & {keyword, None} or not call.args:
        return None
    rewriting = Rewriting(syntax)
    line, column = rewriting.stop(call)
    last = max(rewriting.stop(each) for each in (*call.args, *(each.value for each in call.keywords)))
    tail = [syntax.lines[last[0] - 1][last[1] :], *syntax.lines[last[0] : line]]
    comma = "" if any(text.split("#")[0].strip().startswith(",") for text in tail) else ", "
    rewriting.put(line, column - 1, f"{comma}{keyword}={value}")
    return Fix(f"{title} at line {call.lineno}{why}", rewriting.edits())


_BRACKETS = re.compile(r"\[([^\]]*)\]")


def without_code(suppression: Suppression, title: str) -> Fix:
    """A suppression comment without a code of it; without its last one nothing of it is left."""
    line = lines_at(suppression.location)[suppression.line - 1].encode()
    before, comment = line[: suppression.column].decode(), line[suppression.column : suppression.end_column].decode()
    after = line[suppression.end_column :].decode()
    brackets = _BRACKETS.search(comment)
    codes = [code.strip() for code in brackets.group(1).split(",")] if brackets else []
    place = [code.upper() for code in codes].index(suppression.code) if suppression.code else None
    kept = [code for number, code in enumerate(codes) if number != place and code]
    if kept and brackets:
        text = f"{before}{comment[: brackets.start()]}[{', '.join(kept)}]{after}"
    elif after.strip() and not after.strip().startswith("#"):
        text = f"{before}#{after}"
    else:
        text = f"{before.rstrip()}{'  ' if after.strip() else ''}{after.strip()}"
    return Fix(title, (Edit(suppression.file, suppression.line, suppression.line, f"{text}\n" if text else ""),))
