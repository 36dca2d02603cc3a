"""The README and the worked pages show what the commands really print.

``KERNSCOPE_UPDATE=1 python -m pytest tests/docs`` writes the outputs anew; review the difference.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kernscope.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = {README: 3, ROOT / "docs" / "where-the-time-goes.md": 4}
CONSOLE = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```", re.DOTALL)
#: The numbers' error depends on the processor's instructions, the rest does not.
ERROR = re.compile(r"largest error [0-9.e+-]+")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Run a command of the README in a folder that holds its kernel and the repository's kernels."""
    source = README.read_text(encoding="utf-8")
    kernel = re.search(r"```python\n(import kernscope as ks\n.*?)```", source, re.DOTALL)
    assert kernel is not None
    (tmp_path / "row_sum.py").write_text(kernel[1], encoding="utf-8")
    fixed = re.sub(r"total \+= (.*)", r"tl.copy_to(total, total + \1)", kernel[1])
    (tmp_path / "row_sum_fixed.py").write_text(fixed, encoding="utf-8")
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def execute(command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "kernscope"
        main(arguments)
        return capsys.readouterr().out

    return execute


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_console_blocks_are_what_the_commands_print(run, page):
    """Each ``console`` block holds a command and exactly its output (but for the numbers' error)."""
    text = page.read_text(encoding="utf-8")
    blocks = list(CONSOLE.finditer(text))
    assert len(blocks) == PAGES[page]
    printed = {block["command"]: run(block["command"]).rstrip("\n") + "\n" for block in blocks}
    if os.environ.get("KERNSCOPE_UPDATE"):
        fresh = CONSOLE.sub(lambda b: f"```console\n$ {b['command']}\n{printed[b['command']]}```", text)
        page.write_text(fresh, encoding="utf-8")
        return
    for block in blocks:
        assert ERROR.sub("largest error", block["output"]) == ERROR.sub("largest error", printed[block["command"]])


def test_the_fault_of_the_tour_is_found_and_its_fix_is_clean(run):
    """The README says that the linter is silent on the fixed kernel."""
    assert "KS201" in run("kernscope lint row_sum.py")
    assert "no findings" in run("kernscope lint row_sum_fixed.py")


def test_pictures_exist():
    """Every picture that the README shows is in the repository."""
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8")):
        assert (ROOT / path).stat().st_size > 0, path
