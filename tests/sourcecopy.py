"""A copy of the sources to try additions on: what a newcomer adds is added there, and a script beside it imports it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_sources(folder: Path) -> Path:
    """The package, without its tests, as ``folder/kernscope``."""
    root = folder / "kernscope"
    left_out = shutil.ignore_patterns(".*", "tests", "docs", "benchmarks", "build", "dist", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT, root, ignore=left_out)
    return root


def run_beside(root: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script beside the copy, which is what it imports: a script's own folder comes first."""
    file = root.parent / "script.py"
    file.write_text(script, encoding="utf-8")
    command = [sys.executable, "-W", "error", file.name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=root.parent, check=False, timeout=300)
