"""``kernscope triton``: a script of Triton kernels as it stands, and what its launches do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import click

from ..backends.report.index import IndexRow, write_index
from ..backends.report.page import write_report
from ..face import presentation as pictures
from ..face.guard.guard import Guard
from ..face.tracing import described_machine
from ..face.triton.launches import LaunchResult
from ..face.triton.script import run_script
from ..face.triton.session import Session, session
from ..face.user_errors import as_user_error
from ..ir.errors import KernscopeError, OptionError, did_you_mean
from ..ir.forms.counts import plural
from ..ir.output import check_output
from ..linter import LintReport
from ..linter.config import find_config
from ..linter.findings import Failure
from ..linter.formats.text import FORMATS
from ..machine.units import format_ps
from .choices import Choice
from .colours import painted
from .command import Command
from .options import machine_options, timeout_option
from .settings import settings
from .stages import stages
from .tables import note, say, table

__all__ = ["triton"]

#: Scripts are more than one launch.
_TIMEOUT_S = 3600.0


@click.command(
    cls=Command,
    context_settings={"allow_interspersed_args": False},
    short_help="Run a script of Triton kernels as it stands.",
)
@click.argument("script", metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("--kernel", "kernels", metavar="NAME", multiple=True, help="Tell only of this kernel. Repeatable.")
@click.option(
    "--launch",
    "numbers",
    type=click.IntRange(min=1),
    metavar="N",
    multiple=True,
    help="Only of the Nth launch. Repeatable.",
)
@click.option("--configs", is_flag=True, help="Try every configuration of an autotuned kernel, and print a table.")
@click.option(
    "--sweep",
    type=Choice(("first", "all", "none")),
    default="first",
    show_default=True,
    help="How many sizes of a triton.testing benchmark are run.",
)
@click.option(
    "--pes",
    type=click.IntRange(min=1),
    metavar="N",
    help="The machine's processing elements; default: of its topology, else 32.",
)
@click.option(
    "--programs",
    metavar="WHICH",
    help="Run only these programs of each launch: first,last,random:64, or numbers as 731,128-255.",
)
@click.option("--save", metavar="FOLDER", help="Save the graphs, *.ksg: every other command takes them.")
@click.option("--report", metavar="FOLDER", help="Write a page for each different launch.")
@click.option("--output-format", type=Choice(sorted(FORMATS)), default="full", show_default=True)
@timeout_option("How long the script may take.", default=_TIMEOUT_S)
@machine_options
@click.pass_context
def triton(
    context: click.Context,
    script: str,
    arguments: Sequence[str],
    kernels: Sequence[str],
    numbers: Sequence[int],
    configs: bool,
    sweep: Any,
    pes: int | None,
    programs: str | None,
    save: str | None,
    report: str | None,
    output_format: str,
    timeout_s: float,
    machine: str | None,
    overrides: Sequence[str],
) -> None:
    """Run SCRIPT with its ARGS as it stands, without a GPU and without Triton, and tell what its launches do.

    Every launch is run for all of its programs, on torch's tensors or numpy's arrays, so that the script's own asserts
    hold; it is linted and scheduled on the machine. Options come before SCRIPT: what follows is the script's. Its
    standard output goes to standard error.

    Exit status 1: findings at error level; 2: the script failed, or could not be run.
    """
    for folder in (save, report):
        if folder is not None:
            _make_folder(folder)
    running = session(
        described_machine(machine, overrides),
        processing_elements=pes,
        configs="all" if configs else "first",
        sweep=sweep,
        programs=programs,
    )
    failures: list[Failure] = []
    with stages() as tell:
        tell(f"running {script}")
        try:
            run_script(script, Guard(script, arguments=arguments, timeout_s=timeout_s, ends_process=True), running)
        except Exception as error:
            failures.append(Failure.of(script, as_user_error(error)))
        tell("linting")
        chosen = _chosen(running, kernels, numbers)
        config = find_config(script)
        reports = [
            config.apply(one.lint(select=config.select, ignore=config.ignore, options=config.options), script)
            for one in chosen
        ]
        told = _different(chosen, reports)
    if output_format == "full":
        for group in told:
            with stages() as tell:
                tell(f"scheduling {group[0][0].title}")
                lines = list(_launch_lines(group))
            say("\n".join(lines))
        if configs:
            say("\n".join(_config_lines(running)))
    distinct = list({str(r): r for r in reports if len(r)}.values())
    if output_format != "full":
        text = FORMATS[output_format](distinct, failures)
        click.echo(painted(text) if output_format == "concise" else text, nl=False)
    else:
        for part in (*distinct, *(failure.diagnostic for failure in failures)):
            click.echo(painted(f"{part}\n"))
        say(_summary(chosen, reports))
    if settings().debug:
        for failure in failures:
            click.echo(failure.debug, err=True, nl=False)
    _say_notes(running, script, failed=bool(failures))
    _say_given(context.command, script, arguments)
    rows = [row for group in told if (row := _write(*group[0], script, save, report)) is not None]
    if report is not None and rows:
        index = Path(report, "index.html")
        write_index(index, Path(script).name, rows, failures, metadata.version("kernscope"))
        say(f"wrote {index}")
    if failures:
        context.exit(2)
    if any(one.at_least(config.fail_on) for one in reports):
        context.exit(1)


def _make_folder(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"{folder!r} is no folder, and none can be made: {error.strerror}", help="give another one"
        ) from None
    check_output(str(Path(folder, "graph.ksg")))


def _chosen(running: Session, kernels: Sequence[str], numbers: Sequence[int]) -> list[LaunchResult]:
    launches = running.launches
    known = list(dict.fromkeys(one.kernel for one in launches))
    for name in kernels:
        if known and name not in known:
            raise OptionError(f"--kernel {name}: no launch of it", help=did_you_mean(name, known, what="launched were"))
    for number in numbers:
        if number > len(launches):
            raise OptionError(
                f"--launch {number} of {plural(len(launches), 'launch', 'launches')}", help="they count from 1"
            )
    return [
        one
        for n, one in enumerate(launches, start=1)
        if (not kernels or one.kernel in kernels) and (not numbers or n in numbers)
    ]


_Group = list[tuple[LaunchResult, LintReport]]


def _different(chosen: Sequence[LaunchResult], reports: Sequence[LintReport]) -> list[_Group]:
    """Launches that are told apart: by kernel, arguments but for the data, traces and findings."""
    groups: dict[Any, _Group] = {}
    for one, report in zip(chosen, reports, strict=True):
        groups.setdefault((one.signature, str(report)), []).append((one, report))
    return list(groups.values())


def _launch_lines(group: _Group) -> Iterator[str]:
    one, report = group[0]
    times = f", {len(group)} times" if len(group) > 1 else ""
    traces = plural(len(one.traces), "trace")
    run = f"{one.programs_run:,} of " if one.programs_run < one.programs else ""
    yield f"{one.title}  {run}{plural(one.programs, 'program')} in {traces}{times}  {one.location.short}"
    if one.config is not None:
        yield f"  config    {one.config}"
    fullest = one.fullest.liveness
    peak = one.fullest.graph[fullest.peak_node].location if len(one.fullest.graph) else None
    where = f", peak at line {peak.line}" if peak is not None else ""
    fits = "" if one.fits else ": DOES NOT FIT"
    yield f"  scratch   {fullest.peak_bytes:,} B of {fullest.budget_bytes:,} B a program{where}{fits}"
    try:
        schedule = one.longest.schedule
        bounds = schedule.bounds
        unfit = "" if one.fits else ", if it fitted"
        about = "about " if one.programs_run < one.programs else ""
        bound = f", {schedule.ratio:.2f} x its bound ({bounds.best})" if bounds is not None else ""
        yield (
            f"  schedule  list {format_ps(schedule.makespan_ps)} a program{bound}; the launch {about}"
            f"{format_ps(one.makespan_ps)} on {plural(one.processing_elements, 'PE')}{unfit}"
        )
    except KernscopeError as error:
        yield f"  schedule  none: {error.message}"
    if len(one.examined) < len(one.traces):
        yield (
            f"  turns     {len(one.examined)} of {plural(len(one.traces), 'trace')} are linted and scheduled: others "
            "differ from them only in how often loops turn, and times are linear between"
        )
    yield f"  findings  {report.summary.rpartition(': ')[2].replace('no findings', 'none')}"
    for fact in report.notes:
        yield f"  open      {fact}"
    yield ""


def _config_lines(running: Session) -> Iterator[str]:
    """A table for each autotuned launch: what fits first, then the shortest launch first."""
    by_launch: dict[int, list[Any]] = {}
    for trial, result in running.trials:
        by_launch.setdefault(trial.number, []).append((trial, result))
    for trials in by_launch.values():
        rows = [("config", "fits", "peak scratch", "the launch")]
        ordered = sorted(trials, key=lambda t: (t[1] is None or not t[1].fits, t[1].makespan_ps if t[1] else 0))
        for trial, result in ordered:
            if result is None:
                why = "" if trial.refused is None else trial.refused.message
                rows.append((str(trial.config), "refused", "-", why))
            else:
                peak = f"{result.fullest.liveness.peak_bytes:,} B"
                rows.append((str(trial.config), "yes" if result.fits else "no", peak, format_ps(result.makespan_ps)))
        yield f"{trials[0][0].kernel.fn.__name__}: {plural(len(trials), 'configuration')}, best first"
        yield table(rows, right=(2,))
        yield ""


def _summary(chosen: Sequence[LaunchResult], reports: Sequence[LintReport]) -> str:
    kernels = {str(one.location) for one in chosen}
    errors = sum(report.counts["error"] for report in reports)
    warnings = sum(report.counts["warning"] for report in reports)
    return (
        f"{plural(len(chosen), 'launch', 'launches')} of {plural(len(kernels), 'kernel')}, "
        f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    )


def _say_notes(running: Session, script: str, *, failed: bool) -> None:
    for text in running.notes:
        note(text, err=True)
    if running.launches or failed:
        return
    note(f"{script} launched no kernel", err=True)
    if _holds_tests(script):
        note(f"run its tests: pytest {script} --kernscope-triton", err=True)


def _say_given(command: click.Command, script: str, arguments: Sequence[str]) -> None:
    """A note for what stands behind the script and looks like an option of ours: it was the script's."""
    ours = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    given = [argument for argument in arguments if argument.partition("=")[0] in ours]
    if given:
        name = given[0].partition("=")[0]
        note(
            f"note: {name} was given to {script}, as what follows a script is its own; write it before {script}",
            err=True,
        )


def _holds_tests(script: str) -> bool:
    tree = ast.parse(Path(script).read_bytes())
    return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in tree.body)


def _write(one: LaunchResult, found: LintReport, script: str, save: str | None, report: str | None) -> IndexRow | None:
    """The graphs of a launch, and the page of the trace that most of the programs have whose traces are examined, with
    what was found of all; its row of the index."""
    stem = re.sub(r"[^0-9A-Za-z_.-]", "_", f"{one.number:03}-{one.kernel}")
    if save is not None:
        for n, graph in enumerate(one.graphs, start=1):
            path = Path(save, f"{stem}-{n}.ksg" if len(one.graphs) > 1 else f"{stem}.ksg")
            graph.save(path)
            say(f"saved {path}")
        if len(one.graphs) < len(one.traces):
            say(f"saved {len(one.graphs)} of {plural(len(one.traces), 'trace')}: the others only turn loops more often")
    if report is None or not one.graphs:
        return None
    data = pictures.gather(one.commonest.graph, one.machine, numbers=False)
    own = list(data.lint)
    # Findings of other traces, and of the launch, are about no node of this graph.
    findings = tuple(d if d in own else attrs.evolve(d, nodes=()) for d in found)
    data = attrs.evolve(
        data,
        title=one.title,
        lint=attrs.evolve(found, diagnostics=findings),
        numbers_note="not compared: it ran on the script's own data, and the script judges the numbers",
    )
    path = Path(report, f"{stem}.html")
    write_report(path, data)
    say(f"wrote {path}")
    return IndexRow.of(data, source=Path(script).name, page=path.name)
