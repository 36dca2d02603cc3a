"""A graph as a ``networkx.DiGraph``, for anyone's own analysis. networkx is imported here and nowhere else."""

from __future__ import annotations

import networkx as nx

from ..ir import dtypes
from ..ir.columns import expect_graph
from ..ir.forms.text import quote
from ..ir.graph import Graph
from ..ir.ops import OPERATIONS
from ..ir.tables import Reason
from .palette import engines_of

__all__ = ["to_networkx"]


def to_networkx(graph: Graph) -> nx.DiGraph:
    """The graph as a ``networkx.DiGraph``: its nodes are the ids, in order; an edge leads from what is waited for to
    what waits.

    Attributes of the graph: ``kernel``, ``machine``, ``ranks``, and where there is one, ``grid`` (``"4,8"``).
    Of a node: ``op``, ``log`` (empty where the operation has no entry), ``engine``, ``rank``, ``scope`` (a row of
    ``graph.scopes``, -1: none), ``scope_name``, ``file``, ``line``, ``function`` (empty, 0 and empty where unknown),
    ``work0``, ``work1``, ``work2`` and ``work_kind`` (``"bytes"``: bytes moved, 0, 0; ``"mnk"``: M, N, K;
    ``"elements"``: elements, 0, 0; ``"nothing"``), ``dtype`` (short name), ``command`` (the id of the command's first
    node), ``channel`` (-1: none); with a grid ``program`` (its number, axis 0 of the grid fastest). Of an edge:
    ``reason`` (``"data"``, ...) and ``recycled``. All values are plain: integers, booleans, and strings of printable
    characters,
    so that GraphML, GEXF and whatever else networkx writes take them.
    """
    expect_graph(graph, "to_networkx")
    nodes = graph.nodes
    view = nx.DiGraph(kernel=quote(graph.kernel), machine=quote(graph.machine), ranks=graph.ranks)
    if graph.grid:
        view.graph["grid"] = ",".join(map(str, graph.grid))
    operations = list(OPERATIONS.values())
    names, engine = engines_of(graph)
    scope_names = {scope: quote(graph.describe_scope(scope)) for scope in [-1, *range(len(graph.scopes))]}
    places = {stack: graph.location(stack) for stack in [-1, *range(len(graph.stacks))]}
    columns = (nodes.op, engine, nodes.rank, nodes.scope, nodes.stack, nodes.work0, nodes.work1, nodes.work2)
    rest = (nodes.dtype, nodes.command, nodes.channel)
    rows = zip(*(column.tolist() for column in (*columns, *rest)), strict=True)
    for index, (code, on, rank, scope, stack, work0, work1, work2, dtype, command, channel) in enumerate(rows):
        operation, place = operations[code], places[stack]
        view.add_node(
            index,
            op=operation.name,
            log=operation.log,
            engine=names[on],
            rank=rank,
            scope=scope,
            scope_name=scope_names[scope],
            file=quote(place.file) if place else "",
            line=place.line if place else 0,
            function=quote(place.function) if place else "",
            work0=work0,
            work1=work1,
            work2=work2,
            work_kind=operation.work_kind.value,
            dtype=dtypes.ALL[dtype].short,
            command=command,
            channel=channel,
        )
    if graph.grid:
        nx.set_node_attributes(view, dict(enumerate(graph.program.tolist())), "program")
    labels = [reason.label for reason in Reason]
    edges = graph.edges
    view.add_edges_from(
        (source, target, {"reason": labels[reason], "recycled": recycled})
        for source, target, reason, recycled in zip(
            edges.source.tolist(), edges.target.tolist(), edges.reason.tolist(), edges.recycled.tolist(), strict=True
        )
    )
    return view
