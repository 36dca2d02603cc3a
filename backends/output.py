"""Writing a picture or a page to where the user asked for it."""

from __future__ import annotations

import os
from pathlib import Path

from ..ir.errors import OptionError, OutputError, did_you_mean

__all__ = ["check_folder", "choose_format", "write_output"]


def choose_format(path: str | os.PathLike[str] | None, format: str | None, known: tuple[str, ...]) -> str:
    """The format of a picture: what the path's extension says, else ``format``, else the first one known.

    Raises ``OptionError`` for an unknown one, and where extension and format contradict each other.
    """
    listed = ", ".join(f".{name}" for name in known)
    suffix = Path(path).suffix.lower().lstrip(".") if path is not None else ""
    asked = format.lower().lstrip(".") if format is not None else suffix
    if not asked and path is None:
        return known[0]
    if asked not in known:
        where = f" of {os.fspath(path)}" if path is not None and format is None else ""
        said = f"unknown picture format {'.' + asked if asked else 'without an extension'!r}{where}"
        raise OptionError(said, help=f"formats are {listed}" if not asked else _formats_help(asked, known, listed))
    if suffix and suffix != asked:
        raise OptionError(
            f"format {asked!r} contradicts the extension of {os.fspath(path or '')}",
            help=f"give the path the extension .{asked}, or leave the format out",
        )
    return asked


def _formats_help(asked: str, known: tuple[str, ...], listed: str) -> str:
    near = did_you_mean(asked, known, what="formats")
    return f"{near} formats are {listed}" if near.startswith("did you mean") else f"formats are {listed}"


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise ``OutputError`` before any work is done where the path's folder does not exist or the path is a folder."""
    target = Path(path)
    if not target.parent.is_dir():
        raise OutputError(
            f"cannot write {target}: there is no folder {target.parent}",
            help="make the folder first, or name another path",
        )
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OutputError(f"cannot write {target}: permission denied", help="name a path that you may write to")
    if target.is_dir():
        raise OutputError(f"cannot write {target}: it is a folder", help="name a file inside it")


def write_output(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write a file and return its path. Raises ``OutputError`` where that is not possible."""
    target = Path(path)
    check_folder(target)
    try:
        target.write_bytes(data)
    except OSError as problem:
        raise OutputError(
            f"cannot write {target}: {problem.strerror or problem}", help="name a path that you may write to"
        ) from problem
    return target
