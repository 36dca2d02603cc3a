"""What a notebook shows of results, and what a prompt says of them."""

from __future__ import annotations

import html
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention


@pytest.fixture(scope="module")
def graph() -> ks.Graph:
    return ks.trace(flash_attention.launch("small"))


class Tags(HTMLParser):
    """The elements that are open at the end, and all that there were."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_results_show_as_html_and_say_little_of_themselves(graph: ks.Graph, tmp_path: Path) -> None:
    """Whole HTML, and for a prompt one line of text."""
    report = ks.report(graph, tmp_path / "page.html")
    ladder = ks.compare(graph)
    others = (ks.fit(flash_attention, "tile", [32, 64]), ks.sweep(flash_attention, {"launch": ["small"]}))
    for shown in (graph, ladder, ladder["list"].schedule, ks.liveness(graph), ks.lint(graph), report, *others):
        tags = Tags()
        tags.feed(shown._repr_html_())
        assert tags.open == [] and set(tags.seen) & {"table", "iframe"}
        assert "\n" not in repr(shown) and len(repr(shown)) < 200, repr(shown)
    assert repr(ks.lint(graph)).startswith("<LintReport flash_attention: ")
    assert re.fullmatch(r"<Report flash_attention on ahbm-pe: [\d.]+ us; .*>", repr(report))


def test_a_report_is_its_page_in_a_frame(graph: ks.Graph, tmp_path: Path) -> None:
    """The frame holds the file's text, escaped, is as wide as the cell, and survives a pickle."""
    path = tmp_path / "page.html"
    report = pickle.loads(pickle.dumps(ks.report(graph, path)))
    frame = report._repr_html_()
    held = re.search(r'srcdoc="([^"]*)"', frame)
    assert held is not None and html.unescape(held[1]) == path.read_text(encoding="utf-8")
    assert "width:100%" in frame
    assert ks.report(graph, path, against=report).against is report
