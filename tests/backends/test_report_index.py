"""The index of many reports: each cell says what the row's numbers are, and what is wrong comes first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import picturekernels as pk
import pytest

from kernscope.backends.report.data import NumbersRow, ReportData
from kernscope.backends.report.index import IndexRow, by_urgency, summary, write_index
from kernscope.face import presentation
from kernscope.ir.errors import ShapeError
from kernscope.ir.source.location import Location
from kernscope.linter.findings import Failure
from kernscope.scheduler.result.schedule import machine_of

ROW = IndexRow(
    title="mine",
    source="a.py",
    page="reports/mine & co.html",
    machine="ahbm-pe",
    nodes=12,
    ranks=1,
    makespan_ps=3_000,
    bound_ps=2_000,
    policy="list",
    verdict="",
    peak_bytes=1_024,
    budget_bytes=4_096,
    numbers="",
    errors=0,
    warnings=0,
    infos=0,
    said="",
)


def row(**changes: Any) -> IndexRow:
    return attrs.evolve(ROW, **changes)


def page_of(folder: Path, *rows: IndexRow, failures: tuple[Failure, ...] = ()) -> str:
    write_index(folder / "index.html", "all of them", rows, failures, "1.2.3")
    return (folder / "index.html").read_text("utf-8")


#: What is changed of a row, and what its line of the table holds then, and does not.
CELLS: list[tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = [
    (
        {},
        ("3 ns<small>list</small>", "1 ns<small>1.500 x</small>", "12 nodes</small>"),
        ("optimal", "rank", "no bound"),
    ),
    ({}, ('href="reports/mine%20%26%20co.html"', 'class="mute">not compared', "no findings"), ("<a class",)),
    ({"ranks": 2, "nodes": 1}, ("ahbm-pe, 2 ranks, 1 node</small>",), ()),
    ({"bound_ps": 3_000}, ('<small class="good">optimal</small>',), ("1.000 x",)),
    ({"bound_ps": 2_999}, ("<small>1.000 x</small>",), ("optimal",)),
    ({"bound_ps": 0}, ("<small>no bound</small>",), ("optimal",)),
    ({"bound_ps": 1}, ("<small>3000.000 x</small>",), ("no bound",)),
    ({"makespan_ps": None, "verdict": "deadlock"}, ('class="bad">deadlock</td><td class="none"></td>',), ("list",)),
    ({"peak_bytes": 4_096}, ('meter"><i style="width:100.00%"',), ("class=bad", "meter over")),
    ({"peak_bytes": 4_097}, ('<span class=bad>100.0 %</span><span class="meter over"><i style="width:100.00%"',), ()),
    ({"peak_bytes": 8_192}, ('<span class=bad>200.0 %</span><span class="meter over"><i style="width:100.00%"',), ()),
    ({"peak_bytes": 0}, ('meter"><i style="width:0.00%"',), ()),
    ({"peak_bytes": 0, "budget_bytes": 0}, ('meter"><i style="width:0.00%"',), ()),
    ({"numbers": "agree"}, ('<span class="good">agree</span>',), ()),
    ({"numbers": "differ"}, ('<span class="bad">DIFFER</span>', 'class="trouble"'), ()),
    ({"numbers": "failed"}, ('<span class="bad">reference failed</span>', 'class="trouble"'), ()),
    (
        {"errors": 1, "warnings": 2, "said": "KS201 <late>"},
        ('<a class="bad" href="reports/mine%20%26%20co.html#findings">1 error, 2 warnings</a>', "KS201 &lt;late&gt;"),
        ("info",),
    ),
    ({"warnings": 1, "infos": 3}, ('<span class="warn">1 warning, 3 infos</span>', 'class="warned"'), ("trouble",)),
    ({"infos": 1}, ('<span class="mute">1 info</span>', '<tr class="">'), ("warn", "trouble")),
]


@pytest.mark.parametrize(("changes", "there", "absent"), CELLS, ids=[str(i) for i in range(len(CELLS))])
def test_a_line_says_what_its_row_is(
    tmp_path: Path, changes: dict[str, Any], there: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    """Cell by cell."""
    (line,) = re.findall(r"<tr class=.*?</tr>", page_of(tmp_path, row(**changes)), re.DOTALL)
    assert [text for text in there if text not in line] == []
    assert [text for text in absent if text in line] == []


def test_what_is_wrong_comes_first_then_what_is_furthest_above_its_bound() -> None:
    """Then the longest, then by name and file."""
    rows = [
        row(title="no schedule", makespan_ps=None),
        row(title="differs", numbers="differ", makespan_ps=2_001),
        row(title="failed", numbers="failed", makespan_ps=2_000),
        row(title="error", errors=1, makespan_ps=1_999, bound_ps=1_999),
        row(title="far", makespan_ps=9_000, bound_ps=1_000, warnings=9),
        row(title="near", makespan_ps=9_000, bound_ps=8_000, numbers="agree"),
        row(title="short", makespan_ps=2_000, bound_ps=1_000),
        row(title="short", makespan_ps=2_000, bound_ps=1_000, source="b.py"),
        row(title="shot", makespan_ps=2_000, bound_ps=1_000, source="a.py"),
    ]
    wanted = ["differs", "failed", "error", "no schedule", "far", "near", "short", "short", "shot"]
    for given in (rows, rows[::-1]):
        found = by_urgency(given)
        assert [one.title for one in found] == wanted
        assert [one.source for one in found[-3:]] == ["a.py", "b.py", "a.py"]
    assert [one.is_wrong for one in by_urgency(rows)] == [True] * 4 + [False] * 5
    assert rows[0].above_ps == 0 and rows[4].above_ps == 8_000


def test_the_summary_counts_rows_failures_and_warnings(tmp_path: Path) -> None:
    """Each only where there is one; a failure stands in the table with the first line of what it says."""
    place = Location(str(tmp_path / "kernel.py"), 3)
    bad = Failure.of("<broken>", ShapeError(f"no such thing at {place.file}:3\nand more").at(place))
    for rows, failures, said in (
        ([row()], (), "1 launch, nothing wrong"),
        (
            [row(), row(errors=1), row(numbers="differ", warnings=2)],
            (),
            "3 launches, 2 with something wrong, 2 warnings",
        ),
        ([row(warnings=1)], (bad,), "1 launch, 1 failure to report, 1 warning"),
        ([], (bad, bad), "0 launches, 2 failures to report"),
        ([], (), "0 launches"),
    ):
        assert summary(rows, failures) == said
        text = page_of(tmp_path, *rows, failures=failures)
        assert said in text and "kernscope 1.2.3" in text and "all of them" in text
        assert text.count('<span class="bad">no report</span>') == len(failures)
        assert ("&lt;broken&gt;" in text) is bool(failures) and "and more" not in text
        assert str(tmp_path) not in text


def test_a_row_is_the_report_s_data() -> None:
    """Numbers, makespan, bound, peak and the gravest finding."""
    graph = pk.messages()
    data: ReportData = presentation.gather(graph, machine_of(graph, None), effort="fast", numbers=False)
    good, bad = (NumbersRow("o", 0.0, 0.0, 0.0, 1e-3, ok) for ok in (True, False))
    for numbers, failed, said in (
        ((), False, ""),
        ((good,), False, "agree"),
        ((good, bad), False, "differ"),
        ((), True, "failed"),
    ):
        made = IndexRow.of(attrs.evolve(data, numbers=numbers, numbers_failed=failed), source="s.py", page="p.html")
        assert made.numbers == said
    best = data.best
    assert best is not None
    assert (made.title, made.source, made.page, made.machine) == (data.title, "s.py", "p.html", data.machine)
    assert (made.nodes, made.ranks, made.policy) == (len(graph), 3, best.policy)
    assert (made.makespan_ps, made.bound_ps) == (best.makespan_ps, data.bound_ps)
    assert (made.peak_bytes, made.budget_bytes) == (data.liveness.peak_bytes, data.liveness.budget_bytes)
    first = next(iter(data.lint), None)
    assert made.said == ("" if first is None else f"{first.code} {first.message}".splitlines()[0])
    assert (made.errors, made.warnings, made.infos) == tuple(data.lint.counts[s] for s in ("error", "warning", "info"))
    stuck = attrs.evolve(data, policies=tuple(attrs.evolve(p, schedule=None) for p in data.policies))
    none = IndexRow.of(stuck, source="s.py", page="p.html")
    assert (none.makespan_ps, none.policy, none.verdict, none.is_wrong) == (None, "", "deadlock", True)
