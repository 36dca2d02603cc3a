"""Source locations: one frame, and the call stack from the kernel down to it."""

from __future__ import annotations

import os

import attrs

__all__ = ["Location", "shown_path"]


@attrs.frozen(order=True)
class Location:
    """A place in a kernel's source.

    ``line`` and ``end_line`` count from 1, ``column`` and ``end_column`` from 0 in UTF-8 bytes (as CPython's position
    table gives them); a column of -1 means it is not known. ``stack`` holds the callers, the innermost first.
    """

    file: str
    line: int
    function: str = ""
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    stack: tuple[Location, ...] = attrs.field(default=(), repr=False, eq=False, order=False)

    @property
    def short(self) -> str:
        """``file.py:12``: the file's name without its folder."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def __str__(self) -> str:
        text = f"{shown_path(self.file)}:{self.line}"
        return f"{text} in {self.function}" if self.function else text


def shown_path(file: str) -> str:
    """A path for a reader: relative where it lies below the current folder."""
    if file.startswith("<"):
        return file
    try:
        relative = os.path.relpath(file)
    except (OSError, ValueError):
        return file
    return file if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
