"""The pages that are made from tables, the commands of the how-to page, and the site as a whole."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

import kernscope as ks
from kernscope.cli import main
from kernscope.ir.ops import OPERATIONS
from kernscope.machine.description import machine_comments
from kernscope.machine.toml_form import known_paths
from kernscope.scheduler.policy.registry import POLICIES

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", HOW_TO, re.DOTALL) for line in block.splitlines() if line.strip()
]


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The module that makes the pages; it is no part of the package."""
    specification = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_operation_has_a_row(pages: ModuleType) -> None:
    """Once each, with as many cells as the head of the table."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", pages.operations_page(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(OPERATIONS)
    assert {len(re.findall(r"(?<!\\)\|", cells)) for _, cells in rows} == {4}


def test_every_machine_field_and_policy_is_there(pages: ModuleType) -> None:
    """Presets as they are read, every path of a description, every policy of the registry."""
    text = pages.machines_page()
    for name in ks.machine_names():
        assert ks.load_machine(name).to_toml(machine_comments(name)) in text
    keys = set(re.findall(r"`([^`\n]+)`", text))
    for machine in (ks.load_machine("ahbm-pe"), ks.load_machine("trn1")):
        assert {path.rpartition(".")[2] for path in known_paths(machine, tuple(machine.engine))} <= keys
    assert set(re.findall(r"^\| `(\w+)` \| the CPU", text, re.MULTILINE)) == set(POLICIES)


def test_the_gallery_runs_its_kernels(pages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel is shown at a launch of its own, and every file that the page links is written."""
    shown = list(pages.gallery_kernels())
    assert len(shown) >= 12 and all(launch.kernel is kernel for kernel, launch in shown)
    few = [pair for pair in shown if pair[0].name in ("softmax", "flash_attention_prefetch")]
    monkeypatch.setattr(pages, "gallery_kernels", lambda: few)
    text = pages.gallery_page(tmp_path)
    linked = set(re.findall(r"[<(]([\w.-]+\.(?:svg|html))[>)]", text))
    assert len(linked) == 6
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_size} == linked
    assert str(ks.compare(ks.trace(few[0][1]))) in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recipe_runs(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 0, and something to read, or a file written; a recipe that needs another one's file has it."""
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command)
    assert program == "kernscope"
    if (saved := next((word for word in arguments if word.endswith(".ksg")), "")) and "-o" not in arguments:
        maker = next(line for line in COMMANDS if saved in line and "-o" in line)
        assert main(shlex.split(maker)[1:]) == 0
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out or "wrote" in printed.err
