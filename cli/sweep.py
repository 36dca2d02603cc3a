"""``kernscope sweep``: every combination of values, in several processes or on a cluster, resumable."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..face.fitting import MAX_VALUES
from ..face.sweeping.journal import Journal
from ..face.sweeping.plot import check_plot
from ..face.sweeping.processes import examine_apart
from ..face.sweeping.request import Request, sources_of
from ..face.sweeping.result import Sweep, SweepRow
from ..face.sweeping.sweep import points_of, title_of
from ..face.sweeping.variants import is_parameter
from ..face.targets import parse_arguments, split_target
from ..ir.errors import OptionError, did_you_mean
from ..ir.output import check_output, write_output
from ..machine.description import machine_names
from ..scheduler.policy.registry import POLICIES
from ..scheduler.search.efforts import EFFORTS
from ..tracer.kernel import Kernel
from .choices import Choice
from .command import Command
from .fit import parse_range
from .job_pool import available_cores
from .options import make_job, output_file, target_options
from .stages import bar
from .tables import note, say

__all__ = ["parse_axes", "sweep"]

_SUFFIXES = (".csv", ".parquet")

_EPILOG = """\b
Examples:
  kernscope sweep kernels/flash_attention.py --axis tile=32:128:x2 --axis policy=lazy,list -o tiles.csv
  kernscope sweep kernels/matmul.py --axis launch=512,2k --axis machine.gemm.rows=32,64,128 --axis buffers=1,2
  kernscope sweep kernels/flash_attention.py --axis tile=64,128 --cluster tcp://10.0.0.1:8786
"""


@click.command(cls=Command, epilog=_EPILOG, short_help="Try every combination of values.")
@target_options
@click.option(
    "--axis",
    "axes",
    metavar="NAME=VALUES",
    multiple=True,
    required=True,
    help="What to vary, values by commas or as a range (LOW:HIGH[:STEP|:xN]): a parameter of the kernel, launch, "
    "policy, buffers, ranks, machine, or a field of it such as machine.gemm.rows. Repeatable; the last varies fastest.",
)
@click.option(
    "--policy", type=Choice(tuple(POLICIES)), default="list", show_default=True, help="Where no axis says another."
)
@click.option("--effort", type=Choice(sorted(EFFORTS)), default="fast", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write all rows: .csv, or .parquet (the extra sweep).")
@click.option("--plot", metavar="FILE", help="Draw the front: .svg, .png or .pdf (the extra plot).")
@click.option(
    "--journal",
    metavar="FILE",
    help="Where rows are kept as they come: the same sweep again, or one of more values, computes only what is not "
    "there. Default: <kernel>-<digest of the kernel and the "
    "options>.sweep.jsonl.",
)
@click.option("--fresh", is_flag=True, help="Forget what the journal holds.")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="How many processes; default: one per core.")
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler that is there, tcp://...; (the extra sweep).")
@click.pass_context
def sweep(
    context: click.Context,
    /,
    axes: Sequence[str],
    policy: str,
    effort: str,
    output: str | None,
    plot: str | None,
    journal: str | None,
    fresh: bool,
    jobs: int | None,
    cluster: str | None,
    **options: Any,
) -> None:
    """Try every combination of values of TARGET: makespan, bound and scratch of each, and the front of time against
    scratch.

    A point at which the kernel raises, overflows, deadlocks, has an error of the linter, or takes its process down is a
    row that says so. --timeout limits each point. A row is on the disk as soon as it is there: after Ctrl-C or a kill
    the same command goes on where it was.

    On a cluster, kernscope has to be installed; the kernel's file and those beside and below it are sent along.

    Exit status 1: no point fits; 2: nothing could be found out about any.
    """
    if cluster is not None and jobs is not None:
        raise OptionError("--jobs with --cluster", help="leave out --jobs: the cluster has its own workers")
    if output is not None:
        _check_suffix(output)
        check_output(output)
    if plot is not None:
        check_plot(plot)
    job = make_job(**options)
    if job.launch is None:
        raise OptionError("sweep of a saved graph", help="it was traced already: give the kernel's file")
    kernel = job.launch.kernel
    values = parse_axes(kernel, axes, options)
    points = points_of(kernel, values, job.machine)
    target = split_target(options["target"])
    if cluster is not None and not target.is_file:
        raise OptionError(f"--cluster with {target}", help="give the kernel's file: it is sent to the workers")
    sources = sources_of(target.source) if target.is_file else None
    machine = options["machine"]
    is_file = machine is not None and machine not in machine_names()
    request = Request(
        target=target,
        launch=options["launch"],
        arguments=tuple(options["arguments"]),
        ranks=options["ranks"],
        grid=tuple(options["grid"]),
        machine=machine,
        machine_toml=job.machine.to_toml() if is_file else None,
        # A machine of a file is sent as it is, overrides included.
        overrides=() if is_file else tuple(options["overrides"]),
        policy=policy,
        effort=effort,
    )
    digest = request.digest(sources)
    path = journal or output_file(f"{kernel.name}-{digest[:8]}", "sweep.jsonl")
    if fresh:
        Path(path).unlink(missing_ok=True)
    with Journal(path, digest) as kept:
        missing = [point for point in points if kept.row(point) is None]
        if len(missing) < len(points):
            note(f"{len(points) - len(missing):,} of {len(points):,} points are in {path}", err=True)
        rows: Iterator[SweepRow] = iter(())
        if missing and cluster is not None:
            assert sources is not None, "a target on a cluster is a file"
            sources.expect_sendable()
            module: Any = importlib.import_module("kernscope.face.sweeping.cluster")
            rows = module.examine_on_cluster(cluster, request, sources, missing, timeout_s=options["timeout_s"])
        elif missing:
            processes = jobs or available_cores()
            rows = examine_apart(request, missing, processes=processes, timeout_s=options["timeout_s"])
        failed: dict[str, SweepRow] = {}
        with bar(len(missing), "sweeping") as tell:
            for number, row in enumerate(rows):
                kept.add(row)
                failed[str(row.point)] = row
                tell(number + 1, len(missing), ", ".join(f"{k}={v}" for k, v in row.point.items()))
        told = tuple(kept.row(point) or failed[str(point)] for point in points)
        found = Sweep(title_of(job.launch, values), tuple(values), told)
    say(str(found))
    if output is not None:
        _write(output, found)
        note(f"wrote {output}", err=True)
    if plot is not None:
        found.plot(plot)
        note(f"wrote {plot}", err=True)
    note(f"rows are kept in {path}", err=True)
    if found.best is None:
        context.exit(2 if all(row.verdict == "failed" for row in found) else 1)


def parse_axes(kernel: Kernel, texts: Sequence[str], options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Values by axis, as texts. Raises ``OptionError``."""
    given = {text.partition("=")[0].strip() for text in options["arguments"]}
    axes: dict[str, list[str]] = {}
    for text in texts:
        axis, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not values:
            raise OptionError(f"--axis {text!r}", help="write NAME=VALUES, such as tile=64,128 or tile=32:256:x2")
        if axis in axes:
            raise OptionError(f"--axis {axis} is given twice", help="give all values of an axis together")
        if axis in given:
            raise OptionError(f"--arg {axis} with --axis {axis}", help="leave out the --arg: the axis varies it")
        axes[axis] = _split(values)
        if is_parameter(kernel, axis):
            for value in axes[axis]:
                parse_arguments([f"{axis}={value}"])
        elif axis == "policy":
            for value in axes[axis]:
                if value not in POLICIES:
                    raise OptionError(f"--axis policy={value}", help=did_you_mean(value, POLICIES, what="policies"))
    return axes


def _split(text: str) -> list[str]:
    """At commas outside brackets; a range is its numbers."""
    depth, parts = 0, [""]
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if len(parts) == 1 and ":" in text and depth == 0 and text[:1].lstrip("-").isdigit() | text.startswith("-"):
        values = parse_range(text)
        assert len(values) <= MAX_VALUES, "the range says so itself"
        return [str(value) for value in values]
    return [part.strip() for part in parts]


def _check_suffix(output: str) -> None:
    if Path(output).suffix not in _SUFFIXES:
        raise OptionError(
            f"unknown format {Path(output).suffix!r} of {output}", help=f"formats are {', '.join(_SUFFIXES)}"
        )
    if Path(output).suffix == ".parquet":
        importlib.import_module("kernscope.face.sweeping.parquet")


def _write(output: str, found: Sweep) -> None:
    if Path(output).suffix == ".csv":
        write_output(output, found.to_csv().encode())
        return
    module: Any = importlib.import_module("kernscope.face.sweeping.parquet")
    write_output(output, module.parquet_bytes(found))
