"""The tour's program and commands run as they are written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kernscope.cli import main

TOUR = (Path(__file__).resolve().parents[2] / "docs" / "tour.md").read_text(encoding="utf-8")
KERNEL, PROGRAM = re.findall(r"```python\n(.*?)```", TOUR, re.DOTALL)
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TOUR, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("kernscope ")
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds the tour's kernel, saved as the tour says."""
    (tmp_path / "double_rows.py").write_text(KERNEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_program_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The two blocks of Python, one after the other, print a graph of four loads."""
    source = folder / "program.py"
    source.write_text(KERNEL + PROGRAM, encoding="utf-8")
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), {"__name__": "program"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "kernel double_rows ranks=1"
    assert "4" in lines


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 0, and something to read."""
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out


def test_the_tour_has_commands() -> None:
    """The search above finds what the page shows: each command that works on a kernel without options."""
    assert {shlex.split(command)[1] for command in COMMANDS} >= {
        "report",
        "lint",
        "schedule",
        "trace",
        "fit",
        "machine",
    }
