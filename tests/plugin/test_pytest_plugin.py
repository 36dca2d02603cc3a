"""The pytest plugin, in a repository of its own: ``pytest --kernscope``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "kernels/good.py": """
import kernscope as ks
from kernscope import tl

@ks.launch("a", x=ks.hbm((16,), "f32"))
@ks.launch("b", x=ks.hbm((512, 512), "f32"))
@ks.kernel
def good(x):
    tl.store(x[:], tl.load(x[:]))

@ks.kernel
def bare(x):
    tl.store(x[:], tl.load(x[:]))
""",
    "kernels/stale.py": """
import kernscope as ks
from kernscope import tl

@ks.launch("a", x=ks.hbm((16,), "f32"))
@ks.kernel
def stale(x):
    with tl.scratch_scope():
        t = tl.load(x[:])
    tl.store(x[:], t)
""",
    "kernels/raises.py": """
import kernscope as ks

@ks.launch("a", x=ks.hbm((16,), "f32"))
@ks.kernel
def raises(x):
    raise ValueError("too odd")
""",
    "setup.py": "raise SystemExit('imported')\n",
    "tests/test_good.py": """
import sys
sys.path.insert(0, "kernels")
from good import good
from kernscope.face.testing import assert_fits, assert_no_findings

def test_fits():
    assert_fits(good.launch("a"), budget_bytes=64)

def test_does_not_fit():
    assert_fits(good.launch("b"), budget_bytes=64)

def test_clean():
    assert_no_findings(good.launch("a"))
""",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> str:
    """What pytest prints there, with no other plugin than ours."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "NO_COLOR": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "kernscope.face.pytest_plugin", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_each_launch_is_a_test(repository: Path) -> None:
    """Clean ones pass, findings and the kernel's own errors fail as kernscope words them, a kernel without a launch is
    skipped; other files are not imported; tests beside them run as ever."""
    out = run_pytest(repository, "--kernscope", "-rA", "--strict-markers")
    results = set(re.findall(r"^(PASSED|FAILED) (\S+)", out, re.MULTILINE))
    assert results == {
        ("PASSED", "kernels/good.py::kernscope:good:a"),
        ("PASSED", "kernels/good.py::kernscope:good:b"),
        ("FAILED", "kernels/stale.py::kernscope:stale:a"),
        ("FAILED", "kernels/raises.py::kernscope:raises:a"),
        ("PASSED", "tests/test_good.py::test_fits"),
        ("FAILED", "tests/test_good.py::test_does_not_fit"),
        ("PASSED", "tests/test_good.py::test_clean"),
    }
    assert "3 failed, 4 passed, 1 skipped" in out
    assert (
        "error[KS201]: `t` is read by store after the exit of its scope" in out and "--> kernels/stale.py:10:5" in out
    )
    assert "kernel raises raised ValueError: too odd" in out
    assert "not linted: the kernel has no launch" in out
    assert "info[KS102]" in out  # a section of a test that passed
    # The assertion that failed is shown at the test's line, without the frames of kernscope.
    assert "tests/test_good.py:11: AssertionError" in out and "face/testing.py" not in out


def test_nothing_is_collected_unless_asked(repository: Path) -> None:
    """The plugin does no harm where it is merely installed."""
    out = run_pytest(repository, "--collect-only", "-q")
    assert "kernscope:" not in out and "3 tests collected" in out


def test_the_configuration_counts(repository: Path) -> None:
    """What is ignored, excluded, and from where on it fails."""
    text = '[tool.kernscope.lint]\nignore = ["KS201"]\nfail-on = "info"\nexclude = ["raises.py"]\n'
    (repository / "pyproject.toml").write_text(text, encoding="utf-8")
    out = run_pytest(repository, "--kernscope", "-m", "kernscope", "-rA", "kernels")
    assert "FAILED kernels/good.py::kernscope:good:b" in out and "PASSED kernels/stale.py" in out
    assert "raises" not in out


def test_a_file_that_cannot_be_imported_is_an_error(repository: Path) -> None:
    """Of its collection, in kernscope's words."""
    (repository / "kernels" / "broken.py").write_text("kernel = 1 / 0\n", encoding="utf-8")
    out = run_pytest(repository, "--kernscope", "kernels/broken.py")
    assert "ZeroDivisionError" in out and " --> kernels/broken.py:1:10" in out
    assert re.search("[12] errors? in", out)  # pytest itself imports a file that is named, too


def test_a_file_keeps_what_it_changes_to_itself(repository: Path) -> None:
    """Its folder, arguments and seeds are no other test's; the path of its lines stays."""
    head = "import os, random, sys\nos.chdir('/')\nrandom.seed(1)\nsys.argv += ['x']\n"
    (repository / "kernels" / "changes.py").write_text(head + FILES["kernels/stale.py"], encoding="utf-8")
    test = "import os, random, sys\n\ndef test_here():\n    assert os.getcwd() != '/' and 'x' not in sys.argv[-1:]\n"
    test += "    assert random.random() != random.Random(1).random()\n"
    (repository / "tests" / "test_here.py").write_text(test, encoding="utf-8")
    # A file that is named is imported by pytest itself, too.
    out = run_pytest(repository, "--kernscope", "-rA", "kernels", "tests/test_here.py")
    assert "PASSED tests/test_here.py::test_here" in out and "--> kernels/changes.py:14:5" in out, out


def test_a_kernel_that_does_not_end_fails(repository: Path) -> None:
    """With its line, and the other tests run."""
    text = FILES["kernels/raises.py"].replace('raise ValueError("too odd")', "while True: pass")
    (repository / "kernels" / "endless.py").write_text(text, encoding="utf-8")
    out = run_pytest(repository, "--kernscope", "--kernscope-timeout", "1", "-rA", "kernels")
    assert "FAILED kernels/endless.py::kernscope:raises:a" in out and "kernels/endless.py:7" in out
    assert "kernscope:raises:a did not end within 1 s" in out and "PASSED kernels/good.py::kernscope:good:a" in out
    assert "--kernscope-timeout" in run_pytest(repository, "--kernscope-timeout", "0")


def test_a_file_may_skip_itself(repository: Path) -> None:
    """``pytest.importorskip`` at its head is no error."""
    head = 'import pytest\npytest.importorskip("no_such_module_at_all")\n'
    (repository / "kernels" / "skips.py").write_text(head + FILES["kernels/good.py"], encoding="utf-8")
    out = run_pytest(repository, "--kernscope", "kernels/skips.py")
    assert re.search("[12] skipped", out) and "error" not in out.lower()  # pytest itself imports a file that is named


def test_pytest_finds_the_plugin_by_itself() -> None:
    """The entry point leads to a module with pytest's hooks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = import_module(project["entry-points"]["pytest11"]["kernscope"])
    assert callable(module.pytest_collect_file)
