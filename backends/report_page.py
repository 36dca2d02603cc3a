"""One self-contained HTML page on a kernel: no network, a script of its own, every text from the kernel escaped.

The page's content security policy allows that one script, by its hash, and nothing from anywhere else.
"""

from __future__ import annotations

import base64
import hashlib
import os
import string
from pathlib import Path

from ..ir.output import check_output, write_output
from .drawing import draw
from .report_data import ReportData
from .report_embed import embedded_text
from .report_markup import shown
from .report_picture import PICTURE_CSS
from .report_sections import sections, tiles
from .report_source import LineTable

__all__ = ["ReportData", "report_html", "write_report"]

_HERE = Path(__file__).parent


def report_html(data: ReportData) -> tuple[str, tuple[str, ...]]:
    """The page's text, and a sentence for each thing that could not be done. The page holds a summary, the findings,
    the ladder of policies with the critical chains by cause, the timeline, the scratch chart and map, the graph's
    picture (or what is missing for it), the source with what each line costs, the numbers and the operations."""
    template = string.Template((_HERE / "report.html").read_text(encoding="utf-8"))
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    drawing = draw(data.graph, schedule=data.best)
    lines = LineTable(data.graph, data.sources)
    parts = sections(data, drawing, lines)
    script = _script()
    ranks = f", {data.graph.ranks} ranks" if data.graph.ranks > 1 else ""
    text = template.substitute(
        title=shown(data.title),
        subtitle=f"Kernel <code>{shown(data.graph.kernel)}</code> on <code>{shown(data.machine)}</code>{ranks}",
        generator=shown(f"kernscope {data.version}".strip()),
        style="\n".join([style, PICTURE_CSS]),
        script=script,
        script_hash=_hash(script),
        data=embedded_text(data, drawing.box_of if drawing.data is not None else None, lines),
        links="\n".join(f'<li><a href="#{anchor}">{heading}</a></li>' for anchor, heading, _ in parts),
        tiles=tiles(data),
        sections="\n".join(
            f'<section id="{anchor}" aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">{heading}</h2>\n'
            f"{content}\n</section>"
            for anchor, heading, content in parts
        ),
    )
    return text, drawing.notes


def _script() -> str:
    """The page's script: the files of ``report_script``, in their order, in one scope."""
    files = sorted((_HERE / "report_script").glob("*.js"))
    body = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _hash(script: str) -> str:
    """The script's hash, as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def write_report(path: str | os.PathLike[str], data: ReportData) -> tuple[str, ...]:
    """Write the page; a sentence for each thing that could not be done comes back. Raises ``OutputError`` where the
    file cannot be written."""
    check_output(path)
    text, notes = report_html(data)
    write_output(path, text.encode("utf-8", errors="replace"))
    return notes
