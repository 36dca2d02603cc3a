"""Branches on a report page: marks at their lines, a table, and what other launches did there."""

from pathlib import Path
from typing import Any

import attrs
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.report.branches import branches_section, marks
from kernscope.backends.report.paths import PagePaths
from kernscope.face.presentation import gather

X = ks.hbm((8, 64), "f32")


@ks.launch("plain", x=X, o=X)
@ks.launch("scaled", x=X, o=X, scale=2.0)
@ks.launch("same", x=X, o=X, scale=None)
@ks.launch("huge", x=ks.hbm((30_000, 64), "f32"), o=ks.hbm((30_000, 64), "f32"))
@ks.launch("wrong", x=X, o=ks.hbm((8, 32), "f32"))
@ks.kernel
def scaled(x: Any, o: Any, *, scale: float | None = None) -> None:
    """Branches of several kinds."""
    if x.shape != o.shape:
        raise ks.ShapeError("x and o differ", help="give both one shape")
    for row in range(x.shape[0]):
        with tl.scratch_scope():
            tile = tl.load(x[row, :])
            if scale is not None:
                tile = tile * scale
            tl.store(o[row, :], tile)


def gathered(name: str, **options: Any) -> Any:
    launch = scaled.launch(name)
    return gather(ks.trace(launch), ks.load_machine("ahbm-pe"), launch=launch, numbers=False, **options)


def test_a_line_has_the_way_of_its_branches_and_where_another_launch_differs() -> None:
    """A check that only raises has no mark; where another launch went another way the mark is stronger, and says so."""
    found = marks(gathered("plain"))
    start = scaled.function.__code__.co_firstlineno
    by_line = {line - start: text for (_, line), text in found.items()}
    (loop, condition) = by_line.values()
    assert "8 times" in loop and "way other" not in loop
    assert 'class="way other"' in condition and ">false<" in condition
    assert "launch scaled: true, 8 times (scale=2.0)" in condition
    assert "launch same" not in condition


def test_the_table_has_all_branches_and_all_launches() -> None:
    """Which way, what decides, what another launch did; launches that are too large or do not trace are named."""
    data = gathered("plain")
    assert list(data.other_launches) == ["scaled", "same"]
    assert data.not_looked_at == ("huge", "wrong")
    text = branches_section(data, PagePaths.of([]))
    assert "<code>scale is not None</code>" in text
    assert "false, 8 times (scale=None)" in text
    assert "<b>scaled</b>: true, 8 times (scale=2.0)" in text
    assert "1 check that only raise" in text
    assert "Compared with 2 other launches. Too large, or refused, to be compared: huge, wrong." in text


def test_a_graph_alone_does_not_know_them() -> None:
    """Nor does one that is not its launch's: of other arguments the launch says nothing."""
    alone = gather(ks.trace(scaled.launch("plain")), ks.load_machine("ahbm-pe"), numbers=False)
    other = gather(
        ks.trace(scaled.launch("scaled")), ks.load_machine("ahbm-pe"), launch=scaled.launch("plain"), numbers=False
    )
    for data in (alone, other):
        assert data.branches is None and marks(data) == {}
        assert "Not known" in branches_section(data, PagePaths.of([]))


@pytest.mark.parametrize("hostile", ["<script>", 'x" onmouseover="y', "\x1b[31m\n"])
def test_texts_of_a_saved_graph_are_escaped(tmp_path: Path, hostile: str) -> None:
    """Whatever a file says a branch was."""
    graph = ks.trace(scaled.launch("plain"))
    from_file = [
        attrs.evolve(
            row,
            kind=hostile,
            text=hostile,
            depends=(hostile,),
            ways=tuple(attrs.evolve(way, label=hostile, values=((hostile, hostile),)) for way in row.ways),
        )
        for row in ks.branches(scaled.launch("plain"))
    ]
    made = attrs.evolve(graph, branches=ks.Branches(tuple(from_file), (hostile,)))
    made.save(tmp_path / "graph.ksg")
    report = ks.report(ks.load(tmp_path / "graph.ksg"), tmp_path / "page.html")
    assert report is not None
    page = (tmp_path / "page.html").read_text()
    assert "<script>/" not in page and 'onmouseover="y' not in page and "\x1b" not in page
    assert page.count("<script") == 2
