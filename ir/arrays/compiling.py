"""How inner loops run: one source, as plain Python or compiled.

A loop is a function over flat columns of whole numbers (and single whole numbers) that does no more than index, add and
compare, so that numba's ``njit`` compiles it as it stands. It writes into one of its columns and returns it, or returns
a number. Compiled or not, the results are the same.

A loop may call parts: functions of its own module, which are compiled with it. Several columns may come as one named
tuple. A part that runs often is better given its columns one by one: plain Python is slow at reading fields, and
compiled code counts references to all fields of a tuple that is handed on.

Plain Python is faster for small graphs: numba itself takes about a second to load, and some eight to compile the loops
for the first time (it keeps the outcome on disk). From :data:`COMPILED_FROM` nodes on, loops are compiled where numba
is installed (the extra ``fast``).
"""

from __future__ import annotations

import importlib
import importlib.util
from array import array
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from ..tables import IntArray

__all__ = ["COMPILED_FROM", "LARGEST_COMPILED", "can_compile", "number_loop", "run_loop"]

#: The number of nodes from which a compiled loop is worth its start-up.
COMPILED_FROM = 50_000

#: Compiled numbers are int64, Python's have no end: a loop that may meet larger numbers than this runs as plain Python.
LARGEST_COMPILED = (1 << 63) - 1

#: Above so many rows plain Python reads columns from flat arrays instead of lists: some 15 % slower, but lists of a
#: million integers take five times the memory.
_LISTS_UP_TO = 250_000

#: A column, a number, or several columns as a named tuple, whose fields a loop reads by name.
Argument = IntArray | int | tuple[IntArray, ...]


@cache
def can_compile() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


def run_loop(loop: Callable[..., Any], size: int, *arguments: Argument, exact: bool = True) -> IntArray:
    """Run a loop that returns one of its columns: that column, int64.

    ``size``: the number of nodes, which decides how it runs; ``exact``: whether every number in it fits int64. Columns
    are given over: the loop may write into those that it returns, so pass fresh ones there.
    """
    result: IntArray = np.asarray(_call(loop, size, arguments, exact), dtype=np.int64)
    return result


def number_loop(loop: Callable[..., Any], size: int, *arguments: Argument, exact: bool = True) -> int:
    """As :func:`run_loop`, for a loop that returns a number."""
    return int(_call(loop, size, arguments, exact))


def _call(loop: Callable[..., Any], size: int, arguments: tuple[Argument, ...], exact: bool) -> Any:
    if exact and size >= COMPILED_FROM and can_compile():
        return _compiled(loop)(*(_as_int64(argument) for argument in arguments))
    return loop(*(_as_plain(argument) for argument in arguments))


@cache
def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    numba = importlib.import_module("numba")
    _make_parts_callable(loop)
    try:
        made: Callable[..., Any] = numba.njit(cache=True)(loop)
    except RuntimeError:  # no folder that it may write its cache to: an installation that is read only
        made = numba.njit(loop)
    return made


@cache
def _make_parts_callable(loop: Callable[..., Any]) -> None:
    """Lets compiled code call the functions that a loop calls, and those that these call."""
    register = importlib.import_module("numba.extending").register_jitable
    code, named = loop.__code__, loop.__globals__
    for part in (named[name] for name in code.co_names if isinstance(named.get(name), FunctionType)):
        # What is kept on disk is compiled anew when the loop's file changes, not when another does.
        assert part.__module__ == loop.__module__, f"{part.__qualname__} stands in another module than its loop"
        # Put in place by LLVM, not by numba (`inline="always"`), which in version 0.68 made a loop with other results.
        register(forceinline=True)(part)
        _make_parts_callable(part)


def _as_int64(argument: Argument) -> Any:
    if isinstance(argument, tuple):
        return type(argument)(*map(_as_int64, argument))
    return argument if isinstance(argument, int) else np.ascontiguousarray(argument, dtype=np.int64)


def _as_plain(argument: Argument) -> Any:
    """The one place where columns become Python's numbers."""
    if isinstance(argument, tuple):
        return type(argument)(*map(_as_plain, argument))
    if isinstance(argument, int):
        return argument
    if len(argument) <= _LISTS_UP_TO:
        return argument.tolist()
    flat = array("q")
    flat.frombytes(np.ascontiguousarray(argument, dtype=np.int64).tobytes())
    return flat
