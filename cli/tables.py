"""How the command line writes: sizes, shares, aligned columns; plain printable text, never wrapped."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..ir.forms.printable import printable_lines
from .settings import settings

__all__ = ["note", "percent", "say", "size", "table"]


def say(text: str, *, err: bool = False) -> None:
    """Print a text of one line or several, of printable characters only."""
    click.echo(printable_lines(text), err=err)


def note(text: str, *, err: bool = False) -> None:
    """Say what is no result: ``--quiet`` leaves it out."""
    if not settings().quiet:
        say(text, err=err)


def size(nbytes: int) -> str:
    """A number of bytes, exact, with its binary unit beside it from 1 KiB on."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes:,} B ({nbytes / scale:,.1f} {unit})"
    return f"{nbytes:,} B"


def percent(part: float, whole: float) -> str:
    """A share of a whole."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "  ") -> str:
    """Rows as aligned columns; those in ``right`` stand flush right."""
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        indent
        + "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines)
