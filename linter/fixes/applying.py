"""Which of the findings' fixes go together, and the files as they are then."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from ..edits import Edit, Fix, apply_edits
from ..findings import LintReport

__all__ = ["Change", "Plan", "plan_fixes"]


@attrs.frozen
class Change:
    """A file's bytes before and after."""

    file: str
    before: bytes
    after: bytes
    encoding: str

    @property
    def texts(self) -> tuple[str, str]:
        """Both as text, with line ends as they are."""
        return self.before.decode(self.encoding), self.after.decode(self.encoding)


@attrs.frozen
class Plan:
    """What to write. ``fixes`` are those that it holds, ``codes`` those of their findings, ``waiting`` how many others
    touch the same lines or would leave no Python, ``elsewhere`` how many are for files that are not to be edited."""

    changes: tuple[Change, ...]
    fixes: tuple[Fix, ...]
    codes: frozenset[str]
    waiting: int
    elsewhere: int


def plan_fixes(reports: Iterable[LintReport], may_edit: Callable[[str], bool]) -> Plan:
    """The first fix of each finding, in the reports' order, each once, as far as they do not touch each other's lines.
    Suppressed findings have none."""
    files: dict[str, _File] = {}
    taken: list[Fix] = []
    codes: set[str] = set()
    seen: set[frozenset[Edit]] = set()
    waiting = elsewhere = 0
    for code, fix in _first_fixes(reports):
        if frozenset(fix.edits) in seen:
            continue
        seen.add(frozenset(fix.edits))
        if not all(may_edit(edit.file) for edit in fix.edits):
            elsewhere += 1
            continue
        # Edits are merged into copies: a fix of two files is taken as a whole or not at all.
        merged = _merged(files, fix)
        if merged is None:
            waiting += 1
            continue
        files.update(merged)
        taken.append(fix)
        codes.add(code)
    changes = tuple(file.change for file in files.values() if file.change.before != file.change.after)
    return Plan(changes, tuple(taken), frozenset(codes), waiting, elsewhere)


def _first_fixes(reports: Iterable[LintReport]) -> Iterator[tuple[str, Fix]]:
    for report in reports:
        for diagnostic in report:
            if diagnostic.fixes:
                yield diagnostic.code, diagnostic.fixes[0]


@attrs.frozen
class _File:
    """A source file and the edits that it is to have. ``text`` has line ends of one kind."""

    path: str
    before: bytes
    encoding: str
    line_end: str
    text: str
    edits: tuple[Edit, ...] = ()

    @classmethod
    def read(cls, path: str) -> _File | None:
        """None where it is no text any more."""
        try:
            before = Path(path).read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
            text = before.decode(encoding)
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None
        return cls(path, before, encoding, "\r\n" if "\r\n" in text else "\n", text.replace("\r\n", "\n"))

    @property
    def edited(self) -> str:
        return apply_edits(self.text, self.edits)

    @property
    def change(self) -> Change:
        after = self.edited.replace("\n", self.line_end).encode(self.encoding)
        return Change(self.path, self.before, after, self.encoding)


def _merged(files: dict[str, _File], fix: Fix) -> dict[str, _File] | None:
    """The files of a fix with its edits beside those that they have; None where these do not go together."""
    merged: dict[str, _File] = {}
    for edit in fix.edits:
        file = merged.get(edit.file) or files.get(edit.file) or _File.read(edit.file)
        if file is None:
            return None
        merged[edit.file] = attrs.evolve(file, edits=(*file.edits, edit))
    try:
        for file in merged.values():
            ast.parse(file.edited)
    except (SyntaxError, ValueError, RecursionError):  # a ValueError: edits that overlap
        return None
    return merged
