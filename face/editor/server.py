"""The language server: findings, quick fixes, a line about each launch, and notes on tiles. What is saved is looked at
by processes of their own: an author's code cannot take the server down, and prints nothing into its conversation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from ...ir.errors import MissingExtraError
from ..lint_files import may_hold_kernels

try:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer
except ImportError as missing:
    raise MissingExtraError("kernscope lsp needs pygls", help='python -m pip install "kernscope[lsp]"') from missing

__all__ = ["serve"]

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
#: How long one look at a file may take.
_LIMIT_S = 120.0
_LINT = ("lint", "--output-format", "json", "--exit-zero", "--quiet", "--jobs", "1")


@attrs.define
class _Seen:
    """What is known of a file as it was saved: its text, findings, lenses, notes, the files that have diagnostics."""

    text: str = ""
    findings: list[dict[str, Any]] = attrs.field(factory=list)
    lenses: list[dict[str, Any]] = attrs.field(factory=list)
    notes: list[dict[str, Any]] = attrs.field(factory=list)
    told: set[str] = attrs.field(factory=set)
    look: asyncio.Task[None] | None = None


def serve() -> None:
    """Talk over standard input and output until the editor leaves."""
    _server().start_io()


def _server() -> LanguageServer:
    server = LanguageServer("kernscope", metadata.version("kernscope"))
    seen: dict[str, _Seen] = {}

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def look(
        ls: LanguageServer, params: types.DidOpenTextDocumentParams | types.DidSaveTextDocumentParams
    ) -> None:
        uri = params.text_document.uri
        known = seen.setdefault(uri, _Seen())
        if known.look is not None:
            known.look.cancel()
        known.look = asyncio.create_task(_look(ls, uri, known))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def close(ls: LanguageServer, params: types.DidCloseTextDocumentParams) -> None:
        known = seen.pop(params.text_document.uri, _Seen())
        if known.look is not None:
            known.look.cancel()
        for uri in known.told:
            ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(ls: LanguageServer, params: types.CodeLensParams) -> list[types.CodeLens]:
        known = _current(ls, seen, params.text_document.uri)
        return [types.CodeLens(_line_range(lens["line"]), types.Command(lens["text"], "")) for lens in known.lenses]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: LanguageServer, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        notes = _current(ls, seen, uri).notes
        file, line = _path(ls, uri), params.position.line + 1
        here = [note for note in notes if note["line"] == line and os.path.realpath(note["file"]) == file]
        text = ls.workspace.get_text_document(uri).source.split("\n")[line - 1] if here else ""
        at = len(text[: params.position.character].encode())
        # Of places within each other the smallest; beside all of them, all of the line.
        around = [note for note in here if note["first"] <= at < note["last"]]
        chosen = [min(around, key=lambda note: int(note["last"]) - int(note["first"]))] if around else here
        if not chosen:
            return None
        told = "\n\n---\n\n".join(note["text"] for note in chosen)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, told))

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    )
    def actions(ls: LanguageServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        known = _current(ls, seen, params.text_document.uri)
        lines = range(params.range.start.line, params.range.end.line + 1)
        return [
            types.CodeAction(
                fix["title"],
                kind=types.CodeActionKind.QuickFix,
                diagnostics=[_diagnostic(finding)],
                edit=_workspace_edit(fix),
            )
            for finding in known.findings
            if any(place["line"] - 1 in lines for place in finding["locations"][:1])
            for fix in finding["fixes"]
        ]

    return server


def _path(ls: LanguageServer, uri: str) -> str:
    return os.path.realpath(ls.workspace.get_text_document(uri).path)


def _current(ls: LanguageServer, seen: Mapping[str, _Seen], uri: str) -> _Seen:
    """What is known of a file, if its text is still the one that was looked at."""
    known = seen.get(uri)
    return known if known is not None and known.text == ls.workspace.get_text_document(uri).source else _Seen()


async def _look(ls: LanguageServer, uri: str, known: _Seen) -> None:
    """Look at a saved file, and tell the editor what was found."""
    file = _path(ls, uri)
    try:
        text = await asyncio.to_thread(Path(file).read_bytes)
    except OSError:  # a new file, not saved yet
        return
    report: dict[str, Any] = {}
    looked: dict[str, Any] = {}
    if may_hold_kernels(file):  # no other file is imported: it may do anything
        report, looked = await asyncio.gather(
            _asked(file, "kernscope", *_LINT, file), _asked(file, "kernscope.face.editor.looking", file)
        )
    known.text = text.decode(errors="replace")
    reports = [*report.get("reports", ()), *report.get("not_linted", ())]
    found = [_resolved(finding, file) for each in reports for finding in each["findings"]]
    # Launches of one kernel have the same findings, with other numbers.
    known.findings = list({_place_key(finding): finding for finding in reversed(found)}.values())[::-1]
    known.lenses, known.notes = looked.get("lenses", []), looked.get("notes", [])
    by_file: dict[str, list[types.Diagnostic]] = {uri: [], **{old: [] for old in known.told}}
    for finding in known.findings:
        place = finding["locations"][0]["file"] if finding["locations"] else file
        target = uri if os.path.realpath(place) == file else Path(place).as_uri()
        by_file.setdefault(target, []).append(_diagnostic(finding))
    for target, diagnostics in by_file.items():
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(target, diagnostics))
    known.told = set(by_file)
    with contextlib.suppress(Exception):  # an editor that has no lenses
        await asyncio.wait_for(ls.workspace_code_lens_refresh_async(None), 5)


async def _asked(file: str, module: str, *words: str) -> dict[str, Any]:
    """What a program prints as JSON, run in the file's folder; nothing of one that fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words),
        cwd=os.path.dirname(file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), _LIMIT_S)
        answer: dict[str, Any] = json.loads(out)
    except (TimeoutError, ValueError):
        return {}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer


def _resolved(finding: Mapping[str, Any], file: str) -> dict[str, Any]:
    """A finding with whole paths, and without what differs from launch to launch."""
    folder = os.path.dirname(file)
    places = [{**place, "file": os.path.join(folder, place["file"])} for place in finding["locations"]]
    fixes = [
        {**fix, "edits": [{**edit, "file": os.path.join(folder, edit["file"])} for edit in fix["edits"]]}
        for fix in finding["fixes"]
    ]
    return {**finding, "nodes": [], "locations": places, "fixes": fixes}


def _place_key(finding: Mapping[str, Any]) -> str:
    """The rule and the place; of a finding without one its message."""
    places = finding["locations"][:1]
    return json.dumps([finding["code"], *([p["file"], p["line"], p["column"]] for p in places)] if places else finding)


def _line_range(line: int, column: int | None = None) -> types.Range:
    """From a column (from 1; None: all of it) to the end of a line (from 1)."""
    start = types.Position(line - 1, (column or 1) - 1)
    return types.Range(start, types.Position(line, 0))


def _diagnostic(finding: Mapping[str, Any]) -> types.Diagnostic:
    places: Sequence[Mapping[str, Any]] = finding["locations"]
    first: Mapping[str, Any] = places[0] if places else {"line": 1, "column": None}
    helped = f"\nhelp: {finding['help']}" if finding["help"] else ""
    return types.Diagnostic(
        _line_range(first["line"], first["column"]),
        finding["message"] + helped,
        severity=_SEVERITIES[finding["severity"]],
        code=finding["code"],
        source="kernscope",
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(Path(place["file"]).as_uri(), _line_range(place["line"], place["column"])), place["role"]
            )
            for place in places[1:]
        ],
    )


def _workspace_edit(fix: Mapping[str, Any]) -> types.WorkspaceEdit:
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in fix["edits"]:
        lines = types.Range(types.Position(edit["first"] - 1, 0), types.Position(edit["last"], 0))
        changes.setdefault(Path(edit["file"]).as_uri(), []).append(types.TextEdit(lines, edit["text"]))
    return types.WorkspaceEdit(changes=changes)
