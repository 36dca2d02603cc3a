"""The page on Triton's kernels shows what its commands print.

``KERNSCOPE_UPDATE=1 python -m pytest tests/triton_frontend`` writes the outputs anew; review the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from kernscope.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "triton.md"
CONSOLE = re.compile(r"```console\n\$ kernscope (?P<command>[^\n]+)\n(?P<output>.*?)```", re.DOTALL)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The page; its script lies in the current folder."""
    text = PAGE.read_text(encoding="utf-8")
    script = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert script is not None
    (tmp_path / "softmax.py").write_text(script[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return text


def test_console_blocks_are_what_the_commands_print(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """To the last character."""
    printed = {}
    for block in CONSOLE.finditer(text):
        main(shlex.split(block["command"]))
        printed[block["command"]] = capsys.readouterr().out
    assert len(printed) == 2
    fresh = CONSOLE.sub(lambda b: f"```console\n$ kernscope {b['command']}\n{printed[b['command']]}```", text)
    if os.environ.get("KERNSCOPE_UPDATE"):
        PAGE.write_text(fresh, encoding="utf-8")
        return
    assert text == fresh


def test_the_program_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of Python that opens a session and writes a report."""
    program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1]
    monkeypatch.syspath_prepend(".")
    try:
        exec(compile(program, "program", "exec"), {})
    finally:
        sys.modules.pop("softmax", None)
    assert Path("softmax.html").stat().st_size > 0
