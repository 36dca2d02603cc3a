"""Points examined in processes of their own, several at a time: one that crashes, hangs or exits is a row."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from .request import Request
from .result import SweepRow, failed_row

__all__ = ["PointProcess", "examine_apart"]

_COMMAND = (sys.executable, "-m", "kernscope.face.sweeping.point")


class PointProcess:
    """A process that examines one point after the other, and is started anew where it ended. ``folder`` is the current
    one of its kernel's code."""

    def __init__(self, request: Request, timeout_s: float, folder: str | None = None) -> None:
        self._request = request
        self._timeout_s = timeout_s
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def examine(self, point: Mapping[str, str]) -> SweepRow:
        """The row of a point."""
        process = self._started()
        late = threading.Event()

        def end() -> None:
            late.set()
            self._kill(process)

        timer = threading.Timer(self._timeout_s, end)
        timer.start()
        try:
            answer = self._ask(process, json.dumps(point))
        finally:
            timer.cancel()
        if answer:
            return SweepRow(**json.loads(answer))
        self.close()
        if late.is_set():
            return failed_row(point, f"did not end within {self._timeout_s:g} s")
        return failed_row(point, f"ended its process: {_ending(process.returncode)}")

    def close(self) -> None:
        """End the process, and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        # One that was about to end by itself says how.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5 if process.poll() is None and process.stdin and process.stdin.closed else 0.2)
        self._kill(process)
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                cwd=self._folder,
                start_new_session=True,
            )
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):  # told by the first point
                self._process.stdin.write(self._request.to_json() + "\n")
        return self._process

    @staticmethod
    def _ask(process: subprocess.Popen[str], line: str) -> str:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except (OSError, ValueError):
            return ""
        return answer if answer.endswith("\n") else ""

    @staticmethod
    def _kill(process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()


def _ending(status: int | None) -> str:
    if status is None or status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


def examine_apart(
    request: Request, points: Sequence[Mapping[str, str]], *, processes: int, timeout_s: float
) -> Iterator[SweepRow]:
    """The rows of all points, as they come. However this ends, no process of it is left."""
    waiting: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
    for point in points:
        waiting.put(point)
    done: queue.SimpleQueue[SweepRow | BaseException] = queue.SimpleQueue()
    stopped = threading.Event()
    workers = [PointProcess(request, timeout_s) for _ in range(min(processes, len(points)))]

    def work(worker: PointProcess) -> None:
        try:
            while not stopped.is_set():
                try:
                    point = waiting.get_nowait()
                except queue.Empty:
                    return
                done.put(worker.examine(point))
        except BaseException as error:
            done.put(error)

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for _ in points:
            row = done.get()
            if isinstance(row, BaseException):
                raise row
            yield row
    finally:
        stopped.set()
        for worker in workers:
            worker.close()
        for thread in threads:
            thread.join()
