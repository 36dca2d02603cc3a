"""Options that several commands share, and how they become a launch, a machine and a graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs
import click

from .. import api
from ..ir.errors import KernelRaisedError, KernscopeError, OptionError, raised
from ..ir.frames import author_place, is_own_fault
from ..ir.graph import Graph
from ..ir.load import load
from ..ir.saved import is_saved_graph
from ..scheduler.machine import DEFAULT_MACHINE, Machine, load_machine
from ..scheduler.schedule import machine_of
from ..tracer.kernel import Launch
from .targets import resolve_launch
from .unexpected import as_user_error

__all__ = ["Job", "machine_options", "make_job", "target_options", "trace_launch"]

F = TypeVar("F", bound=Callable[..., Any])


def machine_options(function: F) -> F:
    """``--machine`` and ``--set``."""
    function = click.option(
        "--set",
        "overrides",
        metavar="FIELD=VALUE",
        multiple=True,
        help="Override a field of the machine, such as gemm.rows=128. Repeatable.",
    )(function)
    return click.option("--machine", metavar="NAME|FILE", help="A machine's name, or a TOML file.")(function)


def target_options(function: F) -> F:
    """``TARGET``, ``--launch``, ``--arg``, ``--ranks``, and the machine's options."""
    function = machine_options(function)
    function = click.option("--ranks", type=click.IntRange(min=1), help="How many ranks to trace.")(function)
    function = click.option(
        "--arg",
        "arguments",
        metavar="NAME=VALUE",
        multiple=True,
        help="A kernel argument: a Python literal, or a tensor such as q=f16[128,128]. Repeatable.",
    )(function)
    function = click.option("--launch", metavar="NAME", help="The launch to use; default: the kernel's first.")(
        function
    )
    return click.argument("target")(function)


@attrs.frozen
class Job:
    """What a command works on: a launch to trace, or a saved graph; and the machine it is traced and scheduled for."""

    machine: Machine
    launch: Launch | None = None
    saved: Graph | None = None

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        if self.launch is not None:
            return self.launch.kernel.name
        assert self.saved is not None, "a job has a launch or a graph"
        return self.saved.kernel

    def graph(self, *, record: bool = False) -> Graph:
        """The graph: traced (``record`` notes overflow and accesses out of bounds rather than raising), or as saved."""
        if self.launch is not None:
            return trace_launch(self.launch, self.machine, record=record)
        assert self.saved is not None, "a job has a launch or a graph"
        return self.saved


def make_job(
    target: str,
    launch: str | None,
    arguments: Sequence[str],
    ranks: int | None,
    machine: str | None,
    overrides: Sequence[str],
) -> Job:
    """The job that the shared options describe."""
    if is_saved_graph(target):
        given = {"--launch": launch, "--arg": arguments, "--ranks": ranks}
        wrong = [option for option, value in given.items() if value]
        if wrong:
            raise OptionError(f"{wrong[0]} with a saved graph", help="it was traced already: give the kernel's file")
        graph = load(target)
        return Job(described_machine(machine or machine_of(graph, None), overrides), saved=graph)
    with contextlib.redirect_stdout(sys.stderr):
        found = resolve_launch(target, launch=launch, arguments=arguments, ranks=ranks, machine=machine)
    return Job(described_machine(found.machine, overrides), launch=found)


def described_machine(machine: Any, overrides: Sequence[str]) -> Machine:
    """A machine with ``--set`` overrides."""
    values: dict[str, str] = {}
    for text in overrides:
        path, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {text!r}", help="write field=value, such as gemm.rows=128")
        values[path.strip()] = value.strip()
    return load_machine(DEFAULT_MACHINE if machine is None else machine).override(values)


def trace_launch(launch: Launch, machine: Machine, *, record: bool = False) -> Graph:
    """Trace a launch for a machine. What the kernel's own code raises becomes a ``KernelRaisedError`` at the author's
    line."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a kernel prints is no result of ours
            return api.trace_for(launch, machine, record=record)
    except KernscopeError as error:
        if not error.places:  # what is wrong with arguments or ranks as a whole
            error.at(author_place(error.__traceback__) or launch.kernel.location)
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a kernel may raise, SystemExit too
        if is_own_fault(error):
            raise as_user_error(error).at(author_place(error.__traceback__)) from error
        raise KernelRaisedError(
            f"kernel {launch.kernel.name} raised {raised(error)}",
            help="the error is the kernel's own; --debug shows all frames",
        ).at(author_place(error.__traceback__)) from error
