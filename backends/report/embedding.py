"""What a page's script works on: the graph, its schedules and its scratch as packed columns, and the names they use."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...scheduler.policy.constraints import ArcKind
from ...scheduler.result.schedule import Schedule
from ..palette import ENGINE_COLOURS, engine_kind
from .charts import cause_style, chain_times
from .columns import pack
from .data import ReportData
from .source import LineTable

__all__ = ["embedded_schedules", "embedded_text"]

#: Schedules are embedded, the best one first, up to so many nodes in all; of the others the page shows the summary.
NODES_EMBEDDED = 2_000_000
#: Edges are embedded up to so many.
EDGES_EMBEDDED = 2_500_000


#: What a node waited for, by the code in a schedule's ``cause``.
_CAUSES = {
    **{int(reason): reason.label for reason in Reason},
    int(ArcKind.ENGINE): "its engine",
    int(ArcKind.ISSUE): "its issue",
    int(ArcKind.PROGRAM): "program order",
}


def embedded_schedules(data: ReportData) -> tuple[Schedule, ...]:
    """The schedules whose every node is embedded, the best one first, then in the order of the ladder."""
    best = data.best
    if best is None:
        return ()
    others = [row.schedule for row in data.policies if row.schedule is not None and row.schedule is not best]
    most = max(NODES_EMBEDDED // max(len(data.graph), 1), 1)
    return (best, *others)[:most]


def embedded_text(data: ReportData, box_of: IntArray | None, lines: LineTable) -> str:
    """The document as JSON that may stand inside a script element. ``box_of`` are the boxes of the page's picture."""
    graph = data.graph
    document = {
        "title": quote(data.title),
        "ranks": graph.ranks,
        "budget": data.liveness.budget_bytes,
        "operations": list(OPERATIONS.names),
        "engine_kinds": [op.engine for op in OPERATIONS.values()],
        "work_kinds": [op.work_kind.value for op in OPERATIONS.values()],
        "marker": np.flatnonzero(OPERATIONS.markers).tolist(),
        "causes": _CAUSES,
        "reasons": [reason.label for reason in Reason],
        "colours": {name: {"solid": c.solid, "ink": c.ink} for name, c in ENGINE_COLOURS.items()},
        "nodes": _nodes(data),
        "accesses": _accesses(graph),
        "edges": _edges(graph),
        "storages": _storages(data),
        "scopes": _scopes(graph),
        "layouts": [repr(layout) for layout in graph.layouts],
        "places": [_place(graph, row) for row in range(len(graph.stacks))],
        "lines": [list(of_stack) for of_stack in lines.of_stack],
        "boxes": None if box_of is None else pack(box_of, delta=True),
        "findings": [pack(np.array(d.nodes, dtype=np.int64), delta=True) for d in data.lint],
        "peaks": _peaks(data),
        "schedules": [
            {**_schedule(schedule), "causes": _chain_causes(schedule), "costs": _line_costs(schedule, lines)}
            for schedule in embedded_schedules(data)
        ],
    }
    text = json.dumps(document, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _place(graph: Graph, stack: int) -> str:
    place = graph.location(stack)
    return quote(place.short) if place else ""


def _nodes(data: ReportData) -> dict[str, Any]:
    nodes = data.graph.nodes
    return {
        "op": pack(nodes.op),
        "rank": pack(nodes.rank, delta=True),
        "scope": pack(nodes.scope, delta=True),
        "stack": pack(nodes.stack, delta=True),
        "cursor": pack(data.liveness.cursor, delta=True),
        "live": pack(data.liveness.live_bytes, delta=True),
        "work0": pack(nodes.work0),
        "work1": pack(nodes.work1),
        "work2": pack(nodes.work2),
    }


def _accesses(graph: Graph) -> dict[str, Any]:
    accesses = graph.accesses
    return {
        "count": pack(np.diff(graph.access_start)),
        # What a node accesses was mostly made shortly before it.
        "storage": pack(accesses.storage, delta=True),
        "write": pack((accesses.mode == Mode.WRITE).astype(np.int64)),
        "layout": pack(accesses.layout),
    }


def _edges(graph: Graph) -> dict[str, Any] | None:
    edges = graph.edges
    if len(edges) > EDGES_EMBEDDED:
        return None
    return {
        "count": pack(np.diff(graph.edge_start)),
        "back": pack(edges.target.astype(np.int64) - edges.source),
        "kind": pack(edges.reason.astype(np.int64) * 2 + edges.recycled),
    }


def _storages(data: ReportData) -> dict[str, Any]:
    graph, storages, live = data.graph, data.graph.storages, data.liveness
    names = sorted({int(name) for name in storages.name.tolist()})
    place = np.zeros(len(graph.names), dtype=np.int64)
    place[names] = np.arange(len(names))
    return {
        "names": [quote(graph.names[name]) for name in names],
        "name": pack(place[storages.name]),
        "hbm": pack((~graph.in_scratch).astype(np.int64)),
        "rank": pack(storages.rank, delta=True),
        "address": pack(storages.address),
        "bytes": pack(live.held_bytes),
        "layout": pack(storages.layout),
        "scope": pack(storages.scope, delta=True),
        "stack": pack(storages.stack),
        "born": pack(graph.acquired, delta=True),
        "freed": pack(storages.freed if graph.is_scoped else graph.released + 1, delta=True),
    }


def _scopes(graph: Graph) -> dict[str, Any]:
    scopes = graph.scopes
    titles: dict[str, int] = {}
    title: list[int] = []
    known: dict[tuple[int, int, bool], int] = {}  # scopes of one name and place have one title
    heads = zip(scopes.name.tolist(), scopes.stack.tolist(), (scopes.parent < 0).tolist(), strict=True)
    for row, head in enumerate(heads):
        if head not in known:
            known[head] = titles.setdefault(quote(graph.describe_scope(row)), len(titles))
        title.append(known[head])
    return {
        "titles": list(titles),
        "title": pack(np.array(title, dtype=np.int64)),
        "rank": pack(scopes.rank, delta=True),
        "parent": pack(scopes.parent),
        "enter": pack(scopes.enter, delta=True),
        "exit": pack(scopes.exit, delta=True),
        "base": pack(scopes.base),
    }


def _chain_causes(schedule: Schedule) -> list[list[Any]]:
    """What the critical chain is made of: cause, picoseconds, class and colour, the most first."""
    return [[quote(cause), ps, *cause_style(cause)] for cause, ps in schedule.critical_chain().by_cause().items()]


def _line_costs(schedule: Schedule, lines: LineTable) -> dict[str, Any]:
    """By line what it keeps engines busy for, and its part of the critical chain, in picoseconds."""
    if not len(lines):
        return {"busy": [], "chain": []}
    stack = schedule.graph.nodes.stack
    return {
        "busy": lines.sums(stack, schedule.free_ps - schedule.start_ps),
        "chain": lines.sums(*chain_times(schedule)),
    }


def _peaks(data: ReportData) -> list[dict[str, Any]]:
    """By rank the peak's bytes, its node and who holds it."""
    live = data.liveness
    return [
        {
            "bytes": live.peak_bytes_by_rank[rank],
            "node": live.peak_node_by_rank[rank],
            "holders": pack(live.held_at_peak(rank), delta=True),
        }
        for rank in range(data.graph.ranks)
    ]


def _schedule(schedule: Schedule) -> dict[str, Any]:
    """Nodes by engine, lane and start; their starts as the gaps behind the node before."""
    order = np.lexsort((np.arange(len(schedule)), schedule.start_ps, schedule.lane, schedule.engine))
    start, end = schedule.start_ps[order], schedule.free_ps[order]
    before = np.concatenate([[0], end[:-1]]) if len(order) else start
    behind = schedule.cause_node.astype(np.int64)
    return {
        "policy": schedule.policy,
        "makespan": schedule.makespan_ps,
        "bound": schedule.bound_ps,
        "engines": [
            {"rank": e.rank, "name": quote(e.name), "kind": engine_kind(e.name, e.kind), "lanes": e.channels}
            for e in schedule.engines
        ],
        "order": pack(order, delta=True),
        "engine": pack(schedule.engine[order], delta=True),
        "lane": pack(schedule.lane[order], delta=True),
        "gap": pack(start - before),
        "duration": pack(end - start),
        "cause": pack(schedule.cause.astype(np.int64)),
        "slack": pack(schedule.slack_ps),
        "behind": pack(np.where(behind >= 0, np.arange(len(schedule)) - behind, 0)),
        "chain": pack(np.array(schedule.critical_chain().nodes, dtype=np.int64), delta=True),
    }
