"""GitHub annotations: workflow commands that show findings beside the lines of a pull request.

Their form and its escapes are those of GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.forms.printable import printable, printable_lines
from ..findings import SEVERITIES, Diagnostic, Failure, LintReport
from ..source_places import character_column
from .shared_findings import end_column, merged_results, relative_path

__all__ = ["format_github"]

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def format_github(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """One workflow command a finding or error, errors first: ``::error file=...,line=...,col=...,title=...::message``.

    GitHub shows the first ten of each kind of a step."""
    results = merged_results([*reports, *(failure.report for failure in failures)])
    results.sort(key=lambda result: SEVERITIES.index(result.diagnostic.severity))
    return "".join(_annotation(result.diagnostic, result.titles) + "\n" for result in results)


def _annotation(diagnostic: Diagnostic, titles: tuple[str, ...]) -> str:
    properties = {**_place(diagnostic), "title": f"{diagnostic.code} {diagnostic.name} ({', '.join(titles)})"}
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{_COMMANDS[diagnostic.severity]} {listed}::{_data(diagnostic.text)}"


def _place(diagnostic: Diagnostic) -> dict[str, str | int]:
    location = diagnostic.location
    if location is None:
        return {}
    place: dict[str, str | int] = {"file": relative_path(location.file) or location.file, "line": location.line}
    if location.end_line > location.line:
        # GitHub takes columns only where the annotation lies within one line.
        return {**place, "endLine": location.end_line}
    column, stop = character_column(location), end_column(location)
    if column is not None:
        place["col"] = column
    if column is not None and stop is not None:
        place["endColumn"] = stop
    return place


def _data(text: str) -> str:
    return printable_lines(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")
