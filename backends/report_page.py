"""One self-contained HTML page on a kernel: no network, no script, every text from the kernel escaped."""

from __future__ import annotations

import os
import string
from pathlib import Path

from .drawing import draw
from .gantt import GANTT_CSS
from .output import check_folder, write_output
from .report_data import ReportData
from .report_picture import PICTURE_CSS
from .report_sections import sections, shown, tiles

__all__ = ["ReportData", "report_html", "write_report"]

_HERE = Path(__file__).parent


def report_html(data: ReportData) -> tuple[str, tuple[str, ...]]:
    """The page's text, and a sentence for each thing that could not be done. The page holds a summary, the findings,
    the ladder of policies with the critical chains by cause, the scratch chart, the numbers, the graph's picture (or
    what is missing for it), the timelines, the operations and the source."""
    template = string.Template((_HERE / "report.html").read_text(encoding="utf-8"))
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    drawing = draw(data.graph, schedule=data.best)
    parts = sections(data, drawing)
    ranks = f", {data.graph.ranks} ranks" if data.graph.ranks > 1 else ""
    text = template.substitute(
        title=shown(data.title),
        subtitle=f"Kernel <code>{shown(data.graph.kernel)}</code> on <code>{shown(data.machine)}</code>{ranks}",
        generator=shown(f"kernscope {data.version}".strip()),
        style="\n".join([style, GANTT_CSS, PICTURE_CSS]),
        links="\n".join(f'<li><a href="#{anchor}">{heading}</a></li>' for anchor, heading, _ in parts),
        tiles=tiles(data),
        sections="\n".join(
            f'<section id="{anchor}" aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">{heading}</h2>\n'
            f"{content}\n</section>"
            for anchor, heading, content in parts
        ),
    )
    return text, drawing.notes


def write_report(path: str | os.PathLike[str], data: ReportData) -> tuple[str, ...]:
    """Write the page; a sentence for each thing that could not be done comes back. Raises ``OutputError`` where the
    file cannot be written."""
    check_folder(path)
    text, notes = report_html(data)
    write_output(path, text.encode("utf-8", errors="replace"))
    return notes
