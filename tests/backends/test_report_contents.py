"""What stands in a report page: each table's cells, the source's gutter and the chart, against the objects they tell
of."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import numpy as np
import picturekernels as pk
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.report.charts import scratch_chart
from kernscope.backends.report.data import NumbersRow, PolicyResult, ReportData
from kernscope.backends.report.page import report_html
from kernscope.backends.report.source import collect_sources
from kernscope.backends.sizes import short_size, size_text
from kernscope.machine.units import format_ps


class Tables(HTMLParser):
    """The rows of all tables of a page: by the ``id`` around it a list of rows, each a list of its cells' texts; and
    what was said of a row's source (``line``)."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.under: list[tuple[str, str]] = []
        self.rows: dict[str, list[list[str]]] = {}
        self.texts: dict[str, str] = {}
        self.cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"section", "div", "article"}:
            named = dict(attrs).get("id") or (self.under[-1][1] if self.under else "")
            self.under.append((tag, named))
        elif tag == "tr":
            self.rows.setdefault(self.here, []).append([])
        elif tag in {"td", "th"} and self.here in self.rows:
            self.rows[self.here][-1].append("")
            self.cell = True

    def handle_endtag(self, tag: str) -> None:
        if self.under and tag == self.under[-1][0]:
            self.under.pop()
        elif tag in {"td", "th"}:
            self.cell = False

    def handle_data(self, data: str) -> None:
        self.texts[self.here] = self.texts.get(self.here, "") + data
        if self.cell:
            self.rows[self.here][-1][-1] += data

    @property
    def here(self) -> str:
        return self.under[-1][1] if self.under else ""


@ks.kernel
def _lines(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    """Lines that move bytes, that hold some at the peak, that only compute, and one that no node comes from."""
    total = tl.zeros((32, 32), tl.float32)
    for j in range(0, 96, 32):
        with tl.scratch_scope("tile"):
            part = tl.load(x[j : j + 32, :])
            tl.copy_to(total, total + tl.exp(part))
    # after a tab, <nothing> & no more
    tl.store(o[:, :], total)


@ks.kernel
def _ring(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    here = tl.load(x[:, :])
    tl.send("next", here)
    tl.store(o[tl.program_id(0), :, :], here + tl.recv("prev", (16, 16), tl.float32))


def of_lines() -> ks.Graph:
    return ks.trace(_lines, ks.hbm((96, 32), "f32"), ks.hbm((32, 32), "f32"))


def of_ring() -> ks.Graph:
    return ks.trace(_ring, ks.hbm((16, 16), "f32"), ks.hbm((3, 16, 16), "f32"), ranks=3)


def data_of(graph: ks.Graph, **changes: Any) -> ReportData:
    ladder = ks.compare(graph, effort="fast")
    made: dict[str, Any] = {
        "title": graph.kernel,
        "graph": graph,
        "machine": ladder.machine.name,
        "policies": tuple(PolicyResult(row.policy, row.schedule) for row in ladder),
        "bounds_ps": ladder.bounds.each if ladder.bounds else {},
        "liveness": ks.liveness(graph),
        "lint": ks.lint(graph),
        "sources": collect_sources(graph),
    }
    return ReportData(**{**made, **changes})


def tables_of(data: ReportData) -> Tables:
    return Tables(report_html(data)[0])


def nonzero(counts: Counter[int], form: Any) -> dict[int, str]:
    return {line: form(count) for line, count in counts.items() if count}


@pytest.mark.parametrize("graph", [of_lines(), of_ring()], ids=["one rank", "three ranks"])
def test_the_gutter_says_what_each_line_costs(graph: ks.Graph) -> None:
    """Beside each line: its share of the critical chain, the time its nodes keep engines busy, the bytes they move,
    the bytes it holds at the peak of the fullest rank, and its nodes; the line itself as it stands in the file."""
    data = data_of(graph)
    best = data.best
    assert best is not None
    rows = [row for row in tables_of(data).rows["source"] if len(row) == 7][1:]
    by_line = {int(row[0]): row for row in rows}
    (text,) = data.sources
    assert [row[0] for row in rows] == [str(text.first + at) for at in range(len(text.lines))]
    assert [row[6] for row in rows] == [line.expandtabs(4) or "\u200b" for line in text.lines]

    nodes, busy, moved, chain, held = Counter[int](), Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    for node in graph:
        if node.op in ("scope_enter", "scope_exit"):
            continue
        assert node.location is not None
        nodes[node.location.line] += 1
        busy[node.location.line] += int(best.end_ps[node.id] - best.start_ps[node.id])
        if node.op in ("load", "store"):
            moved[node.location.line] += 16 * 16 * 4 if graph.ranks > 1 else 32 * 32 * 4
        if node.op == "send":
            moved[node.location.line] += 16 * 16 * 4
    for part in best.critical_chain().parts:
        if part.node is not None:
            location = graph[part.node].location
            assert location is not None
            chain[location.line] += part.duration_ps
    for holder in data.liveness.peak_holders():
        assert holder.location is not None
        held[holder.location.line] += holder.held_bytes

    def column(at: int) -> dict[int, str]:
        return {line: row[at] for line, row in by_line.items() if row[at]}

    def percent(ps: int) -> str:
        share = 100 * ps / best.makespan_ps
        return f"{share:.0f} %" if share >= 1 else "<1 %"

    assert column(1) == nonzero(chain, percent)
    assert column(2) == nonzero(busy, format_ps)
    assert column(3) == nonzero(moved, short_size) != {}
    assert column(4) == nonzero(held, short_size) != {}
    assert column(5) == nonzero(nodes, lambda count: f"{count:,}")


def test_the_bars_of_the_gutter_are_shares_of_the_longest() -> None:
    """The line with the most of a column fills its cell, another the share that it has of it."""
    data = data_of(of_lines())
    text = report_html(data)[0]
    for kind in ("g-crit", "g-busy", "g-moved", "g-peak"):
        shares = [
            float(s) for s in re.findall(rf'class="num {kind}"><span class="cost" style="--share:([\d.]+)%', text)
        ]
        assert max(shares) == 100.0
        assert len(shares) == len(set(shares)) or kind == "g-peak"
    loads, store = 3 * 4096, 4096
    moved = re.findall(r'class="num g-moved"><span class="cost" style="--share:([\d.]+)%">([^<]*)', text)
    assert moved == [("100.0", short_size(loads)), ("33.3", short_size(store))]


def test_findings_stand_beside_their_line() -> None:
    """A badge for each finding of a line, on that line and no other."""

    @ks.kernel
    def stale(o: ks.HbmTensor) -> None:
        with tl.scratch_scope():
            a = tl.zeros((8, 8), tl.float32)
        tl.store(o[:, :], a)

    data = data_of(ks.trace(stale, ks.hbm((8, 8), "f32")))
    wanted = {}
    for finding in data.lint:
        assert finding.location is not None
        wanted.setdefault(finding.location.line, []).append(finding.code)
    assert wanted
    rows = [row for row in tables_of(data).rows["source"] if len(row) == 7][1:]
    (text,) = data.sources
    for row, line in zip(rows, text.lines, strict=True):
        assert row[6] == (line or "\u200b") + "".join(wanted.get(int(row[0]), []))


def test_the_ladder_table_is_the_ladder() -> None:
    """Makespan, ratio to the bound and gain over the slowest of every policy; every cause with its time and share of
    each policy's chain, the largest first; every bound, the best first."""
    data = data_of(of_ring())
    rows = tables_of(data).rows["ladder"]
    schedules = [row.schedule for row in data.policies if row.schedule is not None]
    slowest = max(schedule.makespan_ps for schedule in schedules)
    wanted = [
        [
            made.policy,
            "",
            format_ps(made.makespan_ps),
            f"{made.ratio:.3f} x",
            f"{slowest / made.makespan_ps:.2f} x",
        ]
        for made in schedules
    ]
    assert rows[1 : 1 + len(wanted)] == wanted
    causes = [made.critical_chain().by_cause() for made in schedules]
    at = 1 + len(wanted)
    assert rows[at] == ["cause", *(made.policy for made in schedules)]
    names = {name for by_cause in causes for name in by_cause}
    found = rows[at + 1 : at + 1 + len(names)]
    assert {row[0] for row in found} == names
    totals = [sum(by_cause.get(row[0], 0) for by_cause in causes) for row in found]
    assert totals == sorted(totals, reverse=True) and len(totals) > 2
    for row in found:
        for cell, by_cause in zip(row[1:], causes, strict=True):
            ps = by_cause.get(row[0], 0)
            share = 100 * ps / sum(by_cause.values())
            assert cell == (f"{format_ps(ps)} ({share:.1f} %)" if ps else "")
    bounds = rows[at + 1 + len(names) :]
    assert bounds[0] == ["lower bound", "time", "of the best"]
    assert bounds[1][1:] == [format_ps(data.bound_ps), "100.0 %"]
    assert {row[1] for row in bounds[1:]} == {format_ps(ps) for ps in data.bounds_ps.values()}


def test_the_largest_holders_are_named_and_the_rest_summed_up() -> None:
    """Of ten allocations at the peak eight have a row, and one row sums up the two smallest."""

    @ks.kernel
    def many(o: ks.HbmTensor) -> None:
        tiles = [tl.zeros((8 * (i + 1), 8), tl.float32) for i in range(10)]
        for tile in tiles:
            tl.store(o[0 : tile.shape[0], :], tile)

    data = data_of(ks.trace(many, ks.hbm((80, 8), "f32")))
    live = data.liveness
    rows = [row for row in tables_of(data).rows["scratch"] if len(row) == 4]
    assert rows[0] == ["at the peak", "made at", "bytes", "share"]
    sizes = [256 * (i + 1) for i in reversed(range(10))]
    whole = sum(sizes)
    assert [row[2] for row in rows[1:9]] == [f"{size:,}" for size in sizes[:8]]
    assert [row[3] for row in rows[1:9]] == [f"{100 * size / whole:.1f} %" for size in sizes[:8]]
    assert rows[9:] == [["2 smaller ones", "", "768", f"{100 * 768 / whole:.1f} %"]]
    assert live.peak_bytes == whole


def test_each_rank_has_its_peak() -> None:
    """Of several ranks each one's peak is said, once where it is the same; of one rank nothing."""

    @ks.kernel
    def uneven(o: ks.HbmTensor) -> None:
        rank = tl.program_id(0)
        tile = tl.zeros((8 * (rank + 1), 8), tl.float32)
        tl.store(o[rank, 0 : tile.shape[0], :], tile)

    said = "All 3 ranks have this peak.", "rank 0: 256 B; rank 1: 512 B"
    graphs = {
        "": of_lines(),
        said[0]: of_ring(),
        said[1]: ks.trace(uneven, ks.hbm((2, 16, 8), "f32"), ranks=2),
    }
    for sentence, graph in graphs.items():
        text = re.sub(r"\s+", " ", tables_of(data_of(graph)).texts["scratch"])
        assert [one for one in (*said, "ranks have") if one in text] == [
            one for one in (*said, "ranks have") if one in sentence
        ]
        assert (" of rank " in text) == (graph.ranks > 1)


def test_operations_have_their_counts_and_engines() -> None:
    """Every operation of the graph once, with its engine and the number of its nodes."""
    data = data_of(of_ring())
    rows = tables_of(data).rows["operations"]
    assert rows[0] == ["operation", "engine", "", "nodes"]
    assert {row[0]: row[3] for row in rows[1:]} == {name: str(n) for name, n in data.graph.summary().items()}
    engines = {row[0]: row[1] for row in rows[1:]}
    assert engines["recv"] == "no engine" and engines["add"] == "math"


def test_numbers_have_a_row_a_tensor() -> None:
    """Verdict, the errors, the one that is judged among them, and the tolerance, to three digits; what was never stored
    is said."""
    rows = (
        NumbersRow("near", 0.12345, 0.5, 0.00012345, 1e-3, True),
        NumbersRow("far", 2.0, 0.25, 0.125, 1e-3, False),
        NumbersRow("half", 0.0, 0.0, 0.0, 1e-3, False, unstored="o[4:8, :]"),
    )
    assert tables_of(data_of(pk.sweep(1), numbers=rows)).rows["numbers"][1:] == [
        ["near", "within", "0.123", "0.5", "0.000123", "0.001"],
        ["far", "outside", "2", "0.25", "0.125", "0.001"],
        ["half", "no: o[4:8, :]", "0", "0", "0", "0.001"],
    ]


@pytest.mark.parametrize(
    ("nbytes", "short", "exact"),
    [
        (0, "0 B", "0 B"),
        (1023, "1023 B", "1,023 B"),
        (1024, "1 KiB", "1,024 B (1 KiB)"),
        (1536, "1.5 KiB", "1,536 B (1.5 KiB)"),
        ((1 << 20) - 1, "1024 KiB", "1,048,575 B (1024 KiB)"),
        (1 << 20, "1 MiB", "1,048,576 B (1 MiB)"),
        (3 << 30, "3 GiB", "3,221,225,472 B (3 GiB)"),
    ],
)
def test_sizes_are_said_in_the_unit_that_fits(nbytes: int, short: str, exact: str) -> None:
    """The largest unit that the number reaches."""
    assert (short_size(nbytes), size_text(nbytes)) == (short, exact)


def steps_of(path: str) -> list[tuple[float, float, float]]:
    """The steps of an area: from, to, height from the top."""
    return [(float(a), float(c), float(b)) for a, b, c in re.findall(r"L([\d.]+) ([\d.]+)H([\d.]+)", path)]


@pytest.mark.parametrize("budget", [10_000, 1 << 20], ids=["budget shown", "budget far above"])
def test_the_chart_draws_held_and_live_bytes(budget: int) -> None:
    """A step a node from edge to edge, at the height of its bytes on the scale of the ticks; the peak's line at the
    highest step; the budget's line at its place, or said to lie above."""
    live = ks.liveness(of_lines())
    svg = scratch_chart(live, budget)
    ticks = [
        (float(y) - 4, text)
        for y, text in re.findall(r'<text x="76" y="([\d.]+)" text-anchor="end">([^<]*)</text>', svg)
    ]
    assert ticks[0] == (pytest.approx(216.0), "0 B") and 3 <= len(ticks) <= 7
    sizes = [float(text.split()[0]) * {"B": 1, "KiB": 1024}[text.split()[1]] for _, text in ticks]
    per_byte = (ticks[0][0] - ticks[-1][0]) / sizes[-1]
    for name, values in (("held", live.cursor), ("live", live.live_bytes)):
        (path,) = re.findall(rf'<path class="{name}" d="([^"]*)"', svg)
        steps = steps_of(path)
        assert len(steps) == len(live.graph)
        assert (steps[0][0], steps[-1][1]) == (84.0, 1168.0)
        assert all(before[1] == after[0] for before, after in itertools.pairwise(steps))
        heights = np.array([(216.0 - y) / per_byte for _, _, y in steps])
        np.testing.assert_allclose(heights, values, atol=0.12 / per_byte)
    assert f"peak {live.peak_bytes:,} B" in svg
    (peak,) = re.findall(r'class="peak" x1="84" x2="1168" y1="([\d.]+)"', svg)
    assert (216.0 - float(peak)) / per_byte == pytest.approx(live.peak_bytes, abs=0.12 / per_byte)
    lines = re.findall(r'class="budget" x1="84" x2="1168" y1="([\d.]+)"', svg)
    if budget == 10_000:
        assert (216.0 - float(lines[0])) / per_byte == pytest.approx(budget, abs=0.12 / per_byte)
        assert f"budget {budget:,} B</text>" in svg
        assert float(lines[0]) > 18
    else:
        assert not lines and f"the budget, {budget:,} B, lies above this chart" in svg
    assert f">node {0:,}<" in svg and f">node {len(live.graph) - 1:,}<" in svg


def test_a_budget_far_above_the_peak_is_only_named() -> None:
    """Of four times the peak it is drawn, of one byte more not; the chart then reaches a quarter above the peak."""
    live = ks.liveness(of_lines())
    for budget, drawn in ((4 * live.peak_bytes, True), (4 * live.peak_bytes + 1, False)):
        svg = scratch_chart(live, budget)
        assert ('class="budget"' in svg) is drawn and ("lies above this chart" in svg) is not drawn
        (peak,) = re.findall(r'class="peak" x1="84" x2="1168" y1="([\d.]+)"', svg)
        top = 1.06 * budget if drawn else 1.25 * live.peak_bytes
        assert float(peak) == pytest.approx(216 - live.peak_bytes * 198 / top, abs=0.1)


def test_a_chart_of_many_nodes_has_a_column_for_some() -> None:
    """Each column shows the most of its nodes, so that the peak is never lost."""
    graph = pk.sweep(300)
    live = ks.liveness(graph)
    (path,) = re.findall(r'<path class="held" d="([^"]*)"', scratch_chart(live, live.budget_bytes))
    steps = steps_of(path)
    assert len(graph) > 1800 and len(steps) == 900
    assert (steps[0][0], steps[-1][1]) == (84.0, 1168.0)
