"""Programs of the generator as graphs without scopes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import kernelgen

import kernscope as ks
from kernscope.memory.automatic import placed
from kernscope.tracer.trace import recording

__all__ = ["record", "unplaced"]

#: Its own frames are not those of an author.
FOLDERS = (Path(__file__).parent,)


def unplaced(program: kernelgen.Program, own: Iterable[str | os.PathLike[str]] = FOLDERS) -> ks.Graph:
    """The graph of a program, its allocations without addresses."""
    machine = program.machine
    with recording(
        machine.target, machine.name, program.ranks, kernel="straight_line", own=own, automatic=True
    ) as trace:
        tensors = {name: trace.tensor(name, spec.layout) for name, spec in program.tensors.items()}
        for _ in trace.ranks():
            trace.call(passed_on, program.carry_out, tensors, no_scope)
    return trace.finish({})


def passed_on(function: Callable[..., None], *args: Any) -> None:
    """A frame of the front end's between the author's and what calls a kernel."""
    function(*args)


def record(program: kernelgen.Program) -> ks.Graph:
    """The graph of a program, with addresses."""
    return placed(unplaced(program))


def no_scope(name: str | None = None) -> contextlib.AbstractContextManager[None]:
    """What stands in a scope's place."""
    return contextlib.nullcontext()
