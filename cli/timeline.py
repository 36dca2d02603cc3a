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
from .options import Choice, make_job, target_options
from .tables import say

__all__ = ["timeline"]


@click.command()
@target_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="Where to write: .perfetto-trace for ui.perfetto.dev, .json (Chrome trace events), .svg or .png.",
)
@click.option(
    "--policy",
    "policies",
    type=Choice(tuple(POLICIES)),
    multiple=True,
    help="The policy to show; several, one under the other. Repeatable. Default: list.",
)
def timeline(output: str, policies: Sequence[str], **options: Any) -> None:
    """Write the timeline of TARGET's schedule: engines as tracks, edges as arrows, scratch and messages as counters.

    Exit status 1: a deadlock under a policy asked for.
    """
    choose_format(output, None, FORMATS)
    check_output(output)
    job = make_job(**options)
    ladder = api.compare(job.graph(), list(dict.fromkeys(policies)) or ["list"], job.machine)
    deadlocks = [row.deadlock for row in ladder if row.deadlock is not None]
    if len(deadlocks) < len(ladder):
        say(str(pictures.timeline(ladder, output)))
    if deadlocks:
        raise deadlocks[0]
