"""Two reports compared: what changed is what it is, and the lines to blame sum up to it."""

from __future__ import annotations

from pathlib import Path

import kernelgen
import picturekernels as pk
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import pictures
from kernscope.backends.report_compare import (
    blame_makespan,
    blame_peak,
    compared_schedules,
    comparison,
    comparison_lines,
)
from kernscope.backends.report_data import ReportData
from kernscope.backends.report_paths import PagePaths
from kernscope.scheduler.schedule import machine_of

programs = st.one_of(kernelgen.programs(max_size=12), kernelgen.programs(ranks=2, max_size=10))


def data_of(graph: ks.Graph) -> ReportData:
    """What a report shows of a graph."""
    return pictures.gather(graph, machine_of(graph, None), effort="fast", numbers=False)


@given(before=programs, after=programs)
@kernelgen.examples(15)
def test_blamed_lines_sum_to_the_change(before: kernelgen.Program, after: kernelgen.Program) -> None:
    """Of random kernels, however different: both sides of the makespan and of the peak, to the picosecond and byte."""
    old, new = data_of(before.trace()), data_of(after.trace())
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
