"""Perfetto traces, read back by the official protos."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.timelines.counters import counters_of
from kernscope.backends.timelines.perfetto import FLOW_REASONS
from kernscope.backends.timelines.perfetto_wire import varint, varints
from kernscope.backends.timelines.tracks import plan_tracks, shown_nodes
from kernscope.ir.tables import Reason
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel
from kernscope.machine.units import format_ps

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class Reading:
    """A trace as a reader sees it: packets in file order, interned strings resolved."""

    def __init__(self, data: bytes) -> None:
        self.trace = protos.Trace()
        assert self.trace.ParseFromString(data) == len(data)
        self.tracks = {
            p.track_descriptor.uuid: p.track_descriptor for p in self.trace.packet if p.HasField("track_descriptor")
        }
        self.events = [p for p in self.trace.packet if p.HasField("track_event")]
        self.names: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        self.annotation_names: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        for packet in self.trace.packet:
            interned = packet.interned_data
            self.names |= {entry.iid: entry.name for entry in interned.event_names}
            self.categories |= {entry.iid: entry.name for entry in interned.event_categories}
            self.annotation_names |= {entry.iid: entry.name for entry in interned.debug_annotation_names}
            self.texts |= {entry.iid: entry.str.decode() for entry in interned.debug_annotation_string_values}

    def path(self, uuid: int) -> tuple[str, ...]:
        """A track's names from the root down."""
        track = self.tracks[uuid]
        return (*(self.path(track.parent_uuid) if track.parent_uuid else ()), track.name)

    def said(self, event: Any) -> dict[str, Any]:
        return {self.annotation_names[a.name_iid]: self._value(a) for a in event.debug_annotations}

    def _value(self, annotation: Any) -> Any:
        if annotation.array_values:
            return [self._value(item) for item in annotation.array_values]
        if annotation.HasField("string_value_iid"):
            return self.texts[annotation.string_value_iid]
        return annotation.bool_value if annotation.HasField("bool_value") else annotation.int_value

    def of_type(self, kind: int) -> list[Any]:
        return [packet for packet in self.events if packet.track_event.type == kind]

    def node(self, packet: Any) -> int:
        return self.said(packet.track_event)["node"]


@pytest.fixture(scope="module")
def schedule() -> ks.Schedule:
    """A ring of four ranks that passes K/V on."""
    return ks.schedule(ks.trace(gqa_attention_prefill_long_kernel.launch("small")))


@pytest.fixture(scope="module")
def reading(schedule: ks.Schedule) -> Reading:
    return Reading(ks.timeline(schedule, format="perfetto-trace").data)


def test_every_packet_is_one_the_reader_takes(reading: Reading) -> None:
    """All packets are of one sequence; the first one clears its state, whatever uses interned strings needs it, and the
    strings come before their use."""
    packets = reading.trace.packet
    assert {packet.trusted_packet_sequence_id for packet in packets} == {1}
    assert packets[0].sequence_flags == 1
    assert all(packet.sequence_flags == 2 for packet in reading.events)
    kinds = [
        "interned_data" if p.HasField("interned_data") else "descriptor" if p.HasField("track_descriptor") else "event"
        for p in packets
    ]
    assert kinds == sorted(kinds, key=["interned_data", "descriptor", "event"].index)


def test_slices_are_the_schedules(schedule: ks.Schedule, reading: Reading) -> None:
    """A slice for each node that takes time: begin and end on one track, at exactly the schedule's picoseconds, never
    two at once; an instant for each other node but the scope markers."""
    opened: dict[int, Any] = {}
    found = {}
    for packet in reading.events:
        event = packet.track_event
        if event.type == BEGIN:
            assert event.track_uuid not in opened
            opened[event.track_uuid] = packet
        elif event.type == END:
            begun = opened.pop(event.track_uuid)
            found[reading.node(begun)] = (begun.timestamp, packet.timestamp)
    assert not opened
    long = np.flatnonzero(schedule.end_ps > schedule.start_ps).tolist()
    assert found == {node: (schedule.start_ps[node], schedule.end_ps[node]) for node in long}
    short = np.flatnonzero(shown_nodes(schedule) & (schedule.end_ps == schedule.start_ps)).tolist()
    instants = {reading.node(packet): packet.timestamp for packet in reading.of_type(INSTANT)}
    assert instants == {node: schedule.start_ps[node] for node in short}
    assert len(reading.of_type(BEGIN)) == len(long) > 1000 and len(instants) == len(short) > 50


def test_flows_are_the_edges(schedule: ks.Schedule, reading: Reading) -> None:
    """A flow for each edge, none dropped, from its source to its target, its id telling the edge and its reason; in the
    file its start stands before its end, and at no later time."""
    starts, ends = {}, {}
    for position, packet in enumerate(reading.events):
        for flow in packet.track_event.flow_ids:
            assert flow not in starts
            starts[flow] = (reading.node(packet), packet.timestamp, position)
        for flow in packet.track_event.terminating_flow_ids:
            assert flow not in ends
            ends[flow] = (reading.node(packet), packet.timestamp, position)
    edges = schedule.graph.edges
    assert starts.keys() == ends.keys() and len(starts) == len(edges) > 3000
    for flow, (source, at, place) in starts.items():
        edge, reason = divmod(flow, FLOW_REASONS)
        target, later, after = ends[flow]
        assert (source, target, reason) == (edges.source[edge - 1], edges.target[edge - 1], edges.reason[edge - 1])
        assert at <= later and place < after


def test_arguments_tell_all_of_a_node(schedule: ks.Schedule, reading: Reading) -> None:
    """Of every node: id, source line, scope, work, accesses, what it waited for, its edges by reason, and its times."""
    graph = schedule.graph
    for packet in reading.of_type(BEGIN) + reading.of_type(INSTANT):
        said = reading.said(packet.track_event)
        node = graph[said["node"]]
        assert reading.names[packet.track_event.name_iid] == node.op
        assert said["source"].startswith(f"{node.location.short} in {node.location.function}")
        assert said["scope"]
        assert said.get("reads", []) == [str(access) for access in node.reads]
        assert said.get("writes", []) == [str(access) for access in node.writes]
        waited = schedule.waited_for[node.id]
        if waited is None:
            assert said["waited for"] == "nothing"
        else:
            assert said["waited for"] == (f"{waited.reason} edge" if waited.reason else waited.cause)
            assert said.get("waited for node") == waited.node
        behind = {
            (source, label.partition(" ")[0], "reused" in label)
            for label, value in said.items()
            if " edge" in label
            for source in value
        }
        assert behind == {(edge.source, edge.reason.label, edge.recycled) for edge in node.edges_in}
        assert said["start_ps"] == schedule.start_ps[node.id] and said["end_ps"] == schedule.end_ps[node.id]
        assert said["issue_ps"] == schedule.issue_ps[node.id] and said["slack_ps"] == schedule.slack_ps[node.id]
    chain = {reading.node(p) for p in reading.events if reading.said(p.track_event).get("critical chain")}
    assert chain == set(schedule.critical_chain().nodes)


def test_the_category_is_what_a_simulators_log_calls_the_node(schedule: ks.Schedule, reading: Reading) -> None:
    """``kind/name`` of the log's entry; of an operation without one its family."""
    found: dict[str, set[str]] = {}
    for packet in reading.of_type(BEGIN) + reading.of_type(INSTANT):
        names = {reading.categories[iid] for iid in packet.track_event.category_iids}
        found.setdefault(reading.names[packet.track_event.name_iid], set()).update(names)
    wanted = {
        "load": "memory/dma_read",
        "store": "memory/dma_write",
        "dot": "gemm/dot",
        "exp": "math/exp",
        "send": "ipcq/ipcq_copy",
        "recv_async": "message",
    }
    assert {name: found[name] for name in wanted} == {name: {said} for name, said in wanted.items()}


def test_the_first_and_only_node_has_its_arguments() -> None:
    """A graph of one node: its write stands in the trace."""

    @ks.kernel
    def one() -> None:
        tl.zeros((4, 4), tl.float32)

    made = ks.schedule(ks.trace(one))
    reading = Reading(ks.timeline(made, format="perfetto-trace").data)
    (packet,) = reading.of_type(BEGIN)
    assert reading.said(packet.track_event)["writes"] == [str(access) for access in made.graph[0].writes] != []


def test_tracks_are_ordered_under_their_rank(schedule: ks.Schedule, reading: Reading) -> None:
    """Schedule, then ranks, then engines and counters: each level in explicit order; the root states the unit."""
    (root,) = [track for track in reading.tracks.values() if not track.parent_uuid]
    assert root.name == f"list {format_ps(schedule.makespan_ps)} (1 ns = 1 ps)"
    ranks = sorted(
        (t for t in reading.tracks.values() if t.parent_uuid == root.uuid), key=lambda t: t.sibling_order_rank
    )
    assert [track.name for track in ranks] == [f"rank {rank}" for rank in range(4)]
    for rank, parent in enumerate(ranks):
        assert parent.child_ordering == protos.TrackDescriptor.EXPLICIT
        below = sorted(
            (t for t in reading.tracks.values() if t.parent_uuid == parent.uuid), key=lambda t: t.sibling_order_rank
        )
        engines = [track.name for track in plan_tracks(schedule).tracks if track.rank == rank]
        counters = [counter.name for counter in counters_of(schedule) if counter.rank == rank]
        assert [track.name for track in below] == engines + counters
        assert [track.HasField("counter") for track in below] == [False] * len(engines) + [True] * len(counters)


def test_counters_are_the_schedules(schedule: ks.Schedule, reading: Reading) -> None:
    """Every step of every counter, from 0 at time 0 on."""
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for packet in reading.of_type(COUNTER):
        path = reading.path(packet.track_event.track_uuid)
        found.setdefault(path[1:], []).append((packet.timestamp, packet.track_event.counter_value))
    expected = {}
    for counter in counters_of(schedule):
        steps = list(zip(counter.at_ps.tolist(), counter.value.tolist(), strict=True))
        expected[f"rank {counter.rank}", counter.name] = steps if steps[0][0] == 0 else [(0, 0), *steps]
    assert found == expected


def test_several_schedules_share_nothing() -> None:
    """Each of several schedules has its own group of tracks and flows of its own."""
    ladder = ks.compare(ks.trace(flash_attention.launch("2k")))
    made = ks.timeline(ladder, format="perfetto-trace")
    reading = Reading(made.data)
    roots = sorted((t for t in reading.tracks.values() if not t.parent_uuid), key=lambda t: t.sibling_order_rank)
    assert [track.name.split()[2] for track in roots] == ["blocking", "lazy", "queued", "list"]
    flows = [flow for packet in reading.events for flow in packet.track_event.flow_ids]
    assert len(flows) == len(set(flows)) == made.edges == 4 * 800
    assert len(reading.of_type(BEGIN)) == made.slices == 4 * 326


def test_hostile_names_are_text() -> None:
    """Whatever a name holds, the file parses (its strings are UTF-8) and shows it in printable characters."""

    def kernel(t: ks.HbmTensor) -> None:
        with tl.scratch_scope("</script>\"'\\ a::b\n\0é\ud800"):
            tl.store(t[0:8, :], tl.load(t[0:8, :]))

    kernel.__name__ = "\0\ud800<k>"
    reading = Reading(ks.timeline(ks.schedule(ks.trace(kernel, ks.hbm((8, 8), "f32"))), format="perfetto-trace").data)
    scopes = {reading.said(packet.track_event)["scope"] for packet in reading.of_type(BEGIN)}
    assert len(scopes) == 1 and scopes.pop().startswith("</script>\"'\\")
    assert all(text.isprintable() for text in reading.texts.values())
    assert all(track.name.isprintable() and track.description.isprintable() for track in reading.tracks.values())


def test_a_flow_id_has_room_for_every_reason() -> None:
    """The reason is the id's remainder."""
    assert max(Reason) < FLOW_REASONS


@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, (1 << 63) - 1))))
def test_varints_are_varint(values: list[int]) -> None:
    """Encoding a column equals encoding one by one, and every encoding decodes to its value."""
    encoded = varints(np.array(values, dtype=np.int64))
    assert encoded == [varint(value) for value in values]
    for data, value in zip(encoded, values, strict=True):
        assert sum((byte & 127) << 7 * place for place, byte in enumerate(data)) == value
        assert all(byte > 127 for byte in data[:-1]) and data[-1] < 128
