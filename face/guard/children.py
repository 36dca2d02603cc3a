"""Processes that an author's code leaves running: they are ended with the command, and only they.

On Linux, where ``/proc`` tells children apart; elsewhere nothing is known, and nothing is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["adopt_orphans", "end_left_behind", "noting_children"]

#: A process: its number, and when it started, since numbers are given again.
_Process = tuple[int, str]
#: From <linux/prctl.h>.
_SET_CHILD_SUBREAPER = 36
_MOMENT_S = 0.2

_left: set[_Process] = set()
#: The children that there were when each run began that has not ended yet.
_before: list[set[_Process]] = []


def adopt_orphans() -> None:
    """What a child leaves behind as it ends becomes a child of this process, not of the system's first."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def noting_children() -> Iterator[None]:
    """Note the processes that are started inside and still run at its end."""
    before = _children(os.getpid())
    _before.append(before)
    try:
        yield
    finally:
        _before.remove(before)
        _left.update(_children(os.getpid()) - before)


def end_left_behind() -> list[str]:
    """End the processes noted, and those of runs that have not ended, with all that they started; what each was."""
    running = _children(os.getpid())
    found = sorted((_left & running).union(*(running - before for before in _before)))
    # One that was just killed, by what the author's code does at exit, takes a moment to end.
    until = time.monotonic() + _MOMENT_S
    while any(not _is_over(number) for number, _ in found) and time.monotonic() < until:
        time.sleep(_MOMENT_S / 20)
    return [_end(process) for process in found if not _is_over(process[0])]


def _end(process: _Process) -> str:
    number, _ = process
    name = _read(f"/proc/{number}/cmdline").replace("\0", " ").strip()
    descendants = [number]
    for each in descendants:  # grows on the way
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGSTOP)  # it starts no more while its children are looked for
        descendants += sorted(child for child, _ in _children(each))
    for each in descendants:
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)
    return name or f"process {number}"


def _children(parent: int) -> set[_Process]:
    """The processes that a process has started, those that have ended and were not waited for included."""
    found: set[_Process] = set()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            found.update((int(child), _started(int(child))) for child in _read(f"{task}/children").split())
    return found


def _started(process: int) -> str:
    fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _is_over(process: int) -> bool:
    return _read(f"/proc/{process}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
