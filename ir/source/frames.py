"""Whose frames are whose. A kernel's author needs to see their own: not kernscope's, not numpy's, not Python's.

A front end outside kernscope adds folders of its own (``own``), whose frames count as kernscope's. Nodes, errors, time
limits and what a file raises while it is imported are all blamed on the author's innermost frame.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, TracebackType

from ..errors import KernscopeError
from .location import Location

__all__ = [
    "CodePosition",
    "OwnFolders",
    "author_place",
    "code_location",
    "is_author_file",
    "is_own_fault",
    "location_of",
    "own_folders",
]

CodePosition = tuple[int | None, int | None, int | None, int | None]
#: What :func:`own_folders` makes.
OwnFolders = tuple[str, ...]

_ROOT = Path(__file__).resolve().parents[2]
#: Files of these are kernscope's own. The root itself may be a checkout with a user's files in it, and the kernels
#: that come with kernscope are written as an author would write them.
_FOLDERS = (
    "analysis",
    "backends",
    "checker",
    "cli",
    "face",
    "ir",
    "linter",
    "machine",
    "memory",
    "scheduler",
    "tracer",
)
_MODULES = ("__init__", "__main__", "blas_threads")
#: Packages that call authors, or that authors call through: numpy's functions call a handle's methods.
_PACKAGES = ("click", "ml_dtypes", "numpy")
#: Code without a file that Python, numpy and attrs make; other code in angle brackets is a notebook's cell or a string.
_GENERATED = ("<frozen ", "<__array_function__", "<attrs generated")
#: Below Python's own folder, but not Python's.
_INSTALLED = ("site-packages", "dist-packages")


def _folders_of(package: str) -> list[str]:
    found = importlib.util.find_spec(package)
    return list(found.submodule_search_locations or ()) if found is not None else []


_OWN = (
    *(os.path.join(str(_ROOT / folder), "") for folder in _FOLDERS),
    *(str(_ROOT / f"{name}.py") for name in _MODULES),
)
_LIBRARIES = tuple(os.path.join(os.path.realpath(f), "") for package in _PACKAGES for f in _folders_of(package))
_PYTHON = tuple(os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib"))


def own_folders(folders: Iterable[str | os.PathLike[str]]) -> OwnFolders:
    """Folders of a front end, in the form in which files are compared with them."""
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)


@functools.lru_cache(maxsize=4096)
def is_author_file(file: str, own: OwnFolders = ()) -> bool:
    """Whether code of a file is an author's: not kernscope's, not numpy's, not of Python's standard library, and in
    none of a front end's ``own`` folders."""
    if file.startswith("<"):
        return not file.startswith(_GENERATED)
    real = os.path.realpath(file)
    if real.startswith(_OWN + _LIBRARIES + own):
        return False
    for folder in _PYTHON:
        if real.startswith(folder):
            return real[len(folder) :].startswith(_INSTALLED)
    return True


def is_own_fault(error: BaseException, own: OwnFolders = ()) -> bool:
    """Whether an exception is a fault of kernscope's or a front end's code, not of an author's: libraries raise for
    whoever called them. What kernscope raises for a user is none; a recursion that is too deep may end anywhere, and is
    the author's; and so is what ends a process, which a guarded ``os._exit`` raises for them."""
    if not isinstance(error, Exception) or isinstance(error, KernscopeError | RecursionError):
        return False
    for entry in reversed(list(_entries(error.__traceback__))):
        file = entry.tb_frame.f_code.co_filename
        if is_author_file(file, own):
            return False
        if os.path.realpath(file).startswith(_OWN + own):
            return True
    return False


def author_place(trace: TracebackType | None, own: OwnFolders = ()) -> Location | None:
    """The author's innermost line of a traceback, with its callers; None where no frame is the author's. A line that
    calls itself again and again stands there once."""
    frames = [
        (entry.tb_frame.f_code, entry.tb_lasti, entry.tb_lineno)
        for entry in _entries(trace)
        if is_author_file(entry.tb_frame.f_code.co_filename, own)
    ]
    different = [frame for frame, _ in itertools.groupby(reversed(frames))]
    if not different:
        return None
    innermost, *callers = [code_location(*frame) for frame in different]
    return innermost.called_from(callers)


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def code_location(code: CodeType, instruction: int, line: int | None) -> Location:
    """The place of an instruction of a code object, without its callers."""
    unknown: CodePosition = (None, None, None, None)
    return location_of(code, next(itertools.islice(code.co_positions(), max(0, instruction) // 2, None), unknown), line)


def location_of(code: CodeType, position: CodePosition, line: int | None) -> Location:
    """A place of a code object, given its position as ``co_positions`` has it."""
    start, end_line, column, end_column = position
    return Location(
        file=code.co_filename,
        line=start or line or code.co_firstlineno,
        function=code.co_name,
        column=-1 if column is None else column,
        end_line=-1 if end_line is None else end_line,
        end_column=-1 if end_column is None else end_column,
    )
