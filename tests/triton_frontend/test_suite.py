"""``pytest --kernscope-triton``: a test suite of Triton kernels as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """\
import numpy as np
import pytest
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, 2 * x, mask=at < n)


@pytest.mark.parametrize("n", [1, 100, 1000])
def test_double(n):
    x = np.arange(n, dtype=np.float32)
    double[(triton.cdiv(n, 64),)](x, n, BLOCK=64)
    assert np.array_equal(x, 2 * np.arange(n))


def test_out_of_bounds():
    x = np.zeros(10, np.float32)
    double[(1,)](x, 11, BLOCK=16)


def test_wrong():
    x = np.ones(10, np.float32)
    double[(1,)](x, 10, BLOCK=16)
    assert x[0] == 3
"""


def suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the suite in a process of its own."""
    (folder / "test_double.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "test_double.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)


def test_a_suite_runs_and_what_it_launches_is_linted(tmp_path: Path) -> None:
    """A test fails by its own assert, or by a finding at error level, which is told without frames."""
    done = suite(tmp_path, "--kernscope-triton=ahbm-pe")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 3 passed" in done.stdout
    assert "FAILED test_double.py::test_wrong - assert np.float32(2.0) == 3" in done.stdout
    assert "error[KS501]" in done.stdout
    assert "test_double.py:10" in done.stdout
    assert "kernscope: 5 launches of 1 kernel on ahbm-pe: 2 errors" in done.stdout


@pytest.mark.parametrize(("option", "said"), [("--kernscope-triton=no-pe", "no-pe"), ("--kernscope-triton", ".")])
def test_what_is_no_machine_is_told(tmp_path: Path, option: str, said: str) -> None:
    """Also where the option has swallowed a path."""
    words = [option] if "=" in option else [option, "."]
    done = suite(tmp_path, *words)
    assert done.returncode == 4, done.stdout + done.stderr
    assert said in done.stderr
    assert "kernscope-triton" in done.stderr
