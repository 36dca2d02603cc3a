"""The language server, talked to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from kernscope.linter.edits import Edit, apply_edits

KERNEL = """\
import kernscope as ks
from kernscope import tl

print("noise on standard output")


@ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"))
@ks.launch("wide", x=ks.hbm((16, 64), "f32"), o=ks.hbm((16, 64), "f32"))
@ks.kernel
def scale(x, o):
    tile = tl.load(x[:, :])
    tl.exp(tile)
    tl.store(o[:, :], tile * 2.0)
"""


class Editor(LanguageClient):
    """A client that remembers what it was told, and waits for it."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.told.put_nowait(params))
        self.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda params: None)

    async def diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """The next ones of a file."""
        while True:
            told = await asyncio.wait_for(self.told.get(), 40)
            if told.uri == uri:
                return list(told.diagnostics)


def edited_by(path: Path, doing: Callable[[Editor, str], Awaitable[Any]]) -> Any:
    """What comes of a conversation about a file that is open."""

    async def talk() -> Any:
        editor = Editor()
        await editor.start_io(sys.executable, "-m", "kernscope", "lsp")
        try:
            await editor.initialize_async(
                types.InitializeParams(types.ClientCapabilities(), root_uri=path.parent.as_uri())
            )
            editor.initialized(types.InitializedParams())
            uri = path.as_uri()
            text = path.read_text(encoding="utf-8")
            editor.text_document_did_open(
                types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, text))
            )
            result = await doing(editor, uri)
            return result
        finally:
            await editor.shutdown_async(None)
            editor.exit(None)
            await editor.stop()

    return asyncio.run(asyncio.wait_for(talk(), 60))


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def change(editor: Editor, uri: str, text: str, version: int) -> None:
    """The whole text is another."""
    whole = types.TextDocumentContentChangeWholeDocument(text)
    document = types.VersionedTextDocumentIdentifier(version, uri)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))


def save(editor: Editor, uri: str, path: Path, text: str, version: int) -> None:
    """An edit, and then a save, as an editor does it."""
    change(editor, uri, text, version)
    path.write_text(text, encoding="utf-8")
    editor.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))


def everywhere(uri: str) -> types.CodeActionParams:
    span = types.Range(types.Position(0, 0), types.Position(99, 0))
    return types.CodeActionParams(types.TextDocumentIdentifier(uri), span, types.CodeActionContext([]))


def test_findings_come_with_their_fix_and_go_with_it(kernel: Path) -> None:
    """One finding for both launches, at its place; the quick fix is the finding's; applied and saved, it is gone."""

    async def doing(editor: Editor, uri: str) -> None:
        (found,) = [d for d in await editor.diagnostics(uri) if d.code == "KS302"]
        assert found.range.start == types.Position(11, 4) and found.severity == types.DiagnosticSeverity.Warning
        assert found.source == "kernscope" and "help: " in found.message
        (action,) = await editor.text_document_code_action_async(everywhere(uri))
        assert isinstance(action, types.CodeAction) and action.edit is not None and action.edit.changes is not None
        (edit,) = action.edit.changes[uri]
        lines = Edit("", edit.range.start.line + 1, edit.range.end.line, edit.new_text)
        save(editor, uri, kernel, apply_edits(KERNEL, [lines]), 2)
        assert [d for d in await editor.diagnostics(uri) if d.code == "KS302"] == []
        assert not await editor.text_document_code_action_async(everywhere(uri))
        assert "tl.exp" not in kernel.read_text(encoding="utf-8")

    edited_by(kernel, doing)


def test_launches_and_tiles_are_told(kernel: Path) -> None:
    """Above the kernel a line for each launch; on a tile its shape, bytes, address, life, time and engine. Of a text
    that is not saved nothing is told, as lines may have moved."""

    async def doing(editor: Editor, uri: str) -> None:
        await editor.diagnostics(uri)
        document = types.TextDocumentIdentifier(uri)
        lenses = await editor.text_document_code_lens_async(types.CodeLensParams(document))
        assert lenses is not None
        titles = [lens.command.title for lens in lenses if lens.command is not None]
        assert [title.partition(":")[0] for title in titles] == ["small", "wide"]
        assert all("of the bound, peak" in title for title in titles)
        assert KERNEL.splitlines()[lenses[0].range.start.line].lstrip().startswith(("def scale", "@ks."))

        async def hover(line: int, column: int) -> str:
            told = await editor.text_document_hover_async(types.HoverParams(document, types.Position(line, column)))
            return "" if told is None else str(told.contents.value)  # type: ignore[union-attr]

        load = await hover(10, 14)
        assert "**load**" in load and "f32[16,16]: 1,024 B at 0x0" in load and "on dma_read" in load
        assert "live from %0 to %2" in load
        assert "**mul**" in await hover(12, 24) and "**store**" in await hover(12, 6)
        assert await hover(1, 3) == ""
        change(editor, uri, "# a line more\n" + KERNEL, 2)
        assert await hover(10, 14) == await hover(11, 14) == ""

    edited_by(kernel, doing)


def test_a_kernel_that_raises_or_exits_is_a_finding(kernel: Path) -> None:
    """The server lives on: after the mistake is mended, the findings of the kernel are there."""

    async def doing(editor: Editor, uri: str) -> None:
        await editor.diagnostics(uri)
        broken = KERNEL.replace('print("noise on standard output")', "raise RuntimeError('mine')")
        save(editor, uri, kernel, broken, 2)
        (found,) = await editor.diagnostics(uri)
        assert found.severity == types.DiagnosticSeverity.Error and "mine" in found.message
        assert found.range.start.line == 3
        save(editor, uri, kernel, KERNEL.replace('print("noise on standard output")', "import os; os._exit(0)"), 3)
        (found,) = await editor.diagnostics(uri)
        assert found.severity == types.DiagnosticSeverity.Error
        save(editor, uri, kernel, KERNEL, 4)
        assert "KS302" in {d.code for d in await editor.diagnostics(uri)}
        editor.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
        assert await editor.diagnostics(uri) == []

    edited_by(kernel, doing)


def test_the_server_ends_with_its_editor() -> None:
    """Also where that ends without a word."""
    done = subprocess.run([sys.executable, "-m", "kernscope", "lsp"], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout == b"" and b"Traceback" not in done.stderr


def test_a_file_without_kernels_is_not_imported(tmp_path: Path) -> None:
    """Opening a script in an editor does not run it."""
    script = tmp_path / "script.py"
    script.write_text("open(__file__ + '.ran', 'w').close()\n", encoding="utf-8")

    async def doing(editor: Editor, uri: str) -> None:
        assert await editor.diagnostics(uri) == []

    edited_by(script, doing)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
