"""Jobs on launches in processes of their own, several at a time.

Each launch has a process, so that one that crashes, hangs, exits or is killed takes no other with it. A file whose
launches are not known yet begins with a process that finds them and does the first; the others follow.

The processes are forked from a server that has imported this package and nothing of the user's (elsewhere than on Linux
they are spawned: macOS's own libraries do not survive a fork, Windows has none).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

import attrs

from ..face.guard.own_streams import keep_streams
from ..face.launch_job import Found, LaunchJob, perform
from ..ir.errors import KernelProcessError, TimeLimitError
from ..linter.findings import Failure

__all__ = ["Key", "available_cores", "run_jobs"]

#: Where an answer belongs: the number of the first job, then of the launch within it; a target's ``Found`` has -1.
Key = tuple[int, int]
R = TypeVar("R")

#: How long a process may take to start (a busy machine takes its time), and to end by itself once it is past its limit.
_START_S = 120.0
_GRACE_S = 2.0
_READY = "ready"

if sys.platform == "linux":
    _CONTEXT = multiprocessing.get_context("forkserver")
    _CONTEXT.set_forkserver_preload(["kernscope.cli"])
else:
    _CONTEXT = multiprocessing.get_context("spawn")


@attrs.frozen(eq=False)
class _Running:
    """A process at work. Its time is up at ``deadline`` of the monotonic clock."""

    key: Key
    job: LaunchJob[Any]
    process: BaseProcess
    connection: Connection
    deadline: float


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[LaunchJob[R]],
    *,
    processes: int,
    timeout_s: float,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Mapping[Key, Found | Failure | R]:
    """The answers of all jobs, by where they belong, whatever is finished first.

    At most ``processes`` at a time; each may take ``timeout_s`` for its launch. ``progress`` is told how many launches
    are done, of how many known, and what was the last one. However this ends, no process of it is left.
    """
    waiting = deque(((number, 0), job) for number, job in enumerate(jobs))
    answers: dict[Key, Found | Failure | R] = {}
    running: list[_Running] = []
    total, done = len(jobs), 0
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                running.append(_start(*waiting.popleft(), timeout_s))
            for one, answer in _events(running, timeout_s):
                if isinstance(answer, Found):
                    answers[one.key[0], -1] = answer
                    more = [attrs.evolve(one.job, launch=launch) for launch in answer.launches]
                    waiting.extendleft(reversed([((one.key[0], n), job) for n, job in enumerate(more) if n]))
                    total += max(0, len(more) - 1)
                    if more:
                        continue
                else:
                    answers[one.key] = answer
                done += 1
                progress(done, total, str(one.job))
    finally:
        for one in running:
            _end(one)
        _end_server()
    return answers


def _events(running: list[_Running], timeout_s: float) -> Iterator[tuple[_Running, Any]]:
    """Wait until something happens; what processes answer, and failures of those that cannot any more. Takes processes
    that have done their job off the list."""
    soonest = min(one.deadline for one in running)
    ready = set(wait([one.connection for one in running], max(0.0, soonest - time.monotonic())))
    for position, one in reversed(list(enumerate(running))):
        if one.connection in ready:
            received = _receive(one)
            if isinstance(received, str | Found):
                # It goes on: with importing its file, or with the first of the launches found.
                first = received.launches[0] if isinstance(received, Found) and received.launches else one.job.launch
                deadline = time.monotonic() + timeout_s + _GRACE_S
                running[position] = attrs.evolve(one, job=attrs.evolve(one.job, launch=first), deadline=deadline)
            if isinstance(received, str):
                continue
            answer: Any = received
        elif time.monotonic() >= one.deadline:
            late = TimeLimitError(
                f"{one.job} did not end within {timeout_s:g} s: its process was killed",
                help="run it alone to see where; or allow more: --timeout SECONDS",
            )
            answer = Failure.of(str(one.job), late)
        else:
            continue
        if not isinstance(answer, Found) or not answer.launches:
            _end(running.pop(position))
        yield one, answer


def _receive(one: _Running) -> Any:
    """What a process sent; of one that ended without an answer, how it ended."""
    try:
        answer = one.connection.recv()
    except (EOFError, OSError):
        one.process.join(_GRACE_S)
        how = _ending(one.process.exitcode)
        ended = KernelProcessError(f"{one.job} ended its process: {how}", help=f"run it alone: {one.job.command_alone}")
        return Failure.of(str(one.job), ended)
    return answer


def _ending(exitcode: int | None) -> str:
    if exitcode is None:
        return "it closed its connection"
    if exitcode >= 0:
        return f"exit status {exitcode}"
    try:
        return f"killed by {signal.Signals(-exitcode).name}"
    except ValueError:
        return f"killed by signal {-exitcode}"


# --- processes --------------------------------------------------------------------------------------------------------


def _start(key: Key, job: LaunchJob[Any], timeout_s: float) -> _Running:
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_work, args=(job, timeout_s, theirs), name=f"kernscope {job.command} {job}")
    with _interrupts_held():
        process.start()
    theirs.close()  # so that the end of the process is the end of the connection
    return _Running(key, job, process, ours, time.monotonic() + _START_S)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """A process that starts meanwhile ignores Ctrl-C until it has a session of its own: we end it, without its
    traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(one: _Running) -> None:
    """End a process, and all that it started, if it has not ended by itself."""
    if hasattr(os, "killpg") and one.process.pid is not None:
        # It leads a session of its own, unless it was too early ended for that.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(one.process.pid, signal.SIGKILL)
    one.process.kill()
    one.process.join()
    one.process.close()
    one.connection.close()


def _end_server() -> None:
    """End the server of processes: it has the folder, the environment and the standard streams of its beginning, which
    may be others when processes are needed again."""
    if sys.platform == "linux":
        # The only public way to end it is to end this process.
        multiprocessing.forkserver._forkserver._stop()  # type: ignore[attr-defined]  # not in typeshed


def _work(job: LaunchJob[Any], timeout_s: float, connection: Connection) -> None:
    """The process's side."""
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_streams()  # what kernels print is no result of ours

    def send(answer: Any) -> None:
        sys.stdout.flush()  # the process is ended as soon as its last answer is there
        connection.send(answer)

    with contextlib.suppress(BrokenPipeError):  # nobody is there any more to be told
        send(_READY)
        perform(job, send, timeout_s=timeout_s)


def _end_with_parent() -> None:
    """Nothing goes on for a command that is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
