"""Two reports compared: what changed is what it is, and the lines to blame sum up to it."""

from __future__ import annotations

from pathlib import Path

import kernelgen
import picturekernels as pk
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.backends.report.comparison import (
    blame_makespan,
    blame_peak,
    compared_schedules,
    comparison,
    comparison_lines,
    edits_text,
)
from kernscope.backends.report.data import ReportData
from kernscope.backends.report.edits import Edit, find_edits, rewritten
from kernscope.backends.report.paths import PagePaths
from kernscope.face import presentation as pictures
from kernscope.machine.units import format_ps
from kernscope.scheduler.result.schedule import machine_of

programs = st.one_of(kernelgen.programs(max_size=12), kernelgen.programs(ranks=2, max_size=10))


def data_of(graph: ks.Graph, machine: ks.Machine | None = None) -> ReportData:
    """What a report shows of a graph."""
    return pictures.gather(graph, machine_of(graph, machine), effort="fast", numbers=False)


@given(before=programs, after=programs)
@kernelgen.examples(15)
def test_blamed_lines_sum_to_the_change(before: kernelgen.Program, after: kernelgen.Program) -> None:
    """Of random kernels, however different: both sides of the makespan and of the peak, to the picosecond and byte."""
    old, new = (data_of(program.trace(), program.machine) for program in (before, after))
    lines = blame_peak(old, new)
    assert sum(one.before for one in lines) == old.liveness.peak_bytes
    assert sum(one.after for one in lines) == new.liveness.peak_bytes
    compared = compared_schedules(new, old)
    if old.best is None or new.best is None:
        assert compared is None
        return
    assert compared is not None
    earlier, later = compared
    assert later is new.best
    assert earlier.graph is old.graph
    lines = blame_makespan(earlier, later)
    assert sum(one.before for one in lines) == earlier.makespan_ps
    assert sum(one.after for one in lines) == later.makespan_ps


def test_a_kernel_against_itself_is_the_same() -> None:
    """No line changed."""
    data = data_of(pk.sweep(3))
    assert data.best is not None
    assert not any(one.change for one in blame_makespan(data.best, data.best))
    assert comparison(data, data, PagePaths.of(())).count("No line changed.") == 2


def test_a_line_is_known_again_where_it_moved(tmp_path: Path) -> None:
    """A comment above moves every line; only the line that is new is blamed for the longer time."""
    head = "from kernscope import tl\n"
    body = "def kernel(x, o):\n    a = tl.load(x[:, :])\n{more}    tl.store(o[:, :], a)\n"
    graphs = []
    for name, text in (
        ("old", head + body.format(more="")),
        ("new", head + "# new\n" + body.format(more="    a = tl.exp(a)\n")),
    ):
        file = tmp_path / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        names: dict[str, object] = {}
        exec(compile(text, str(file), "exec"), names)
        graphs.append(ks.trace(names["kernel"], ks.hbm((64, 64), "f32"), ks.hbm((64, 64), "f32")))
    old, new = map(data_of, graphs)
    compared = compared_schedules(new, old)
    assert compared is not None
    changed = [one for one in blame_makespan(*compared) if one.change]
    assert [one.text for one in changed] == ["a = tl.exp(a)"]
    assert changed[0].before == 0
    text = "\n".join(comparison_lines(new, old))
    assert "a = tl.exp(a)" in text
    assert "new.py:5" in text


def test_a_report_says_what_changed(tmp_path: Path) -> None:
    """Given another graph, or what an earlier report returned; with both totals, and findings that came and went."""
    earlier = ks.report(pk.sweep(4), tmp_path / "a.html")
    for against in (earlier, earlier.graph):
        ks.report(pk.sweep(5), tmp_path / "b.html", against=against)
        text = (tmp_path / "b.html").read_text(encoding="utf-8")
        assert "What changed" in text
        assert "<code>load</code>" in text
    assert "What changed" not in (tmp_path / "a.html").read_text(encoding="utf-8")


HEAD = "from kernscope import tl\n\n\ndef kernel(x, o):\n    for i in range(4):\n        a = tl.load(x[i : i + 1, :])\n"
TAIL = "        tl.store(o[i : i + 1, :], b)\n"


def edited(tmp_path: Path, *bodies: str) -> list[ReportData]:
    """What reports show of one function with different lines in its loop, each in a file of its own."""
    found = []
    for number, body in enumerate(bodies):
        file = tmp_path / f"side{number}.py"
        text = HEAD + "".join(f"        {line}\n" for line in body.splitlines()) + TAIL
        file.write_text(text, encoding="utf-8")
        names: dict[str, object] = {}
        exec(compile(text, str(file), "exec"), names)
        found.append(data_of(ks.trace(names["kernel"], ks.hbm((4, 256), "f32"), ks.hbm((4, 256), "f32"))))
    return found


def test_edited_lines_come_first_and_are_one(tmp_path: Path) -> None:
    """A line edited into another is blamed once, with both texts, before larger changes of lines that stayed."""
    old, new = edited(tmp_path, "b = tl.exp(a)", "b = tl.exp(tl.exp(a)) + 1")
    (edit,) = find_edits(old.sources, new.sources)
    assert (edit.kind, edit.was, edit.now, edit.line) == ("edited", "b = tl.exp(a)", "b = tl.exp(tl.exp(a)) + 1", 7)
    compared = compared_schedules(new, old)
    assert compared is not None
    lines = blame_makespan(*compared, [edit])
    assert (lines[0].was, lines[0].text) == (edit.was, edit.now)
    assert lines[0].before > 0
    assert lines[0].after > lines[0].before
    assert edit.was not in [one.text for one in lines]
    assert sum(one.change for one in lines) == compared[1].makespan_ps - compared[0].makespan_ps
    page = comparison(new, old, PagePaths.of(()))
    assert f"was <code>{edit.was}</code>" in page
    assert page.index("1 edited") < page.index("Makespan by line")


def test_new_and_gone_lines_are_said(tmp_path: Path) -> None:
    """Lines that only one side has; what costs nothing is listed as well; indentation and empty lines do not count."""
    old, new = edited(tmp_path, "b = tl.exp(a)\nc = 3", "\nb = tl.exp(a)\nb = b + 1\nb = b * 2")
    assert [(e.kind, e.was, e.now) for e in find_edits(old.sources, new.sources)] == [
        ("gone", "c = 3", None),
        ("new", None, "b = b + 1"),
        ("new", None, "b = b * 2"),
    ]
    back = [(e.kind, e.was, e.now) for e in find_edits(new.sources, old.sources)]
    assert sorted(back) == [("gone", "b = b * 2", None), ("gone", "b = b + 1", None), ("new", None, "c = 3")]
    assert find_edits(old.sources, old.sources) == []


def test_the_text_adds_up(tmp_path: Path) -> None:
    """Of many changed lines the largest are listed, and the sum of the others with their number."""
    lines = [f"b{n} = tl.exp(a) + {n}" for n in range(8)]
    old, new = edited(tmp_path, "b = tl.exp(a)", "\n".join([*lines, "b = tl.exp(a) + b7"]))
    told = list(comparison_lines(new, old))
    compared = compared_schedules(new, old)
    assert compared is not None
    at = next(i for i, line in enumerate(told) if line.lstrip().startswith("makespan"))
    end = next(i for i, line in enumerate(told) if line.lstrip().startswith("peak"))
    shown = told[at + 1 : end]
    blames = [one for one in blame_makespan(*compared, find_edits(old.sources, new.sources)) if one.change]
    assert len(blames) > 3
    assert shown[-1].endswith(f"+ {len(blames) - 3} more")
    sums = [one.change for one in blames[:3]] + [sum(one.change for one in blames[3:])]
    for line, change in zip(shown, sums, strict=True):
        assert line.strip().startswith(f"{'+' if change > 0 else '-'}{format_ps(abs(change))}: ")
    change = compared[1].makespan_ps - compared[0].makespan_ps
    assert sum(sums) == change
    assert f", +{format_ps(change)} (" in told[at]
    assert any(line.strip().startswith("lines of the source: ") for line in told)


def test_a_line_is_rewritten_into_one_other() -> None:
    """By its earlier text the later one; not where it is new or gone, or where the same text became several."""
    edits = [
        Edit("a.py", 1, "a = 1", "a = 2"),
        Edit("a.py", 2, "b = 1", "b = 2"),
        Edit("a.py", 3, "b = 1", "b = 2"),
        Edit("a.py", 4, "c = 1", "c = 2"),
        Edit("a.py", 5, "c = 1", "c = 3"),
        Edit("a.py", 6, None, "d = 2"),
        Edit("a.py", 7, "e = 1", None),
    ]
    assert rewritten(edits) == {"a = 1": "a = 2", "b = 1": "b = 2"}
    assert [edit.kind for edit in edits[-3:]] == ["edited", "new", "gone"]
    assert edits_text(edits) == "lines of the source: 5 edited, 1 new, 1 gone"
    assert edits_text(edits[-1:]) == "lines of the source: 1 gone"
