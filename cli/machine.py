"""``kernscope machine``: descriptions of machines, with where their numbers come from; and ``machine fit``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import click

from ..face.guard.guard import Guard
from ..face.machine_fitting import Parameter, fit_machine
from ..face.measured_times import read_measured
from ..face.targets import resolve_launch, split_target
from ..face.tracing import described_machine, trace_launch
from ..ir.errors import OptionError
from ..ir.graph import Graph
from ..ir.output import check_output, write_output
from ..machine.description import DEFAULT_MACHINE, load_machine, machine_comments, machine_names
from ..scheduler.policy.registry import POLICIES
from .choices import Choice
from .command import Command
from .completion import complete_fields, complete_machines
from .options import timeout_option
from .tables import say

__all__ = ["machine"]


class _ShowsByDefault(click.Group):
    """``machine NAME`` shows a machine; ``machine fit ...`` is a command."""

    command_class = Command

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["show", *args]
        return super().parse_args(context, args)


@click.group(cls=_ShowsByDefault, short_help="Show a machine, check a machine file, or fit one.")
def machine() -> None:
    """Show a machine with where its numbers come from, or validate a machine file; without one, list the machines that
    come with kernscope.

    \b
    Examples:
      kernscope machine
      kernscope machine trn1 --set dma.latency_ns=0
      kernscope machine mine.toml
      kernscope machine fit mine.toml measured.csv --param dma.latency_ns=0:2000
    """


@machine.command()
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=complete_machines)
@click.option(
    "--set",
    "overrides",
    metavar="FIELD=VALUE",
    multiple=True,
    shell_complete=complete_fields,
    help="Override a field. Repeatable.",
)
def show(name: str | None, overrides: Sequence[str]) -> None:
    """Show a machine with where its numbers come from, or validate a machine file; without one, list the machines that
    come with kernscope."""
    if name is None and not overrides:
        say("\n".join(machine_names()))
        return
    shown = described_machine(name, overrides)
    source = name or DEFAULT_MACHINE
    told = shown.same_as(load_machine(source), machine_comments(source))
    say(shown.to_toml(told).removesuffix("\n"))


@machine.command(short_help="Fit a few numbers of a machine to measured times.")
@click.argument("name", metavar="NAME|FILE")
@click.argument("measured", metavar="CSV")
@click.option(
    "--param",
    "parameters",
    metavar="FIELD=LOW:HIGH",
    multiple=True,
    required=True,
    help="A field of the machine, and the range it may lie in; host_us: what every time holds besides. Up to four.",
)
@click.option(
    "--policy",
    type=Choice([name for name, policy in POLICIES.items() if not policy.on_request]),
    default="queued",
    show_default=True,
    help="How kernels are scheduled.",
)
@click.option("-o", "--output", metavar="FILE", help="Write the fitted machine.")
@timeout_option("How long importing and tracing a kernel may take, each.")
def fit(
    name: str, measured: str, parameters: Sequence[str], policy: str, output: str | None, timeout_s: float | None
) -> None:
    """Fit numbers of a machine to the times in CSV: print the errors before, after, and with each family of kernels
    left out of the fit, and write a machine file.

    \b
    The columns: kernel (path.py::kernel) with launch and ranks, or op with work (65536, or 128x256x64) and dtype; ns;
    if wanted family, and host_us that the host takes.
    """
    base = load_machine(name)
    if output is not None:
        check_output(output)

    def traced(kernel: str, launch: str | None, ranks: int | None) -> Graph:
        guard = Guard(split_target(kernel).source, timeout_s=timeout_s, ends_process=True)
        made = resolve_launch(split_target(kernel), guard, launch=launch, ranks=ranks, machine=base)
        return trace_launch(made, base, guard)

    rows = read_measured(measured, traced, policy)
    found = fit_machine(base, [_parameter(text) for text in parameters], rows)
    say(str(found))
    if output is not None:
        write_output(output, found.to_toml(base, machine_comments(name)).encode("utf-8"))
        say(f"\nwrote {output}")


def _parameter(text: str) -> Parameter:
    path, equals, span = text.partition("=")
    low, colon, high = span.partition(":")
    try:
        ends = Fraction(low.strip()), Fraction(high.strip())
    except (ValueError, ZeroDivisionError):
        ends = None
    if not equals or not colon or ends is None:
        raise OptionError(f"--param {text!r}", help="write FIELD=LOW:HIGH, such as dma.latency_ns=0:2000")
    return Parameter(path.strip(), *ends)
