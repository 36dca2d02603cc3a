"""Saved graphs of Triton launches: what the data told goes with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from tritonkernels import launched, tl

import kernscope as ks
from kernscope.cli import main
from kernscope.ir.launch_facts import LaunchFacts

SCRIPT = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def part_of(x_ptr, i, n):
    return tl.load(x_ptr + i, mask=i < n)


@triton.jit
def faulty(x_ptr, o_ptr, total_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * (N - 1) + tl.arange(0, N)
    x = part_of(x_ptr, i, n)
    tl.device_assert(tl.program_id(0) < 2, "too many")
    tl.store(o_ptr + i, x)
    tl.atomic_add(total_ptr, tl.sum(tl.where(i < n, x, 0.0), 0))


faulty[(3,)](np.ones(20, np.float32), np.zeros(20, np.float32), np.zeros(1, np.float32), 18, N=8)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("faulty.py").write_text(SCRIPT)
    return "faulty.py"


def findings(text: str) -> list[str]:
    """The findings that a command printed in the concise form."""
    return sorted(line for line in text.splitlines() if re.search(r"\bKS\d{3}\b", line))


def codes_of(lines: list[str]) -> set[str]:
    """The codes of findings."""
    return {re.search(r"KS\d{3}", line)[0] for line in lines}  # type: ignore[index]


def of_data(lines: list[str]) -> list[str]:
    """Those that the data of a launch told."""
    return [line for line in lines if re.search(r"KS8\d\d|KS501", line)]


def test_a_saved_graph_has_the_findings_of_its_launch(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of those that the data told, in their words, at their lines, with the programs; errors count."""
    assert main(["triton", "--output-format", "concise", "--save", "graphs", script]) == 1
    told = findings(capsys.readouterr().out)
    assert codes_of(of_data(told)) == {"KS501", "KS801", "KS802", "KS805", "KS806"}
    (saved,) = map(str, Path("graphs").iterdir())
    assert main(["lint", "--output-format", "concise", saved]) == 1
    again = findings(capsys.readouterr().out)
    assert of_data(again) == of_data(told)
    assert main(["lint", "--select", "KS801", "--output-format", "concise", saved]) == 1
    assert len(findings(capsys.readouterr().out)) == 1
    assert main(["report", "--no-run", "-o", "page.html", saved]) == 1
    page = Path("page.html").read_text(encoding="utf-8")
    assert all(code in page for code in ("KS501", "KS801", "KS802", "KS805"))


def test_comments_silence_them_in_a_saved_graph(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As they do in the launch; a comment that is needed is none too many."""
    text = SCRIPT.replace("tl.store(o_ptr + i, x)", "tl.store(o_ptr + i, x)  # kernscope: ignore[KS801, KS501, KS802]")
    Path(script).write_text(text)
    main(["triton", "--save", "graphs", script])
    (saved,) = map(str, Path("graphs").iterdir())
    capsys.readouterr()
    main(["lint", "--output-format", "concise", saved])
    codes = codes_of(findings(capsys.readouterr().out))
    assert codes & {"KS801", "KS501", "KS802", "KS001"} == set() and "KS805" in codes


def test_facts_come_back_as_they_were(tmp_path: Path) -> None:
    """Every field, places with their callers, the texts of files; and they are no part of what makes graphs equal."""
    path = tmp_path / "faulty.py"
    path.write_text(SCRIPT)
    with ks.triton.session("ahbm-pe") as session:
        exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
    (launch,) = session.launches
    (graph,) = launch.graphs
    graph.save(tmp_path / "g.ksg")
    loaded = ks.load(tmp_path / "g.ksg")
    assert loaded == graph and loaded.facts == graph.facts
    assert loaded.facts is not None and graph.facts is not None
    for one, other in zip(loaded.facts.facts, graph.facts.facts, strict=True):
        for mine, its in ((one.place, other.place), (one.other_place, other.other_place)):
            assert (mine is None) == (its is None)
            assert mine is None or its is None or (mine.stack == its.stack and mine.digest == loaded.digests[mine.file])
    assert any(fact.other_place is not None and fact.other_place.stack for fact in graph.facts.facts)
    bare = attrs.evolve(graph, facts=LaunchFacts(()))
    assert bare == graph and not [d for d in ks.lint(bare) if d.code.startswith("KS8")]


def copied(x_ptr: Any, o_ptr: Any, N: Any) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i))


def test_a_graph_without_its_launch_says_what_is_not_judged() -> None:
    """The graph of one program knows of no other: what it cannot know is said, in a saved one as well."""
    made = launched(copied, 3, np.ones(16, np.float32), np.ones(16, np.float32), N=8)
    report = ks.lint(made.graph(2))
    assert {d.code for d in report if d.severity == "error"} == {"KS501"}
    assert any("not judged" in note and "lint the launch" in note for note in report.notes)


def test_a_folder_of_saved_graphs_is_linted_and_reported(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it holds no Python files; one that holds neither is a mistake."""
    main(["triton", "--save", "graphs", script])
    Path("graphs", "deep").mkdir()
    Path("graphs", "001-faulty.ksg").rename("graphs/deep/one.ksg")
    capsys.readouterr()
    assert main(["lint", "--output-format", "concise", "graphs"]) == 1
    assert "KS801" in capsys.readouterr().out
    assert main(["report", "--no-run", "-o", "pages", "graphs"]) == 1
    assert [path.name for path in Path("pages", "deep").iterdir()] == ["one.ksg.html"]
    Path("graphs/deep/one.ksg").unlink()
    assert main(["lint", "graphs"]) == 2
    assert "no Python files and no saved graphs" in capsys.readouterr().out


LOOP = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def summed(x_ptr, o_ptr, N: tl.constexpr, TIMES: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for turn in range(TIMES):
        total += tl.exp(tl.load(x_ptr + turn * N + i))
    tl.store(o_ptr + i, total)


summed[(1,)](np.ones(1 << 18, np.float32), np.zeros(1 << 16, np.float32), N=1 << 16, TIMES=4)
"""


def test_what_helps_is_said_in_the_language_of_the_kernel(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Buffers that take turns are `num_stages` in Triton; and a schedule of what does not fit says so."""
    Path(script).write_text(LOOP)
    assert main(["triton", script]) == 0
    out = capsys.readouterr().out
    assert "num_stages=2" in out and "out=buffer" not in out and "if it fitted" not in out
    assert main(["triton", "--set", "memory.tcm.bytes=300000", script]) == 1
    assert "PEs, if it fitted\n" in capsys.readouterr().out


def test_any_text_of_a_kernel_can_be_saved(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that no encoding holds, as the message of an assertion may be."""
    Path(script).write_text(SCRIPT.replace("too many", "too \\ud800 many"))
    assert main(["triton", "--save", "graphs", script]) == 1
    (saved,) = map(str, Path("graphs").iterdir())
    capsys.readouterr()
    assert main(["lint", "--select", "KS805", saved]) == 1
    assert "too \\ud800 many" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["--save", "graphs"], "--save"), (["--report=pages"], "--report"), (["--own", "save"], None), ([], None)],
)
def test_options_behind_the_script_are_told_to_be_its_own(
    script: str, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str | None
) -> None:
    """They may be meant for it, or for the command: nobody can know, so that it is said."""
    assert main(["triton", script, *arguments]) == 1
    said = f"note: {named} was given to {script}"
    assert (said in capsys.readouterr().err) == (named is not None)
    assert not Path("graphs").exists() and not Path("pages").exists()
