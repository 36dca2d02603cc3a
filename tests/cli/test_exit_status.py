"""Exit status 1 means findings, a mismatch or a deadlock, and nothing else; 2 that the tool could not do its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernscope.face import api
from kernscope.machine.units import format_ps

COMMANDS = [
    *(
        ["trace"],
        ["lint"],
        ["schedule"],
        ["run"],
        ["report"],
        ["draw", "-o", "graph.dot"],
        ["timeline", "-o", "t.json"],
    ),
    ["fit", "--param", "amount", "--range", "1:2"],
]


def breaks(*_: object, **__: object) -> None:
    """A fault of kernscope's own."""
    format_ps("no time")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_unexpected_exception_is_one_line_and_status_2(kernscope, good, monkeypatch, command):
    """Whatever command it happens in; it asks for a report, and ``--debug`` shows the traceback."""
    monkeypatch.setattr(api, "_trace", breaks)
    monkeypatch.setattr(api, "lint_graph", breaks)
    done = kernscope(*command, good, "--launch", "small")
    told = done.out if command == ["lint"] else done.err
    assert done.status == 2 and "Traceback" not in done.err
    (line,) = [line for line in told.splitlines() if line.startswith("error[")]
    assert line.startswith("error[KE901]: ") and "TypeError: bad operand" in line
    shown = kernscope("--debug", *command, good, "--launch", "small")
    assert shown.status == 2 and "Traceback" in shown.err and "in breaks" in shown.err


def test_a_fault_of_our_own_is_told_from_a_kernels(kernscope, good, monkeypatch):
    """By its code, and by asking for a report."""
    monkeypatch.setattr(api, "lint_graph", breaks)
    done = kernscope("lint", good, "--launch", "small")
    assert done.status == 2 and "error[KE901]: kernscope failed on " in done.out and "please report it" in done.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", [["lint", "mine.py", "--jobs", "0"], ["schedule", "mine.py"], ["explain"]])
def test_a_full_standard_output_is_status_2(good, tmp_path, command):
    """One line that says so, and no complaint of Python's at exit."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kernscope", *command], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "error[KE505]: cannot write to standard output: no space left on device"
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_findings_a_mismatch_and_a_deadlock_are_status_1(kernscope, stale, write):
    """What the user asked about is answered with no."""
    assert kernscope("lint", stale).status == 1
    assert kernscope("run", stale, "--poison").status == 1
    wrong = write(
        """
        @ks.launch("s", x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"), reference=lambda x: x + 1)
        @ks.kernel
        def wrong(x, o):
            tl.store(o[:], tl.load(x[:]))
        """,
        "wrong.py",
    )
    assert kernscope("run", wrong).status == 1
    waits = write(
        """
        @ks.launch("s", ranks=2, o=ks.hbm((2, 16), "f32"))
        @ks.kernel
        def waits(o):
            tile = tl.recv("prev", (1, 16), tl.float32)
            tl.send("next", tile)
        """,
        "waits.py",
    )
    done = kernscope("schedule", waits, "--policy", "lazy")
    assert done.status == 1 and done.err.startswith("error[KE305]: deadlock under lazy")
