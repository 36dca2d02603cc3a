"""What docs/ci.md tells to copy works: the pre-commit hook, the workflow, the configuration."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_manifest

from kernscope.cli import main
from kernscope.linter.config import read_config

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

STALE = """
import kernscope as ks
from kernscope import tl

@ks.launch("a", x=ks.hbm((16,), "f32"))
@ks.kernel
def stale(x):
    with tl.scratch_scope():
        t = tl.load(x[:])
    tl.store(x[:], t)
"""


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "stale.py").write_text(STALE, encoding="utf-8")
    (tmp_path / "setup.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with the command ``kernscope`` of these sources."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "kernscope"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kernscope "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PRE_COMMIT_HOME": str(folder / "cache"),
        "NO_COLOR": "1",
    }


def hook() -> dict[str, Any]:
    """The one hook, as pre-commit reads the file."""
    (found,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    return dict(found)


def test_the_hook_is_one_that_pre_commit_takes() -> None:
    """Installed from this repository, for Python files."""
    assert (hook()["id"], hook()["entry"], hook()["language"]) == (
        "kernscope-lint",
        "kernscope lint --jobs 1",
        "python",
    )
    assert hook()["types"] == ["python"] and hook()["require_serial"] is True


def test_the_page_shows_the_hook_that_there_is() -> None:
    """By its id, and, as a local one, with the same entry."""
    remote, local = (yaml.safe_load(text)["repos"][0] for text in snippets("yaml")[:2])
    assert remote["hooks"][0]["id"] == hook()["id"]
    assert {k: local["hooks"][0][k] for k in ("id", "name", "entry", "types", "require_serial")} == {
        k: hook()[k] for k in ("id", "name", "entry", "types", "require_serial")
    }


@pytest.mark.slow
def test_pre_commit_runs_the_hook(repository: Path, environment: dict[str, str]) -> None:
    """The local form of the page, in a repository of its own: it fails with the finding and passes once mended."""
    (repository / ".pre-commit-config.yaml").write_text(snippets("yaml")[1], encoding="utf-8")
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files"]
    failed = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode == 1, failed
    assert "error[KS201]" in failed.stdout and "--> kernels/stale.py:10:5" in failed.stdout
    mended = STALE.replace("    tl.store", "        tl.store")
    (repository / "kernels" / "stale.py").write_text(mended, encoding="utf-8")
    passed = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert passed.returncode == 0, passed


def workflow() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(snippets("yaml")[2])
    return found


def test_the_workflow_is_valid(tmp_path: Path) -> None:
    """By the schema of GitHub workflows."""
    (tmp_path / "kernscope.yml").write_text(snippets("yaml")[2], encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", "kernscope.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done


def test_the_steps_of_the_workflow_do_what_they_should(repository: Path, environment: dict[str, str]) -> None:
    """The one that writes SARIF goes on with findings, so that they are uploaded; the last one fails, with annotations.
    The file that is uploaded is the one that was written, by paths from the repository's root."""
    steps = workflow()["jobs"]["lint"]["steps"]
    runs = [step["run"] for step in steps if "kernscope lint" in step.get("run", "")]
    assert len(runs) == 2
    done = [
        subprocess.run(["sh", "-ec", run], cwd=repository, env=environment, capture_output=True, text=True, check=False)
        for run in runs
    ]
    assert [d.returncode for d in done] == [0, 1], done
    (upload,) = [step for step in steps if "upload-sarif" in step.get("uses", "")]
    document = json.loads((repository / upload["with"]["sarif_file"]).read_text(encoding="utf-8"))
    (result,) = document["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kernels/stale.py" and place["region"]["startLine"] == 10
    assert done[1].stdout.startswith("::error file=kernels/stale.py,line=10,col=5,")
    assert workflow()["permissions"]["security-events"] == "write"


def test_the_configuration_of_the_page_is_read(tmp_path: Path) -> None:
    """Every key of it."""
    (text,) = snippets("toml")
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    config = read_config(tmp_path / "pyproject.toml")
    assert config is not None
    assert set(tomllib.loads(text)["tool"]["kernscope"]["lint"]) == {
        "select",
        "ignore",
        "exclude",
        "fail-on",
        "per-file-ignores",
        "options",
    }
    assert config.options == {"KS102": {"percent": 80}} and config.fail_on == "warning"


def test_the_page_names_the_default_time_limit_and_formats(capsys: pytest.CaptureFixture[str]) -> None:
    """As the command's own help does."""
    assert main(["lint", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "default: 120" in PAGE and "[default: 120.0" in out
    formats = re.search(r"--output-format \[([a-z|]+)\]", out)
    assert formats is not None
    assert set(formats[1].split("|")) == set(re.findall(r"^\| `([a-z]+)` \|", PAGE, re.MULTILINE))
