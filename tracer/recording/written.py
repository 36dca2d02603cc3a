"""What an author wrote for an argument of a call: for helps that name it."""

from __future__ import annotations

import ast
import functools

from ...ir.source.digests import source_lines
from ...ir.source.location import Location

__all__ = ["written_argument"]

#: What binds as tightly as a name does: a method of it needs no brackets.
_ATOMS = ast.Name | ast.Attribute | ast.Call | ast.Subscript
#: A longer text would say less than a word.
_LONGEST = 60


def written_argument(place: Location | None, number: int, keyword: str) -> str | None:
    """The text of an argument of the call at a place, by position or keyword, in brackets where a method of it needs
    them; None where the source does not have it in one line."""
    if place is None:
        return None
    calls = _calls("\n".join(source_lines(place.file)))
    call = calls.get((place.line, place.column, place.end_line, place.end_column))
    if call is None or any(isinstance(argument, ast.Starred) for argument in call.args[: number + 1]):
        return None
    given = call.args[number] if number < len(call.args) else None
    found = next((each.value for each in call.keywords if each.arg == keyword), given)
    text = "" if found is None else ast.unparse(found)
    if not text or len(text) > _LONGEST:
        return None
    return text if isinstance(found, _ATOMS) else f"({text})"


@functools.lru_cache(maxsize=16)
def _calls(text: str) -> dict[tuple[int, int, int | None, int | None], ast.Call]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {
        (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
