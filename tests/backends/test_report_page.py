"""The report page: one well-formed file without network, in which every text from a kernel is only text."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import picturekernels as pk
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.graph_picture.renderer import find_renderers
from kernscope.backends.report import embedding as report_embed
from kernscope.backends.report.data import NumbersRow, PolicyResult, ReportData
from kernscope.backends.report.page import report_html, write_report
from kernscope.backends.report.source import SourceText
from kernscope.ir.forms.text import quote

needs_renderer = pytest.mark.skipif(not find_renderers(), reason="neither dot nor graphviz-pure is installed")

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """A page, read strictly: every element that opens is closed in order. ``texts`` are what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def values(self, name: str) -> list[str]:
        """The values of an attribute, wherever it stands."""
        return [value for _, known, value in self.attributes if known == name]


def data_of(graph: ks.Graph, **changes: Any) -> ReportData:
    """What the page needs of a graph."""
    ladder = ks.compare(graph)
    made: Mapping[str, Any] = {
        "title": graph.kernel,
        "graph": graph,
        "machine": ladder.machine.name,
        "policies": tuple(
            PolicyResult(row.policy, row.schedule, str(row.deadlock) if row.deadlock else "") for row in ladder
        ),
        "bounds_ps": ladder.bounds.each if ladder.bounds else {},
        "liveness": ks.liveness(graph),
        "lint": ks.lint(graph),
        "version": "1.2.3",
    }
    return ReportData(**{**made, **changes})


def page_of(graph: ks.Graph, **changes: Any) -> Page:
    return Page(report_html(data_of(graph, **changes))[0])


@functools.cache
def tags_of_a_harmless_page() -> list[str]:
    """The elements of the page that the hostile ones are compared with."""
    return page_of(pk.renamed(pk.sweep(2), "name"), **named("name")).tags


def named(name: str) -> dict[str, Any]:
    """What a page shows beside the graph, in this name."""
    text = SourceText(name, 3, ("def f():", f"    return 1 # {name}".replace("\n", " ")))
    return {
        "title": name,
        "sources": (text,),
        "numbers": (NumbersRow(name, 0.5, 0.25, 0.5, 1.0, True),),
        "numbers_note": name,
        "against": data_of(pk.renamed(pk.sweep(3), name), title=name),
    }


@ks.kernel
def _stale(o: ks.HbmTensor) -> None:
    with tl.scratch_scope():
        a = tl.zeros((8, 8), tl.float32)
    tl.store(o[:, :], a)


@ks.kernel
def _stuck(o: ks.HbmTensor) -> None:
    here = tl.recv("prev", (8, 8), tl.float32)
    tl.send("next", here)
    tl.store(o[:, :], here)


@ks.kernel
def _nothing() -> None:
    pass


def stale() -> ks.Graph:
    """A use after scope."""
    return ks.trace(_stale, ks.hbm((8, 8), "f32"))


def stuck() -> ks.Graph:
    """Every rank receives before it sends: a deadlock under every policy."""
    return ks.trace(_stuck, ks.hbm((8, 8), "f32"), ranks=2)


GRAPHS = {
    "sweep": lambda: pk.sweep(3),
    "messages": pk.messages,
    "nested": lambda: pk.nested(9, 9),
    "stale": stale,
    "stuck": stuck,
    "nothing": lambda: ks.trace(_nothing),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_page_is_well_formed_and_stands_alone(name: str) -> None:
    """Elements close in order, anchors lead somewhere, identifiers are unique, nothing is fetched, and nothing runs but
    the script that the policy names by its hash."""
    page = page_of(GRAPHS[name]())
    identifiers = page.values("id")
    assert len(set(identifiers)) == len(identifiers)
    assert {link.removeprefix("#") for link in page.values("href")} <= set(identifiers)
    assert all(link.startswith("#") for link in page.values("href"))
    assert not {"link", "img", "iframe", "object", "embed", "foreignobject"} & set(page.tags)
    assert page.tags.count("script") == len(page.scripts) == 2
    data, script = page.scripts
    json.loads(data)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [value for value in page.values("content") if "default-src" in value]
    assert policy.split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        f"script-src 'sha256-{digest}'",
    ]
    assert page.values("src") == []
    assert not [value for name in ("style", "fill") for value in page.values(name) if "url(" in value]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_names_survive(name: str) -> None:
    """A hostile name is shown as it is, in the title, in tables and in the source, and adds no element."""
    graph = pk.renamed(pk.sweep(2), name)
    page = page_of(graph, **named(name))
    assert page.text.count(quote(name)) >= 5
    assert page.tags == tags_of_a_harmless_page()
    document = json.loads(page.scripts[0])
    assert document["title"] == quote(name)
    assert quote(name) in document["storages"]["names"]
    assert not any(value for _, attribute, value in page.attributes if attribute.startswith("on"))


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_a_page_of_hostile_names_can_be_written(name: str, tmp_path: Path) -> None:
    """Whatever the names hold, the file is UTF-8."""
    write_report(tmp_path / "a.html", data_of(pk.renamed(pk.sweep(1), name), **named(name)))
    Page((tmp_path / "a.html").read_text(encoding="utf-8"))


def test_the_summary_holds_the_answers() -> None:
    """Findings, scratch, time, numbers and size, with the numbers of the objects they come from."""
    graph = pk.sweep(4)
    data = data_of(graph, numbers=(NumbersRow("o", 7.5, 0.125, 2.5e-4, 1e-3, True),))
    text = Page(report_html(data)[0]).text
    live, best = data.liveness, data.best
    assert best is not None
    assert f"{live.peak_bytes:,} of {live.budget_bytes:,} B" in text
    assert f"{best.policy}, {best.ratio:.3f} x the best bound" in text
    assert f"nodes, {len(graph.edges):,} edges" in text
    assert "agree" in text
    assert "largest error 0.00025" in text
    assert "0.125" in text
    assert "no findings" in text.lower()
    for operation, count in graph.summary().items():
        assert re.search(rf"\b{operation}\b .*?{count:,}\b", text)


def test_every_policy_has_a_row_and_a_timeline() -> None:
    """The ladder in its order, and a timeline to choose for each policy, the best one first."""
    data = data_of(pk.sweep(2))
    page = Page(report_html(data)[0])
    labels = page.values("aria-label")
    for result in data.policies:
        assert result.schedule is not None
        assert any(label.startswith(f"{result.policy}: ") for label in labels)
    document = json.loads(page.scripts[0])
    assert data.best is not None
    others = [r.policy for r in data.policies if r.policy != data.best.policy]
    assert [s["policy"] for s in document["schedules"]] == [data.best.policy, *others]


def test_findings_are_shown_in_full() -> None:
    """Code, message, place and help of each finding stand in the page."""
    data = data_of(stale())
    text = Page(report_html(data)[0]).text
    assert len(data.lint) > 0
    for diagnostic in data.lint:
        assert diagnostic.code in text
        assert quote(diagnostic.message) in text
        assert diagnostic.help in text


def test_a_page_without_findings_has_no_tab_for_them() -> None:
    """All other tabs stand; with findings theirs is among them, with their number."""
    for graph, number in ((pk.sweep(2), 0), (stale(), len(ks.lint(stale())))):
        page = page_of(graph)
        tabs = [value for tag, name, value in page.attributes if (tag, name) == ("a", "data-tab")]
        assert tabs == ["graph", *["findings"] * bool(number), "ladder", "scratch", "numbers", "operations", "branches"]
        (title,) = (at for at, text in enumerate(page.texts) if text.strip(", ") == "findings")
        said = " ".join(page.texts[title + 1 : title + 6])
        report = ks.lint(graph)
        counts = [f"{n} {severity}{'s' * (n > 1)}" for severity, n in report.counts.items() if n]
        assert (", ".join(counts) or "no findings") in said
        (kind,) = (dict(found)["class"] for found in _sections(page) if dict(found).get("id") == "findings")
        assert kind == ("detail" if number else "detail empty")


def _sections(page: Page) -> list[list[tuple[str, str]]]:
    """The attributes of each section: one begins with ``class``."""
    found: list[list[tuple[str, str]]] = []
    for tag, name, value in page.attributes:
        if tag != "section":
            continue
        if name == "class":
            found.append([])
        found[-1].append((name, value))
    return found


@pytest.mark.parametrize(("more", "said"), [(0, ""), (1, "1 more finding:"), (2, "2 more findings:")])
def test_findings_past_a_hundred_are_counted(more: int, said: str) -> None:
    """A hundred are shown in full."""
    report = ks.lint(stale())
    many = attrs.evolve(report, diagnostics=tuple(report.diagnostics[:1]) * (100 + more))
    page = page_of(stale(), lint=many)
    assert page.values("data-finding") == [str(at) for at in range(100)]
    assert ("more finding" in page.text) is bool(said) and said in page.text


def test_a_difference_is_said_loudly() -> None:
    """One tensor outside its tolerance is enough."""
    rows = (NumbersRow("a", 0.0, 0.0, 0.0, 1e-3, True), NumbersRow("b", 0.5, 0.5, 0.5, 1e-3, False))
    text = page_of(pk.sweep(1), numbers=rows).text
    assert "differ" in text
    assert "1 of 2 tensors" in text
    assert "outside" in text


def test_a_deadlock_leaves_the_rest_of_the_page() -> None:
    """Every policy's row says deadlock and names the lines; findings, scratch and the picture are still there."""
    data = data_of(stuck())
    assert data.best is None
    page = Page(report_html(data)[0])
    assert page.text.count("deadlock") >= len(data.policies)
    assert "test_report_page.py" in page.text
    assert {"findings", "scratch", "graph", "operations"} <= set(page.values("id"))


def test_the_best_schedule_is_the_shortest() -> None:
    """Of equal ones the first, so that a simpler policy is named where a cleverer one gains nothing."""
    data = data_of(pk.sweep(3))
    spans = {result.policy: result.schedule.makespan_ps for result in data.policies if result.schedule}
    assert data.best is not None
    assert data.best.policy == min(spans, key=lambda policy: spans[policy])
    assert data.bound_ps == data.best.bound_ps


@needs_renderer
def test_the_picture_stands_in_the_page() -> None:
    """With a renderer the drawing is inline, folded, and tells its nodes when pointed at."""
    text, notes = report_html(data_of(pk.sweep(64)))
    page = Page(text)
    assert notes == ()
    assert "drawing" in page.values("class")
    assert "tile x 64" in re.sub(r"\s+", " ", page.text)
    assert "64 nodes, the first: %" in page.text


def test_without_a_renderer_the_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No picture, but the whole rest, and both remedies; the caller is told, too."""

    def no_package(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    data = data_of(pk.sweep(3))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "files", no_package)
    notes = write_report(tmp_path / "page.html", data)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "There is no picture of the graph here." in page.text
    for said in (page.text, " ".join(notes)):
        assert "dot is on PATH" in said
        assert "kernscope[draw]" in said
    assert {"timeline-canvas", "scratch-canvas"} <= set(page.values("id"))


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before anything is drawn."""
    with pytest.raises(ks.OutputError, match="no folder"):
        write_report(tmp_path / "missing" / "a.html", data_of(pk.sweep(1)))


def test_the_same_data_gives_the_same_page() -> None:
    """Two traces of one kernel, two equal pages."""
    assert report_html(data_of(pk.messages()))[0] == report_html(data_of(pk.messages()))[0]


def test_of_a_large_graph_the_best_schedule_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are summed up, and the page says which; too many edges are left out as well."""
    data = data_of(pk.sweep(4))
    monkeypatch.setattr(report_embed, "NODES_EMBEDDED", 2 * len(data.graph))
    monkeypatch.setattr(report_embed, "EDGES_EMBEDDED", 3)
    page = Page(report_html(data)[0])
    document = json.loads(page.scripts[0])
    assert data.best is not None
    shown = [one["policy"] for one in document["schedules"]]
    assert len(shown) == 2
    assert shown[0] == data.best.policy
    left = [r.policy for r in data.policies if r.policy not in shown]
    assert f"To keep the page small, {', '.join(left)} are summed up above only." in page.text
    assert document["edges"] is None
