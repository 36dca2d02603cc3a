"""Schedules as Chrome trace events: JSON that many tools read (about:tracing, Perfetto, speedscope, scripts).

``ts`` is in microseconds, as the format has it, with up to six decimals: exactly the schedule's picoseconds (as a
float, too, below 2 ** 53 of them, two and a half hours). A reader that rounds to nanoseconds shows rounded times; the
exact ones are in ``args``. Every node is a pair of events ``B`` and ``E``: unlike a start with a duration, a pair
cannot come to overlap its neighbour by rounding, and one that takes no time can still hold the ends of its flows.

The format: "Trace Event Format", https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from ...ir.arrays.ramps import ramp
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from .counters import Counter, counters_of
from .facts import edge_labels, facts_of
from .time_axis import exact_time
from .tracks import Phase, moments_of, plan_tracks, schedule_title

__all__ = ["chrome_trace"]

#: How many moments are written at a time: what is held in Python's own objects is that of so many nodes.
_BATCH = 8192


def chrome_trace(schedules: Sequence[Schedule]) -> Iterator[str]:
    """The trace of one schedule, or of several: a process for each rank of each, a thread for each track. Nodes, flows
    and counters as in :func:`kernscope.backends.timelines.perfetto.perfetto_trace`. One event a line, in order of time
    within a schedule; the same schedules give the same text. In pieces, which are made as they are asked for: all of
    them together may be larger than what they tell of."""
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
    yield f'{{"displayTimeUnit":"ns","otherData":{{"unit of ts":"us, exact to the ps","schedules":{_text(about)}}},'
    yield '"traceEvents":['
    before = "\n"
    for events in itertools.chain.from_iterable(map(_batches, schedules, _numbering(schedules))):
        if events:
            yield before + ",\n".join(events)
            before = ",\n"
    yield "\n]}\n"


@attrs.frozen
class _Numbers:
    """The first process, thread and flow of a schedule in a trace."""

    process: int
    thread: int
    flow: int


def _numbering(schedules: Sequence[Schedule]) -> Iterator[_Numbers]:
    # From 1 on: number 0 is the idle process. A thread with its process's number would be its main one.
    process, thread, flow = 1, 1 + sum(schedule.graph.ranks for schedule in schedules), 1
    for schedule in schedules:
        yield _Numbers(process, thread, flow)
        process += schedule.graph.ranks
        thread += len(plan_tracks(schedule).tracks)
        flow += len(schedule.graph.edges)


def _batches(schedule: Schedule, first: _Numbers) -> Iterator[list[str]]:
    """The events of a schedule, some thousands at a time."""
    yield list(_metadata(schedule, first.process, first.thread))
    yield from _events(schedule, first)
    for counter in counters_of(schedule):
        yield list(_counter(counter, first.process))


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


def _events(schedule: Schedule, first: _Numbers) -> Iterator[list[str]]:
    """``B`` and ``E`` of all nodes, with the ends of their flows right behind ``B``: an edge's ``s`` on its source, its
    ``f`` on its target."""
    nodes, edges = schedule.graph.nodes, schedule.graph.edges
    track = plan_tracks(schedule).of_node
    heads = [f'"name":{_text(op.name)},"cat":{_text(op.log or op.family.value)}' for op in OPERATIONS.values()]
    flow = {int(reason): f'"cat":"edge","name":"{reason.label}"' for reason in Reason}
    tell = _Arguments(schedule)
    by_source = np.argsort(edges.source, kind="stable")
    out_of = np.searchsorted(edges.source[by_source], np.arange(len(schedule) + 1))
    moments = moments_of(schedule)
    for begin in range(0, len(moments.node), _BATCH):
        node, phase, at = (column[begin : begin + _BATCH] for column in attrs.astuple(moments, recurse=False))
        entered = phase != Phase.END
        told = iter(tell.of_nodes(node[entered]))
        leads = iter(_by_node(schedule.graph.edge_start, node[entered], np.arange(len(edges)), edges.reason))
        leaves = iter(_by_node(out_of, node[entered], by_source, edges.reason[by_source]))
        columns = (nodes.rank[node] + first.process, track[node] + first.thread, nodes.op[node], phase, at)
        events: list[str] = []
        for pid, tid, op, what, instant in zip(*(column.tolist() for column in columns), strict=True):
            where = f'"pid":{pid},"tid":{tid},"ts":{_exact_us(instant)}'
            if what != Phase.END:
                events.append(f'{{"ph":"B",{heads[op]},{where},"args":{{{next(told)}}}}}')
                for edge, reason in next(leads):
                    events.append(f'{{"ph":"f","bp":"e","id":{first.flow + edge},{flow[reason]},{where}}}')
                for edge, reason in next(leaves):
                    events.append(f'{{"ph":"s","id":{first.flow + edge},{flow[reason]},{where}}}')
            if what != Phase.BEGIN:
                events.append(f'{{"ph":"E",{where}}}')
        yield events


def _by_node(starts: IntArray, nodes: IntArray, *columns: IntArray) -> Iterator[Sequence[tuple[int, ...]]]:
    """For each of some nodes its rows of columns: of node n, ``starts[n]`` up to ``starts[n + 1]``."""
    counts = starts[nodes + 1] - starts[nodes]
    chosen = np.repeat(starts[nodes], counts) + ramp(counts)
    rows = list(zip(*(column[chosen].tolist() for column in columns), strict=True))
    stop = 0
    for count in counts.tolist():
        yield rows[stop : stop + count]
        stop += count


class _Arguments:
    """Writes the members of a node's ``args``; whatever several nodes share is written once."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.facts = schedule, facts_of(schedule)
        facts, edges = self.facts, schedule.graph.edges
        self.sources = [f',"source":{_text(source)}' if source else "" for source in facts.sources]
        self.scopes = [f',"scope":{_text(scope)}' if scope else "" for scope in facts.scopes]
        self.works = ["".join(f',"{name}":{_text(value)}' for name, value in work) for work in facts.works]
        self.causes = [f',"waited for":{_text(cause)}' for cause in facts.causes]
        self.behind = [f',"waited for what":{_text(place)}' for place in facts.places]
        self.accesses = [_text(access) for access in facts.accesses]
        durations = np.unique(schedule.end_ps - schedule.start_ps).tolist()
        self.durations = {took: f',"duration":"{exact_time(took)}"' for took in durations}
        self.labels = edge_labels()
        self.edge_key = 2 * edges.reason.astype(np.int64) + edges.recycled

    def of_nodes(self, nodes: IntArray) -> Iterator[str]:
        """The text of each node, in their order."""
        schedule, facts, graph = self.schedule, self.facts, self.schedule.graph
        behind = facts.place[np.maximum(facts.cause_node[nodes], 0)]
        columns = (facts.source, facts.scope, facts.work, facts.cause, facts.cause_node, facts.critical)
        times = (schedule.start_ps, schedule.end_ps, schedule.issue_ps, facts.slack_ps)
        rows = zip(nodes.tolist(), behind.tolist(), *(each[nodes].tolist() for each in (*columns, *times)), strict=True)
        accesses = _by_node(graph.access_start, nodes, graph.accesses.mode, facts.access)
        waits = _by_node(graph.edge_start, nodes, self.edge_key, graph.edges.source)
        for row, touched, waited_for in zip(rows, accesses, waits, strict=True):
            node, place, source, scope, work, cause, waited, on_chain, start, stop, issue, slack = row
            yield (
                f'"node":{node}{self.sources[source]}{self.scopes[scope]}{self.durations[stop - start]}'
                + f"{self.works[work]}{self.causes[cause]}"
                + (f',"waited for node":{waited}{self.behind[place]}' if waited >= 0 else "")
                + (',"critical chain":true' if on_chain else "")
                + self._accesses(touched)
                + self._waits(waited_for)
                + f',"start_ps":{start},"end_ps":{stop},"issue_ps":{issue},"slack_ps":{slack}'
            )

    def _accesses(self, touched: Sequence[tuple[int, ...]]) -> str:
        """The arrays ``reads`` and ``writes`` of a node."""
        groups = [[self.accesses[access] for mode, access in touched if mode == wanted] for wanted in Mode]
        named = zip(Mode, groups, strict=True)
        return "".join(f',"{mode.name.lower()}s":[{",".join(group)}]' for mode, group in named if group)

    def _waits(self, waited_for: Sequence[tuple[int, ...]]) -> str:
        """The nodes that a node waits for, an array for each kind of edge."""
        groups: dict[str, list[str]] = {}
        for key, source in waited_for:
            groups.setdefault(self.labels[key], []).append(str(source))
        return "".join(f',"{label}":[{",".join(group)}]' for label, group in groups.items())
