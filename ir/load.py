"""Loading a saved graph: read, verify, only then hand it out."""

from __future__ import annotations

import os

from .errors import GraphFormatError
from .forms.saved import brief, read_fields
from .graph import Graph
from .verifier.verify import verify

__all__ = ["load_graph"]


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Load a graph that ``graph.save(path)`` wrote, whatever its machine. Executes nothing.

    Raises ``GraphFormatError`` for a file that is missing, damaged, of another version, or whose graph breaks an
    invariant: one error, whatever the bytes.
    """
    graph = Graph(**read_fields(path))
    faults = [str(fault) for fault in verify(graph)] if graph.is_placed else ["its allocations have no addresses"]
    if faults:
        raise GraphFormatError(
            f"{str(path)!r} holds no valid graph: {brief(faults[0])}"
            + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""),
            help="save the graph again; a file changed by hand cannot be read",
        )
    return graph
