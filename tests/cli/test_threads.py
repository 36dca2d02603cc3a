"""Matrix products take one thread in commands, and what the user wants everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernscope.blas_threads import VARIABLES, is_command, set_one_thread

TOLD = """
import os
import sys

import numpy as np

import kernscope as ks

tile = np.ones((600, 600))
tile @ tile
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"), file=sys.stderr)
"""


def told_by(path: Path, *command: str, **variables: str) -> list[str]:
    """What the file says that a command imports: threads after a matrix product, and the environment's number."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES} | variables
    done = subprocess.run([*command, str(path)], env=environment, capture_output=True, text=True, check=True)
    return done.stderr.split()[:2]


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_commands_take_one_thread(tmp_path: Path) -> None:
    """However they are started, as numpy is not loaded before the number is set; a number of the user's stays, also if
    another variable has it; a program that imports the package keeps its environment."""
    path = tmp_path / "told.py"
    path.write_text(TOLD, encoding="utf-8")
    lint = ("lint", "--jobs", "0")
    assert told_by(path, str(Path(sys.executable).with_name("kernscope")), *lint) == ["1", "1"]
    assert told_by(path, sys.executable, "-m", "kernscope", *lint) == ["1", "1"]
    assert told_by(path, sys.executable, "-mkernscope", *lint, OPENBLAS_NUM_THREADS="3")[1] == "3"
    assert told_by(path, sys.executable, "-m", "kernscope", *lint, OMP_NUM_THREADS="2")[1] == "None"
    assert told_by(path, sys.executable)[1] == "None"


@pytest.mark.parametrize(
    ("argv", "orig_argv", "expected"),
    [
        (["/bin/kernscope", "lint"], ["python", "/bin/kernscope", "lint"], True),
        (["kernscope.exe"], ["kernscope.exe"], True),
        (["-m", "lint", "x"], ["python", "-X", "utf8", "-m", "kernscope", "lint", "x"], True),
        (["-m"], ["python", "-mkernscope"], True),
        (["-m", "kernscope"], ["python", "-m", "pytest", "kernscope"], False),
        (["kernscope.py"], ["python", "kernscope.py"], False),
        (["-c"], ["python", "-c", "import kernscope"], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_what_is_a_command(argv: list[str], orig_argv: list[str], expected: bool) -> None:
    """The console script, and ``-m kernscope``; not what else imports the package."""
    assert is_command(argv, orig_argv) == expected


@pytest.mark.parametrize("name", VARIABLES)
def test_a_number_that_is_set_stays(name: str) -> None:
    """Any of them; an empty value is none."""
    environment = {name: "8"}
    set_one_thread(environment)
    assert environment == {name: "8"}
    environment = {name: ""}
    set_one_thread(environment)
    assert environment == dict.fromkeys(VARIABLES, "1")
