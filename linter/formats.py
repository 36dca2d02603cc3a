"""Reports as text: the full form with excerpts, one line a finding, JSON; and the table of all formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ..ir.location import Location
from .excerpt import pointer
from .findings import SEVERITIES, Diagnostic, Failure, LintReport
from .formats_github import format_github
from .formats_sarif import format_sarif
from .source import character_column, printable

__all__ = ["FORMATS", "JSON_VERSION", "Format", "format_concise", "format_full", "format_json"]

JSON_VERSION = 1


def format_full(reports: Sequence[LintReport]) -> str:
    """Every finding with its source lines, and a line of counts for each report."""
    return "\n\n".join(map(str, reports)) + "\n" if reports else ""


def format_concise(reports: Sequence[LintReport]) -> str:
    """One line a finding: ``file:line:column: KS201 message``; of a finding without a place the report's title."""
    return "".join(_concise(report, diagnostic) + "\n" for report in reports for diagnostic in report)


def _concise(report: LintReport, diagnostic: Diagnostic) -> str:
    where = pointer(diagnostic.location) if diagnostic.location else printable(report.title)
    return f"{where}: {diagnostic.code} {printable(diagnostic.message)}"


def format_json(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """One JSON document: ``{"version", "counts", "reports": [{"title", "findings": [...]}], "not_linted": [{"title",
    "error"}]}``. Lines and columns count from 1, columns in characters; null where not known."""
    document = {
        "version": JSON_VERSION,
        "counts": {severity: sum(r.counts[severity] for r in reports) for severity in SEVERITIES},
        "reports": [{"title": r.title, "findings": [_finding(d) for d in r]} for r in reports],
        "not_linted": [{"title": f.title, "error": f.text} for f in failures],
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "fixes": [attrs.asdict(fix) for fix in diagnostic.fixes],
        "nodes": list(diagnostic.nodes),
        "locations": [
            {"role": place.role, **_place(place.location), "callers": [_place(c) for c in place.location.stack]}
            for place in diagnostic.locations
        ],
    }


def _place(location: Location) -> dict[str, Any]:
    return {
        "file": location.file,
        "line": location.line,
        "column": character_column(location),
        "function": location.function,
    }


def _findings_only(format_reports: Callable[[Sequence[LintReport]], str]) -> Format:
    """Of a format that has no place for what could not be linted: that is told on stderr alone."""

    def formatted(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
        return format_reports(reports)

    return formatted


Format = Callable[[Sequence[LintReport], Sequence[Failure]], str]

#: By the name that the command line's ``--output-format`` takes.
FORMATS: Mapping[str, Format] = {
    "full": _findings_only(format_full),
    "concise": _findings_only(format_concise),
    "json": format_json,
    "sarif": format_sarif,
    "github": format_github,
}
