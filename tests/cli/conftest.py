"""The command line in this process: ``kernscope("lint", path)`` gives exit status, stdout and stderr."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kernscope.cli import main


class Result(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def kernscope(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    """Run a command in an empty folder. What it imports from there is forgotten: a process of its own would, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: object) -> Result:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    before = set(sys.modules)
    yield run
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a kernel file whose imports are already there."""

    def make(body: str, name: str = "mine.py") -> Path:
        path = tmp_path / name
        head = "import kernscope as ks\nfrom kernscope import tl\n\n"
        path.write_text(head + textwrap.dedent(body), encoding="utf-8")
        return path

    return make


GOOD = """
    def reference(x):
        return {"o": x + 1}

    @ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"), reference=reference)
    @ks.launch("wide", x=ks.hbm((16, 64), "f32"), o=ks.hbm((16, 64), "f32"), reference=reference)
    @ks.kernel
    def plus_one(x, o, *, amount=1.0):
        tl.store(o[:, :], tl.load(x[:, :]) + amount)
"""

STALE = """
    @ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"))
    @ks.kernel
    def stale(x, o):
        with tl.scratch_scope():
            t = tl.load(x[:, :])
        tl.store(o[:, :], t + 1)
"""


@pytest.fixture
def good(write: Callable[..., Path]) -> Path:
    return write(GOOD)


@pytest.fixture
def stale(write: Callable[..., Path]) -> Path:
    return write(STALE, "stale.py")
