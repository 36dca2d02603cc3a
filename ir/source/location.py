"""Source locations: one frame, and the call stack from the kernel down to it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import attrs

__all__ = ["CALLERS_KEPT", "Location", "shown_path"]

#: How many callers a location tells. A kernel that recurses a thousand deep has up to a thousand for each of its lines:
#: all of them everywhere would be a million.
CALLERS_KEPT = 16


@attrs.frozen(order=True)
class Location:
    """A place in a kernel's source.

    ``line`` and ``end_line`` count from 1, ``column`` and ``end_column`` from 0 in UTF-8 bytes (as CPython's position
    table gives them); a column of -1 means it is not known. ``stack`` holds the callers, the innermost first, up to
    :data:`CALLERS_KEPT` of them; ``callers_left_out`` says how many more there are. ``digest`` is that of the file's
    text when it was traced (:mod:`kernscope.ir.source.digests`; empty: unknown); None for a place of this very process.
    """

    file: str
    line: int
    function: str = ""
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    stack: tuple[Location, ...] = attrs.field(default=(), repr=False, eq=False, order=False)
    callers_left_out: int = attrs.field(default=0, repr=False, eq=False, order=False)
    digest: str | None = attrs.field(default=None, repr=False, eq=False, order=False)

    @property
    def short(self) -> str:
        """``file.py:12``: the file's name without its folder."""
        return f"{os.path.basename(self.file)}:{self.line}"

    def called_from(self, callers: Sequence[Location]) -> Location:
        """The place with its callers, the innermost first: as many as are kept."""
        kept = tuple(callers[:CALLERS_KEPT])
        return attrs.evolve(self, stack=kept, callers_left_out=len(callers) - len(kept))

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
