"""Tables as a notebook shows them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["html_table"]


def html_table(
    caption: str,
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str] = (),
    align: Sequence[str] = (),
    row_heads: bool = False,
) -> str:
    """An HTML table; every text is escaped. ``align``: by column ``left`` or ``right`` (none given: as the notebook
    likes). ``row_heads``: whether the first cell of a row heads it."""
    styles = [f' style="text-align:{side}"' for side in align]

    def cell(at: int, text: str) -> str:
        tag = "th" if row_heads and at == 0 else "td"
        return f"<{tag}{styles[at] if styles else ''}>{html.escape(text)}</{tag}>"

    top = f"<tr>{''.join(f'<th>{html.escape(text)}</th>' for text in head)}</tr>" if head else ""
    body = "".join(f"<tr>{''.join(cell(at, text) for at, text in enumerate(row))}</tr>" for row in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{top}{body}</table>"
