"""``kernscope trace``: the graph as text, or saved."""

from __future__ import annotations

from typing import Any

import click

from ..ir.errors import OptionError
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
@click.option("--branches", "shows_branches", is_flag=True, help="Print which way its branches went instead.")
def trace(output: str | None, shows_branches: bool, **options: Any) -> None:
    """Trace TARGET and print its graph, one line a node; or save it, as a target for the other commands.

    With --branches: which way the kernel went where it asked Python (conditions, loops, match, except), one line each.
    The graph holds these ways alone.
    """
    if output is not None:
        check_output(output)
    with stages() as tell:
        tell("tracing")
        graph = make_job(**options).graph(record=True, observe=shows_branches or output is not None)
    if shows_branches:
        if graph.branches is None:
            raise OptionError(
                f"--branches with a graph that was saved without them: {options['target']}",
                help="give the kernel's file, or save the graph again with `kernscope trace -o`",
            )
        say(str(graph.branches))
    elif output is None:
        for line in graph_lines(graph):
            say(line)
    if output is None:
        return
    graph.save(output)
    note(f"wrote {output}: {plural(len(graph), 'node')}", err=True)
