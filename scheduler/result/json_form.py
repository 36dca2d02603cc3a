"""A schedule as JSON: enough for an outside program to verify it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...ir.graph import Graph
from ...ir.grid import coordinates
from ...ir.memories import Memory
from ...ir.ops import OPERATIONS
from ...ir.tables import AccessKind, Mode, Reason
from .causes import CauseColumns, WaitedFor
from .columns import ScheduleColumns

__all__ = ["VERSION", "schedule_document", "schedule_text"]

#: Raised when a field changes its meaning; new fields do not raise it.
VERSION = 1


def schedule_text(schedule: ScheduleColumns) -> str:
    """The document of a schedule as one line of JSON, the same bytes every time.

    The long tables are put together from the texts of their parts, which are few: for the whole document as objects,
    most of the time would go into making the objects.
    """
    graph = schedule.graph
    head, channels = _text(_head(schedule)).removesuffix("}"), _text(_channels(graph))
    storages, nodes, edges = (
        ",".join(texts) for texts in (_storage_texts(graph), _node_texts(schedule), _edge_texts(graph))
    )
    return f'{head},"storages":[{storages}],"channels":{channels},"nodes":[{nodes}],"edges":[{edges}]}}'


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _storage_texts(graph: Graph) -> Iterator[str]:
    s = graph.storages
    names = [_text(name) for name in graph.names]
    kinds = [_kind(memory) for memory in graph.target.memories]
    ends = [f',"dtype":"{layout.dtype.short}","shape":{_text(list(layout.shape))}}}' for layout in graph.layouts]
    columns = (s.name, s.memory, s.rank, s.address, s.nbytes, s.layout)
    for name, kind, rank, address, nbytes, layout in zip(*(column.tolist() for column in columns), strict=True):
        yield (
            f'{{"name":{names[name]},"kind":{_text(kinds[kind])},"rank":{_null_or(rank)},"address":{address},'
            f'"nbytes":{nbytes}{ends[layout]}'
        )


def _kind(memory: Memory) -> str:
    return "hbm" if memory.is_global else "scratch"


def _node_texts(schedule: ScheduleColumns) -> Iterator[str]:
    graph, n = schedule.graph, schedule.graph.nodes
    columns = (n.op, n.rank, n.command, n.channel, n.stack, schedule.engine, schedule.lane)
    times = (schedule.issue_ps, schedule.start_ps, schedule.free_ps, schedule.end_ps)
    waited = (schedule.waited_for.cause, schedule.waited_for.node)
    reach = (graph.access_start[:-1], graph.access_start[1:])
    rows = zip(*(column.tolist() for column in (*columns, *times, *waited, *reach)), strict=True)
    ops = {code: _text(OPERATIONS.by_code(code).name) for code in np.unique(n.op).tolist()}
    places = {stack: _text(_location(graph, stack)) for stack in np.unique(n.stack).tolist()}
    causes = {cause: _cause_texts(cause) for cause in np.unique(waited[0]).tolist()}
    accesses = list(_access_texts(graph))
    own = graph.program.tolist()
    programs = {p: f'"program":{_text(list(coordinates(graph.grid, p)))},' if p >= 0 else "" for p in set(own)}
    for number, (row, program) in enumerate(zip(rows, own, strict=True)):
        op, rank, command, channel, stack, engine, lane, issue, start, free, end, cause, behind, first, stop = row
        before, after = causes[cause]
        wait = f"{before}{_null_or(behind)}{after}" if before else "null"
        yield (
            f'{{"id":{number},"op":{ops[op]},"rank":{rank},{programs[program]}"command":{command},"channel":{_null_or(channel)},'
            f'"engine":{_null_or(engine)},"lane":{_null_or(lane)},"issue_ps":{issue},"start_ps":{start},'
            f'"free_ps":{free},"end_ps":{end},"waited_for":{wait},"loc":{places[stack]},"accesses":[{",".join(accesses[first:stop])}]}}'
        )


def _null_or(number: int) -> int | str:
    return number if number >= 0 else "null"


def _cause_texts(cause: int) -> tuple[str, str]:
    """What stands before and after the node in the text of a wait; empty where there was none."""
    sample = _wait_row(CauseColumns(np.array([cause]), np.array([0]))[0])
    if sample is None:
        return "", ""
    before, _, after = _text(sample).partition('"node":0')
    return f'{before}"node":', after


def _access_texts(graph: Graph) -> Iterator[str]:
    a = graph.accesses
    rows = zip(*(column.tolist() for column in (a.storage, a.mode, a.kind, a.offset, a.layout)), strict=True)
    middles = {
        (int(mode), int(kind)): f',"mode":"{mode.name.lower()}","kind":"{kind.name.lower()}","offset":'
        for mode in Mode
        for kind in AccessKind
    }
    ends = [
        f',"shape":{_text(list(layout.shape))},"strides":{_text(list(layout.strides))},"dtype":"{layout.dtype.short}"}}'
        for layout in graph.layouts
    ]
    for storage, mode, kind, offset, layout in rows:
        yield f'{{"storage":{storage}{middles[mode, kind]}{offset}{ends[layout]}'


def _edge_texts(graph: Graph) -> Iterator[str]:
    e = graph.edges
    labels = {int(reason): f',"{reason.label}"]' for reason in Reason}
    for source, target, reason in zip(e.source.tolist(), e.target.tolist(), e.reason.tolist(), strict=True):
        yield f"[{source},{target}{labels[reason]}"


def schedule_document(schedule: ScheduleColumns) -> dict[str, Any]:
    """Times in picoseconds, sizes in bytes, offsets and strides in elements; ``storage``, ``engine`` and ``channel``
    are indices into the lists of those names, null where there is none."""
    graph = schedule.graph
    return {
        **_head(schedule),
        "storages": _storages(graph),
        "channels": _channels(graph),
        "nodes": _nodes(schedule),
        "edges": _edges(graph),
    }


def _head(schedule: ScheduleColumns) -> dict[str, Any]:
    graph = schedule.graph
    return {
        "version": VERSION,
        "kernel": graph.kernel,
        "ranks": graph.ranks,
        **({"grid": list(graph.grid)} if graph.grid else {}),
        "machine": schedule.machine.name,
        "policy": schedule.policy,
        "makespan_ps": schedule.makespan_ps,
        "bound_ps": schedule.bound_ps,
        "bound": schedule.bounds.best,
        "proved_optimal": schedule.proved_optimal,
        "bounds": dict(schedule.bounds.each),
        "engines": [{"rank": e.rank, "name": e.name, "channels": e.channels} for e in schedule.engines],
    }


def _storages(graph: Graph) -> list[dict[str, Any]]:
    s = graph.storages
    return [
        {
            "name": graph.names[s.name[row]],
            "kind": _kind(graph.target.memories[s.memory[row]]),
            "rank": _or_none(int(s.rank[row])),
            "address": int(s.address[row]),
            "nbytes": int(s.nbytes[row]),
            "dtype": graph.layouts[s.layout[row]].dtype.short,
            "shape": list(graph.layouts[s.layout[row]].shape),
        }
        for row in range(len(s))
    ]


def _channels(graph: Graph) -> list[dict[str, Any]]:
    c, directions = graph.channels, graph.target.directions
    return [
        {
            "sender": int(c.sender[row]),
            "direction": directions[c.direction[row]],
            "receiver": int(c.receiver[row]),
            "arrival": directions[c.arrival[row]],
        }
        for row in range(len(c))
    ]


def _nodes(schedule: ScheduleColumns) -> list[dict[str, Any]]:
    graph, n = schedule.graph, schedule.graph.nodes
    columns = (n.op, n.rank, n.command, n.channel, n.stack, schedule.engine, schedule.lane)
    times = (schedule.issue_ps, schedule.start_ps, schedule.free_ps, schedule.end_ps)
    rows = zip(*(column.tolist() for column in (*columns, *times)), strict=True)
    accesses = _accesses(graph)
    starts = graph.access_start.tolist()
    waited = schedule.waited_for
    places = {stack: _location(graph, stack) for stack in np.unique(n.stack).tolist()}
    return [
        {
            "id": number,
            "op": OPERATIONS.by_code(op).name,
            "rank": rank,
            **({"program": list(coordinates(graph.grid, program))} if program >= 0 else {}),
            "command": command,
            "channel": _or_none(channel),
            "engine": _or_none(engine),
            "lane": _or_none(lane),
            "issue_ps": issue,
            "start_ps": start,
            "free_ps": free,
            "end_ps": end,
            "waited_for": _wait_row(waited[number]),
            "loc": places[stack],
            "accesses": accesses[starts[number] : starts[number + 1]],
        }
        for number, (program, (op, rank, command, channel, stack, engine, lane, issue, start, free, end)) in enumerate(
            zip(graph.program.tolist(), rows, strict=True)
        )
    ]


def _wait_row(found: WaitedFor | None) -> dict[str, Any] | None:
    if found is None:
        return None
    row = {"cause": str(found.cause), "node": found.node}
    return row if found.reason is None else {**row, "reason": found.reason}


def _location(graph: Graph, stack: int) -> dict[str, Any] | None:
    place = graph.location(stack)
    return {"file": place.file, "line": place.line, "function": place.function} if place else None


def _accesses(graph: Graph) -> list[dict[str, Any]]:
    a = graph.accesses
    rows = zip(*(column.tolist() for column in (a.storage, a.mode, a.kind, a.offset, a.layout)), strict=True)
    modes = {int(mode): mode.name.lower() for mode in Mode}
    kinds = {int(kind): kind.name.lower() for kind in AccessKind}
    shapes = [list(layout.shape) for layout in graph.layouts]
    strides = [list(layout.strides) for layout in graph.layouts]
    dtypes = [layout.dtype.short for layout in graph.layouts]
    return [
        {
            "storage": storage,
            "mode": modes[mode],
            "kind": kinds[kind],
            "offset": offset,
            "shape": shapes[layout],
            "strides": strides[layout],
            "dtype": dtypes[layout],
        }
        for storage, mode, kind, offset, layout in rows
    ]


def _edges(graph: Graph) -> list[list[Any]]:
    e = graph.edges
    labels = {int(reason): reason.label for reason in Reason}
    rows = zip(e.source.tolist(), e.target.tolist(), e.reason.tolist(), strict=True)
    return [[source, target, labels[reason]] for source, target, reason in rows]


def _or_none(number: int) -> int | None:
    return None if number < 0 else number
