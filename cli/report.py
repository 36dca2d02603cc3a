"""``kernscope report``: the main job, on one page, and its summary."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from ..backends.execution.comparison import error_text
from ..backends.report.comparison import comparison_lines
from ..backends.report.data import ReportData
from ..backends.report.page import PAGE_SUFFIXES, check_page, write_report
from ..face import presentation as pictures
from ..face.other_launches import guarded_watch
from ..ir.errors import OptionError
from ..ir.forms.counts import plural
from ..ir.forms.printable import printable_lines
from ..ir.forms.saved import is_saved_graph
from ..ir.grid import Grid
from ..machine.units import format_ps
from ..scheduler.policy.registry import LADDER, POLICIES
from .choices import Choice
from .command import Command
from .options import make_job, output_file, target_options
from .report_all import ReportAll
from .schedule import chain_lines
from .stages import stages
from .tables import note, percent, say, size, table

__all__ = ["report"]


@click.command(cls=Command, short_help="The main job: a summary, and one HTML page.")
@target_options
@click.option(
    "-o", "--output", metavar="FILE", help="The page to write, default: <kernel>.html; of a folder: reports/."
)
@click.option(
    "--policy",
    "policies",
    type=Choice(tuple(POLICIES)),
    multiple=True,
    help="A policy to show. Repeatable. Default: all but optimal.",
)
@click.option("--no-run", is_flag=True, help="Do not execute the kernel on numbers.")
@click.option(
    "--all", "every", is_flag=True, help="All launches of all kernels of TARGET, and an index; a folder has it."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --all: how many processes at a time; default: one per core.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser, too.")
@click.option("--against", metavar="TARGET", help="Compare with this kernel or saved graph: what changed, and where.")
@click.option("--against-launch", metavar="NAME", help="Its launch; default: its first.")
@click.option(
    "--against-arg", "against_arguments", metavar="NAME=VALUE", multiple=True, help="An argument of it. Repeatable."
)
@click.pass_context
def report(
    context: click.Context,
    /,
    output: str | None,
    policies: Sequence[str],
    no_run: bool,
    every: bool,
    jobs: int | None,
    opens: bool,
    against: str | None,
    against_launch: str | None,
    against_arguments: Sequence[str],
    **options: Any,
) -> None:
    """The main job: print a summary of TARGET and write it, with pictures, as one HTML page.

    Of a folder, or with --all, every launch has its page, and an index of them says what matters first; each is worked
    on in a process of its own, as lint does.

    Exit status 1: findings at error level, or a mismatch with the reference; 2: something could not be reported.

    \b
    Examples:
      kernscope report flash.py --open
      kernscope report flash.py --against before.ksg
      kernscope report flash.py --against flash.py --against-arg tile=64
      kernscope report kernels/ -o reports --open
    """
    shown = tuple(dict.fromkeys(policies)) or LADDER
    if every or os.path.isdir(options["target"]):
        _check_alone(against, against_launch, against_arguments, **options)
        if output is not None and Path(output).suffix.lower() in PAGE_SUFFIXES and not os.path.isdir(output):
            raise OptionError(f"-o {output} with all launches", help="it names their folder: -o reports")
        asked = ReportAll(
            target=options["target"],
            folder=output or "reports",
            launch=options["launch"],
            policies=shown,
            numbers=not no_run,
            processes=jobs,
            timeout_s=options["timeout_s"],
            machine=options["machine"],
            overrides=tuple(options["overrides"]),
        )
        context.exit(asked.run(show=_open_shown if opens else None))
    if jobs is not None:
        raise OptionError("--jobs with one launch", help="say --all, too")
    if against is None and (against_launch or against_arguments):
        raise OptionError("--against-launch or --against-arg without --against", help="say --against TARGET, too")
    if output is not None:  # before the author's code is run
        check_page(output)
    job = make_job(**options)
    path = output or output_file(job.kernel, "html")
    check_page(path)
    with stages() as tell:
        tell("tracing")
        data = pictures.gather(
            job.graph(record=True, observe=True),
            job.machine,
            launch=job.launch,
            policies=shown,
            numbers=not no_run,
            begins=tell,
            invocation=job.invocation,
            watch=guarded_watch(job.guard),
        )
        if against is not None:
            # A saved graph brings its own machine along.
            machine, overrides = (None, ()) if is_saved_graph(against) else (options["machine"], options["overrides"])
            other = make_job(
                against, against_launch, against_arguments, None, (), machine, overrides, options["timeout_s"]
            )
            tell(f"tracing {against}")
            earlier = pictures.gather(
                other.graph(record=True),
                other.machine,
                launch=other.launch,
                policies=shown,
                numbers=False,
                begins=tell,
                watch=guarded_watch(other.guard),
            )
            if against_arguments:
                earlier = attrs.evolve(earlier, title=f"{earlier.title} with {', '.join(against_arguments)}")
            data = attrs.evolve(data, against=earlier)
    say("\n".join(_summary(data)))
    with stages() as tell:
        tell("drawing the page")
        notes = write_report(path, data)
    for text in notes:
        note(f"note: {text}")
    note(f"wrote {path}")
    if opens:
        _open_shown(path)
    if data.numbers_failed:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {printable_lines(data.numbers_note)}", err=True)
        context.exit(2)
    if not data.lint.ok or any(not row.ok for row in data.numbers):
        context.exit(1)


def _check_alone(
    *against: str | Sequence[str] | None, ranks: int | None, grid: Grid, arguments: Sequence[str], **_: Any
) -> None:
    """Raise ``OptionError`` for options that speak of one launch."""
    named = ("--against", "--against-launch", "--against-arg")
    given = {"--arg": arguments, "--ranks": ranks, "--grid": grid, **dict(zip(named, against, strict=True))}
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise OptionError(f"{wrong[0]} with all launches", help="name one kernel: file.py::kernel, without --all")


def _open_shown(path: str) -> None:
    """Open a page in the browser, or say that it cannot be done."""
    if not _open_page(path):
        note(f"note: no browser could be started here; open {path} yourself")


def _open_page(path: str) -> bool:
    """Whether a browser was started with a page."""
    try:
        return webbrowser.open(Path(path).resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def _summary(data: ReportData) -> Iterator[str]:
    graph, live = data.graph, data.liveness
    yield f"{data.title} on {data.machine}, {plural(graph.ranks, 'rank')}"
    yield ""
    operations = ", ".join(f"{count:,} {name}" for name, count in list(graph.summary().items())[:6])
    more = len(graph.summary()) - 6
    yield f"graph     {plural(len(graph), 'node')}, {plural(len(graph.edges), 'edge')}: {operations}" + (
        f", and {more} more operations" if more > 0 else ""
    )
    budget = live.budget_bytes
    yield f"scratch   peak {size(live.peak_bytes)}, {percent(live.peak_bytes, budget)} of {size(budget)} a rank"
    yield f"findings  {data.lint.summary.partition(': ')[2]}"
    for diagnostic in data.lint:
        place = f"{diagnostic.location.short}: " if diagnostic.location else ""
        yield f"          {place}{diagnostic.code} {diagnostic.severity}: {diagnostic.message.splitlines()[0]}"
    yield f"numbers   {data.numbers_note.splitlines()[0]}"
    for row in data.numbers:
        verdict = "agrees with" if row.ok else "DIFFERS from"
        errors = row.unstored or error_text(row.max_error, row.max_abs_error, row.tolerance)
        yield f"          {row.tensor} {verdict} the reference: {errors}"
    yield ""
    rows = [("policy", "makespan", "of the bound")]
    for result in data.policies:
        if result.schedule is None:
            rows.append((result.policy, result.verdict, "-"))
        else:
            rows.append(
                (
                    result.policy,
                    format_ps(result.schedule.makespan_ps),
                    f"x {result.schedule.makespan_ps / data.bound_ps:.3f}",
                )
                if data.bound_ps
                else (result.policy, format_ps(result.schedule.makespan_ps), "-")
            )
    if data.bounds_ps:
        best = max(data.bounds_ps, key=lambda name: data.bounds_ps[name])
        rows.append(("bound", format_ps(data.bound_ps), best))
    yield table(rows, right=(1,))
    deadlocks = [result.deadlock for result in data.policies if result.deadlock]
    if deadlocks:
        yield ""
        yield deadlocks[0]
    if data.best is not None:
        yield ""
        yield from chain_lines(data.best)
    if data.against is not None:
        yield ""
        yield from comparison_lines(data, data.against)
    yield ""
