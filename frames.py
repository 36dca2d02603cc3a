"""Whose frames are whose: a kernel's author needs to see their own, not kernscope's."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import TracebackType

__all__ = ["author_frames", "is_own_file", "with_author_frames"]

_ROOT = Path(__file__).resolve().parent
#: Frames of these are kernscope's own. (The root itself may be a checkout with a user's files in it.)
_FOLDERS = ("backends", "cli", "ir", "linter", "scheduler", "tracer")
_MODULES = (
    "__init__",
    "__main__",
    "api",
    "fitting",
    "fitting_table",
    "frames",
    "pictures",
    "pytest_plugin",
    "testing",
)
_OWN = tuple([str(_ROOT / folder) + os.sep for folder in _FOLDERS] + [str(_ROOT / f"{name}.py") for name in _MODULES])

#: Of a deeper traceback the middle is left out: a recursion that never ends has a thousand frames.
_MOST_FRAMES = 20


def is_own_file(file: str) -> bool:
    """Whether a source file is kernscope's own: no kernel author needs to see it."""
    return os.path.realpath(file).startswith(_OWN)


def author_frames(trace: TracebackType | None) -> list[traceback.FrameSummary]:
    """The frames of a traceback that are the author's: not kernscope's, not the import system's."""
    return [
        frame
        for frame in traceback.extract_tb(trace)
        if not is_own_file(frame.filename)
        and not frame.filename.startswith("<frozen")
        and f"{os.sep}importlib{os.sep}" not in frame.filename
        and f"{os.sep}click{os.sep}" not in frame.filename
    ]


def with_author_frames(error: BaseException) -> str:
    """An exception of the author's code: its kind and text, and below them the author's frames."""
    lines: list[str] = []
    for frame in author_frames(error.__traceback__):
        lines += [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}', f"    {frame.line or ''}"]
    left_out = len(lines) // 2 - _MOST_FRAMES
    if left_out > 0:
        lines[_MOST_FRAMES:-_MOST_FRAMES] = [f"  ... {left_out:,} frames left out ..."]  # two lines a frame
    return "\n".join([f"{type(error).__name__}: {error}", *lines])
