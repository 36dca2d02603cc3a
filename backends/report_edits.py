"""Which lines of the source were edited between two kernels: functions of one name, compared line by line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import attrs

from .report_source import SourceText

__all__ = ["Edit", "find_edits", "rewritten"]

_DEFINES = re.compile(r"\s*(?:async\s+)?def\s+(\w+)")


@attrs.frozen
class Edit:
    """A line that ``was`` and ``now`` is, without its indentation; None: it was not there, or is not any more.
    ``file`` and ``line`` are where it is now, of a line that is gone where it was."""

    file: str
    line: int
    was: str | None
    now: str | None

    @property
    def kind(self) -> str:
        """``edited``, ``new`` or ``gone``."""
        return "new" if self.was is None else "gone" if self.now is None else "edited"


def find_edits(before: Iterable[SourceText], after: Iterable[SourceText]) -> list[Edit]:
    """The edits of the functions that both sides have, in the order of the later side. Empty lines and indentation do
    not count."""
    earlier: dict[str, SourceText] = {}
    for text in before:
        earlier.setdefault(_name(text), text)
    edits: list[Edit] = []
    for text in after:
        old = earlier.pop(_name(text), None) if _name(text) else None
        if old is not None:
            edits += _edits(old, text)
    return edits


def rewritten(edits: Iterable[Edit]) -> Mapping[str, str]:
    """By the earlier text of an edited line its later one; without those of which several came."""
    found: dict[str, set[str]] = {}
    for edit in edits:
        if edit.was is not None and edit.now is not None:
            found.setdefault(edit.was, set()).add(edit.now)
    return {was: next(iter(now)) for was, now in found.items() if len(now) == 1}


def _name(text: SourceText) -> str:
    names = (found[1] for line in text.lines if (found := _DEFINES.match(line)))
    return next(names, "")


def _edits(old: SourceText, new: SourceText) -> list[Edit]:
    olds, news = _numbered(old), _numbered(new)
    matcher = difflib.SequenceMatcher(None, [line for _, line in olds], [line for _, line in news], autojunk=False)
    edits: list[Edit] = []
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        pairs = min(i_end - i, j_end - j)
        edits += [Edit(new.file, news[j + k][0], olds[i + k][1], news[j + k][1]) for k in range(pairs)]
        edits += [Edit(new.file, number, None, line) for number, line in news[j + pairs : j_end]]
        edits += [Edit(old.file, number, line, None) for number, line in olds[i + pairs : i_end]]
    return edits


def _numbered(text: SourceText) -> list[tuple[int, str]]:
    """The lines that hold something, with their numbers, without indentation."""
    return [(text.first + at, line.strip()) for at, line in enumerate(text.lines) if line.strip()]
