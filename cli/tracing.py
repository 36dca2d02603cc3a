"""Tracing a launch for a machine, by the guarded way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import api
from ..frames import with_author_frames
from ..ir.errors import KernelRaisedError, OptionError
from ..ir.graph import Graph
from ..scheduler.machine import DEFAULT_MACHINE, Machine, load_machine
from ..tracer.kernel import Launch
from .guard import Guard

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
    """Trace a launch for a machine. What the kernel's own code raises becomes a ``KernelRaisedError`` with the author's
    frames."""

    def failure(error: BaseException) -> KernelRaisedError:
        return KernelRaisedError(
            f"kernel {launch.kernel.name} raised {with_author_frames(error)}",
            help="the error is the kernel's own; --debug shows all frames",
        )

    with guard.running(f"tracing {launch.kernel.name} ({launch.name})", failure):
        return api.trace_for(launch, machine, record=record)
