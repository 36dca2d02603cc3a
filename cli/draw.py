"""``kernscope draw``: the graph as a picture."""

from __future__ import annotations

from typing import Any

import click

from ..backends.graph_picture.drawing import FOLDS, FORMATS
from ..backends.picture_format import choose_format
from ..face import api
from ..face import presentation as pictures
from ..ir.output import check_output
from ..scheduler.policy.registry import POLICIES
from .choices import Choice
from .command import Command
from .options import make_job, output_file, target_options
from .stages import stages
from .tables import note, say

__all__ = ["draw"]


@click.command(cls=Command, short_help="Draw the graph, with scopes, engines, critical chain.")
@target_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to draw: .svg .png .pdf .dot, or .json for Model Explorer; default: <kernel>.svg.",
)
@click.option("--policy", type=Choice(tuple(POLICIES)), help="Mark this policy's critical chain.")
@click.option(
    "--fold",
    type=Choice(FOLDS),
    default="auto",
    show_default=True,
    help="auto: until the picture can be read; scope: a box for each scope; none: a box for each node.",
)
@click.option("--rank", type=int, metavar="N", help="Draw this rank alone.")
@click.option("--around", type=int, metavar="NODE", help="Draw what is near this node, by its id.")
@click.option("--hops", type=int, default=2, show_default=True, help="With --around: how many edges away.")
@click.option("--reduce", is_flag=True, help="Leave out data edges that other data edges imply.")
@click.pass_context
def draw(
    context: click.Context,
    /,
    output: str | None,
    policy: str | None,
    fold: str,
    rank: int | None,
    around: int | None,
    hops: int,
    reduce: bool,
    **options: Any,
) -> None:
    """Draw the graph of TARGET: scopes as frames, engines as colours, reasons of edges as line styles.

    Exit status 2: there is no picture (its DOT text is written beside it).

    \b
    Examples:
      kernscope draw flash.py --policy list
      kernscope draw flash.py --launch 8k --around 120 --hops 3 -o near.svg
      kernscope draw flash.py --rank 0 --reduce -o rank0.pdf
    """
    job = make_job(**options)
    path = output or output_file(job.kernel, "svg")
    choose_format(path, None, FORMATS)
    check_output(path)
    with stages() as tell:
        tell("tracing")
        graph = job.graph(record=True)
        tell("scheduling")
        schedule = api.schedule(graph, policy, job.machine) if policy else None
        tell("drawing")
        drawing = pictures.draw(
            graph, path, schedule=schedule, fold=fold, rank=rank, around=around, hops=hops, reduce=reduce
        )
    if drawing.rendered:
        note(str(drawing))
    else:
        say(str(drawing), err=True)
    if not drawing.rendered:
        context.exit(2)
