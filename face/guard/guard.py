"""The one way in which the code of a kernel's author is run: importing a file, tracing a launch, calling a reference.

What the author's code does to the process stays the author's: standard output, the current folder, ``sys.argv``,
``sys.path``, the environment, filters of warnings, seeds, handlers of signals. It may take its time only, and
whatever leaves it is an error of its own with its line.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import attrs

from ...ir.errors import KernscopeError
from ...tracer.kernel import Launch
from .author_state import AuthorState
from .children import noting_children
from .own_streams import AuthorStreams
from .time_limit import time_limit

__all__ = ["Guard"]

#: As it was before anybody could replace it.
_end_process = os._exit


class Guard:
    """Runs the code of one target. ``source`` is what the author's code finds in ``sys.argv``.

    ``timeout_s`` is the limit of each run (None: none); ``ends_process`` as in :func:`time_limit`. ``lets_pass`` are
    exceptions that mean something to whoever runs us, such as a test runner's for "skip this".
    """

    def __init__(
        self,
        source: str,
        *,
        timeout_s: float | None = None,
        ends_process: bool = False,
        lets_pass: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._timeout_s = timeout_s
        self._ends_process = ends_process
        self._passing: tuple[type[BaseException], ...] = (KernscopeError, *lets_pass)
        self._state = AuthorState(source)
        self._streams = AuthorStreams()

    @contextlib.contextmanager
    def running(self, what: str, failure: Callable[[BaseException], KernscopeError] | None = None) -> Iterator[None]:
        """Run the author's code in the block. What it raises, ``SystemExit`` and its own ``KeyboardInterrupt`` too, is
        raised as the ``failure`` made of it (None: as it is); errors of ours and Ctrl-C pass. Raises
        ``TimeLimitError``."""
        process = os.getpid()
        interrupted: list[bool] = []
        try:
            with noting_children(), self._state.entered(), self._streams.entered(), _signals_kept(interrupted):
                try:
                    with time_limit(self._timeout_s, what, ends_process=self._ends_process):
                        yield
                finally:
                    if os.getpid() != process:  # a fork of the author's: it has no part in what is ours
                        _end_process(0)
        except self._passing:
            raise
        except BaseException as error:
            if failure is None or (isinstance(error, KeyboardInterrupt) and interrupted):
                raise
            raise failure(error) from error

    def of_launch(self, launch: Launch) -> Launch:
        """The launch with a reference that is run as everything of its author's."""
        reference = launch.reference
        if reference is None:
            return launch

        @functools.wraps(reference)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self.running(f"the reference of {launch.kernel.name}"):
                return reference(*args, **kwargs)

        return attrs.evolve(launch, reference=guarded)


@contextlib.contextmanager
def _signals_kept(interrupted: list[bool]) -> Iterator[None]:
    """Handlers of signals that are set inside are gone afterwards; a Ctrl-C is noted in ``interrupted``, so that it can
    be told from a ``KeyboardInterrupt`` that the author's code raises by itself."""
    if threading.current_thread() is not threading.main_thread():
        interrupted.append(True)  # what is not known counts as one
        yield
        return
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(True)
        signal.default_int_handler(number, frame)

    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    else:
        interrupted.append(True)
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: not Python's, and so not changed by it in a way that could be undone.
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
