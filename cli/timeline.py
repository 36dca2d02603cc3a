"""``kernscope timeline``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..backends.picture_format import choose_format
from ..backends.timelines.timeline import FORMATS
from ..face import api
from ..face import presentation as pictures
from ..ir.output import check_output
from ..scheduler.policy.registry import POLICIES
from .choices import Choice
from .command import Command
from .options import make_job, output_file, target_options
from .stages import stages
from .tables import note

__all__ = ["timeline"]


@click.command(cls=Command, short_help="Write the timeline of a schedule.")
@target_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write: .perfetto-trace for ui.perfetto.dev, .json (Chrome trace events), .svg or .png; default: "
    "<kernel>.perfetto-trace.",
)
@click.option(
    "--policy",
    "policies",
    type=Choice(tuple(POLICIES)),
    multiple=True,
    help="The policy to show; several, one under the other. Repeatable. Default: list.",
)
def timeline(output: str | None, policies: Sequence[str], **options: Any) -> None:
    """Write the timeline of TARGET's schedule: engines as tracks, edges as arrows, scratch and messages as counters.

    Exit status 1: a deadlock under a policy asked for.
    """
    if output is not None:  # before the author's code is run
        choose_format(output, None, FORMATS)
        check_output(output)
    job = make_job(**options)
    path = output or output_file(job.kernel, "perfetto-trace")
    check_output(path)
    with stages() as tell:
        tell("tracing")
        graph = job.graph()
        tell("scheduling")
        ladder = api.compare(graph, list(dict.fromkeys(policies)) or ["list"], job.machine)
    deadlocks = [row.deadlock for row in ladder if row.deadlock is not None]
    if len(deadlocks) < len(ladder):
        with stages() as tell:
            tell("writing")
            written = pictures.timeline(ladder, path)
        note(str(written))
    if deadlocks:
        raise deadlocks[0]
