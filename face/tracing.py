"""Tracing a launch for a machine, by the guarded way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.errors import KernelRaisedError, KernscopeError, OptionError, raised
from ..ir.graph import Graph
from ..ir.source.frames import author_place, is_own_fault
from ..machine.description import DEFAULT_MACHINE, Machine, load_machine
from ..tracer.kernel import Launch
from . import api
from .guard.guard import Guard
from .user_errors import as_user_error

__all__ = ["described_machine", "trace_launch"]


def described_machine(machine: Any, overrides: Sequence[str]) -> Machine:
    """A machine with ``--set`` overrides."""
    values: dict[str, str] = {}
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {text!r}", help="write field=value, such as gemm.rows=128")
        values[path.strip()] = value.strip()
    return load_machine(DEFAULT_MACHINE if machine is None else machine).override(values)


def trace_launch(launch: Launch, machine: Machine, guard: Guard, *, record: bool = False) -> Graph:
    """Trace a launch for a machine. What the kernel's own code raises becomes a ``KernelRaisedError`` at the author's
    line."""

    def failure(error: BaseException) -> KernscopeError:
        if is_own_fault(error):
            return as_user_error(error).at(author_place(error.__traceback__))
        return KernelRaisedError(
            f"kernel {launch.kernel.name} raised {raised(error)}",
            help="the error is the kernel's own; --debug shows all frames",
        ).at(author_place(error.__traceback__))

    try:
        with guard.running(f"tracing {launch.kernel.name} ({launch.name})", failure):
            return api.trace_for(launch, machine, record=record)
    except KernscopeError as error:
        if not error.places:  # what is wrong with arguments or ranks as a whole
            error.at(author_place(error.__traceback__) or launch.kernel.location)
        raise
