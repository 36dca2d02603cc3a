"""What a notebook shows: tables of what was computed, and pictures of what was drawn."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import picturekernels as pk
import pytest

import kernscope as ks
from kernscope.backends.graph_picture import drawing
from kernscope.backends.graph_picture.renderer import Rendering, find_renderers
from kernscope.ir.forms.text import quote

needs_renderer = pytest.mark.skipif(not find_renderers(), reason="neither dot nor graphviz-pure is installed")


class Table(HTMLParser):
    """The texts of a table, and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(thing: Any) -> Table:
    """A thing's table."""
    return Table(thing._repr_html_())


def everything(graph: ks.Graph) -> list[Any]:
    """What is shown as a table."""
    return [graph, ks.schedule(graph), ks.compare(graph), ks.liveness(graph), ks.lint(graph)]


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_names_add_no_element(name: str) -> None:
    """A table of a hostile kernel has the elements of a harmless one's, and its text is encodable."""
    harmless, hostile = everything(pk.renamed(pk.sweep(2), "name")), everything(pk.renamed(pk.sweep(2), name))
    for one, other in zip(harmless, hostile, strict=True):
        assert set(shown(other).tags) <= set(shown(one).tags) | {"table", "caption", "tr", "th", "td"}
        assert not {"script", "img", "b", "svg"} & set(shown(other).tags)


def test_a_graph_shows_its_operations() -> None:
    """Each with its number, under the kernel's name and size."""
    graph = pk.renamed(pk.sweep(3), "a<b>")
    texts = shown(graph).texts
    assert texts[0] == f"{quote('a<b>')}: {len(graph)} nodes, {len(graph.edges)} edges, 1 rank"
    cells = texts[1:]
    assert dict(zip(cells[::2], map(int, cells[1::2]), strict=True)) == graph.summary()


@needs_renderer
def test_drawings_and_timelines_show_themselves() -> None:
    """Without a path, as SVG; the text form stands beside for a terminal."""
    graph = pk.sweep(2)
    for made in (ks.draw(graph), ks.timeline(ks.schedule(graph))):
        bundle = made._repr_mimebundle_()
        assert "<svg" in str(bundle["image/svg+xml"])
        assert bundle["text/plain"] == str(made)


@needs_renderer
def test_a_drawing_as_png_shows_itself() -> None:
    """The bytes of the picture."""
    data = ks.draw(pk.sweep(2), format="png")._repr_mimebundle_()["image/png"]
    assert isinstance(data, bytes)
    assert data.startswith(b"\x89PNG")


def test_a_drawing_without_a_renderer_shows_its_dot(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says why there is no picture."""
    monkeypatch.setattr(drawing, "render", lambda *_, **__: Rendering(None, "", ("no renderer was found",), ()))
    made = ks.draw(pk.sweep(2))
    assert not made.rendered
    assert made._repr_mimebundle_() == {"text/plain": f"{made}\n\n{made.dot}"}
    assert "no renderer was found" in str(made) and "digraph" in made.dot


def test_timelines_show_what_they_can() -> None:
    """A picture where the format is one, else what was written in words."""
    schedule = ks.schedule(pk.sweep(2))
    png = ks.timeline(schedule, format="png")
    assert png._repr_mimebundle_() == {"image/png": png.data, "text/plain": str(png)}
    text = ks.timeline(schedule, format="json")
    assert text._repr_mimebundle_() == {"text/plain": str(text)}
    assert str(text).startswith(f"timeline (json): {text.slices:,} slices, {text.instants:,} instants")
