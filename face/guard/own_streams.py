"""Standard output and error kept for the tool: what an author's code prints, and any program that it starts, goes to
standard error, and nothing that it does to its streams is done to ours."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO, cast

from ...ir.forms.printable import printable
from ...ir.output import output_error
from .children import adopt_orphans, end_left_behind

__all__ = [
    "AuthorStreams",
    "ReaderGone",
    "ToolStream",
    "end_program",
    "keep_streams",
    "own_streams",
    "refuse_other_ends",
]

#: How long what is registered to be done at exit may take.
_EXIT_S = 5.0
_INCOMPLETE = "what arrived there is not all that there is to say"
#: As they were before anybody could replace them.
_end_process = os._exit
_replacing = {name: getattr(os, name) for name in ("execv", "execve")}


class ReaderGone(BaseException):
    """Whoever read standard output has gone (``| head``): the program ends, and has nothing to tell anybody. No
    ``except Exception`` on the way takes it for an error."""


class ToolStream:
    """A standard stream of the tool's own. ``author`` is the stream that an author's code has in its place.

    Standard output raises ``OutputError`` for what cannot be written, and ``ReaderGone``. On standard error nobody
    could be told.
    """

    def __init__(self, stream: TextIO | None, author: TextIO | None, *, is_output: bool) -> None:
        self.author = author
        self._stream = stream
        self._is_output = is_output
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        """Write what the tool says; of another thread, which an author's code has left behind, to its own stream."""
        if self._is_output and threading.get_ident() != self._thread:
            return self.author.write(text) if self.author is not None else len(text)
        self._do("write", text)
        return len(text)

    def write_last(self, text: str) -> None:
        """Write the last that the tool has to say, from whichever thread ends the process."""
        self._do("write", text)
        self._do("flush")

    def writelines(self, lines: list[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand on what was written."""
        self._do("flush")

    def _do(self, what: str, *arguments: str) -> None:
        if self._stream is None:
            if self._is_output and arguments:
                raise output_error("to standard output", "it is closed", help="redirect it to a file or to /dev/null")
            return
        try:
            getattr(self._stream, what)(*arguments)
        except OSError as problem:
            if self._is_output and isinstance(problem, BrokenPipeError):
                raise ReaderGone from None
            if self._is_output:
                raise output_error("to standard output", problem, help=_INCOMPLETE) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class AuthorStreams:
    """The streams that one author's code writes to. What it puts in their place holds whenever it runs again, and is
    never collected: a wrapper that goes closes what it wraps."""

    def __init__(self) -> None:
        self._theirs: tuple[Any, Any] | None = None
        self._held: list[Any] = []

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Run with them; our own are back afterwards."""
        ours = sys.stdout, sys.stderr
        given = self._theirs or (_of_author(ours[0]), _of_author(ours[1]))
        sys.stdout, sys.stderr = given
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # closed, or anything that the author has made of it
                sys.stdout.flush()
            left = sys.stdout, sys.stderr
            if left != given:
                self._theirs = left
                self._held.append(left)
            sys.stdout, sys.stderr = ours


def _of_author(stream: Any) -> Any:
    return stream.author if isinstance(stream, ToolStream) else stream


@contextlib.contextmanager
def own_streams() -> Iterator[None]:
    """Keep the streams for the tool inside, unless they are kept already; they are as before afterwards."""
    if isinstance(sys.stdout, ToolStream):
        yield
        return
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as undo:
        kept = keep_streams()
        undo.callback(_give_back, kept, before)
        yield


def keep_streams() -> int | None:
    """Keep the streams for the tool: what descriptor 1 was is known to us alone, and is what ``sys.stdout`` writes to;
    descriptor 1 leads to standard error. Returns the descriptor kept (None: it was closed)."""
    out, err = sys.stdout, sys.stderr
    for stream in (out, err):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    for descriptor in (0, 2):
        _ensure_open(descriptor)
    try:
        kept = os.dup(1)
    except OSError:
        kept = None
    ours = [_reopened(out, 1, kept), _reopened(err, 2, os.dup(2))]
    theirs = [out if ours[0] is not out else err, err]
    os.dup2(2, 1)
    with contextlib.suppress(AttributeError, OSError, ValueError):
        cast(Any, theirs[0]).reconfigure(line_buffering=True)  # in its place between the lines of standard error
    sys.stdout = cast(TextIO, ToolStream(ours[0], theirs[0], is_output=True))
    sys.stderr = cast(TextIO, ToolStream(ours[1], theirs[1], is_output=False))
    return kept


def _give_back(kept: int | None, before: tuple[TextIO, TextIO]) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception, ReaderGone):
            stream.flush()
    if kept is not None:
        os.dup2(kept, 1)
    sys.stdout, sys.stderr = before


def _ensure_open(descriptor: int) -> None:
    """A standard stream that is closed would be the next file that anybody opens."""
    try:
        os.fstat(descriptor)
    except OSError:
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)


def _reopened(stream: TextIO | None, descriptor: int, kept: int | None) -> TextIO | None:
    """A stream of our own on the descriptor kept, like the one that is there. One that leads elsewhere (captured by
    whoever runs us) is our own as it is."""
    try:
        if stream is None or stream.fileno() != descriptor:
            return stream
    except (AttributeError, OSError, ValueError):
        return stream
    if kept is None:
        return None
    return open(  # until the process ends
        kept,
        "w",
        encoding=stream.encoding,
        errors="backslashreplace" if stream.errors == "strict" else stream.errors,
        closefd=False,
    )


# --- the end ----------------------------------------------------------------------------------------------------------


def refuse_other_ends() -> None:
    """From now on an author's code cannot end the process, or replace it, as if all were well: ``os._exit`` and
    ``os.exec`` raise ``SystemExit``. In a process that it forked, they are what they were."""
    process, thread = os.getpid(), threading.get_ident()

    adopt_orphans()

    def refused(name: str, status: object) -> None:
        if os.getpid() != process:
            return
        text = f"os.{name}({status!r})"
        if threading.get_ident() == thread:
            raise SystemExit(text)
        with contextlib.suppress(OSError):
            os.write(2, f"error: a thread of the kernel's file ended the process: {text}\n".encode())
        _end_process(2)

    def end(status: int) -> NoReturn:
        refused("_exit", status)
        _end_process(status)

    def replacing(name: str) -> Any:
        def replace(path: Any, *arguments: Any) -> Any:
            refused(name, path)
            return _replacing[name](path, *arguments)

        return replace

    os._exit = end
    for name in _replacing:
        setattr(os, name, replacing(name))


def end_program(status: int) -> NoReturn:
    """End the process now: what is registered to be done at exit is done, threads that an author's code has left behind
    are not waited for, and nothing of theirs reaches standard output."""
    threading.Timer(_EXIT_S, _end_all, [status]).start()
    with contextlib.suppress(Exception, ReaderGone):
        sys.stdout.flush()
    sys.stdout, sys.stderr = _of_author(sys.stdout), _of_author(sys.stderr)
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _end_all(status)


def _end_all(status: int) -> NoReturn:
    """End the process, and first those that an author's code has left running."""
    with contextlib.suppress(Exception):
        for name in end_left_behind():
            os.write(
                2, f"note: the kernel's file left a process running, which was ended: {printable(name)}\n".encode()
            )
    _end_process(status)
