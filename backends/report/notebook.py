"""A report as a notebook shows it: the page itself, in a frame as wide as the cell."""

from __future__ import annotations

import html
import os

import attrs

from .data import ReportData
from .page import save_page

__all__ = ["Report", "written_report"]


@attrs.frozen(eq=False, repr=False)
class Report(ReportData):
    """What ``ks.report`` returns: everything that its page shows, and the ``page``, which a notebook shows inline."""

    page: str = attrs.field(default="", kw_only=True)

    def _repr_html_(self) -> str:
        # The page is a document of its own, with its own policy: nothing of it touches the notebook.
        style = "width:100%;height:min(900px,85vh);border:0;resize:vertical"
        return f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.page)}" style="{style}"></iframe>'


def written_report(path: str | os.PathLike[str], data: ReportData) -> Report:
    """Write the page of some data. Raises ``OutputError``."""
    text, _ = save_page(path, data)
    return Report(**{field.name: getattr(data, field.name) for field in attrs.fields(ReportData)}, page=text)
