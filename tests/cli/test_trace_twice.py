"""``kernscope lint --trace-twice``: a kernel that does something else the second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernscope.cli.app import main
from kernscope.tracer import retrace

KERNEL = """
import time
import kernscope as ks
from kernscope import tl

@ks.launch("one", x=ks.hbm((8, 8), "f32"), o=ks.hbm((8, 8), "f32"))
@ks.kernel
def counting(x, o, *, calls=[]):
    print("called")
    calls.append(1)
    time.sleep({sleep})
    tl.store(o[:, :], tl.load(x[:, :]) * float(len(calls)))
"""


def lint(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, sleep: float = 0.0) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(retrace, "AT_MOST_S", 0.3)
    (folder / "k.py").write_text(KERNEL.format(sleep=sleep), encoding="utf-8")
    return main(["lint", "k.py", "--jobs", "0", "--output-format", "concise", "--fail-on", "warning", *options])


def test_a_quick_kernel_is_traced_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The finding is at its line, and what the kernel prints is printed once."""
    assert lint(tmp_path, monkeypatch) == 1
    said = capsys.readouterr()
    assert "k.py:12:" in said.out and "KS701" in said.out
    assert said.err.count("called") == 1 and "called" not in said.out


def test_a_slow_kernel_is_traced_twice_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it a note says that the question is open."""
    assert lint(tmp_path, monkeypatch, sleep=0.4) == 0
    said = capsys.readouterr()
    assert "KS701" not in said.out and "counting:one: traced once" in said.err
    assert lint(tmp_path, monkeypatch, "--trace-twice", sleep=0.4) == 1
    said = capsys.readouterr()
    assert "KS701" in said.out and "traced once" not in said.err
