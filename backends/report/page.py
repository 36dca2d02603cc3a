"""One self-contained HTML page on a kernel: no network, a script of its own, every text from the kernel escaped.

The page's content security policy allows that one script, by its hash, and nothing from anywhere else.
"""

from __future__ import annotations

import base64
import hashlib
import os
import string
from pathlib import Path

from ...ir.output import check_output, output_error, write_output
from ..graph_picture.drawing import draw
from .data import ReportData
from .embedding import embedded_text
from .markup import shown
from .panes import panes
from .paths import PagePaths
from .picture import PICTURE_CSS
from .sections import details
from .source import LineTable
from .strip import size_line, strip

__all__ = ["PAGE_SUFFIXES", "ReportData", "check_page", "report_html", "save_page", "write_report"]

#: What browsers take for a page.
PAGE_SUFFIXES = (".html", ".htm")
_HERE = Path(__file__).parent


def report_html(data: ReportData) -> tuple[str, tuple[str, ...]]:
    """The page's text, and a sentence for each thing that could not be done. The page holds a summary, the findings,
    the ladder of policies with the critical chains by cause, the timeline, the scratch chart and map, the graph's
    picture (or what is missing for it), the source with what each line costs, the numbers and the operations."""
    template = string.Template((_HERE / "page.html").read_text(encoding="utf-8"))
    style = [(_HERE / name).read_text(encoding="utf-8") for name in ("tokens.css", "page.css")]
    drawing = draw(data.graph, schedule=data.best)
    lines = LineTable(data.graph, data.sources)
    paths = _paths(data)
    source, tracks = panes(data, lines, paths)
    parts = details(data, drawing, paths)
    script = _script()
    # What is shown first: what is wrong, else what changed, else the graph.
    opened = "findings" if data.lint.counts["error"] else "against" if data.against is not None else "graph"
    current = ' aria-current="true"'
    empty = "" if len(data.lint) else " empty"  # one word in the strip says so
    text = template.substitute(
        title=shown(data.title),
        subtitle=f"Kernel <code>{shown(data.graph.kernel)}</code> on <code>{shown(data.machine)}</code>",
        size=size_line(data),
        generator=shown(f"kernscope {data.version}".strip()),
        style="\n".join([PICTURE_CSS, *style]),
        script=script,
        script_hash=_hash(script),
        data=embedded_text(data, drawing.box_of if drawing.data is not None else None, lines),
        links="\n".join(
            f'<li><a href="#{anchor}" data-tab="{anchor}"{current if anchor == opened else ""}>{heading}</a></li>'
            for anchor, heading, _ in parts
            if anchor != "findings" or len(data.lint)
        ),
        strip=strip(data),
        source=source,
        tracks=tracks,
        details="\n".join(
            f'<section class="detail{empty if anchor == "findings" else ""}" id="{anchor}" '
            f'aria-labelledby="{anchor}-title"><h2 id="{anchor}-title">{heading}</h2>\n{content}\n</section>'
            for anchor, heading, content in parts
        ),
    )
    return text, drawing.notes


def _paths(data: ReportData) -> PagePaths:
    """The names of all files that the page can speak of."""
    graphs = [data.graph, *([data.against.graph] if data.against is not None else [])]
    frames = (graph.names[file] for graph in graphs for file in dict.fromkeys(graph.frames.file.tolist()))
    return PagePaths.of([*(text.file for text in data.sources), *frames])


def _script() -> str:
    """The page's script: the files of ``report_script``, in their order, in one scope."""
    files = sorted((_HERE / "script").glob("*.js"))
    body = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _hash(script: str) -> str:
    """The script's hash, as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def check_page(path: str | os.PathLike[str]) -> None:
    """Raise ``OutputError`` before any work is done where a page cannot be written to a path, or would not be taken for
    one there: browsers go by the extension."""
    check_output(path)
    suffix = Path(path).suffix
    if suffix and suffix.lower() not in PAGE_SUFFIXES:
        better = Path(path).with_suffix(".html")
        raise output_error(path, f"a report is an HTML page, not {suffix}", help=f"name it {better}")


def write_report(path: str | os.PathLike[str], data: ReportData) -> tuple[str, ...]:
    """Write the page; a sentence for each thing that could not be done comes back. Raises ``OutputError`` where the
    file cannot be written."""
    return save_page(path, data)[1]


def save_page(path: str | os.PathLike[str], data: ReportData) -> tuple[str, tuple[str, ...]]:
    """The same; the page's text comes back, too."""
    check_page(path)
    text, notes = report_html(data)
    write_output(path, text.encode("utf-8", errors="replace"))
    return text, notes
