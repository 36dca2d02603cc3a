"""The commands that tell how much of public sources runs, on small projects laid out as the public ones are."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

CORE = """
import numpy as np
import pytest
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, o_ptr, N: tl.constexpr, MUCH: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i) + MUCH)


@triton.jit
def asm_kernel(x_ptr):
    tl.store(x_ptr, tl.inline_asm_elementwise("", "", [], tl.int32, True, 1))


def added(much, n=8):
    x = np.arange(n, dtype=np.int32)
    out = np.zeros(n, np.int32)
    return add_kernel[(1,)](x, out, N=n, MUCH=much), out


@pytest.mark.parametrize("much", range(5))
def test_passes(much):
    assert added(much)[1][0] == much


def test_asks_for_assembly():
    made, out = added(3)
    assert out[0] == 3
    assert "add" in made.asm["ptx"]


def test_refused():
    asm_kernel[(1,)](np.zeros(1, np.int32))


def test_wrong():
    assert added(1)[1][0] == 2


def test_reads_too_far():
    x, out = np.arange(4, dtype=np.int32), np.zeros(8, np.int32)
    add_kernel[(1,)](x, out, N=8, MUCH=0)


def test_skipped():
    pytest.skip("not here")
"""

OPERATOR = """
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, o_ptr, N: tl.constexpr, BY: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o_ptr + i, tl.load(x_ptr + i) * BY)


def scale(x, out, by):
    scaled[(1,)](x, out, N=len(x), BY=by)
"""


def ran(*arguments: str) -> str:
    """What a command prints."""
    command = [sys.executable, str(BENCHMARKS / "public_triton.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_row_a_test_function(tmp_path: Path) -> None:
    """What passes, what only lacks machine code, what is refused by name, what is found and what is wrong stand apart;
    a sample keeps as many parametrisations as it says."""
    file = tmp_path / "python/test/unit/language/test_core.py"
    file.parent.mkdir(parents=True)
    file.write_text(CORE, encoding="utf-8")
    said = ran("--triton", str(tmp_path), "--sample", "3")
    rows = {line.split()[0]: line.split()[1:7] for line in said.splitlines() if line.startswith("  test_")}
    assert rows == {
        "test_passes": ["3", "-", "-", "-", "-", "-"],
        "test_asks_for_assembly": ["-", "1", "-", "-", "-", "-"],
        "test_refused": ["-", "-", "1", "-", "-", "-"],
        "test_wrong": ["-", "-", "-", "-", "1", "-"],
        "test_reads_too_far": ["-", "-", "-", "1", "-", "-"],
        "test_skipped": ["-", "-", "-", "-", "-", "1"],
    }
    assert "inline_asm_elementwise is refused by kernscope" in said
    assert "error[KS501]" in said
    assert "6 test functions: 3 passed, 1 refused, 1 failed, 1 skipped" in said


def test_the_share_of_files_of_operators(tmp_path: Path) -> None:
    """A file counts where a test that runs its kernels passes and none fails; one that no test runs is named."""
    operators, tests = tmp_path / "src/liger_kernel/ops", tmp_path / "test/transformers"
    operators.mkdir(parents=True)
    tests.mkdir(parents=True)
    for folder in (operators.parent, operators):
        (folder / "__init__.py").write_text("", encoding="utf-8")
    for name in ("good", "bad", "idle"):
        (operators / f"{name}.py").write_text(OPERATOR, encoding="utf-8")
    (operators / "plain.py").write_text("def nothing():\n    pass\n", encoding="utf-8")
    for name, wanted in (("good", 6), ("bad", 7)):
        (tests / f"test_{name}.py").write_text(
            f"import numpy as np\nfrom liger_kernel.ops.{name} import scale\n\n\ndef test_it():\n"
            "    out = np.zeros(4, np.float32)\n    scale(np.full(4, 2, np.float32), out, 3)\n"
            f"    assert (out == {wanted}).all()\n",
            encoding="utf-8",
        )
    said = ran("--liger", str(tmp_path))
    assert "liger: 1 of 2 files of operators run end to end with right numbers (50.0 %)" in said
    assert "1 more have kernels that no test ran: idle.py" in said
    assert "src/liger_kernel/ops/bad.py: 1 of 1  failed: AssertionError" in said


ADD = """
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


raise RuntimeError("of a file only its kernels are run")
"""


def test_planted_faults_are_found_where_they_are(tmp_path: Path) -> None:
    """Each at its line and program, with nothing beside it; what is not found, or cannot be planted, is no success."""
    file = tmp_path / "python/tutorials/01-vector-add.py"
    file.parent.mkdir(parents=True)
    command = [
        sys.executable,
        str(BENCHMARKS / "planted_faults.py"),
        "--triton",
        str(tmp_path),
        "--liger",
        str(tmp_path),
    ]

    def planted(source: str) -> tuple[int, list[str]]:
        file.write_text(source, encoding="utf-8")
        done = subprocess.run([*command, "--only", "add"], capture_output=True, text=True, check=False)
        assert not done.stderr
        return done.returncode, done.stdout.splitlines()

    status, rows = planted(
        ADD.replace("x + y, mask=mask", "output, mask=mask").replace("    tl.store", "    output = x + y\n    tl.store")
    )
    assert status == 0 and rows[-1] == "6 faults in 1 kernels: 6 found"
    status, rows = planted(ADD)
    assert status == 1 and rows[-1] == "6 faults in 1 kernels: 5 found, 1 not planted"
    status, rows = planted(ADD.replace("n_elements\n", "n_elements - 24\n"))
    assert status == 1 and any(row.startswith("missed") and "KS501 at tl.load(x_ptr" in row for row in rows)


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
@pytest.mark.parametrize("script", ["interpreter.py", "interpreter_numbers.py"])
def test_without_triton_the_comparison_says_what_it_needs(script: str) -> None:
    """And how to name a Python that has it."""
    done = subprocess.run([sys.executable, str(BENCHMARKS / script)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("needs Triton installed, and torch: ")
    assert "--triton-python" in done.stdout
