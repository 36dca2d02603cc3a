"""What a reader is shown does not change unseen: all texts, tables and pictures of a few kernels against stored ones.

Each output is a file beside this one, in ``stored/``. Whoever changes an output on purpose writes them anew and looks
at the difference::

    python -m pytest tests/outputs --rewrite-outputs

What no reader sees is left out: scripts, styles, and the layout of a graph, which is the renderer's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

import kernscope as ks
from kernscope.backends.report.comparison import comparison_lines
from kernscope.backends.report.page import report_html
from kernscope.face import presentation
from kernscope.linter.formats.text import FORMATS
from kernscope.scheduler.result.schedule import machine_of

from . import outputkernels

STORED = Path(__file__).with_name("stored")


class Shown(HTMLParser):
    """What a page shows, a line for each block: texts, and in brackets how wide, high or far a mark is drawn, and what
    is shown when one points at it."""

    BLOCKS = frozenset({"article", "div", "dd", "dt", "h1", "h2", "h3", "li", "p", "section", "svg", "table", "tr"})
    MARKS = ("title", "style", "d", "x", "y", "width", "height", "points", "transform", "href")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self.hidden = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "style", "template"} or (tag == "svg" and self.hidden):
            self.hidden += 1
        if tag in self.BLOCKS:
            self.lines.append(f"<{tag}>")
        marks = [f"{name}={value}" for name, value in attrs if name in self.MARKS and value]
        if marks and not self.hidden:
            self.lines[-1] += f"[{' '.join(marks)}]"

    def handle_endtag(self, tag: str) -> None:
        if tag in {"script", "style", "template"}:
            self.hidden -= 1
        elif tag in {"td", "th"}:
            self.lines[-1] += " | "

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.lines[-1] += " ".join(data.split())


def page_text(page: str) -> str:
    """A page's lines, without the graph: it is laid out by whatever renderer there is."""
    return "\n".join(line for line in Shown(page).lines if line)


def lines_of(document: Any) -> str:
    """A JSON document, a line for each of the things in its lists."""
    return re.sub(r"(?<=[\[,]) *(?=[\[{])", "\n", json.dumps(document, sort_keys=True))


def told(graph: ks.Graph) -> Iterator[str]:
    """A graph, its memory and its findings, in words."""
    yield str(graph)
    yield str(graph.summary())
    live = ks.liveness(graph)
    yield str(live)
    yield f"{live.peak_bytes_by_rank} {live.peak_node_by_rank} {live.peak_bound_bytes} {live.fullest_rank}"
    yield str(live.placement())
    yield from map(str, live.growth())
    yield from map(str, live.peak_by_line())
    yield from map(str, live.violations)


def scheduled(graph: ks.Graph) -> Iterator[str]:
    """The ladder, and of each policy the schedule with what it waits for."""
    ladder = ks.compare(graph, effort="fast")
    yield str(ladder)
    schedules = [row.schedule for row in ladder if row.schedule is not None]
    first = schedules[0]
    for schedule in schedules:
        yield str(schedule)
        yield str(schedule.critical_chain())
        yield f"{schedule.critical_chain().by_cause()} {schedule.critical_chain().by_engine()}"
        yield f"{schedule.busy_ps} {schedule.utilisation()} {schedule.bounds} {schedule.rules}"
        yield str(schedule.slack_ps.tolist())
        yield "\n".join(map(str, schedule.moved_against(first)))
        yield str(schedule.price_of_reuse())
    yield lines_of(schedules[-1].to_dict())


def timelines(graph: ks.Graph) -> Iterator[str]:
    """The Gantt chart and the Chrome trace of two policies."""
    schedules = [ks.schedule(graph, policy=policy) for policy in ("lazy", "list")]
    chart = ks.timeline(schedules, format="svg")
    yield str(chart)
    assert chart.data is not None
    yield re.sub("<style>.*?</style>", "", chart.data.decode(), flags=re.DOTALL).replace("><", ">\n<")
    trace = ks.timeline(schedules[1], format="json")
    assert trace.data is not None
    yield lines_of(json.loads(trace.data))


def drawn(graph: ks.Graph) -> Iterator[str]:
    """The graph's picture before it is laid out: folded, by scope, every node, with a schedule, and its parts."""
    schedule = ks.schedule(graph, policy="list")
    views: list[dict[str, Any]] = [
        {},
        {"fold": "scope"},
        {"fold": "none", "rank": 0},
        {"schedule": schedule, "box_limit": 20},
        {"around": 9, "hops": 2},
        {"rank": 0, "reduce": True},
    ]
    for view in views:
        drawing = ks.draw(graph, format="dot", **view)
        yield str(drawing)
        yield drawing.dot
    model = ks.draw(graph, format="json", rank=0)
    assert model.data is not None
    yield lines_of(json.loads(model.data))


def reported(graph: ks.Graph, against: ks.Graph | None = None) -> Iterator[str]:
    """The report page, alone or against an earlier one."""
    data = presentation.gather(graph, machine_of(graph, None), effort="fast", numbers=False)
    if against is not None:
        earlier = presentation.gather(against, machine_of(against, None), effort="fast", numbers=False)
        yield from comparison_lines(data, earlier)
        data = attrs.evolve(data, against=earlier)
    page, _ = report_html(data)
    yield page_text(page)


def linted(graph: ks.Graph) -> Iterator[str]:
    """All findings in all formats."""
    report = ks.lint(graph)
    for name in ("concise", "full", "github", "json"):
        yield f"--- {name}"
        yield FORMATS[name]([report], [])
    yield "--- sarif"
    results = json.loads(FORMATS["sarif"]([report], []))["runs"][0]
    del results["tool"]  # every rule with its page: they are tested as pages
    yield lines_of(results)


OUTPUTS: dict[str, Callable[[], Iterator[str]]] = {
    "graph of faulty": lambda: told(outputkernels.faulty()),
    "graph of reduction": lambda: told(outputkernels.reduction()),
    "graph of ring": lambda: told(outputkernels.ring()),
    "findings of faulty": lambda: linted(outputkernels.faulty()),
    "findings of reduction": lambda: linted(outputkernels.reduction()),
    "schedules of ring": lambda: scheduled(outputkernels.ring()),
    "schedules of reduction": lambda: scheduled(outputkernels.reduction()),
    "timelines of ring": lambda: timelines(outputkernels.ring()),
    "timelines of reduction": lambda: timelines(outputkernels.reduction()),
    "pictures of ring": lambda: drawn(outputkernels.ring()),
    "pictures of reduction": lambda: drawn(outputkernels.reduction()),
    "report of reduction": lambda: reported(outputkernels.reduction()),
    "report of faulty": lambda: reported(outputkernels.faulty()),
    "report of ring against before": lambda: reported(outputkernels.ring(), outputkernels.ring_before()),
}


def text_of(name: str) -> str:
    """An output, the same wherever the checkout lies."""
    text = "\n".join(OUTPUTS[name]()) + "\n"
    here = str(Path(__file__).parent)
    return text.replace(here, "tests/outputs").replace(ks.__version__, "VERSION")


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_is_shown_is_what_is_stored(name: str, request: pytest.FixtureRequest) -> None:
    """To the letter."""
    stored = STORED / f"{name.replace(' ', '_')}.txt"
    text = text_of(name)
    if request.config.getoption("--rewrite-outputs"):
        stored.write_text(text, encoding="utf-8")
    assert text == stored.read_text(encoding="utf-8")


def test_nothing_stored_is_left_over() -> None:
    """Every stored file is compared with something."""
    assert {path.stem for path in STORED.iterdir()} == {name.replace(" ", "_") for name in OUTPUTS}
