"""Pieces of a report page's HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ...ir.forms.text import quote

__all__ = ["share", "shown", "table"]


def shown(text: str) -> str:
    """A text from outside, in one line and escaped, for the inside of an element or of a quoted attribute."""
    return escape(quote(text), quote=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int, caption: str = "") -> str:
    """A table of HTML cells; the first column heads its row, the last ``numbers`` columns are numbers."""
    width = len(head)

    def cell(tag: str, at: int, text: str) -> str:
        return f'<{tag} class="num">{text}</{tag}>' if at >= width - numbers else f"<{tag}>{text}</{tag}>"

    top = "".join(cell("th", at, text) for at, text in enumerate(head))
    body = [
        "<tr>" + "".join(cell("td" if at else "th", at, text) for at, text in enumerate(row)) + "</tr>" for row in rows
    ]
    said = f"<caption>{caption}</caption>" if caption else ""
    return f'<div class="wide"><table>{said}<thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def share(part: int, whole: int) -> str:
    """``12.5 %``."""
    return f"{100 * part / max(whole, 1):.1f} %"
