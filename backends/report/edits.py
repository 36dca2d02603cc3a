"""Which lines of the source were edited between two kernels: functions of one name, compared line by line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from .source import SourceText

__all__ = ["Edit", "find_edits", "rewritten"]

#: A line's number and its text.
_Line = tuple[int, str]
#: From this likeness on (of 0 to 1) one line is another one edited.
_ALIKE = 0.5
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
        for was, now in _paired(olds[i:i_end], news[j:j_end]):
            file, line = (new.file, now[0]) if now else (old.file, was[0] if was else 0)
            edits.append(Edit(file, line, was and was[1], now and now[1]))
    return edits


def _paired(olds: list[_Line], news: list[_Line]) -> Iterator[tuple[_Line | None, _Line | None]]:
    """The lines of a stretch that differs, in order: an earlier one with the later one most like it, if there is one
    that is like it at all."""
    at = 0
    for was in olds:
        likeness = [difflib.SequenceMatcher(None, was[1], now[1], autojunk=False).ratio() for now in news[at:]]
        best = max(likeness, default=0.0)
        if best < _ALIKE:
            yield was, None
            continue
        until = at + likeness.index(best)
        yield from ((None, now) for now in news[at:until])
        yield was, news[until]
        at = until + 1
    yield from ((None, now) for now in news[at:])


def _numbered(text: SourceText) -> list[_Line]:
    """The lines that hold something, with their numbers, without indentation."""
    return [(text.first + at, line.strip()) for at, line in enumerate(text.lines) if line.strip()]
