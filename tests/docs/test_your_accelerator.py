"""The page that writes a machine from a data sheet: its file and its commands run as they are written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "your-accelerator.md").read_text(encoding="utf-8")
(MACHINE,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
(MEASURED,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, and the kernels that come with kernscope."""
    (tmp_path / "rainier.toml").write_text(MACHINE, encoding="utf-8")
    (tmp_path / "measured.csv").write_text(MEASURED, encoding="utf-8")
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 0, and something to read."""
    assert command.startswith("kernscope ")
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    assert printed
    if " schedule " in command:
        assert re.search(r"vector busy +[\d.]+ us +9\d", printed)
    if " trace " in command:
        assert "automatic" in printed


def test_what_the_page_says_of_moves_is_so(folder: Path) -> None:
    """The accumulator is brought into ``acc`` and back at each product; made there, it is not."""
    machine = ks.load_machine("rainier.toml")
    graph = ks.trace(load_kernel(), ks.hbm((64, 64), "bf16"), ks.hbm((64, 64), "f32"), machine=machine)
    assert graph.count("memory/move") == 1
    assert ks.lint(graph).ok and ks.check(ks.schedule(graph)) == []


def load_kernel() -> ks.Kernel:
    """A product that is accumulated where the page says."""
    tl = ks.tl

    @ks.kernel
    def product(x, o):  # type: ignore[no-untyped-def]  # a kernel as its author writes it
        acc = tl.zeros((64, 64), tl.float32, space="acc")
        for k in range(0, 64, 32):
            with tl.scratch_scope():
                tl.dot(tl.load(x[:, k : k + 32]), tl.load(x[k : k + 32, :]), acc=acc)
        tl.store(o[:, :], tl.move(acc, "local"))

    return product
