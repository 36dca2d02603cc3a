"""``kernscope lint``: the linter over files, folders and kernels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ..ir.errors import KernelFileError, KernscopeError
from ..ir.load import load
from ..ir.saved import is_saved_graph
from ..linter import LintReport, lint_graph
from ..linter.findings import SEVERITIES, Severity
from ..linter.formats import FORMATS
from ..linter.suppressions import settle_unused
from ..scheduler.schedule import machine_of
from ..tracer.kernel import Launch
from .options import described_machine, machine_options, trace_launch
from .targets import Target, find_kernels, split_target

__all__ = ["lint"]


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option("--launch", "launch_name", metavar="NAME", help="Only this launch of each kernel; default: all of them.")
@click.option("--output-format", type=click.Choice(sorted(FORMATS)), default="full", show_default=True)
@click.option("--select", metavar="CODES", multiple=True, help="Only these rules: KS201, KS2, ... Repeatable.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Not these rules. Repeatable.")
@click.option(
    "--fail-on", type=click.Choice(SEVERITIES), default="error", show_default=True, help="Exit 1 from here on."
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 also with findings.")
@machine_options
@click.pass_context
def lint(
    context: click.Context,
    paths: Sequence[str],
    launch_name: str | None,
    output_format: str,
    select: Sequence[str],
    ignore: Sequence[str],
    fail_on: Severity,
    exit_zero: bool,
    machine: str | None,
    overrides: Sequence[str],
) -> None:
    """Lint all kernels and launches of PATHS: Python files, folders, file.py::kernel or package.module:kernel.

    A kernel without a launch is reported as not linted. Exit status 1: findings at error level (or --fail-on).
    """
    reports: list[LintReport] = []
    failures: list[KernscopeError] = []
    codes, skipped = _codes(select), _codes(ignore)
    for path in filter(is_saved_graph, paths):
        graph = load(path)
        described = described_machine(machine or machine_of(graph, None), overrides)
        reports.append(lint_graph(graph, machine=described, select=codes, ignore=skipped))
    for launch in _launches([path for path in paths if not is_saved_graph(path)], launch_name, failures):
        try:
            described = described_machine(launch.machine if machine is None else machine, overrides)
            graph = trace_launch(launch, described, record=True)
            title = f"{launch.kernel.name}:{launch.name}" if launch.name else launch.kernel.name
            reports.append(lint_graph(graph, machine=described, select=codes, ignore=skipped, title=title))
        except KernscopeError as error:
            failures.append(error)
    reports = list(settle_unused(reports))
    click.echo(FORMATS[output_format](reports), nl=False)
    for failure in failures:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {failure}", err=True)
    if failures:
        context.exit(2)
    if any(report.at_least(fail_on) for report in reports) and not exit_zero:
        context.exit(1)


def _codes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip() for text in texts for code in text.split(",") if code.strip())


def _launches(paths: Sequence[str], name: str | None, failures: list[KernscopeError]) -> Iterator[Launch]:
    """All launches of the paths; whatever cannot be read or linted goes to ``failures`` or is said, never dropped."""
    for target in _targets(paths):
        try:
            kernels = find_kernels(target)
        except KernscopeError as error:
            failures.append(error)
            continue
        if not kernels:
            click.echo(f"{target}: no kernels", err=True)
        for kernel_name, kernel in kernels.items():
            chosen = [launch for launch in kernel.launches.values() if name in (None, launch.name)]
            if not chosen:
                what = f"no launch {name!r}" if name else "no launch"
                click.echo(f"{target.source}: kernel {kernel_name} is not linted: it has {what}", err=True)
            yield from chosen


def _targets(paths: Sequence[str]) -> Iterator[Target]:
    for text in paths:
        if not os.path.isdir(text):
            yield split_target(text)
            continue
        files = sorted(p for p in Path(text).rglob("*.py") if not any(part.startswith(".") for part in p.parts[1:]))
        if not files:
            raise KernelFileError(f"no Python files in {text!r}", help="give a folder with kernels, or a file")
        for file in files:
            if file.name != "__init__.py":
                yield Target(str(file), None, True)
