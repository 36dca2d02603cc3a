"""Each command does its job on a kernel file, a module and a saved graph."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import kernscope as ks
from kernscope.cli.app import app


def test_trace_prints_the_text_form(kernscope, good):
    """``trace`` prints exactly ``str(graph)``, and nothing to stderr."""
    done = kernscope("trace", good)
    assert done.status == 0 and done.err == ""
    assert done.out.startswith("kernel plus_one ranks=1\n")
    assert [line.split(" = ")[1].split()[0] for line in done.out.splitlines() if " = " in line] == [
        "load",
        "add",
        "store",
    ]


def test_a_saved_graph_is_a_target_of_every_command(kernscope, good, tmp_path):
    """What ``trace -o`` saves gives the same text, ladder and findings as the file itself."""
    assert kernscope("trace", good, "-o", "graph.ksg").status == 0
    assert kernscope("trace", "graph.ksg").out == kernscope("trace", good).out
    assert kernscope("schedule", "graph.ksg").out == kernscope("schedule", good).out
    assert "no findings" in kernscope("lint", "graph.ksg").out
    assert kernscope("run", "graph.ksg").status == 0
    assert kernscope("draw", "graph.ksg", "-o", "graph.dot").status == 0
    assert kernscope("report", "graph.ksg").status == 0
    assert (tmp_path / "plus_one.html").exists()


def test_schedule_prints_the_ladder_in_order(kernscope, good):
    """The ladder never rises from blocking to list, and no makespan is below the bound."""
    done = kernscope("schedule", good)
    rows = [line.split() for line in done.out.splitlines()]
    policies = [row[0] for row in rows if row and row[0] in ("blocking", "lazy", "queued", "list", "bound")]
    assert policies == ["blocking", "lazy", "queued", "list", "bound"]
    ratios = [float(row[4]) for row in rows if len(row) == 5 and row[3] == "x"]
    assert ratios == sorted(ratios, reverse=True) and ratios[-1] >= 1


def test_schedule_json_is_the_schedule(kernscope, good):
    """``--json`` prints one document whose times are those of the Python interface."""
    document = json.loads(kernscope("schedule", good, "--json", "--policy", "lazy").out)
    assert document["policy"] == "lazy"
    assert [node["op"] for node in document["nodes"]] == ["load", "add", "store"]
    assert max(node["end_ps"] for node in document["nodes"]) == document["makespan_ps"]


def test_set_overrides_the_machine(kernscope, good):
    """Halving the read bandwidth lengthens the schedule by exactly the load's extra time."""
    before = json.loads(kernscope("schedule", good, "--json").out)["makespan_ps"]
    after = json.loads(kernscope("schedule", good, "--json", "--set", "dma_read.bytes_per_ns=64").out)["makespan_ps"]
    assert after - before == 16 * 16 * 4 * 1000 // 128


def test_launch_and_arguments(kernscope, good):
    """``--launch`` chooses a launch, ``--arg`` overrides its arguments."""
    assert "f32[16,64]" in kernscope("trace", good, "--launch", "wide").out
    assert "f32[8,8]" in kernscope("trace", good, "--arg", "x=f32[8,8]", "--arg", "o=f32[8,8]").out
    assert "scalars=((1,2.5))" in kernscope("trace", good, "--arg", "amount=2.5").out


def test_run_agrees_with_the_reference(kernscope, good):
    """``run`` compares with the launch's reference; a mismatch is exit status 1 and names the tensor."""
    fine = kernscope("run", good, "--poison", "--order", "list")
    assert fine.status == 0 and "o  agrees" in fine.out
    wrong = kernscope("run", good, "--arg", "amount=2.0")
    assert wrong.status == 1 and "o  DIFFERS" in wrong.out


def test_a_reference_may_return_its_one_array(kernscope, write):
    """Of a kernel that stores one tensor no name is needed; of one that stores two the help gives both names."""
    kernel = """
        tile = ks.hbm((4, 4), "f32")
        @ks.launch("small", x=tile, o=tile, p=tile, reference=lambda x: x + 1)
        @ks.kernel
        def plus_one(x, o, p):
            one = tl.load(x[:, :]) + 1
            tl.store(o[:, :], one)
    """
    done = kernscope("run", write(kernel))
    assert done.status == 0 and "agrees" in done.out
    done = kernscope("run", write(kernel + "        tl.store(p[:, :], one)\n", "two.py"))
    assert done.status == 2 and 'by name: {"o": array, "p": array}' in done.err


def test_run_reads_and_writes_arrays(kernscope, good, tmp_path):
    """Inputs come from an .npz file, outputs go to one."""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.savez(tmp_path / "in.npz", x=x)
    assert kernscope("run", good, "--inputs", "in.npz", "-o", "out.npz").status == 0
    with np.load(tmp_path / "out.npz") as outputs:
        assert np.array_equal(outputs["o"], x + 1)


def test_run_reports_stale_accesses(kernscope, stale):
    """A poisoned run of a kernel that reads after a scope says so and exits 1."""
    done = kernscope("run", stale, "--poison")
    assert done.status == 1 and "1 stale read" in done.out and "stale.py:10" in done.out


def test_lint_statuses(kernscope, good, stale, tmp_path):
    """0 clean, 1 with errors, 0 again with --exit-zero or when the rule is ignored; folders are walked."""
    assert kernscope("lint", good).status == 0
    found = kernscope("lint", stale)
    assert found.status == 1 and "KS201" in found.out
    assert kernscope("lint", stale, "--exit-zero").status == 0
    assert kernscope("lint", stale, "--ignore", "KS201").status == 0
    both = kernscope("lint", tmp_path, "--output-format", "concise")
    assert both.status == 1 and both.out.count("KS201") == 1


def test_lint_says_what_it_did_not_lint(kernscope, write):
    """A kernel without a launch is named on stderr, not skipped in silence."""
    path = write("@ks.kernel\ndef bare(x):\n    pass\n")
    done = kernscope("lint", path)
    assert done.status == 0 and "bare is not linted: it has no launch" in done.err


def test_lint_json_parses(kernscope, stale):
    """The JSON format is one document with the finding's code and nodes."""
    document = json.loads(kernscope("lint", stale, "--output-format", "json").out)
    assert [f["code"] for r in document["reports"] for f in r["findings"]] == ["KS201"]


def test_report_is_the_main_job(kernscope, tmp_path):
    """``report`` on flash attention prints size, peak, findings, ladder and agreement, and writes one HTML page."""
    done = kernscope("report", "kernscope.kernels.flash_attention:flash_attention")
    assert done.status == 0
    for word in ("360 nodes", "peak 659,968 B", "no findings", "agrees with the reference", "list", "bound"):
        assert word in done.out
    page = (tmp_path / "flash_attention.html").read_text(encoding="utf-8")
    HTMLParser().feed(page)
    assert page.rstrip().endswith("</html>") and 'src="http' not in page and 'href="http' not in page


def test_report_without_a_renderer_finishes_and_says_what_is_missing(kernscope, good, monkeypatch, tmp_path):
    """With no Graphviz to be found the rest of the page stands, and the message names both remedies."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kernscope.backends.graph_picture.drawing.find_renderers", lambda: ())
    done = kernscope("report", good)
    assert done.status == 0 and (tmp_path / "plus_one.html").exists()
    assert "kernscope[draw]" in done.out and "dot" in done.out


def test_draw_without_a_renderer_has_failed(kernscope, good, monkeypatch, tmp_path):
    """No picture is exit status 2; the DOT text, which takes no renderer, is a picture asked for."""
    monkeypatch.setattr("kernscope.backends.graph_picture.drawing.find_renderers", lambda: ())
    done = kernscope("draw", good)
    assert done.status == 2 and done.out == "" and "kernscope[draw]" in done.err
    assert (tmp_path / "plus_one.svg.dot").exists() and not (tmp_path / "plus_one.svg").exists()
    assert kernscope("draw", good, "-o", "a.dot").status == 0


def test_explain_and_machine(kernscope):
    """Every rule and error has a page, every machine a description that reads back as itself."""
    codes = [line.split()[0] for line in kernscope("explain").out.splitlines()]
    assert "KS201" in codes and "KE101" in codes
    for code in codes:
        page = kernscope("explain", code)
        heads = (
            ("What it does", "Why it is bad", "Example") if code.startswith("KS") else ("What it means", "What to do")
        )
        assert page.status == 0 and all(f"## {head}" in page.out for head in heads)
    for name in kernscope("machine").out.split():
        described = kernscope("machine", name)
        Path("copy.toml").write_text(described.out, encoding="utf-8")
        assert kernscope("machine", "copy.toml").out == described.out


def test_version_and_help(kernscope):
    """``--version`` is the package's; every command has help."""
    assert ks.__version__ in kernscope("--version").out
    listed = kernscope("--help").out
    for command in ("trace", "lint", "schedule", "run", "draw", "report", "solve", "explain", "machine"):
        assert command in listed
        assert "Usage: kernscope" in kernscope(command, "--help").out


@pytest.mark.parametrize("target", ["mine.py", "mine.py::plus_one", "mine:plus_one", "mine"])
def test_targets(kernscope, good, target):
    """A file, a file's kernel, a module's kernel, a module of the current folder."""
    assert kernscope("trace", target).out.startswith("kernel plus_one")


def test_an_output_that_is_stored_in_part(kernscope, write):
    """``run`` and ``report`` name what is missing and exit 1 where a reference promises it; without one ``run`` names
    it, too."""
    text = """
        def reference(x):
            return {"o": x * 0}


        @ks.launch("s", x=ks.hbm((8,), "i32"), o=ks.hbm((8,), "i32")%s)
        @ks.kernel
        def half(x, o):
            tl.store(o[0:4], tl.load(x[0:4]) * 0)
        """
    named = "4 of the 8 elements of `o` are never stored: `o[4:8]` (the rest: mine.py:"
    for more, status in (("", 0), (", reference=reference", 1)):
        path = write(text % more)
        for options in ((), ("--poison",), ("--order", "lazy")):
            done = kernscope("run", path, *options)
            assert done.status == status and named in done.out, done
            assert ("DIFFERS  a part is never stored" in done.out) == bool(status)
    done = kernscope("report", path)
    assert done.status == 1 and "o DIFFERS from the reference: " + named in done.out
    done = kernscope("lint", path)
    assert done.status == 0 and "warning[KS504]: 4 of the 8 elements of `o` are never stored: `o[4:8]`" in done.out


def test_a_wrong_slot_is_told_where_the_numbers_differ(kernscope, write):
    """``run`` names the store of the first wrong element and, walking back, the read that met another tile."""
    text = """
        def reference(x):
            return {"o": x * 2}


        @ks.launch("s", x=ks.hbm((16, 8), "f32"), o=ks.hbm((16, 8), "f32"), reference=reference)
        @ks.kernel
        def doubled(x, o):
            slots = [tl.empty((4, 8), tl.float32), tl.empty((4, 8), tl.float32)]
            tl.load(x[0:4, :], out=slots[0])
            for i in range(4):
                if i < 3:
                    tl.load(x[4 * i + 4 : 4 * i + 8, :], out=slots[(i + 1) % 2])
                tl.store(o[4 * i : 4 * i + 4, :], slots[READ] * 2.0)
        """
    done = kernscope("run", write(text.replace("READ", "0")))
    lines = [line.strip() for line in done.out.splitlines()]
    at = next(i for i, line in enumerate(lines) if "DIFFERS" in line)
    assert done.status == 1
    assert lines[at + 1] == "first wrong at `o[4, 0]`, stored as `o[4:8, 0:8]` at mine.py:17"
    assert lines[at + 2] == (
        "mul at mine.py:17 read `x[8:12, 0:8]` (loaded at mine.py:16); `x[4:8, 0:8]` (loaded at mine.py:16) was "
        "written over before anything read it"
    )
    right = kernscope("run", write(text.replace("READ", "i % 2")))
    assert right.status == 0 and "first wrong" not in right.out
    other = kernscope("run", write(text.replace("READ", "i % 2").replace("* 2.0)", "* 3.0)")))
    assert other.status == 1 and "first wrong at `o[0, 0]`, stored as `o[0:4, 0:8]`" in other.out
    assert "written over" not in other.out


def test_the_list_of_commands_says_all_of_each(kernscope):
    """No summary is cut off."""
    listed = kernscope("--help").out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == sorted(app.commands)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed), listed


def test_a_timeline_without_a_path_has_one_of_its_own(kernscope, good, tmp_path):
    """Named for the kernel, for ui.perfetto.dev: as `report` and `draw` have theirs."""
    done = kernscope("timeline", good)
    assert done.status == 0 and "plus_one.perfetto-trace" in done.out
    assert (tmp_path / "plus_one.perfetto-trace").stat().st_size > 0


@pytest.mark.parametrize("name", ["page.txt", "page.svg", "page.json"])
def test_a_report_is_a_page(kernscope, good, tmp_path, name):
    """A name that no browser takes for one is refused before anything is done, with a better one; a name without an
    extension is the user's choice."""
    done = kernscope("report", good, "-o", name)
    assert done.status == 2 and done.out == "" and not (tmp_path / name).exists()
    assert (
        f"a report is an HTML page, not .{name.partition('.')[2]}" in done.err and "help: name it page.html" in done.err
    )
    assert kernscope("report", good, "--no-run", "-o", "page.html").status == 0
    assert kernscope("report", good, "--no-run", "-o", "page").status == 0


def test_what_a_saved_graph_has_lost_is_said(kernscope, good, write, tmp_path):
    """Its launch's reference, and the arrays that it was traced with; what is given is not lost."""
    assert kernscope("trace", good, "-o", "plain.ksg").status == 0
    done = kernscope("run", "plain.ksg")
    assert done.status == 0 and "no reference to compare with: a saved graph has none" in done.out and done.err == ""
    assert "whatever its launch had" in kernscope("report", "plain.ksg").out
    path = write(
        """
        import numpy as np

        @ks.launch("small", x=np.ones((4, 4), np.float32), o=ks.hbm((4, 4), "f32"))
        @ks.kernel
        def twice(x, o):
            tl.store(o[:, :], tl.load(x[:, :]) * 2.0)
        """
    )
    assert kernscope("trace", path, "-o", "twice.ksg").status == 0
    lost = "note: x: traced with arrays, which a saved graph does not hold: --inputs FILE\n"
    assert kernscope("run", "twice.ksg").err == lost and kernscope("run", path).err == ""
    np.savez(tmp_path / "in.npz", x=np.ones((4, 4), np.float32))
    assert kernscope("run", "twice.ksg", "--inputs", "in.npz").err == ""
