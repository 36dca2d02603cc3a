"""``kernscope lint``: the linter over files, folders and kernels."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

import click

from ..face.guard.own_streams import ToolStream
from ..ir.errors import OptionError
from ..ir.forms.printable import printable, printable_lines
from ..linter.findings import SEVERITIES, Failure, Severity
from ..linter.formats.text import FORMATS
from .choices import Choice
from .colours import painted
from .command import Command
from .completion import complete_codes, complete_launches, complete_targets
from .fixing import fix_findings
from .linting import Linting, Outcome
from .options import machine_options, timeout_option
from .settings import settings
from .watching import watch

__all__ = ["lint"]

#: The formats for people.
_PAINTED = ("full", "concise")


@click.command(cls=Command, short_help="Lint files, folders and kernels.")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...", shell_complete=complete_targets)
@click.option(
    "--launch",
    "launch_name",
    metavar="NAME",
    shell_complete=complete_launches,
    help="Only this launch of each kernel; default: all of them.",
)
@click.option("--output-format", type=Choice(sorted(FORMATS)), default="full", show_default=True)
@click.option(
    "--select",
    metavar="CODES",
    multiple=True,
    shell_complete=complete_codes,
    help="Only these rules: KS201, KS2, ... Repeatable.",
)
@click.option(
    "--ignore", metavar="CODES", multiple=True, shell_complete=complete_codes, help="Not these rules. Repeatable."
)
@click.option("--fail-on", type=Choice(SEVERITIES), help="Exit 1 from here on; default: error.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 also with findings.")
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many processes at a time; default: one per core, and none for a sole launch. 0: all in this process.",
)
@click.option(
    "--trace-twice",
    is_flag=True,
    help="Trace every launch a second time: it has to do the same (KS701). Default: where that takes under a second.",
)
@click.option("--fix", is_flag=True, help="Show what fixes would change, ask, write it, and lint again.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--watch", "watches", is_flag=True, help="Lint again whenever a file changes, until Ctrl-C.")
@timeout_option("How long a launch may take.")
@machine_options
@click.pass_context
def lint(
    context: click.Context,
    paths: Sequence[str],
    launch_name: str | None,
    output_format: str,
    select: Sequence[str],
    ignore: Sequence[str],
    fail_on: Severity | None,
    exit_zero: bool,
    jobs: int | None,
    timeout_s: float,
    trace_twice: bool,
    fix: bool,
    yes: bool,
    watches: bool,
    machine: str | None,
    overrides: Sequence[str],
) -> None:
    """Lint all kernels and launches of PATHS: Python files, folders, file.py::kernel or package.module:kernel.

    Rules, options and what is ignored come from [tool.kernscope.lint] of the nearest pyproject.toml; options given here
    win: --select takes the place of its select and ignore, --ignore adds to it.

    Every launch is linted in a process of its own, within --timeout: one that crashes, hangs or exits is one error, and
    the others have their findings. Only a sole launch is linted in this process, which is quicker (--jobs 1: in one of
    its own). With --jobs 0 all are, without a limit of time, for a debugger.

    --fix takes the fixes that findings propose, as far as they do not touch the same lines; it shows the difference and
    asks, or without a terminal writes only with --yes. Where the kernels are worse for it, everything is put back.

    A kernel without a launch is reported as not linted. Exit status 1: findings at error level (or --fail-on); 2:
    something could not be linted.
    """
    _check_ways(output_format, fix, yes, watches)
    linting = Linting(
        paths=tuple(paths),
        launch=launch_name,
        select=tuple(select),
        ignore=tuple(ignore),
        fail_on=fail_on,
        processes=jobs,
        timeout_s=timeout_s,
        trace_twice=trace_twice,
        machine=machine,
        overrides=tuple(overrides),
    )
    formatted, debug = FORMATS[output_format], settings().debug
    # The full form has a line for each already.
    not_linted = functools.partial(_not_linted, debug=debug, says_so=output_format != "full")
    ours, errors = sys.stdout, sys.stderr  # an author's code has others in their place

    def last_words(failure: Failure, notes: Sequence[str]) -> None:
        _write_last(ours, formatted([], [failure]))
        _write_last(
            errors,
            "".join(f"{line}\n" for line in [*map(printable_lines, notes), *not_linted([failure])]),
        )

    def tell(outcome: Outcome) -> None:
        text = formatted(outcome.reports, outcome.failures)
        click.echo(painted(text) if output_format in _PAINTED else text, nl=False)
        notes = () if settings().quiet else outcome.notes
        for line in [*map(printable_lines, notes), *not_linted(outcome.failures)]:
            click.echo(line, err=True)

    if watches:
        watch(linting.apart(), last_words, tell)
        return
    outcome = linting.run(last_words)
    if fix:
        outcome = fix_findings(linting.apart(), outcome, last_words, yes=yes)
    tell(outcome)
    if outcome.failures:
        context.exit(2)
    if outcome.failed and not exit_zero:
        context.exit(1)


def _check_ways(output_format: str, fix: bool, yes: bool, watches: bool) -> None:
    """Raise ``OptionError`` for options that do not go together."""
    if fix and watches:
        raise OptionError("--fix with --watch", help="fix first, then watch")
    if yes and not fix:
        raise OptionError("--yes without --fix", help="say --fix, too")
    if (fix or watches) and output_format not in _PAINTED:
        raise OptionError(
            f"--{'fix' if fix else 'watch'} with --output-format {output_format}",
            help=f"it takes the formats for people: {', '.join(_PAINTED)}",
        )


def _not_linted(failures: Sequence[Failure], *, debug: bool, says_so: bool) -> Iterator[str]:
    """What standard error says of the failures, beside what the format says."""
    if debug:
        yield from (failure.debug.removesuffix("\n") for failure in failures if failure.debug)
    if failures and says_so:
        titles = list(dict.fromkeys(failure.title for failure in failures))
        more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
        yield f"{click.style('error:', fg='red', bold=True)} not linted: {printable(titles[0])}{more}"


def _write_last(stream: TextIO, text: str) -> None:
    """Write from another thread than the command's own, as the process ends; without colours."""
    text = click.unstyle(text)
    if isinstance(stream, ToolStream):
        stream.write_last(text)
    else:
        stream.write(text)
        stream.flush()
