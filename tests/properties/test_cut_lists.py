"""Lists that a message, a page or a picture cuts at a limit: at the limit all is shown and nothing said of a rest; of
one more the rest is counted. Each row of the table is one such list."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.execution.comparison import unstored_text
from kernscope.backends.graph_picture.renderer import _last_words
from kernscope.backends.report.comparison import Blame, _blame_table, _blamed, _edit_lines, _edit_table
from kernscope.backends.report.data import ReportData
from kernscope.backends.report.edits import Edit
from kernscope.backends.report.sections import _scratch
from kernscope.backends.report.source import collect_sources
from kernscope.face import presentation
from kernscope.ir.errors import ShapeError, shown
from kernscope.ir.source.location import Location
from kernscope.ir.unstored import Unstored, find_unstored
from kernscope.ir.verifier.verify import verify
from kernscope.scheduler.result.schedule import machine_of

#: Of a list of so many: how many are shown, and the text.
_Cut = Callable[[int], tuple[int, str]]


def _many(*lines: str) -> ks.Graph:
    """A graph of these lines, over an ``x`` and an ``o`` of 200 x 4."""
    source = "def kernel(x, o):\n" + "".join(f"    {line}\n" for line in lines)
    names: dict[str, Any] = {"tl": tl}
    exec(compile(source, "rows.py", "exec"), names)
    return ks.trace(names["kernel"], ks.hbm((200, 4), "f32"), ks.hbm((200, 4), "f32"))


def _every_other_row(count: int) -> Unstored:
    """An output of which so many stretches are not stored; as many lines store the rest."""
    rows = [f"tl.store(o[{2 * n + 1}:{2 * n + 2}, :], tl.load(x[0:1, :]))" for n in range(count - 1)]
    (found,) = find_unstored(_many(*rows, f"tl.store(o[{2 * count - 1} :, :], tl.load(x[{2 * count - 1} :, :]))"))
    return found


def boxes(count: int) -> tuple[int, str]:
    """Stretches of an output that are never stored."""
    text = str(_every_other_row(count))
    return text.count("`o["), text


def storing_lines(count: int) -> tuple[int, str]:
    """The lines that store the rest of an output."""
    text = unstored_text(_every_other_row(count))
    return text.count("rows.py:"), text


def callers(count: int) -> tuple[int, str]:
    """The calls that led to the place of an error."""
    place = Location("a.py", 1).called_from([Location("a.py", 2 + n, "f") for n in range(count)])
    text = str(ShapeError("no").at(place))
    return text.count("called from"), text


def elements(count: int) -> tuple[int, str]:
    """The handles of a list, or of a tuple, in a message."""
    said: list[tuple[str, str]] = []

    def kernel(o: Any) -> None:
        made = [tl.zeros((4,), tl.float32) for _ in range(count)]
        said.append((shown(made), shown(tuple(made))))
        for each in made:
            tl.store(o[:], each)

    ks.trace(kernel, ks.hbm((4,), "f32"))
    ((listed, grouped),) = said
    assert (listed[0], listed[-1], grouped) == ("[", "]", f"({listed[1:-1]})")
    return listed.count("f32"), listed


def violations(count: int) -> tuple[int, str]:
    """What breaks one rule of the verifier."""
    graph = _many("for i in range(40):", "    tl.store(o[i, :], tl.load(x[i, :]))")
    flipped = np.arange(len(graph.accesses)) < count
    kinds = np.where(flipped, 1 - graph.accesses.kind, graph.accesses.kind)
    found = verify(attrs.evolve(graph, accesses=attrs.evolve(graph.accesses, kind=kinds)))
    messages = [one.message for one in found if one.rule == "accesses-inside"]
    return sum(not text.startswith("and ") for text in messages), "\n".join(messages)


def _edits(count: int) -> list[Edit]:
    return [Edit("a.py", n, None, "b = 1") for n in range(count)]


def edits_of_a_page(count: int) -> tuple[int, str]:
    """The edited lines of two kernels, as a table."""
    text = _edit_table(_edits(count))
    return text.count("a.py:"), text


def edits_as_text(count: int) -> tuple[int, str]:
    """The same, in a terminal."""
    text = "\n".join(_edit_lines(_edits(count)))
    return text.count("a.py:"), text


def _blames(count: int) -> list[Blame]:
    """Changed lines, and one that stayed."""
    return [Blame(Location("a.py", n), "b = 1", 2, 5) for n in range(count)] + [Blame(None, "same", 1, 1)]


def blames_of_a_page(count: int) -> tuple[int, str]:
    """The lines to blame for a change, as a table."""
    text = _blame_table(_blames(count), str)
    return text.count("a.py:"), text


def blames_as_text(count: int) -> tuple[int, str]:
    """The same, in a terminal."""
    text = "\n".join(_blamed(_blames(count), str))
    return text.count("a.py:"), text


def _holding(count: int) -> ks.Graph:
    made = [f"t{n} = tl.zeros((4,), tl.float32)" for n in range(count)]
    return _many(*made, *(f"tl.store(o[{n}, :], t{n})" for n in range(count)))


def _data_of(graph: ks.Graph) -> ReportData:
    return presentation.gather(graph, machine_of(graph, None), effort="fast", numbers=False)


def holders_of_a_page(count: int) -> tuple[int, str]:
    """What a report says lies in scratch at the peak."""
    text = _scratch(_data_of(_holding(count)))
    return len(re.findall(r">rows\.py:\d+<", text)), text


def holders_of_a_notebook(count: int) -> tuple[int, str]:
    """What a notebook says of it."""
    text = ks.liveness(_holding(count))._repr_html_()
    return text.count(" at rows.py:"), text


def lines_of_source(count: int, folder: Path) -> int:
    """Of a function of so many lines how many a page has."""
    body = [
        "    a = tl.load(x[0:4, :])\n",
        "    tl.store(o[0:4, :], a)\n",
        *["    # more\n"] * (count - 5),
        "    a = None\n",
    ]
    file = folder / f"long{count}.py"
    file.write_text("".join(["from kernscope import tl\n", "def kernel(x, o):\n", *body, "    b = 1\n"]), "utf-8")
    names: dict[str, Any] = {}
    exec(compile(file.read_text("utf-8"), str(file), "exec"), names)
    found = collect_sources(ks.trace(names["kernel"], ks.hbm((8, 4), "f32"), ks.hbm((8, 4), "f32")))
    return sum(len(text.lines) for text in found)


def named_points(count: int) -> tuple[int, str]:
    """The points of a front, under its picture."""
    drawing, figures = (pytest.importorskip(name) for name in ("kernscope.backends.front_plot", "matplotlib.figure"))
    figure = figures.Figure()
    drawing._name_points(figure, [drawing.FrontPoint(n, n, f"point {n}", True) for n in range(count)])
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    return sum("point" in text for text in told), "\n".join(told)


def missing_characters(count: int) -> tuple[int, str]:
    """Characters that no font has, of a timeline's picture."""
    drawing = pytest.importorskip("kernscope.backends.timelines.gantt_png")
    fonts, figures = (pytest.importorskip(f"matplotlib.{name}") for name in ("font_manager", "figure"))
    with pytest.MonkeyPatch.context() as patch:
        listed = [font for font in fonts.fontManager.ttflist if font.name.startswith("DejaVu Sans")]
        patch.setattr(fonts.fontManager, "ttflist", listed)
        figure = figures.Figure()
        figure.text(0, 0, "".join(chr(0x4E00 + n) for n in range(count)))
        said = drawing._set_fonts(figure)
    return sum(c >= "\u4e00" for c in said), said[-5:] if "..." in said else ""


#: The list, its limit, and what is said of one more (of some nothing).
CUTS: list[tuple[_Cut, int, str]] = [
    (boxes, 3, " and more"),
    (storing_lines, 4, ", ...)"),
    (callers, 4, ""),
    (elements, 4, ", ..."),
    (violations, 20, "and 1 more"),
    (edits_of_a_page, 25, "+ 1 more"),
    (edits_as_text, 3, "+ 1 more"),
    (blames_of_a_page, 25, "+ 1 more"),
    (blames_as_text, 3, "+3: + 1 more"),
    (holders_of_a_page, 8, "1 smaller one"),
    (holders_of_a_notebook, 10, ""),
    (named_points, 24, "and 1 more"),
    (missing_characters, 8, ", ..."),
]


@pytest.mark.parametrize(("cut", "limit", "rest"), [pytest.param(*row, id=row[0].__name__) for row in CUTS])
def test_a_list_is_cut_behind_its_limit(cut: _Cut, limit: int, rest: str) -> None:
    """One less than the limit and as many are all shown; of one more the first are, and that there is another."""
    below, at, above = (cut(limit + more) for more in (-1, 0, 1))
    assert (below[0], at[0], above[0]) == (limit - 1, limit, limit)
    if rest:
        assert [rest in text for _, text in (below, at, above)] == [False, False, True]


def test_a_function_is_shown_whole_or_not_at_all(tmp_path: Path) -> None:
    """Of 3,000 lines it is, of 3,001 not."""
    assert [lines_of_source(count, tmp_path) for count in (2_999, 3_000, 3_001)] == [2_999, 3_000, 0]


def test_a_renderer_s_last_words_are_two_hundred_characters(tmp_path: Path) -> None:
    """Of its last line; without one its exit status is said."""
    log = tmp_path / "log"
    for text, said in (("a\n" + "b" * 200, "b" * 200), ("b" * 201, "b" * 200), ("\n", "exit status 3 and no picture")):
        log.write_text(text, "utf-8")
        assert _last_words(log, 3) == said
