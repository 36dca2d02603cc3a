"""Tracing a launch for a machine, by the guarded way."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from ..analysis.analysis import Analysis
from ..ir.errors import KernelRaisedError, KernscopeError, OptionError, ScratchOverflowError, TimeLimitError, raised
from ..ir.graph import Graph
from ..ir.source.frames import author_place, is_own_fault
from ..linter import lint_graph
from ..linter.invocation import Invocation
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


def trace_launch(
    launch: Launch,
    machine: Machine,
    guard: Guard,
    *,
    record: bool = False,
    observe: bool = False,
    invocation: Invocation | None = None,
) -> Graph:
    """Trace a launch for a machine. What the kernel's own code raises becomes a ``KernelRaisedError`` at the author's
    line. Where scratch overflows, the error has the help of the rule that looks at the whole trace (KS101);
    ``observe``: the graph has the branches that were taken. ``invocation`` is how the launch was asked for."""

    def failure(error: BaseException) -> KernscopeError:
        if is_own_fault(error):
            return as_user_error(error).at(author_place(error.__traceback__))
        return KernelRaisedError(
            f"kernel {launch.kernel.name} raised {raised(error)}",
            help="the error is the kernel's own; --debug shows all frames",
        ).at(author_place(error.__traceback__))

    try:
        with guard.running(f"tracing {launch.kernel.name} ({launch.name})", failure):
            return api.trace_for(launch, machine, record=record, observe=observe)
    except ScratchOverflowError as error:
        error.help = _overflow_help(launch, machine, guard, invocation) or error.help
        raise
    except KernscopeError as error:
        if not error.places:  # what is wrong with arguments or ranks as a whole
            error.at(author_place(error.__traceback__) or launch.kernel.location)
        raise


def _overflow_help(launch: Launch, machine: Machine, guard: Guard, invocation: Invocation | None) -> str:
    """What the linter says to an overflow, from a trace that goes on past it; empty where there is no such trace."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            graph = trace_launch(launch, machine, guard, record=True)
    except TimeLimitError:
        raise
    except KernscopeError:  # the kernel has another fault later on; the overflow comes first
        return ""
    found = lint_graph(Analysis(graph, machine), select=["KS101"], invocation=invocation).of("KS101")
    return found[0].help if found else ""
