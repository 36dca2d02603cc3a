"""Schedules as a Perfetto trace: protobuf, as ``ui.perfetto.dev`` and the trace processor read it.

Perfetto counts in nanoseconds, a schedule in picoseconds. So that no time is rounded and no slice is lost, **one
nanosecond of the trace is one picosecond of the schedule**: what the viewer calls 612 us took 612 ns. The root track's
name says so, every slice states its duration in true units, and its picoseconds.

Field numbers are those of https://github.com/google/perfetto/tree/main/protos/perfetto/trace (track_event/*.proto).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from .counters import counters_of
from .facts import edge_labels, facts_of
from .perfetto_wire import Strings, message, message_head, tag, text, uint, varint, varints
from .time_axis import exact_time
from .tracks import Phase, moments_of, plan_tracks, schedule_title

__all__ = ["FLOW_REASONS", "perfetto_trace"]

#: A flow's id is ``FLOW_REASONS * (edge + 1) + reason``: the edge's row in ``Graph.edges`` (rows of further schedules
#: follow), and its ``Reason``.
FLOW_REASONS = 8

# Trace and TracePacket.
_PACKET = tag(1, 2)
_TIMESTAMP = tag(8, 0)
_SEQUENCE = uint(10, 1)
_CLEARED = uint(13, 1)
_NEEDS_STATE = uint(13, 2)
_TRACK_EVENT = tag(11, 2)
_INTERNED_DATA, _TRACK_DESCRIPTOR = 12, 60
# TrackEvent.
_TYPES = {Phase.BEGIN: uint(9, 1), Phase.END: uint(9, 2), Phase.INSTANT: uint(9, 3)}
_COUNTER = uint(9, 4)
_CATEGORY, _NAME, _TRACK, _FLOW, _FLOW_END, _VALUE = 3, 10, 11, 47, 48, 30
_ANNOTATION = 4
# DebugAnnotation.
_A_NAME, _A_BOOL, _A_INT, _A_STRING, _A_ARRAY = 1, 2, 4, 17, 12
_EXPLICIT_ORDER, _NO_MERGING = 3, 2
_CHUNK = 4096


class _Interned:
    """The strings of a trace: names of events, categories, names of annotations, texts of annotations."""

    def __init__(self) -> None:
        self.categories = Strings(1, 2)
        self.events = Strings(2, 2)
        self.names = Strings(3, 2)
        self.texts = Strings(29, 2)

    def packets(self) -> Iterator[bytes]:
        """Packets that hold them all, the first of which begins the sequence's state."""
        flags = _CLEARED
        entries = [*self.categories.entries(), *self.events.entries(), *self.names.entries(), *self.texts.entries()]
        for begin in range(0, max(len(entries), 1), _CHUNK):
            yield _packet(_SEQUENCE + flags + message(_INTERNED_DATA, *entries[begin : begin + _CHUNK]))
            flags = _NEEDS_STATE

    def annotation(self, name: str, value: int | str | bool) -> bytes:
        """A debug annotation."""
        return message(_ANNOTATION, uint(_A_NAME, self.names.number(name)), self._value(value))

    def _value(self, value: int | str | bool) -> bytes:
        if isinstance(value, str):
            return uint(_A_STRING, self.texts.number(value))
        return uint(_A_BOOL if isinstance(value, bool) else _A_INT, value)


def perfetto_trace(schedules: Sequence[Schedule]) -> bytes:
    """The trace of one schedule, or of several as groups one under the other.

    A slice for each node that takes time, an instant for each other one but the scope markers, a flow for each edge
    (all of them, whatever their number), and the counters of
    :func:`kernscope.backends.timelines.counters.counters_of`. Linear in nodes, accesses and edges but for sorting; the
    same schedules give the same bytes.
    """
    strings = _Interned()
    descriptors: list[bytes] = []
    events: list[bytes] = []
    next_uuid, next_edge = 1, 0
    for order, schedule in enumerate(schedules):
        tracks, next_uuid = _describe(schedule, order, next_uuid, descriptors, events)
        events += _events(schedule, tracks, next_edge, strings)
        next_edge += len(schedule.graph.edges)
    return b"".join([*strings.packets(), *descriptors, *events])


def _packet(body: bytes) -> bytes:
    return _PACKET + varint(len(body)) + body


def _descriptor(uuid: int, parent: int, order: int, name: str, *parts: bytes) -> bytes:
    above = uint(5, parent) if parent else b""
    fields = (uint(1, uuid), above, text(2, name), uint(12, order), uint(15, _NO_MERGING), *parts)
    return _packet(_SEQUENCE + message(_TRACK_DESCRIPTOR, *fields))


def _describe(
    schedule: Schedule, order: int, uuid: int, descriptors: list[bytes], events: list[bytes]
) -> tuple[list[int], int]:
    """Describe a schedule's tracks (schedule, ranks, tracks and counters) and add the counters' values to the events.
    Returns the uuid of each track of the plan, and the next uuid that is free."""
    graph = schedule.graph
    root = uuid
    # Viewers cut long names in the middle: the kernel's name is left to the description.
    title = f"{schedule.policy} {format_ps(schedule.makespan_ps)} (1 ns = 1 ps)"
    note = text(
        14,
        f"{schedule_title(schedule)}: {format_ps(schedule.makespan_ps)}. Times are magnified 1,000 times: "
        "one nanosecond of this trace is one picosecond of the schedule.",
    )
    if graph.ranks == 1:  # a group of one would only have to be opened
        title, ranks = f"rank 0: {title}", range(root, root + 1)
    else:
        ranks = range(root + 1, root + 1 + graph.ranks)
    children = uint(11, _EXPLICIT_ORDER)
    descriptors.append(_descriptor(root, 0, order, title, children, note))
    for rank, own in enumerate(ranks):
        if own != root:
            descriptors.append(_descriptor(own, root, rank, f"rank {rank}", children))
    uuid = ranks.stop
    plan = plan_tracks(schedule)
    uuids = []
    for place, track in enumerate(plan.tracks):
        descriptors.append(_descriptor(uuid, ranks[track.rank], place, track.name))
        uuids.append(uuid)
        uuid += 1
    for place, counter in enumerate(counters_of(schedule), len(plan.tracks)):
        unit = uint(3, 3) if counter.unit == "bytes" else text(6, counter.unit)  # UNIT_SIZE_BYTES, or a name
        descriptors.append(_descriptor(uuid, ranks[counter.rank], place, counter.name, message(8, unit)))
        at, value = counter.at_ps.tolist(), counter.value.tolist()
        if not at or at[0] > 0:
            at, value = [0, *at], [0, *value]
        for instant, height in zip(at, value, strict=True):
            events.append(_event(varint(instant), _COUNTER + uint(_TRACK, uuid) + uint(_VALUE, height)))
        uuid += 1
    return [uuids[track] if track >= 0 else 0 for track in plan.of_node.tolist()], uuid


def _event(at_ps: bytes, event: bytes) -> bytes:
    """A packet of an event at a time, which is encoded already."""
    return _packet(_TIMESTAMP + at_ps + _SEQUENCE + _NEEDS_STATE + _TRACK_EVENT + varint(len(event)) + event)


def _events(schedule: Schedule, tracks: Sequence[int], edges_before: int, strings: _Interned) -> Iterator[bytes]:
    """The slices and instants of a schedule, with their annotations and flows, in order of time."""
    said = _annotations(schedule, strings)
    flows = _flows(schedule, edges_before)
    heads = [
        uint(_NAME, strings.events.number(op.name))
        + uint(_CATEGORY, strings.categories.number(op.log or op.family.value))
        for op in OPERATIONS.values()
    ]
    op: list[int] = schedule.graph.nodes.op.tolist()
    types = {int(phase): encoded for phase, encoded in _TYPES.items()}
    end = int(Phase.END)
    moments = moments_of(schedule)
    rows = zip(moments.node.tolist(), moments.phase.tolist(), varints(moments.at_ps), strict=True)
    on_track = {uuid: uint(_TRACK, uuid) for uuid in set(tracks)}
    for node, phase, at in rows:
        event = types[phase] + on_track[tracks[node]]
        if phase != end:
            event += heads[op[node]] + said[node] + flows[node]
        yield _event(at, event)


def _flows(schedule: Schedule, edges_before: int) -> list[bytes]:
    """By node its flow fields: a flow for each edge starts at its source and ends at its target."""
    edges = schedule.graph.edges
    ids = FLOW_REASONS * (np.arange(edges_before, edges_before + len(edges), dtype=np.int64) + 1) + edges.reason
    found = [b""] * len(schedule)
    field, last = (tag(number, 1) for number in (_FLOW, _FLOW_END))
    pack = struct.Struct("<Q").pack
    rows = zip(edges.source.tolist(), edges.target.tolist(), ids.tolist(), strict=True)
    for source, target, number in rows:
        encoded = pack(number)
        found[source] += field + encoded
        found[target] += last + encoded
    return found


def _annotations(schedule: Schedule, strings: _Interned) -> list[bytes]:
    """By node all that is said of it, encoded; whatever several nodes share is encoded once."""
    facts = facts_of(schedule)
    took, duration = np.unique(schedule.end_ps - schedule.start_ps, return_inverse=True)
    waited = facts.cause_node

    def integers(name: str, column: IntArray) -> list[bytes]:
        before = uint(_A_NAME, strings.names.number(name)) + tag(_A_INT, 0)
        head = message_head(_ANNOTATION, before, 10)
        return [head[len(value)] + value for value in varints(column)]

    def texts(name: str, known: Iterable[str], index: IntArray) -> list[bytes]:
        encoded = [strings.annotation(name, value) if value else b"" for value in known]
        return [encoded[number] for number in index.tolist()]

    works = [b"".join(strings.annotation(name, value) for name, value in work) for work in facts.works]
    on_chain = (b"", strings.annotation("critical chain", True))
    behind = integers("waited for node", np.maximum(waited, 0))
    named = texts("waited for what", facts.places, facts.place[waited])
    columns = (
        integers("node", np.arange(len(schedule))),
        texts("source", facts.sources, facts.source),
        texts("scope", facts.scopes, facts.scope),
        texts("duration", map(exact_time, took.tolist()), duration),
        [works[number] for number in facts.work.tolist()],
        texts("waited for", facts.causes, facts.cause),
        [one + two if node >= 0 else b"" for node, one, two in zip(waited.tolist(), behind, named, strict=True)],
        [on_chain[number] for number in facts.critical.tolist()],
        _access_arrays(schedule, facts.accesses, facts.access.tolist(), strings),
        _edge_arrays(schedule, strings),
        integers("start_ps", schedule.start_ps),
        integers("end_ps", schedule.end_ps),
        integers("issue_ps", schedule.issue_ps),
        integers("slack_ps", facts.slack_ps),
    )
    return [b"".join(row) for row in zip(*columns, strict=True)]


def _access_arrays(
    schedule: Schedule, texts: Sequence[str], of_access: Sequence[int], strings: _Interned
) -> list[bytes]:
    """By node what it reads and what it writes, an array each."""
    graph = schedule.graph
    items = [message(_A_ARRAY, uint(_A_STRING, strings.texts.number(access))) for access in texts]
    head = {int(mode): uint(_A_NAME, strings.names.number(f"{mode.name.lower()}s")) for mode in Mode}
    rows = zip(graph.accesses.node.tolist(), graph.accesses.mode.tolist(), of_access, strict=True)
    return _collect(len(graph), head, ((node, mode, items[access]) for node, mode, access in rows))


def _edge_arrays(schedule: Schedule, strings: _Interned) -> list[bytes]:
    """By node the nodes that it waits for, an array for each reason."""
    edges = schedule.graph.edges
    head = {key: uint(_A_NAME, strings.names.number(label)) for key, label in enumerate(edge_labels())}
    key = 2 * edges.reason.astype(np.int64) + edges.recycled
    order = np.lexsort((edges.source, key, edges.target))
    item = message_head(_A_ARRAY, tag(_A_INT, 0), 10)
    target, key = edges.target[order].tolist(), key[order].tolist()
    behind = [item[len(number)] + number for number in varints(edges.source[order])]
    items = zip(target, key, behind, strict=True)
    return _collect(len(schedule), head, items)


def _collect(count: int, head: dict[int, bytes], items: Iterable[tuple[int, int, bytes]]) -> list[bytes]:
    """By node its arrays: of items (node, key, encoded), grouped by node, then by key."""
    found = [b""] * count
    at, under, body = -1, -1, b""
    for node, key, item in items:
        if (node, key) != (at, under):
            if at >= 0:
                found[at] += message(_ANNOTATION, head[under], body)
            at, under, body = node, key, b""
        body += item
    if at >= 0:
        found[at] += message(_ANNOTATION, head[under], body)
    return found


assert len(Reason) <= FLOW_REASONS, "a flow's id holds its reason"
