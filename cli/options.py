"""Options that several commands share, and how they become a launch, a machine and a graph."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs
import click

from ..face.guard.guard import Guard
from ..face.guard.time_limit import DEFAULT_TIMEOUT_S
from ..face.invocations import launch_invocation, machine_words
from ..face.targets import resolve_launch, split_target
from ..face.tracing import described_machine, trace_launch
from ..ir.errors import ArgumentError, OptionError
from ..ir.forms.saved import is_saved_graph
from ..ir.graph import Graph
from ..ir.grid import Grid, check_grid
from ..linter.invocation import Invocation
from ..machine.description import Machine
from ..scheduler.result.loading import load
from ..scheduler.result.schedule import machine_of
from ..tracer.kernel import Launch
from .completion import complete_fields, complete_launches, complete_machines, complete_targets

__all__ = ["Job", "machine_options", "make_job", "output_file", "target_options", "timeout_option"]

F = TypeVar("F", bound=Callable[..., Any])


def machine_options(function: F) -> F:
    """``--machine`` and ``--set``."""
    function = click.option(
        "--set",
        "overrides",
        metavar="FIELD=VALUE",
        multiple=True,
        shell_complete=complete_fields,
        help="Override a field of the machine, such as gemm.rows=128. Repeatable.",
    )(function)
    return click.option(
        "--machine", metavar="NAME|FILE", shell_complete=complete_machines, help="A machine's name, or a TOML file."
    )(function)


def _number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Refuse the one float that no range refuses."""
    if math.isnan(value):
        raise click.BadParameter("nan is no number of seconds", context, parameter)
    return value


def timeout_option(help: str, default: float = DEFAULT_TIMEOUT_S) -> Callable[[F], F]:
    """``--timeout``, of every command that runs an author's code."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True, max=1e6),
        default=default,
        show_default=True,
        callback=_number,
        metavar="SECONDS",
        help=help,
    )


def _grid(context: click.Context, parameter: click.Parameter, value: str | None) -> Grid:
    try:
        return check_grid(None if value is None else tuple(map(int, value.split(","))))
    except (ValueError, ArgumentError):
        raise click.BadParameter("give one to three positive integers, such as 4,8") from None


def target_options(function: F) -> F:
    """``TARGET``, ``--launch``, ``--arg``, ``--ranks``, ``--grid``, ``--timeout``, and the machine's options."""
    function = machine_options(function)
    function = timeout_option("How long importing TARGET, tracing it, and its reference may take, each.")(function)
    function = click.option("--ranks", type=click.IntRange(min=1), help="How many ranks to trace.")(function)
    function = click.option(
        "--grid", callback=_grid, metavar="N,N,N", help="A launch grid of one to three sizes, such as 4,8."
    )(function)
    function = click.option(
        "--arg",
        "arguments",
        metavar="NAME=VALUE",
        multiple=True,
        help="A kernel argument: a Python literal, or a tensor such as q=f16[128,128]. Repeatable.",
    )(function)
    function = click.option(
        "--launch",
        metavar="NAME",
        shell_complete=complete_launches,
        help="The launch to use; default: the kernel's first.",
    )(function)
    return click.argument("target", shell_complete=complete_targets)(function)


@attrs.frozen
class Job:
    """What a command works on: a launch to trace and the guard of its author's code, or a saved graph; and the machine
    it is traced and scheduled for. ``given`` and ``words`` are the arguments and the other options, as given."""

    machine: Machine
    launch: Launch | None = None
    guard: Guard | None = None
    saved: Graph | None = None
    given: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def invocation(self) -> Invocation | None:
        """How it was asked for; None for a saved graph."""
        return None if self.launch is None else launch_invocation(self.launch, self.given, self.words)

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        if self.launch is not None:
            return self.launch.kernel.name
        assert self.saved is not None, "a job has a launch or a graph"
        return self.saved.kernel

    def graph(self, *, record: bool = False, observe: bool = False) -> Graph:
        """The graph: traced (``record`` notes overflow and accesses out of bounds rather than raising; ``observe``: it
        has the branches that were taken), or as saved."""
        if self.launch is not None and self.guard is not None:
            return trace_launch(
                self.launch, self.machine, self.guard, record=record, observe=observe, invocation=self.invocation
            )
        assert self.saved is not None, "a job has a launch or a graph"
        return self.saved


def make_job(
    target: str,
    launch: str | None,
    arguments: Sequence[str],
    ranks: int | None,
    grid: Grid,
    machine: str | None,
    overrides: Sequence[str],
    timeout_s: float,
) -> Job:
    """The job that the shared options describe."""
    if is_saved_graph(target):
        given = {"--launch": launch, "--arg": arguments, "--ranks": ranks, "--grid": grid}
        wrong = [option for option, value in given.items() if value]
        if wrong:
            raise OptionError(f"{wrong[0]} with a saved graph", help="it was traced already: give the kernel's file")
        graph = load(target)
        return Job(described_machine(machine or machine_of(graph, None), overrides), saved=graph)
    split = split_target(target)
    guard = Guard(split.source, timeout_s=timeout_s, ends_process=True)
    found = resolve_launch(split, guard, launch=launch, arguments=arguments, ranks=ranks, grid=grid, machine=machine)
    words = [] if ranks is None else ["--ranks", str(ranks)]
    words += ["--grid", ",".join(map(str, grid))] if grid else []
    return Job(
        described_machine(found.machine, overrides),
        launch=guard.of_launch(found),
        guard=guard,
        given=tuple(arguments),
        words=(*words, *machine_words(machine, overrides)),
    )


def output_file(kernel: str, extension: str) -> str:
    """What the file of a kernel is called where no name is given."""
    name = re.sub(r"[^0-9A-Za-z_.-]", "_", kernel) or "kernel"
    return f"{name}.{extension}"
