"""The format of a picture: what its path or its caller says."""

from __future__ import annotations

import os
from pathlib import Path

from ..ir.errors import OptionError, did_you_mean, shown
from ..ir.output import expect_path

__all__ = ["choose_format"]


def choose_format(path: str | os.PathLike[str] | None, format: str | None, known: tuple[str, ...]) -> str:
    """The format of a picture: what the path's extension says, else ``format``, else the first one known.

    Raises ``OptionError`` for an unknown one, and where extension and format contradict each other, ``OutputError`` for
    what is no path.
    """
    listed = ", ".join(f".{name}" for name in known)
    if path is not None:
        expect_path(path)
    if format is not None and not isinstance(format, str):
        raise OptionError(f"{shown(format)} is no picture format", help=f"formats are {listed}")
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
