"""SARIF 2.1.0, the exchange format of static analysis (OASIS Standard, 2020), as GitHub code scanning reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...ir.errors import ERRORS, KernscopeError
from ...ir.forms.printable import printable
from ...ir.source.digests import lines_at
from ...ir.source.location import Location
from ..findings import Diagnostic, Failure, LintReport, Place, Severity
from ..lint import explain
from ..rule import Rule
from ..rules import RULES
from ..source_places import character_column
from .line_hashes import line_hashes
from .shared_findings import Result, end_column, fingerprints, merged_results, relative_path

__all__ = ["format_sarif"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
#: What relative paths are relative to: the folder that kernscope ran in. Where that is stays unsaid, so that the same
#: kernels give the same document on every machine.
_BASE = "%SRCROOT%"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_FINGERPRINT = "kernscope/v1"
_GITHUB_FINGERPRINT = "primaryLocationLineHash"
#: The roles of the places at fault that end a flow: what was made, closed and reused before them.
_FLOW_ENDS = ("read here", "written here")


def format_sarif(reports: Sequence[LintReport], failures: Sequence[Failure] = ()) -> str:
    """One SARIF document with one run: all rules and errors with their pages, and a result for each finding or error.

    Paths below the current folder are relative to it; the other places of a finding are its related locations; a use
    after a scope has a code flow: made, scope closed, bytes reused, read. What could not be linted is a notification
    of the invocation, too, which then was not successful.
    """
    codes = [*RULES, *ERRORS]
    results = merged_results([*reports, *(failure.report for failure in failures)])
    run = {
        "tool": {"driver": _driver()},
        "invocations": [
            {
                "executionSuccessful": not failures,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": _text(f"not linted: {f.diagnostic.message}")},
                        "locations": [_logical(f.title)],
                        "associatedRule": {"id": f.diagnostic.code, "index": codes.index(f.diagnostic.code)},
                    }
                    for f in failures
                ],
            }
        ],
        "originalUriBaseIds": {_BASE: {"description": {"text": "The folder that kernscope ran in."}}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(result, codes.index(result.diagnostic.code), fingerprint)
            for result, fingerprint in zip(results, _partial_fingerprints(results), strict=True)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver() -> dict[str, Any]:
    version = metadata.version("kernscope")
    return {
        "name": "kernscope",
        "version": version,
        "semanticVersion": version,
        "rules": [*map(_rule, RULES.values()), *map(_error, ERRORS.values())],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    page = explain(rule.code)
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": f"{rule.name}: fires when {rule.summary}."},
        "fullDescription": {"text": " ".join(rule.what.split())},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["kernscope", rule.name]},
    }


def _error(kind: type[KernscopeError]) -> dict[str, Any]:
    page, what = explain(kind.code), " ".join((kind.__doc__ or "").replace("``", "`").split())
    return {
        "id": kind.code,
        "name": kind.__name__,
        "shortDescription": {"text": f"{kind.title()}: {what.partition('. ')[0].rstrip('.')}."},
        "fullDescription": {"text": what},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["kernscope", kind.title()]},
    }


def _partial_fingerprints(results: Sequence[Result]) -> list[dict[str, str]]:
    """By result its fingerprints: ours, and GitHub's where its line can be read."""
    found: list[dict[str, str]] = []
    hashes: dict[str, list[str]] = {}
    for result, ours in zip(results, fingerprints(results), strict=True):
        found.append({_FINGERPRINT: ours})
        place = result.diagnostic.location
        if place is None or place.file.startswith("<"):
            continue
        if place.file not in hashes:
            hashes[place.file] = line_hashes(lines_at(place))
        if 0 < place.line <= len(hashes[place.file]):
            found[-1][_GITHUB_FINGERPRINT] = hashes[place.file][place.line - 1]
    return found


def _result(result: Result, rule_index: int, fingerprints: dict[str, str]) -> dict[str, Any]:
    diagnostic = result.diagnostic
    places = diagnostic.locations
    document: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": _text(diagnostic.text)},
        "locations": [_location(places[0].location)] if places else [_logical(result.titles[0])],
        "partialFingerprints": fingerprints,
        "properties": {"launches": list(result.titles), "nodes": list(diagnostic.nodes)},
    }
    if len(places) > 1:
        document["relatedLocations"] = [{"id": n, **_place(place)} for n, place in enumerate(places[1:], start=1)]
    if _is_flow(diagnostic):
        steps = [{"location": _place(place)} for place in (*places[1:], places[0])]
        document["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    stack = places[0].location.stack if places else ()
    if stack:
        frames = [{"location": _location(frame)} for frame in (places[0].location, *stack)]
        document["stacks"] = [{"message": {"text": "The calls that lead there."}, "frames": frames}]
    return document


def _is_flow(diagnostic: Diagnostic) -> bool:
    places = diagnostic.locations
    closed = any(place.role == "scope closed here" for place in places)
    return closed and places[0].role in _FLOW_ENDS


def _place(place: Place) -> dict[str, Any]:
    return {**_location(place.location), "message": {"text": _text(place.role)}}


def _location(location: Location) -> dict[str, Any]:
    if location.file.startswith("<"):  # a notebook's cell, or code from a string: no file that a viewer could open
        return _logical(f"{location.file}:{location.line}")
    found: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(location.file)}}
    if location.line > 0:
        found["physicalLocation"]["region"] = _region(location)
    if location.function:
        found["logicalLocations"] = [{"name": _text(location.function), "kind": "function"}]
    return found


def _logical(name: str) -> dict[str, Any]:
    return {"logicalLocations": [{"fullyQualifiedName": _text(name)}]}


def _artifact(file: str) -> dict[str, str]:
    relative = relative_path(file)
    if relative is not None:
        return {"uri": _quoted(relative), "uriBaseId": _BASE}
    return {"uri": "file://" + _quoted("/" + Path(os.path.abspath(file)).as_posix().lstrip("/"))}


def _quoted(path: str) -> str:
    return quote(path, errors="surrogatepass")


def _region(location: Location) -> dict[str, int]:
    region = {"startLine": location.line}
    column, stop = character_column(location), end_column(location)
    if column is not None:
        region["startColumn"] = column
    if column is not None and stop is not None:
        region.update(endLine=location.end_line, endColumn=stop)
    return region


def _text(text: str) -> str:
    """A message without control characters, and without what SARIF would read as a link (section 3.11.6)."""
    return "\n".join(printable(line) for line in text.split("\n")).replace("](", "] (")
