"""Public projects of Triton kernels with tests of their own: where they are, and how their tests run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

__all__ = ["PROJECTS", "Project", "fetched", "outcomes_of", "with_kernels"]

_HERE = Path(__file__).resolve().parent


@attrs.frozen
class Project:
    """``tests`` are patterns of files with tests, ``operators`` of files with kernels; ``paths`` go in front of
    Python's own; ``arguments`` are pytest's."""

    name: str
    url: str
    tests: tuple[str, ...]
    operators: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = attrs.field(factory=dict)


PROJECTS = {
    project.name: project
    for project in (
        Project(
            "triton",
            "https://github.com/triton-lang/triton-cpu",
            tests=("python/test/unit/language/test_core.py",),
        ),
        Project(
            "liger",
            "https://github.com/linkedin/Liger-Kernel",
            tests=("test/transformers/test_*.py",),
            operators=("src/liger_kernel/ops/*.py",),
            paths=("src", "."),
            environment={"HF_HUB_OFFLINE": "1"},
        ),
        Project(
            "flaggems",
            "https://github.com/FlagOpen/FlagGems",
            tests=("tests/test_*.py",),
            operators=("src/flag_gems/ops/*.py", "src/flag_gems/fused/*.py"),
            paths=("src",),
            arguments=("--mode", "quick"),
            environment={"GEMS_VENDOR": "nvidia", "FLAGGEMS_ENABLE_DISK_CACHE": "0"},
        ),
    )
}


def fetched(project: Project, folder: Path) -> Path:
    """A fresh copy of a project's sources in a folder."""
    where = folder / project.name
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", project.url, str(where)], check=True)
    return where


def with_kernels(project: Project, root: Path) -> list[Path]:
    """The project's files of operators that have kernels in Triton's language."""
    found = [file.resolve() for pattern in project.operators for file in sorted(root.glob(pattern))]
    return [file for file in found if re.search(r"^\s*@(triton\.)?jit\b", file.read_text(encoding="utf-8"), re.M)]


def outcomes_of(
    project: Project, root: Path, *, machine: str, sample: int, limit_s: float, timeout_s: float, only: Sequence[str]
) -> Iterator[tuple[Path, list[dict[str, Any]], str]]:
    """For each file of tests: what came of them (see ``public_outcomes.py``), and what pytest said where it did not
    come to its end. ``only``: parts of names of files, of which one must occur."""
    files = [file for pattern in project.tests for file in sorted(root.glob(pattern))]
    for file in files:
        if only and not any(part in file.name for part in only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcomes = Path(folder, "outcomes.jsonl")
            command = [
                *(sys.executable, "-m", "pytest", str(file.relative_to(root)), f"--kernscope-triton={machine}"),
                *(
                    "-p",
                    "public_sampling",
                    "-p",
                    "public_outcomes",
                    "-p",
                    "no:cacheprovider",
                    "-q",
                    "--tb=no",
                    "-W",
                    "ignore",
                ),
                *("--outcomes", str(outcomes), "--sample", str(sample), "--limit", str(limit_s)),
                *project.arguments,
            ]
            try:
                done = subprocess.run(
                    command,
                    cwd=root,
                    env=_environment(project, root, folder),
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=timeout_s,
                    check=False,
                )
                # 0, 1: all ran. 5: no test is left of those that there are.
                trouble = "" if done.returncode in (0, 1, 5) else (done.stdout + done.stderr).strip()[-400:]
            except subprocess.TimeoutExpired:
                trouble = f"not done within {timeout_s:g} s"
            lines = outcomes.read_text(encoding="utf-8").splitlines() if outcomes.exists() else []
            yield file, [json.loads(line) for line in lines], trouble


def _environment(project: Project, root: Path, folder: str) -> dict[str, str]:
    paths = [str(_HERE), *(str(root / path) for path in project.paths), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **project.environment,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "FLAGGEMS_CACHE_DIR": folder,
    }
