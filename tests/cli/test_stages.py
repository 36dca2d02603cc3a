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


def shown_on_a_terminal(command: list[str], folder: Path) -> tuple[list[str], str]:
    """What a command writes to a terminal on stderr, between returns to the line's begin; and its stdout, a pipe."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=read_all, args=(ours, shown))
    reader.start()  # a terminal that nobody reads would hold up the program
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=theirs, check=True)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(shown).decode().split("\r"), done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["report", "-o", "page.html"], ["tracing", "scheduling", "executing", "linting", "drawing the page"]),
        (["trace"], ["tracing"]),
        (["schedule"], ["tracing", "scheduling"]),
        (["run"], ["tracing", "scheduling", "executing", "computing the reference"]),
        (["draw", "-o", "g.dot"], ["tracing", "scheduling", "drawing"]),
        (["timeline", "-o", "t.json"], ["tracing", "scheduling", "writing"]),
        (["lint", "--launch", "small"], ["linting"]),
    ],
)
def test_commands_tell_their_stages_on_a_terminal_only(
    good: Path, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    """Each as it begins, on stderr, and in the end the line is blank; nothing of it on stdout, in a pipe, with -q."""
    command = [sys.executable, "-m", "kernscope", words[0], str(good), *words[1:]]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert piped.stderr == ""
    states, out = shown_on_a_terminal(command, tmp_path)
    stages = [state.partition(" ...")[0] for state in states if " ..." in state]
    assert stages == expected
    assert states[-1] == "" and states[-2].isspace()
    assert out == piped.stdout
    quiet, _ = shown_on_a_terminal([*command, "-q"], tmp_path)
    assert quiet == [""]
