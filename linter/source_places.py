"""Where a location lies in its source text: its column, what shares its line; and its path for a reader."""

from __future__ import annotations

import re

from ..ir.forms.printable import printable
from ..ir.source import location
from ..ir.source.digests import lines_at
from ..ir.source.location import Location

__all__ = ["character_column", "shares_its_line", "shown_path"]


def shown_path(file: str) -> str:
    """A path for a reader: relative where it lies below the current folder; printable."""
    return printable(location.shown_path(file))


def character_column(location: Location) -> int | None:
    """The column counted from 1, in characters; None where it is not known. (Locations count UTF-8 bytes.)"""
    if location.column < 0:
        return None
    lines = lines_at(location)
    if not 0 < location.line <= len(lines):
        return location.column + 1
    return len(lines[location.line - 1].encode()[: location.column].decode(errors="replace")) + 1


#: What may stand before and after an expression that is all of its lines: names that it is assigned to; a comment.
_ASSIGNED = re.compile(r"\s*(?:\w+\s*(?::[^=]*)?[-+*/%@&|^]?=\s*)*\(?\s*")
_COMMENT = re.compile(r"\s*\)?\s*(?:#.*)?")


def shares_its_line(location: Location) -> bool:
    """Whether a place has other code beside it, so that its line cannot be deleted: ``a, b = load(x), load(y)``."""
    lines = lines_at(location)
    if location.column < 0 or not 0 < location.line <= location.end_line <= len(lines):
        return False
    before = lines[location.line - 1].encode()[: location.column].decode(errors="replace")
    after = lines[location.end_line - 1].encode()[location.end_column :].decode(errors="replace")
    return not (_ASSIGNED.fullmatch(before) and _COMMENT.fullmatch(after))
