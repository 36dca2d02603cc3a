"""The tutorial on a ring of ranks: its files are saved and its commands run in the order of the page, and print what it
shows. ``KERNSCOPE_UPDATE=1 python -m pytest tests/docs`` writes the outputs anew; review the difference."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from pathlib import Path

from kernscope.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ring.md"
BLOCK = re.compile(r"```(?P<kind>python|console)\n(?P<text>.*?)```", re.DOTALL)
LOOP = re.compile(r"(^    for first in .*?)(?=^    tl\.store)", re.DOTALL | re.MULTILINE)
#: The numbers' error depends on the processor's instructions, the rest does not.
ERROR = re.compile(r"largest error [0-9.e+-]+")


def test_the_page_is_what_happens(tmp_path, monkeypatch, capsys):
    """Each block in its turn, in one folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    shown, printed = [], []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        first, _, rest = block["text"].partition("\n")
        if block["kind"] == "console":
            main(shlex.split(first.removeprefix("$ kernscope ")))
            shown.append(rest)
            printed.append(capsys.readouterr().out.rstrip("\n") + "\n")
        elif first == "# in place of the loop":
            ring = Path("ring.py").read_text(encoding="utf-8")
            before, _, after = LOOP.split(ring)
            Path("ring.py").write_text(f"{before}{textwrap.indent(rest, '    ')}{after}", encoding="utf-8")
        else:
            Path(first.removeprefix("# ")).write_text(rest, encoding="utf-8")
    if os.environ.get("KERNSCOPE_UPDATE"):
        _write(printed)
        return
    assert [ERROR.sub("", text) for text in printed] == [ERROR.sub("", text) for text in shown]


def _write(printed: list[str]) -> None:
    texts = iter(printed)

    def anew(block: re.Match[str]) -> str:
        if block["kind"] != "console":
            return block[0]
        return f"```console\n{block['text'].partition(chr(10))[0]}\n{next(texts)}```"

    PAGE.write_text(BLOCK.sub(anew, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
