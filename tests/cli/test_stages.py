"""What a long command is at: told on a terminal, and nowhere else."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")  # not on Windows


def read_all(terminal: int, shown: list[bytes]) -> None:
    while True:
        try:
            shown.append(os.read(terminal, 1 << 16))
        except OSError:  # on Linux this is how the other end is closed
            return
        if not shown[-1]:
            return


def test_report_tells_its_stages_on_a_terminal_only(good: Path, tmp_path: Path) -> None:
    """Each as it begins, on stderr, and in the end the line is blank; nothing of it on stdout, nor in a pipe."""
    command = [sys.executable, "-m", "kernscope", "report", str(good), "-o", "page.html"]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(ours, shown))
    reader.start()  # a terminal that nobody reads would hold up the program
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    reader.join()
    os.close(ours)
    states = b"".join(shown).decode().split("\r")
    stages = [state.partition(" ...")[0] for state in states if " ..." in state]
    assert stages == ["tracing", "scheduling", "executing", "linting", "drawing the page"]
    assert states[-1] == "" and states[-2].isspace()
    assert done.stdout.decode() == piped.stdout
