"""Reports as text: the full form with excerpts, one line a finding, JSON; and the table of all formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ...ir.forms.printable import printable
from ...ir.source.location import Location, shown_path
from ..edits import Fix
from ..excerpt import pointer
from ..findings import SEVERITIES, Diagnostic, Failure, LintReport
from ..source_places import character_column
from .github import format_github
from .sarif import format_sarif

__all__ = ["FORMATS", "JSON_VERSION", "Format", "format_concise", "format_full", "format_json"]

JSON_VERSION = 1


def format_full(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """Every finding with its source lines, and a line of counts for each report; then every error in that form."""
    parts = [*reports, *failures]
    return "\n\n".join(map(str, parts)) + "\n" if parts else ""


def format_concise(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """One line a finding or error, errors first: ``file:line:column: error[KS201]: message``; of one without a place
    the report's title."""
    told = [*reports, *(failure.report for failure in failures)]
    found = [(report, diagnostic) for report in told for diagnostic in report]
    found.sort(key=lambda pair: SEVERITIES.index(pair[1].severity))
    return "".join(_concise(report, diagnostic) + "\n" for report, diagnostic in found)


def _concise(report: LintReport, diagnostic: Diagnostic) -> str:
    where = pointer(diagnostic.location) if diagnostic.location else printable(report.title)
    return f"{where}: {diagnostic.severity}[{diagnostic.code}]: {printable(diagnostic.message)}"


def format_json(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """One JSON document: ``{"version", "counts", "reports": [{"title", "findings": [...]}], "not_linted": [...]}``.

    What could not be linted is as a report whose one finding is the error. Lines and columns count from 1, columns in
    characters; null where not known. Paths below the current folder are relative to it."""
    errors = [failure.report for failure in failures]
    document = {
        "version": JSON_VERSION,
        "counts": {severity: sum(r.counts[severity] for r in (*reports, *errors)) for severity in SEVERITIES},
        "reports": [_report(report) for report in reports],
        "not_linted": [_report(report) for report in errors],
    }
    return json.dumps(document, indent=2) + "\n"


def _report(report: LintReport) -> dict[str, Any]:
    return {"title": report.title, "findings": [_finding(diagnostic) for diagnostic in report]}


def _finding(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "fixes": [_fix(fix) for fix in diagnostic.fixes],
        "notes": list(diagnostic.notes),
        "nodes": list(diagnostic.nodes),
        "locations": [
            {"role": place.role, **_place(place.location), "callers": [_place(c) for c in place.location.stack]}
            for place in diagnostic.locations
        ],
    }


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{**attrs.asdict(edit), "file": shown_path(edit.file)} for edit in fix.edits]
    return {"title": fix.title, "edits": edits}


def _place(location: Location) -> dict[str, Any]:
    return {
        "file": shown_path(location.file),
        "line": location.line,
        "column": character_column(location),
        "function": location.function,
    }


Format = Callable[[Sequence[LintReport], Sequence[Failure]], str]

#: By the name that the command line's ``--output-format`` takes.
FORMATS: Mapping[str, Format] = {
    "full": format_full,
    "concise": format_concise,
    "json": format_json,
    "sarif": format_sarif,
    "github": format_github,
}
