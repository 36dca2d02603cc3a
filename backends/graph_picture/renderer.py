"""Laying out DOT text by whatever renderer there is: ``dot`` on PATH, else the command of the package graphviz-pure.

Either runs in a process of its own, with a time limit that truly ends it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

__all__ = ["NO_RENDERER", "Renderer", "Rendering", "find_renderers", "render"]

#: What to do where no renderer is found.
NO_RENDERER = (
    "install Graphviz, so that dot is on PATH, or `pip install 'kernscope[draw]'`, which brings a renderer along"
)

_PURE = "graphviz-pure"
#: A renderer that cannot lay out this within the limit is not slow: it hangs.
_SMALLEST = "digraph { a }"
_PROBE_S = 2.0


@attrs.frozen
class Renderer:
    """A command that lays DOT out: its name for a reader, the program's file, and the formats it makes."""

    name: str
    program: str
    formats: tuple[str, ...]


@attrs.frozen
class Rendering:
    """What came of a layout: the picture's bytes (None: there is none), by which renderer, what went wrong on the way
    (a sentence each), and the renderers ``left``: those given that make the format and do not hang."""

    data: bytes | None
    renderer: str
    problems: tuple[str, ...]
    left: tuple[Renderer, ...]


def find_renderers() -> tuple[Renderer, ...]:
    """The renderers of this environment, the preferred one first: ``dot``, then graphviz-pure."""
    found = []
    dot = shutil.which("dot")
    if dot is not None:
        found.append(Renderer("dot", dot, ("svg", "png", "pdf")))
    pure = _find_pure()
    if pure is not None:
        found.append(Renderer(_PURE, pure, ("svg", "png")))
    return tuple(found)


def _find_pure() -> str | None:
    """The command that the package graphviz-pure installed. It need not be on PATH: an environment's interpreter is
    often called without activating the environment."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(_PURE) or ():
            program = Path(str(file.locate()))
            if program.stem == _PURE and program.suffix in ("", ".exe") and os.access(program, os.X_OK):
                return str(program.resolve())
    return shutil.which(_PURE)


def render(dot: str, format: str, renderers: Sequence[Renderer], *, limit_s: float) -> Rendering:
    """Lay DOT text out as ``"svg"``, ``"png"`` or ``"pdf"`` by the first renderer that can, within ``limit_s`` seconds
    for each that is asked. A renderer that fails is named in ``problems`` and followed by the next; so is one that
    hangs. One that meets the limit and works is not: the picture is too large, and another would not be faster."""
    problems: list[str] = []
    left = [renderer for renderer in renderers if format in renderer.formats]
    for renderer in renderers:
        if format not in renderer.formats:
            problems.append(f"{renderer.name} makes no .{format}")
            continue
        try:
            data = _run(renderer, dot, format, limit_s)
            return Rendering(data, renderer.name, tuple(problems), tuple(left))
        except subprocess.TimeoutExpired:
            problems.append(f"{renderer.name} was stopped after {limit_s:.2g} s")
            if not _hangs(renderer, format, min(limit_s, _PROBE_S)):
                break
            problems[-1] += f"; it hangs ({renderer.program} cannot lay out a single box)"
            left.remove(renderer)
        except _RenderError as problem:
            problems.append(f"{renderer.name} failed: {problem}")
        except OSError as problem:  # no room for the files that go to and fro
            problems.append(f"{renderer.name} failed: {problem.strerror or problem}")
    if not problems:
        problems.append("no renderer was found: neither dot on PATH nor graphviz-pure")
    return Rendering(None, "", tuple(problems), tuple(left))


def _hangs(renderer: Renderer, format: str, probe_s: float) -> bool:
    """Whether a renderer that met its limit cannot even draw one box."""
    try:
        _run(renderer, _SMALLEST, format, probe_s)
    except subprocess.TimeoutExpired:
        return True
    except (_RenderError, OSError):
        return False
    return False


class _RenderError(Exception):
    """A renderer that ended without a picture: its own words."""


def _run(renderer: Renderer, dot: str, format: str, limit_s: float) -> bytes:
    """One renderer on DOT text. Input, output and messages are files, not pipes: a child that a renderer left behind
    could hold a pipe open past the limit."""
    with tempfile.TemporaryDirectory(prefix="kernscope-") as folder:
        source, picture, messages = (Path(folder, name) for name in ("graph.dot", f"picture.{format}", "messages.txt"))
        source.write_text(dot, encoding="utf-8")
        command = [renderer.program, f"-T{format}", f"-o{picture}", str(source)]
        with messages.open("wb") as log:
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            except OSError as problem:
                raise _RenderError(problem.strerror or str(problem)) from problem
            try:
                code = process.wait(limit_s)
            finally:
                _stop(process)
        if code == 0 and picture.is_file() and picture.stat().st_size:
            return picture.read_bytes()
        raise _RenderError(_last_words(messages, code))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and, where the system has process groups, whatever it started."""
    if process.poll() is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(messages: Path, code: int) -> str:
    lines = messages.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit status {code} and no picture"
