"""Suppression comments: ``# kernscope: ignore[KS302]`` on a line silences that rule there."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import attrs

from ..ir.graph import Graph
from ..ir.source.digests import lines_at, source_lines
from ..ir.source.location import Location
from .findings import Diagnostic, LintReport

__all__ = ["Suppression", "settle_unused", "split_suppressed", "suppressions_of"]

#: With no brackets, or none that close, there is no code: such a comment silences nothing, and is reported.
_COMMENT = re.compile(r"#\s*kernscope:\s*ignore\b(?:\[([^\]]*)\])?")


@attrs.frozen
class Suppression:
    """One code of a comment: it silences findings whose place at fault lies in the statement that the comment stands on
    (lines ``first`` to ``last``). The code is empty where the comment names none."""

    file: str
    code: str
    first: int
    last: int
    line: int
    column: int
    end_column: int
    digest: str | None = None

    @property
    def location(self) -> Location:
        """The comment itself; columns in UTF-8 bytes."""
        return Location(self.file, self.line, "", self.column, self.line, self.end_column, digest=self.digest)

    @property
    def unused_message(self) -> str:
        """What there is to say where it silences nothing."""
        if not self.code:
            return "this comment names no code, and silences nothing"
        return f"{self.code} is suppressed here, but this statement has no such finding"

    def covers(self, location: Location) -> bool:
        """Whether a place lies in the statement."""
        return location.file == self.file and self.first <= location.line <= self.last


def suppressions_of(graph: Graph) -> tuple[Suppression, ...]:
    """The suppressions on statements that the trace came by, by file, line and column. Others are not judged: another
    launch, or another rank, may need them."""
    frames = graph.frames
    lines: dict[str, set[int]] = {}
    for file, line in zip(frames.file.tolist(), frames.line.tolist(), strict=True):
        lines.setdefault(graph.names[file], set()).add(line)
    found: list[Suppression] = []
    for file in sorted(lines):
        digest = graph.digest_of(file)
        in_file = _in_source(file, digest, source_lines(file, digest))
        found += [s for s in in_file if any(line in lines[file] for line in range(s.first, s.last + 1))]
    return tuple(found)


@lru_cache(maxsize=64)
def _in_source(file: str, digest: str | None, lines: tuple[str, ...]) -> tuple[Suppression, ...]:
    if not any("kernscope:" in line for line in lines):
        return ()
    try:
        return tuple(_in_statements(file, digest, "\n".join(lines) + "\n"))
    except (tokenize.TokenError, SyntaxError):
        return ()


def _in_statements(file: str, digest: str | None, text: str) -> Iterator[Suppression]:
    """Comments are tokens of their own, so that one in a string is none; a statement ends with a NEWLINE token."""
    first = 0
    pending: list[tuple[str, int, int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            pending += _codes(token)
        elif token.type in (tokenize.NEWLINE, tokenize.NL) and (token.type == tokenize.NEWLINE or not first):
            for code, line, column, end_column in pending if first else ():
                yield Suppression(file, code, first, token.start[0], line, column, end_column, digest)
            pending, first = [], 0
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            first = first or token.start[0]


def _codes(token: tokenize.TokenInfo) -> Iterator[tuple[str, int, int, int]]:
    """Each code of a comment with its line, column and end, in UTF-8 bytes."""
    for comment in _COMMENT.finditer(token.string):
        start, stop = token.start[1] + comment.start(), token.start[1] + comment.end()
        column, end_column = len(token.line[:start].encode()), len(token.line[:stop].encode())
        for code in (comment.group(1) or "").split(","):
            yield code.strip().upper(), token.start[0], column, end_column


def split_suppressed(
    diagnostics: Iterable[Diagnostic], suppressions: Iterable[Suppression]
) -> tuple[list[Diagnostic], list[Diagnostic], list[Suppression]]:
    """The findings that stay, those that are silenced, and the suppressions that silence nothing."""
    listed = list(suppressions)
    kept: list[Diagnostic] = []
    silenced: list[Diagnostic] = []
    used: set[Suppression] = set()
    for diagnostic in diagnostics:
        place = diagnostic.location
        matching = [s for s in listed if place is not None and s.code == diagnostic.code and s.covers(place)]
        used.update(matching)
        (silenced if matching else kept).append(diagnostic)
    return kept, silenced, [s for s in listed if s not in used]


def settle_unused(reports: Sequence[LintReport]) -> tuple[LintReport, ...]:
    """The reports of several launches without those unused suppressions that another one of them needs."""
    needed: set[tuple[Location, str]] = set()
    for diagnostic in (d for report in reports for d in report.suppressed):
        place = diagnostic.location
        if place is not None:
            in_file = _in_source(place.file, place.digest, lines_at(place))
            matching = [s for s in in_file if s.code == diagnostic.code and s.covers(place)]
            needed.update((s.location, s.unused_message) for s in matching)
    return tuple(
        attrs.evolve(report, diagnostics=tuple(d for d in report if (d.location, d.message) not in needed))
        for report in reports
    )
