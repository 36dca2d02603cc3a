"""Schedules as Chrome trace events: JSON that many tools read (about:tracing, Perfetto, speedscope, scripts).

``ts`` is in microseconds, as the format has it, with up to six decimals: exactly the schedule's picoseconds (as a
float, too, below 2 ** 53 of them, two and a half hours). A reader that rounds to nanoseconds shows rounded times; the
exact ones are in ``args``. Every node is a pair of events ``B`` and ``E``: unlike a start with a duration, a pair
cannot come to overlap its neighbour by rounding, and one that takes no time can still hold the ends of its flows.

The format: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from ...ir.ops import OPERATIONS
from ...ir.tables import Mode, Reason
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from .counters import Counter, counters_of
from .facts import edge_labels, facts_of
from .time_axis import exact_time
from .tracks import Phase, moments_of, plan_tracks, schedule_title

__all__ = ["chrome_trace"]


def chrome_trace(schedules: Sequence[Schedule]) -> str:
    """The trace of one schedule, or of several: a process for each rank of each, a thread for each track. Nodes, flows
    and counters as in :func:`kernscope.backends.timelines.perfetto.perfetto_trace`. One event a line, in order of time
    within a schedule; the same schedules give the same text."""
    events: list[str] = []
    # From 1 on: number 0 is the idle process. A thread with its process's number would be its main one.
    process, thread, edge = 1, 1 + sum(schedule.graph.ranks for schedule in schedules), 1
    for schedule in schedules:
        events += _metadata(schedule, process, thread)
        events += _events(schedule, process, thread, edge)
        for counter in counters_of(schedule):
            events += _counter(counter, process)
        process += schedule.graph.ranks
        thread += len(plan_tracks(schedule).tracks)
        edge += len(schedule.graph.edges)
    about = [
        {
            "schedule": schedule_title(schedule),
            "makespan_ps": schedule.makespan_ps,
            "bound_ps": schedule.bound_ps,
            "nodes": len(schedule),
            "edges": len(schedule.graph.edges),
        }
        for schedule in schedules
    ]
    head = f'{{"displayTimeUnit":"ns","otherData":{{"unit of ts":"us, exact to the ps","schedules":{_text(about)}}},'
    return head + '"traceEvents":[\n' + ",\n".join(events) + "\n]}\n"


def _text(value: object) -> str:
    """JSON in ASCII, which may also stand inside a script element of a page."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def _exact_us(ps: int) -> str:
    whole, rest = divmod(ps, 10**6)
    return f"{whole}.{rest:06d}".rstrip("0") if rest else str(whole)


def _metadata(schedule: Schedule, process: int, thread: int) -> Iterator[str]:
    title = f"{schedule_title(schedule)}: {format_ps(schedule.makespan_ps)}"
    for rank in range(schedule.graph.ranks):
        pid = process + rank
        for name, args in (
            ("process_name", {"name": f"rank {rank}, {title}"}),
            ("process_sort_index", {"sort_index": pid}),
        ):
            yield f'{{"ph":"M","name":"{name}","pid":{pid},"tid":0,"args":{_text(args)}}}'
    for tid, track in enumerate(plan_tracks(schedule).tracks, thread):
        for name, named in (("thread_name", {"name": track.name}), ("thread_sort_index", {"sort_index": tid})):
            yield f'{{"ph":"M","name":"{name}","pid":{process + track.rank},"tid":{tid},"args":{_text(named)}}}'


def _counter(counter: Counter, process: int) -> Iterator[str]:
    name, pid = _text(counter.name), process + counter.rank
    at, value = counter.at_ps.tolist(), counter.value.tolist()
    if not at or at[0] > 0:
        at, value = [0, *at], [0, *value]
    for instant, height in zip(at, value, strict=True):
        yield f'{{"ph":"C","name":{name},"pid":{pid},"ts":{_exact_us(instant)},"args":{{"{counter.unit}":{height}}}}}'


def _events(schedule: Schedule, process: int, thread: int, edges_before: int) -> Iterator[str]:
    """``B`` and ``E`` of all nodes, with the ends of their flows right behind ``B``: an edge's ``s`` on its source, its
    ``f`` on its target."""
    nodes, edges = schedule.graph.nodes, schedule.graph.edges
    rank, op = nodes.rank.tolist(), nodes.op.tolist()
    track: list[int] = plan_tracks(schedule).of_node.tolist()
    heads = [f'"name":{_text(op.name)},"cat":{_text(op.log or op.family.value)}' for op in OPERATIONS.values()]
    flow = {int(reason): f'"cat":"edge","name":"{reason.label}"' for reason in Reason}
    args = _arguments(schedule)
    into: list[int] = schedule.graph.edge_start.tolist()
    by_source = np.argsort(edges.source, kind="stable")
    out_of: list[int] = np.searchsorted(edges.source[by_source], np.arange(len(schedule) + 1)).tolist()
    outgoing: list[int] = by_source.tolist()
    reason: list[int] = edges.reason.tolist()
    moments = moments_of(schedule)
    end = int(Phase.END)
    instant = int(Phase.INSTANT)
    rows = zip(moments.node.tolist(), moments.phase.tolist(), moments.at_ps.tolist(), strict=True)
    for node, phase, at in rows:
        where = f'"pid":{process + rank[node]},"tid":{thread + track[node]},"ts":{_exact_us(at)}'
        if phase != end:
            yield f'{{"ph":"B",{heads[op[node]]},{where},"args":{{{args[node]}}}}}'
            for edge in range(into[node], into[node + 1]):
                yield f'{{"ph":"f","bp":"e","id":{edges_before + edge},{flow[reason[edge]]},{where}}}'
            for edge in outgoing[out_of[node] : out_of[node + 1]]:
                yield f'{{"ph":"s","id":{edges_before + edge},{flow[reason[edge]]},{where}}}'
        if phase in (end, instant):
            yield f'{{"ph":"E",{where}}}'


def _arguments(schedule: Schedule) -> list[str]:
    """By node the members of its ``args``; whatever several nodes share is written once."""
    graph, facts = schedule.graph, facts_of(schedule)
    sources = [f',"source":{_text(source)}' if source else "" for source in facts.sources]
    scopes = [f',"scope":{_text(scope)}' if scope else "" for scope in facts.scopes]
    works = ["".join(f',"{name}":{_text(value)}' for name, value in work) for work in facts.works]
    causes = [f',"waited for":{_text(cause)}' for cause in facts.causes]
    behind = [f',"waited for what":{_text(place)}' for place in facts.places]
    durations = {
        took: f',"duration":"{exact_time(took)}"' for took in np.unique(schedule.end_ps - schedule.start_ps).tolist()
    }
    accesses = _accesses(schedule, [_text(access) for access in facts.accesses], facts.access.tolist())
    edges = graph.edges
    labels = edge_labels()
    waits: list[dict[str, list[int]]] = [{} for _ in range(len(graph))]
    keys = (2 * edges.reason.astype(np.int64) + edges.recycled).tolist()
    for source, target, key in zip(edges.source.tolist(), edges.target.tolist(), keys, strict=True):
        waits[target].setdefault(labels[key], []).append(source)
    place: list[int] = facts.place.tolist()
    columns = (facts.source, facts.scope, facts.work, facts.cause, facts.cause_node, facts.critical)
    times = (schedule.start_ps, schedule.end_ps, schedule.issue_ps, facts.slack_ps)
    rows = zip(*(column.tolist() for column in (*columns, *times)), strict=True)
    said = []
    for node, (origin, scope, work, cause, waited, on_chain, start, stop, issue, slack) in enumerate(rows):
        said.append(
            f'"node":{node}{sources[origin]}{scopes[scope]}{durations[stop - start]}{works[work]}{causes[cause]}'
            + (f',"waited for node":{waited}{behind[place[waited]]}' if waited >= 0 else "")
            + (',"critical chain":true' if on_chain else "")
            + accesses[node]
            + "".join(f',"{label}":[{",".join(map(str, nodes))}]' for label, nodes in waits[node].items())
            + f',"start_ps":{start},"end_ps":{stop},"issue_ps":{issue},"slack_ps":{slack}'
        )
    return said


def _accesses(schedule: Schedule, texts: Sequence[str], of_access: Sequence[int]) -> list[str]:
    """By node its arrays ``reads`` and ``writes``."""
    accesses = schedule.graph.accesses
    found: list[list[list[str]]] = [[[] for _ in Mode] for _ in range(len(schedule))]
    rows = zip(accesses.node.tolist(), accesses.mode.tolist(), of_access, strict=True)
    for node, mode, access in rows:
        found[node][mode].append(texts[access])
    names = [f"{mode.name.lower()}s" for mode in Mode]
    return [
        "".join(f',"{name}":[{",".join(group)}]' for name, group in zip(names, groups, strict=True) if group)
        for groups in found
    ]
