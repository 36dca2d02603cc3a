"""A limit of time for an author's code: it raises at the author's line, and ends the process if that is no help."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from ...ir.errors import TimeLimitError
from ...ir.source.frames import code_location, is_author_file
from ...ir.source.location import Location
from ...linter import Diagnostic
from .children import end_left_behind

__all__ = ["DEFAULT_TIMEOUT_S", "LastWords", "time_limit"]

DEFAULT_TIMEOUT_S = 120.0
#: How long code may take to notice that its time is up: to leave its `finally` blocks.
_GRACE_S = 2.0

_HELP = "mend the loop that never ends, take a smaller launch, or allow more: --timeout SECONDS"
#: What a process says of the limit that ends it, from another thread than the one that is stuck.
LastWords = Callable[[TimeLimitError], None]
#: As it was before anybody could replace it.
_end_process = os._exit


class _TimeUp(BaseException):
    """Raised where the author's code is; no ``except Exception`` of theirs takes it for an error of their own."""


class _Limit:
    """One limit: what it holds for, and the error once it is passed."""

    def __init__(self, what: str, seconds: float) -> None:
        self.what = what
        self.seconds = seconds
        self.error: TimeLimitError | None = None

    def passed(self, frame: FrameType | None) -> TimeLimitError:
        text = f"{self.what} did not end within {self.seconds:g} s"
        self.error = TimeLimitError(text, help=_HELP, places=_authors_place(frame))
        return self.error


def _on_standard_error(error: TimeLimitError) -> None:
    os.write(2, f"{Diagnostic.of_error(error)}\n".encode(errors="backslashreplace"))


@contextlib.contextmanager
def time_limit(
    seconds: float | None, what: str, *, ends_process: bool = False, last_words: LastWords = _on_standard_error
) -> Iterator[None]:
    """Raise ``TimeLimitError``, with the author's line, for whatever runs inside longer than that; None is no limit.

    It is raised by a timer, in a process's main thread. ``ends_process``: what pays no heed to it, and what has no such
    timer (Windows, other threads), ends the process with exit status 2, after its ``last_words``: by default the error
    on standard error. Without it that goes on, and whoever waits for the process has to end it. Native code that keeps
    the interpreter to itself cannot be stopped from inside its process.
    """
    if seconds is None:
        yield
        return
    limit = _Limit(what, seconds)
    with contextlib.ExitStack() as watching:
        has_timer = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        if ends_process:
            watching.enter_context(_watched(limit, seconds + _GRACE_S if has_timer else seconds, last_words))
        try:
            with _alarmed(limit) if has_timer else contextlib.nullcontext():
                yield
        except BaseException:
            if limit.error is not None:
                raise limit.error from None
            raise
        # Swallowed by the author's code, which then ended all the same: what it did is not what it does in time.
        if limit.error is not None:
            raise limit.error


@contextlib.contextmanager
def _alarmed(limit: _Limit) -> Iterator[None]:
    """With a timer of the system. A sooner one that is set already (a test runner's, or an outer limit's) stays."""
    due, _ = signal.getitimer(signal.ITIMER_REAL)
    if 0 < due <= limit.seconds:
        yield
        return

    def stop(_: int, frame: FrameType | None) -> None:
        limit.passed(frame)
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit.seconds)
    try:
        yield
    finally:
        try:
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, before)
        if due:  # later than ours: it goes on
            signal.setitimer(signal.ITIMER_REAL, max(due - (limit.seconds - left), 1e-3))


@contextlib.contextmanager
def _watched(limit: _Limit, seconds: float, last_words: LastWords) -> Iterator[None]:
    """With a thread that ends the process."""
    done = threading.Event()
    watched = threading.get_ident()

    def watch() -> None:
        if done.wait(seconds):
            return
        error = limit.error or limit.passed(sys._current_frames().get(watched))
        try:
            with contextlib.suppress(OSError):
                last_words(error)
        finally:
            with contextlib.suppress(Exception):
                end_left_behind()
            _end_process(2)

    threading.Thread(target=watch, name="kernscope time limit", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _authors_place(frame: FrameType | None) -> Sequence[tuple[str, Location]]:
    """Where the author's code was: their innermost frame."""
    while frame is not None:
        if is_author_file(frame.f_code.co_filename):
            return [("it was here", code_location(frame.f_code, frame.f_lasti, frame.f_lineno))]
        frame = frame.f_back
    return ()
