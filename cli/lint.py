"""``kernscope lint``: the linter over files, folders and kernels."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import attrs
import click

from ..face.guard.own_streams import ToolStream
from ..face.lint_files import Configurations, lint_targets
from ..face.lint_job import Answer, Found, LintJob, Share, perform
from ..ir.forms.printable import printable, printable_lines
from ..linter import RULES, LintReport
from ..linter.config import LintConfig
from ..linter.findings import SEVERITIES, Failure, Severity
from ..linter.formats.text import FORMATS
from ..linter.rule_selection import option_values, select_rules
from ..linter.suppressions import settle_unused
from .lint_pool import Key, available_cores, run_jobs
from .options import Choice, machine_options, timeout_option

__all__ = ["lint"]

#: What is to be said of the launch that pays no heed to its limit, as the process ends.
LastWords = Callable[[Failure], None]


@click.command(short_help="Lint files, folders and kernels.")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option("--launch", "launch_name", metavar="NAME", help="Only this launch of each kernel; default: all of them.")
@click.option("--output-format", type=Choice(sorted(FORMATS)), default="full", show_default=True)
@click.option("--select", metavar="CODES", multiple=True, help="Only these rules: KS201, KS2, ... Repeatable.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Not these rules. Repeatable.")
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
    machine: str | None,
    overrides: Sequence[str],
) -> None:
    """Lint all kernels and launches of PATHS: Python files, folders, file.py::kernel or package.module:kernel.

    Rules, options and what is ignored come from [tool.kernscope.lint] of the nearest pyproject.toml; options given here
    win: --select takes the place of its select and ignore, --ignore adds to it.

    Every launch is linted in a process of its own, within --timeout: one that crashes, hangs or exits is one error, and
    the others have their findings. Only a sole launch is linted in this process, which is quicker (--jobs 1: in one of
    its own). With --jobs 0 all are, without a limit of time, for a debugger.

    A kernel without a launch is reported as not linted. Exit status 1: findings at error level (or --fail-on); 2:
    something could not be linted.
    """
    notes: list[str] = []
    configs: list[LintConfig] = []
    asked: list[LintJob] = []
    found = Configurations()
    failures: list[Failure] = []
    for target, is_named in lint_targets(paths, found, notes, failures):
        config = found.of(target.source).overridden(_codes(select), _codes(ignore), fail_on)
        _check_selection(config)
        job = LintJob(
            target,
            only=launch_name,
            is_named=is_named,
            machine=machine,
            overrides=tuple(overrides),
            trace_twice=trace_twice or None,
        )
        configs.append(config)
        asked.append(job.configured(config))
    formatted, debug = FORMATS[output_format], bool(context.find_root().params.get("debug"))
    # The full form has a line for each already.
    not_linted = functools.partial(_not_linted, debug=debug, says_so=output_format != "full")
    ours, errors = sys.stdout, sys.stderr  # an author's code has others in their place

    def last_words(failure: Failure) -> None:
        _write_last(ours, formatted([], [failure]))
        _write_last(
            errors,
            "".join(f"{line}\n" for line in [*map(printable_lines, notes), *not_linted([failure])]),
        )

    answers = _answers(asked, jobs, timeout_s, last_words)
    reports: list[LintReport] = []
    of_report: list[int] = []
    for (number, _), answer in sorted(answers.items(), key=lambda item: item[0]):
        if isinstance(answer, Found):
            notes += answer.notes
        elif isinstance(answer, Failure):
            failures.append(answer)
        else:
            reports.append(answer)
            notes += answer.notes
            of_report.append(number)
    told = [
        configs[number].apply(report, asked[number].target.source)
        for number, report in zip(of_report, settle_unused(reports), strict=True)
    ]
    click.echo(formatted(told, failures), nl=False)
    for line in [*map(printable_lines, notes), *not_linted(failures)]:
        click.echo(line, err=True)
    if failures:
        context.exit(2)
    failed = any(report.at_least(configs[number].fail_on) for number, report in zip(of_report, told, strict=True))
    if failed and not exit_zero:
        context.exit(1)


def _check_selection(config: LintConfig) -> None:
    """Raise ``RuleError`` or ``OptionError`` once for what would be wrong with every launch."""
    select_rules(config.select, config.ignore, RULES)
    option_values(config.options, RULES)


def _codes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip() for text in texts for code in text.split(",") if code.strip())


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


# --- where the work is done -------------------------------------------------------------------------------------------


def _answers(
    asked: Sequence[LintJob], processes: int | None, timeout_s: float, last_words: LastWords
) -> Mapping[Key, Answer]:
    """The answers to all jobs: in this process if that was asked for, or if there is one launch only."""
    if processes == 0:
        done = [_here(job, None, "all", last_words) for job in asked]
        return {(number, n): answer for number, answers in enumerate(done) for (_, n), answer in answers.items()}
    if processes is not None or len(asked) != 1:
        with _progress(len(asked)) as progress:
            return run_jobs(asked, processes=processes or available_cores(), timeout_s=timeout_s, progress=progress)
    (job,) = asked
    answers = _here(job, timeout_s, "only", last_words)
    found = answers.get((0, -1))
    if not isinstance(found, Found) or len(answers) == 2 or not found.launches:
        return answers
    several = [attrs.evolve(job, launch=launch) for launch in found.launches]
    with _progress(len(several)) as progress:
        done_apart = run_jobs(several, processes=available_cores(), timeout_s=timeout_s, progress=progress)
    return {(0, -1): found, **{(0, launch): answer for (launch, _), answer in done_apart.items()}}


def _here(job: LintJob, timeout_s: float | None, share: Share, last_words: LastWords) -> dict[Key, Answer]:
    """A job done in this process."""
    answers: list[Answer] = []
    perform(job, answers.append, timeout_s=timeout_s, share=share, last_words=last_words)
    first = -1 if isinstance(answers[0], Found) else 0
    return {(0, first + n): answer for n, answer in enumerate(answers)}


def _progress(count: int) -> contextlib.AbstractContextManager[Callable[[int, int, str], None]]:
    """A bar on a terminal, if there is something to wait for."""
    if count < 2 or not sys.stderr.isatty():
        return contextlib.nullcontext(lambda done, total, last: None)
    module: Any = importlib.import_module(".progress", __package__)
    bar: contextlib.AbstractContextManager[Callable[[int, int, str], None]] = module.LaunchProgress()
    return bar
