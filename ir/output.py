"""Writing what a user asked for to where they asked for it: whole or not at all, and what was there stays until then.

A regular file is written beside its place and renamed onto it; anything else (a device, a FIFO, a terminal) is written
through and keeps being what it is, and so does a symbolic link. Every command and function that writes does it here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import OutputError, shown

__all__ = ["check_output", "expect_path", "open_output", "output_error", "write_output"]

_AnyPath = str | os.PathLike[str]

#: Names of the standard output. It is wherever ``sys.stdout`` leads, which need not be descriptor 1.
_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: Below these a link stands for a descriptor that somebody holds open: a file renamed onto its target would not be it.
_OF_THE_SYSTEM = ("/dev/", "/proc/")
#: A folder in which nothing can be made, and a file that is a mount of its own, leave only the file itself to write to.
_NOT_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV)
_MOST_LINKS = 40

_HELP = {
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ENOSPC: "make room, or name a path on another disk; what was there before is untouched",
    errno.ENOENT: "make the folder first, or name another path",
    errno.EISDIR: "name a file inside it",
}
_OTHER_HELP = "name a path that you may write to"


def output_error(path: _AnyPath, problem: OSError | ValueError | str, *, help: str = "") -> OutputError:
    """The error for a path that cannot be written."""
    code = problem.errno if isinstance(problem, OSError) else None
    what = (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)
    return OutputError(
        f"cannot write {_shown(path)}: {what[:1].lower()}{what[1:]}", help=help or _HELP.get(code or 0, _OTHER_HELP)
    )


def expect_path(path: object) -> None:
    """Raise ``OutputError`` for what is no path at all."""
    if not isinstance(path, str | os.PathLike):
        raise OutputError(f"{shown(path)} is no path", help="pass a file's name, a str or a Path")


def check_output(path: _AnyPath) -> None:
    """Raise ``OutputError`` before any work is done where a file cannot be written: no such folder, the path is a
    folder, a name that the system does not take, no permission."""
    expect_path(path)
    target = Path(path)
    try:
        mode = _mode_of(target)
        is_folder = target.parent.is_dir()
    except (OSError, ValueError) as problem:
        raise output_error(path, problem) from problem
    if not is_folder:
        raise output_error(path, f"there is no folder {_shown(target.parent)}", help=_HELP[errno.ENOENT])
    if mode is not None and stat.S_ISDIR(mode):
        raise output_error(path, "it is a folder", help=_HELP[errno.EISDIR])
    if not os.access(target if mode is not None else target.parent, os.W_OK):
        raise output_error(path, "permission denied")


def write_output(path: _AnyPath, data: bytes) -> Path:
    """Write a file and return its path. Raises ``OutputError`` where that is not possible."""
    with open_output(path) as file:
        file.write(data)
    return Path(path)


@contextlib.contextmanager
def open_output(path: _AnyPath) -> Iterator[BinaryIO]:
    """A file to write to, which is at its place once the block has ended well. If it has not, and if anything cannot be
    written, what was there before stays. Raises ``OutputError`` for what the system refuses, inside the block too."""
    check_output(path)
    try:
        if os.path.abspath(path) in _STANDARD_OUTPUT:
            with _standard_output() as file:
                yield file
            return
        mode = _mode_of(Path(path))
        if (mode is not None and not stat.S_ISREG(mode)) or _is_of_the_system(path):
            with open(path, "wb") as file:
                yield file
            return
        with _beside(os.path.realpath(path), mode) as file:
            yield file
    except OutputError:
        raise
    except OSError as problem:
        raise output_error(path, problem) from problem


def _mode_of(path: Path) -> int | None:
    """What kind of thing is at a path, links followed; None: nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_of_the_system(path: _AnyPath) -> bool:
    """Whether a path leads through a name below ``/dev`` or ``/proc``, such as ``/dev/fd/5``."""
    hop = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        if hop.startswith(_OF_THE_SYSTEM):
            return True
        if not os.path.islink(hop):
            return False
        hop = os.path.abspath(os.path.join(os.path.dirname(hop), os.readlink(hop)))
    return False


@contextlib.contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError):  # captured by whoever runs us
        descriptor = 1
    with open(descriptor, "wb", closefd=False) as file:
        yield file


@contextlib.contextmanager
def _beside(target: str, mode: int | None) -> Iterator[BinaryIO]:
    """A new file in the target's folder, renamed onto it in the end. Its name does not hold the target's, which may be
    as long as names can be."""
    partial = os.path.join(os.path.dirname(target), f".kernscope-{uuid.uuid4().hex[:16]}.partial")
    try:
        file = open(partial, "xb")  # noqa: SIM115  # closed below, before it is renamed
    except OSError as problem:
        if problem.errno not in _NOT_BESIDE or mode is None:
            raise
        with open(target, "wb") as itself:
            yield itself
        return
    try:
        with file:
            yield file
            if mode is not None:
                with contextlib.suppress(OSError):  # a file system without modes
                    os.chmod(partial, stat.S_IMODE(mode))
        _rename(partial, target)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)


def _rename(partial: str, target: str) -> None:
    try:
        os.replace(partial, target)
    except OSError as problem:
        if problem.errno not in _NOT_BESIDE or not os.path.isfile(target):
            raise
        with open(partial, "rb") as source, open(target, "wb") as itself:  # a file that is a mount of its own
            while part := source.read(1 << 20):
                itself.write(part)


def _shown(path: _AnyPath) -> str:
    text = os.fspath(path)
    return text if text.isprintable() and text else ascii(text)
