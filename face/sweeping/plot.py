"""The front of a sweep as a picture (the extra ``plot``)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...ir.errors import MissingExtraError, OptionError
from ...ir.output import check_output, write_output

__all__ = ["check_plot", "write_plot"]

_SUFFIXES = (".svg", ".png", ".pdf")


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise ``OptionError``, ``OutputError`` or ``MissingExtraError`` before any work is done where no picture can be
    written to a path."""
    check_output(path)
    suffix = Path(path).suffix
    if suffix not in _SUFFIXES:
        raise OptionError(f"unknown format {suffix!r} of {path}", help=f"formats are {', '.join(_SUFFIXES)}")
    _drawing()


def write_plot(
    path: str | os.PathLike[str], points: Sequence[tuple[int, int, str, bool]], title: str, note: str
) -> None:
    """Write the picture of points (scratch in bytes, makespan in picoseconds, name, whether it is of the front)."""
    check_plot(path)
    drawing = _drawing()
    shown = [drawing.FrontPoint(*point) for point in points]
    write_output(path, drawing.front_plot(shown, title, note, Path(path).suffix))


def _drawing() -> Any:
    # By name: matplotlib takes half a second, and need not be installed.
    try:
        return importlib.import_module("kernscope.backends.front_plot")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(
            "a plot takes matplotlib, which is not installed", help="pip install 'kernscope[plot]'"
        ) from missing
