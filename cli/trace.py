"""``kernscope trace``: the graph as text."""

from __future__ import annotations

from typing import Any

import click

from .options import make_job, target_options

__all__ = ["trace"]


@click.command()
@target_options
def trace(**options: Any) -> None:
    """Trace TARGET and print its graph, one line a node."""
    graph = make_job(**options).trace(record=True)
    click.echo(str(graph), nl=False)
