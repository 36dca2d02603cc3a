"""``kernscope trace``: the graph as text, or saved."""

from __future__ import annotations

from typing import Any

import click

from ..ir.forms.counts import plural
from ..ir.forms.text import graph_lines
from ..ir.output import check_output
from .command import Command
from .options import make_job, target_options
from .stages import stages
from .tables import note, say

__all__ = ["trace"]


@click.command(cls=Command, short_help="Print the graph as text, or save it.")
@target_options
@click.option("-o", "--output", metavar="FILE", help="Save the graph instead of printing it.")
def trace(output: str | None, **options: Any) -> None:
    """Trace TARGET and print its graph, one line a node; or save it, as a target for the other commands."""
    if output is not None:
        check_output(output)
    with stages() as tell:
        tell("tracing")
        graph = make_job(**options).graph(record=True)
    if output is None:
        for line in graph_lines(graph):
            say(line)
        return
    graph.save(output)
    note(f"wrote {output}: {plural(len(graph), 'node')}", err=True)
