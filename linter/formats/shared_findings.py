"""Findings for other programs: paths relative to the current folder, one entry for what several launches share, and
fingerprints that outlive an edit elsewhere in the file."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import attrs

from ...ir.source.digests import lines_at
from ...ir.source.location import Location
from ..findings import Diagnostic, LintReport
from ..source_places import character_column

__all__ = ["Result", "end_column", "fingerprints", "merged_results", "relative_path"]


@attrs.frozen
class Result:
    """A finding with the titles of all reports that hold it."""

    diagnostic: Diagnostic
    titles: tuple[str, ...]


def merged_results(reports: Iterable[LintReport]) -> list[Result]:
    """The findings of all reports, in their order; equal ones (several launches come by one line) once."""
    titles: dict[tuple[str, str, str, tuple[object, ...]], list[str]] = {}
    first: dict[tuple[str, str, str, tuple[object, ...]], Diagnostic] = {}
    for report in reports:
        for diagnostic in report:
            # A finding without a place is known by its report alone.
            where = diagnostic.locations or (report.title,)
            key = (diagnostic.code, diagnostic.message, diagnostic.help, where)
            first.setdefault(key, diagnostic)
            titles.setdefault(key, []).append(report.title)
    return [Result(diagnostic, tuple(dict.fromkeys(titles[key]))) for key, diagnostic in first.items()]


def relative_path(file: str) -> str | None:
    """The path of a file below the current folder, with ``/`` between its parts; None for any other."""
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return None
    outside = relative == os.pardir or relative.startswith(os.pardir + os.sep)
    return None if outside or file.startswith("<") else PurePath(relative).as_posix()


def end_column(location: Location) -> int | None:
    """The column behind a place's last character, counted from 1 in characters; None where it is not known."""
    if location.end_line < location.line or location.end_column < 0:
        return None
    return character_column(attrs.evolve(location, line=location.end_line, column=location.end_column))


def fingerprints(results: Sequence[Result]) -> list[str]:
    """One fingerprint for each result: of the rule, the file, and the text of the lines involved with the functions
    they lie in. Lines may move; equal results in one file are told apart by their order."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    for result in results:
        diagnostic = result.diagnostic
        parts = [diagnostic.code, *(_line(place.location) for place in diagnostic.locations)]
        if not diagnostic.locations:
            parts += [*result.titles, diagnostic.message]
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        found.append(f"{digest}:{seen[digest]}")
        seen[digest] += 1
    return found


def _line(location: Location) -> str:
    lines = lines_at(location)
    text = lines[location.line - 1] if 0 < location.line <= len(lines) else f"line {location.line}"
    file = relative_path(location.file) or os.path.basename(location.file)
    return "\1".join((file, location.function, " ".join(text.split())))
