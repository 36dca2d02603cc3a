"""Nothing in the repository depends on, or tells of, the machine it was written on."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = {"__pycache__", "_build", "build", "dist", "htmlcov", "node_modules", "venv"}
HIDDEN_BUT_OURS = {".ci", ".github"}
TEXT_SUFFIXES = {".cfg", ".css", ".dot", ".html", ".ini", ".js", ".json", ".md", ".py", ".rst", ".sh", ".svg", ".toml"}
TEXT_SUFFIXES |= {".txt", ".yaml", ".yml", ".in", ".ambr", ".pyi", ""}

# Homes, workplaces and environments by absolute path; the lookbehind spares `docs/work/`, `~/home/` and links.
LOCAL_PATH = re.compile(r"(?<![\w./~-])/(?:work|home/\w+|root|Users/\w+|opt|tmp/[\w.]*venv\w*)(?:/|\b)")
REGISTRY_HOST = re.compile(r"\b(?:test\.)?pypi\.(?:org|python)|\bpythonhosted\.|--(?:extra-)?index-url", re.IGNORECASE)


def text_files(root: Path) -> Iterator[Path]:
    """Text files of the repository; caches, environments and built things are passed over, links not followed."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if name not in SKIPPED_FOLDERS
            and not name.endswith(".egg-info")
            and (not name.startswith(".") or name in HIDDEN_BUT_OURS)
            and not (Path(folder) / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in TEXT_SUFFIXES and name != ".git" and not name.startswith(".coverage"):
                yield path


def lines_matching(root: Path, pattern: re.Pattern[str]) -> list[str]:
    """`file:line: text` of every line under `root` that `pattern` is found in."""
    return [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in text_files(root)
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    """Sources, tests and pages hold no absolute path of somebody's home or environment."""
    assert lines_matching(ROOT, LOCAL_PATH) == []


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the installer's configuration, not ours."""
    assert lines_matching(ROOT, REGISTRY_HOST) == []


@pytest.mark.parametrize("folder", ["work", "home/someone", "Users/someone", "tmp/venv", "tmp/.venv311", "root", "opt"])
@pytest.mark.parametrize("around", ["see {}/x.py", "'{}/x'", "({})", "{}/.cache"])
def test_a_local_path_is_found(tmp_path: Path, folder: str, around: str) -> None:
    """The check can fail, in a file in a folder as in a script without a suffix."""
    text = around.format("/" + folder)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(f"first\n{text}\n", encoding="utf-8")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(text, encoding="utf-8")
    assert lines_matching(tmp_path, LOCAL_PATH) == [f".ci/run:1: {text}", f"docs/page.md:2: {text}"]


@pytest.mark.parametrize("text", ["docs/work/page", "https://example.com/home/x", "a /workload", "../work/x", "/tmp/x"])
def test_other_paths_pass(tmp_path: Path, text: str) -> None:
    """Relative paths, links and a temporary file are no secrets of a machine."""
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert lines_matching(tmp_path, LOCAL_PATH) == []


@pytest.mark.parametrize(
    "parts", [("https://pypi", ".org/simple"), ("pip install --index", "-url x"), ("PyPI", ".org")]
)
def test_a_registry_host_is_found(tmp_path: Path, parts: tuple[str, str]) -> None:
    """The check can fail."""
    text = "".join(parts)
    (tmp_path / "setup.cfg").write_text(text, encoding="utf-8")
    assert lines_matching(tmp_path, REGISTRY_HOST) == [f"setup.cfg:1: {text}"]
