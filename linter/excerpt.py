"""Places as text: the source lines involved, underlined, each with its role. Never wrapped, no control characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from ..ir.forms.printable import printable
from ..ir.source.digests import lines_at
from ..ir.source.location import Location
from .source_places import character_column, shown_path

__all__ = ["excerpts", "pointer"]

_TAB = " " * 4


def pointer(location: Location) -> str:
    """``file:line:column`` (the column counted from 1, left out where it is not known)."""
    column = character_column(location)
    return f"{shown_path(location.file)}:{location.line}" + ("" if column is None else f":{column}")


def excerpts(places: Sequence[tuple[str, Location]]) -> list[str]:
    """The lines of text that show ``(role, location)`` pairs. The first place is the one at fault: its file comes first
    and it is underlined with ``^``, the others with ``-``. Within a file places are in the order of their lines."""
    if not places:
        return []
    files: dict[str, list[tuple[str, Location, str]]] = {}
    for number, (role, location) in enumerate(places):
        files.setdefault(location.file, []).append((role, location, "-" if number else "^"))
    width = max(len(str(location.line)) for _, location in places)
    text: list[str] = []
    for number, group in enumerate(files.values()):
        text.append(f"{' ' * width}{':::' if number else '-->'} {pointer(group[0][1])}")
        text += _file(group, width)
    return text


def _file(group: Iterable[tuple[str, Location, str]], width: int) -> list[str]:
    ordered = sorted(group, key=lambda item: (item[1].line, item[1].column))
    lines = lines_at(ordered[0][1])
    gutter = " " * width + " |"
    text = [gutter]
    shown = 0
    for role, location, mark in ordered:
        line = lines[location.line - 1] if 0 < location.line <= len(lines) else None
        if location.line != shown:
            if shown and location.line > shown + 1:
                text.append("...")
            source = "" if line is None else " " + _expanded(line)
            text.append(f"{location.line:>{width}} |{source}".rstrip())
            shown = location.line
        text.append(f"{gutter} {_underline(line, location, mark)} {printable(role)}")
    text.append(gutter)
    return text


def _expanded(line: str) -> str:
    return printable(line.replace("\t", _TAB))


def _underline(line: str | None, location: Location, mark: str) -> str:
    """Blanks up to the place, then marks below it; of a place of several lines below its first one only."""
    if line is None:
        return mark
    raw = line.encode()
    indent = len(raw) - len(raw.lstrip())
    start = location.column if location.column >= 0 else indent
    one_line = location.column >= 0 and location.end_line == location.line
    stop = location.end_column if one_line else len(raw.rstrip())
    before = _expanded(raw[:start].decode(errors="replace"))
    below = _expanded(raw[start:stop].decode(errors="replace"))
    return " " * _columns(before) + mark * max(1, _columns(below))


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )
