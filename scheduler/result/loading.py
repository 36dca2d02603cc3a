"""Loading a saved graph with its machine: nothing of either is used before all of it holds together."""

from __future__ import annotations

import os

from ...ir.errors import GraphFormatError, MachineError
from ...ir.forms.saved import brief
from ...ir.graph import Graph
from ...ir.load import load_graph
from .schedule import known_machine

__all__ = ["load"]

#: No machine has more to say, in characters.
_LONGEST_DESCRIPTION = 1 << 18


def load(path: str | os.PathLike[str]) -> Graph:
    """Load a graph that ``graph.save(path)`` wrote, with the machine that it was traced for. Executes nothing, and
    opens no other file.

    Raises ``GraphFormatError`` for a file that is missing, damaged, of another version, whose graph breaks an
    invariant, or whose machine is another one than the graph's: one error, whatever the bytes.
    """
    graph = load_graph(path)
    if not graph.machine_toml:
        return graph
    if len(graph.machine_toml) > _LONGEST_DESCRIPTION:
        raise _of_machine(path, f"it is {len(graph.machine_toml):,} characters long")
    try:
        machine = known_machine(graph)
    except MachineError as error:
        raise _of_machine(path, brief(error.message)) from None
    if machine is None or machine.name != graph.machine or machine.target != graph.target:
        raise _of_machine(path, "it is not the one that the graph was traced for")
    return graph


def _of_machine(path: str | os.PathLike[str], what: str) -> GraphFormatError:
    return GraphFormatError(
        f"{str(path)!r} holds no valid description of its machine: {what}",
        help="save the graph again; a file changed by hand cannot be read",
    )
