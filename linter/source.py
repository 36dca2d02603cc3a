"""A kernel's source text, as far as it can be read."""

from __future__ import annotations

import linecache
import os
import re

from ..ir import location
from ..ir.location import Location

__all__ = ["character_column", "printable", "shares_its_line", "shown_path", "source_lines"]

#: A saved graph can name any path; what is larger than this is no kernel's source and is not read.
_LARGEST_SOURCE_BYTES = 4 << 20

#: By file the lines as ``linecache`` holds them, and without their ends: a file of thousands of lines is asked for with
#: each of its findings. What ``linecache`` has read anew is another list.
_WITHOUT_ENDS: dict[str, tuple[list[str], tuple[str, ...]]] = {}
_FILES_KEPT = 64


def source_lines(file: str) -> tuple[str, ...]:
    """The lines of a source file, or of a notebook's cell, without line ends; none where it cannot be read."""
    linecache.checkcache(file)
    if file not in linecache.cache and not _is_source(file):
        return ()
    lines = linecache.getlines(file)
    known = _WITHOUT_ENDS.get(file)
    if known is None or known[0] is not lines:
        if len(_WITHOUT_ENDS) >= _FILES_KEPT:
            _WITHOUT_ENDS.clear()
        known = _WITHOUT_ENDS[file] = (lines, tuple(line.rstrip("\r\n") for line in lines))
    return known[1]


def _is_source(file: str) -> bool:
    try:
        return os.path.isfile(file) and os.path.getsize(file) <= _LARGEST_SOURCE_BYTES
    except (OSError, ValueError):
        return False


def printable(text: str) -> str:
    """The text with every character that is not printable (escape sequences, line ends) replaced by its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown_path(file: str) -> str:
    """A path for a reader: relative where it lies below the current folder; printable."""
    return printable(location.shown_path(file))


def character_column(location: Location) -> int | None:
    """The column counted from 1, in characters; None where it is not known. (Locations count UTF-8 bytes.)"""
    if location.column < 0:
        return None
    lines = source_lines(location.file)
    if location.line > len(lines):
        return location.column + 1
    return len(lines[location.line - 1].encode()[: location.column].decode(errors="replace")) + 1


#: What may stand before and after an expression that is all of its lines: names that it is assigned to; a comment.
_ASSIGNED = re.compile(r"\s*(?:\w+\s*(?::[^=]*)?[-+*/%@&|^]?=\s*)*\(?\s*")
_COMMENT = re.compile(r"\s*\)?\s*(?:#.*)?")


def shares_its_line(location: Location) -> bool:
    """Whether a place has other code beside it, so that its line cannot be deleted: ``a, b = load(x), load(y)``."""
    lines = source_lines(location.file)
    if location.column < 0 or not 0 < location.line <= location.end_line <= len(lines):
        return False
    before = lines[location.line - 1].encode()[: location.column].decode(errors="replace")
    after = lines[location.end_line - 1].encode()[location.end_column :].decode(errors="replace")
    return not (_ASSIGNED.fullmatch(before) and _COMMENT.fullmatch(after))
