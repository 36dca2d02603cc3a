"""Timelines: one model of tracks, moments and counters, and what every format of it must say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import numpy as np
import picturekernels as pk
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.timelines.counters import counters_of
from kernscope.backends.timelines.facts import edge_label, edge_labels, facts_of
from kernscope.backends.timelines.tracks import Phase, moments_of, plan_tracks, shown_nodes
from kernscope.cli import main
from kernscope.ir.tables import Reason
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel

POLICIES = ("blocking", "lazy", "queued", "list")
HOSTILE = "</script>\"'<w>\\ a::b\n\0\u2028é\ud800"


@pytest.fixture(scope="module")
def ladder() -> ks.Ladder:
    """A ring of four ranks that passes K/V on, under every policy."""
    return ks.compare(ks.trace(gqa_attention_prefill_long_kernel.launch("small")))


def schedules(ladder: ks.Ladder) -> list[ks.Schedule]:
    made = [row.schedule for row in ladder]
    assert all(made)
    return made


def hostile_schedule() -> ks.Schedule:
    """A kernel whose names are what they should not be."""

    def kernel(t: ks.HbmTensor) -> None:
        with tl.scratch_scope(HOSTILE):
            x = tl.load(t[0:8, :])
            tl.store(t[0:8, :], x * 2.0)

    kernel.__name__ = HOSTILE
    return ks.schedule(ks.trace(kernel, ks.hbm((8, 8), "f32")))


def two_slots() -> ks.Schedule:
    """Rank 0 sends three messages in a row through a channel of two slots to rank 1, which takes them late."""

    def kernel(t: ks.HbmTensor) -> None:
        if tl.program_id(0) == 0:
            x = tl.load(t[0:64, :])
            for _ in range(3):
                tl.send("next", x)
        else:
            y = tl.load(t[0:64, :])
            for _ in range(60):
                with tl.scratch_scope():
                    tl.copy_to(y, y * 2.0)
            for _ in range(3):
                y = y + tl.recv("prev", (64, 64), "f32")
            tl.store(t[0:64, :], y)

    return ks.schedule(ks.trace(kernel, ks.hbm((64, 64), "f32"), ranks=2), "blocking")


# --- the model ------------------------------------------------------------------------------------------------------


def test_slices_of_one_track_never_overlap(ladder: ks.Ladder) -> None:
    """On every track a slice ends before, or when, the next one begins."""
    for schedule in schedules(ladder):
        track = plan_tracks(schedule).of_node
        long = np.flatnonzero(schedule.end_ps > schedule.start_ps)
        order = long[np.lexsort((schedule.start_ps[long], track[long]))]
        before, after = order[:-1], order[1:]
        same = track[before] == track[after]
        assert same.any()
        assert np.all(schedule.end_ps[before][same] <= schedule.start_ps[after][same])


def test_an_engine_of_two_channels_has_two_tracks() -> None:
    """Loads that run at once lie on different tracks, named by lane; an engine of one channel has one track."""
    machine = ks.load_machine("ahbm-pe").override({"dma_read.channels": "2"})
    schedule = ks.schedule(ks.trace(flash_attention.launch("2k"), machine=machine), machine=machine)
    plan = plan_tracks(schedule)
    names = [track.name for track in plan.tracks]
    assert names == ["dma_read lane 0", "dma_read lane 1", "dma_write", "gemm", "math"]
    loads = [node.id for node in schedule.graph if node.op == "load"]
    assert {names[plan.of_node[node]] for node in loads} == {"dma_read lane 0", "dma_read lane 1"}


def test_moments_go_along_edges(ladder: ks.Ladder) -> None:
    """In order of time, and at one time along the edges: what an edge waits for comes first, so that no arrow points
    backwards. Every node but a marker begins once and ends once, or is one instant."""
    for schedule in schedules(ladder):
        moments = moments_of(schedule)
        assert np.all(np.diff(moments.at_ps) >= 0)
        opening = np.flatnonzero(moments.phase != Phase.END)
        at = np.full(len(schedule), -1)
        at[moments.node[opening]] = opening
        shown = shown_nodes(schedule)
        assert np.array_equal(at >= 0, shown)
        assert len(opening) == np.count_nonzero(shown)
        edges = schedule.graph.edges
        assert np.all(at[edges.source] < at[edges.target])
        takes_time = schedule.end_ps > schedule.start_ps
        ending = moments.node[moments.phase == Phase.END]
        assert np.array_equal(np.sort(ending), np.flatnonzero(shown & takes_time))


def test_tracks_are_in_order_of_rank_and_engine(ladder: ks.Ladder) -> None:
    """Rank by rank, the engines in the schedule's order, then the instants."""
    schedule = schedules(ladder)[-1]
    names = [(track.rank, track.name) for track in plan_tracks(schedule).tracks]
    engines = ["dma_read", "dma_write", "gemm", "math", "link:next", "waits"]
    assert names == [(rank, name) for rank in range(4) for name in engines]


# --- counters -------------------------------------------------------------------------------------------------------


def by_name(schedule: ks.Schedule, rank: int) -> dict[str, tuple[list[int], list[int]]]:
    return {c.name: (c.at_ps.tolist(), c.value.tolist()) for c in counters_of(schedule) if c.rank == rank}


def test_the_cursor_peaks_at_the_peak(ladder: ks.Ladder) -> None:
    """The scratch cursor's largest value is the rank's peak in every policy; live bytes never exceed the cursor; all
    ends at zero."""
    for schedule in schedules(ladder):
        live = ks.liveness(schedule.graph)
        for rank in range(schedule.graph.ranks):
            counters = by_name(schedule, rank)
            (cursor_at, cursor), (live_at, used) = counters["scratch cursor"], counters["scratch live"]
            assert max(cursor) == live.peak_bytes_by_rank[rank]
            for at, value in zip(live_at, used, strict=True):
                held = cursor[np.searchsorted(cursor_at, at, side="right") - 1]
                assert value <= held
            assert cursor[-1] == used[-1] == 0


def test_counters_agree_with_a_count_by_hand(ladder: ks.Ladder) -> None:
    """At every change live bytes are the sum over the allocations in use then, found one by one, and the cursor the
    highest end of those whose scope has not ended."""
    schedule = schedules(ladder)[-1]
    graph, size = schedule.graph, ks.liveness(schedule.graph).held_bytes
    uses: dict[int, list[int]] = {}
    for storage, node in zip(graph.accesses.storage.tolist(), graph.accesses.node.tolist(), strict=True):
        if not graph.storage(storage).is_hbm and graph.storage(storage).rank == 1:
            uses.setdefault(storage, []).append(node)
    spans = {
        s: (min(int(schedule.start_ps[n]) for n in nodes), max(int(schedule.end_ps[n]) for n in nodes))
        for s, nodes in uses.items()
    }
    at, value = by_name(schedule, 1)["scratch live"]
    assert len(at) > 100
    for instant, bytes_ in zip(at, value, strict=True):
        assert bytes_ == sum(int(size[s]) for s, (begin, end) in spans.items() if begin <= instant < end)

    ends: dict[int, int] = {}
    for node, scope in enumerate(graph.nodes.scope.tolist()):
        while scope >= 0:
            ends[scope] = max(ends.get(scope, 0), int(schedule.end_ps[node]))
            scope = int(graph.scopes.parent[scope])
    tops = {s: int(graph.storages.address[s] + size[s]) for s in spans}
    held = {s: (begin, max(end, ends[int(graph.storages.scope[s])])) for s, (begin, end) in spans.items()}
    assert held != spans
    at, value = by_name(schedule, 1)["scratch cursor"]
    assert len(set(value)) > 3
    for instant, top in zip(at, value, strict=True):
        assert top == max((tops[s] for s, (begin, end) in held.items() if begin <= instant < end), default=0)


def test_a_channel_counts_its_messages() -> None:
    """The depth rises when a send starts and falls when its receive has ended; it reaches the slots and no more."""
    schedule = two_slots()
    name = "in flight to rank 1 (next)"
    at, depth = by_name(schedule, 0)[name]
    assert max(depth) == schedule.graph.target.slots == 2
    assert depth[-1] == 0 and min(depth) == 0
    sends = [node.id for node in schedule.graph if node.op == "send"]
    assert at[0] == schedule.start_ps[sends[0]] and depth[0] == 1
    assert name not in by_name(schedule, 1)


def test_a_rank_without_scratch_has_flat_counters() -> None:
    """Counters of a rank that allocates nothing have no steps; a graph without nodes has a timeline all the same."""
    empty = ks.schedule(ks.trace(lambda: None))
    assert by_name(empty, 0) == {"scratch cursor": ([], []), "scratch live": ([], [])}
    assert ks.timeline(empty, format="json").slices == 0
    assert ks.timeline(empty, format="perfetto-trace").data
    assert ks.timeline(empty).data.startswith(b"<?xml")


# --- Chrome trace events --------------------------------------------------------------------------------------------


def events_of(data: bytes) -> list[dict[str, object]]:
    return json.loads(data)["traceEvents"]


def test_chrome_pairs_are_the_schedules_slices(ladder: ks.Ladder) -> None:
    """Every node but the markers is one ``B`` and one ``E`` on one thread; read as floats, their times are the
    schedule's picoseconds exactly."""
    several = schedules(ladder)
    made = ks.timeline(several, format="json")
    opened: dict[tuple[int, int], dict[str, object]] = {}
    found = []
    for event in events_of(made.data):
        key = (event.get("pid"), event.get("tid"))
        if event["ph"] == "B":
            assert key not in opened
            opened[key] = event
        elif event["ph"] == "E":
            begun = opened.pop(key)
            found.append((begun["args"]["node"], round(begun["ts"] * 1e6), round(event["ts"] * 1e6), begun["name"]))
    assert not opened
    expected = [
        (node, int(one.start_ps[node]), int(one.end_ps[node]), one.graph[node].op)
        for one in several
        for node in np.flatnonzero(shown_nodes(one)).tolist()
    ]
    assert sorted(found) == sorted(expected)
    assert made.slices + made.instants == len(expected)


def test_chrome_threads_belong_to_one_process_each(ladder: ks.Ladder) -> None:
    """Numbers of threads are of the whole system: none is used in two processes, none is 0 or its process's own number;
    every thread has a name and a place."""
    seen: dict[int, set[int]] = {}
    named: dict[str, set[int]] = {"thread_name": set(), "thread_sort_index": set()}
    for event in events_of(ks.timeline(ladder, format="json").data):
        if event["ph"] in "BEsf":
            seen.setdefault(event["tid"], set()).add(event["pid"])
        elif event["name"] in named:
            named[event["name"]].add(event["tid"])
    assert all(len(pids) == 1 for pids in seen.values())
    assert all(thread > 0 and pids.isdisjoint({0, thread}) for thread, pids in seen.items())
    assert named["thread_name"] == named["thread_sort_index"] >= seen.keys()


def test_chrome_flows_are_the_edges(ladder: ks.Ladder) -> None:
    """Every edge is an ``s`` and an ``f`` of its reason, the ``s`` first and no later, each within the pair of its
    node."""
    schedule = schedules(ladder)[-1]
    inside: dict[tuple[int, int], int] = {}
    starts: dict[int, tuple[int, float, str]] = {}
    found = []
    for event in events_of(ks.timeline(schedule, format="json").data):
        key = (event.get("pid"), event.get("tid"))
        if event["ph"] == "B":
            inside[key] = event["args"]["node"]
        elif event["ph"] == "E":
            del inside[key]
        elif event["ph"] == "s":
            starts[event["id"]] = (inside[key], event["ts"], event["name"])
        elif event["ph"] == "f":
            source, at, name = starts.pop(event["id"])
            assert at <= event["ts"] and name == event["name"]
            found.append((source, inside[key], name))
    edges = schedule.graph.edges
    rows = zip(edges.source.tolist(), edges.target.tolist(), edges.reason.tolist(), strict=True)
    labels = ("data", "message", "credit", "fifo", "control", "war", "waw")
    assert sorted(found) == sorted((source, target, labels[reason]) for source, target, reason in rows)
    assert not starts


def test_chrome_arguments_tell_all_of_a_node() -> None:
    """Source line, scope, work, accesses, duration, and what it waited for, by node and reason."""
    schedule = ks.schedule(ks.trace(flash_attention.launch("2k")))
    args = {
        e["args"]["node"]: e["args"] for e in events_of(ks.timeline(schedule, format="json").data) if e["ph"] == "B"
    }
    dot = next(node for node in schedule.graph if node.op == "dot" and schedule.waited_for[node.id])
    said, waited = args[dot.id], schedule.waited_for[dot.id]
    assert said["source"].startswith(f"flash_attention.py:{dot.location.line} in ")
    assert said["scope"] == "query block / K/V tile"
    assert (said["m"], said["n"], said["k"]) == dot.work
    assert said["reads"] == [str(access) for access in dot.reads]
    assert said["writes"] == [str(access) for access in dot.writes]
    assert said["waited for"] == (f"{waited.reason} edge" if waited.reason else waited.cause)
    assert said["waited for node"] == waited.node
    assert (said["start_ps"], said["end_ps"]) == (schedule.start_ps[dot.id], schedule.end_ps[dot.id])
    behind = {
        (source, label.partition(" ")[0], "reused" in label)
        for label, value in said.items()
        if " edge" in label
        for source in value
    }
    assert behind == {(edge.source, edge.reason.label, edge.recycled) for edge in dot.edges_in}


# --- the function and the command -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["svg", "json", "perfetto-trace"])
def test_hostile_names_do_no_harm(format: str) -> None:
    """Quotes, tags, line ends, NUL and lone surrogates in names neither break the file nor end a script element."""
    schedule = hostile_schedule()
    data = ks.timeline(schedule, format=format).data
    assert b"\0" not in data or format == "perfetto-trace"
    if format != "perfetto-trace":
        assert b"</script>" not in data
        data.decode("ascii" if format == "json" else "utf-8")
    if format == "json":
        names = [event["args"]["scope"] for event in events_of(data) if event["ph"] == "B"]
        assert names and all("</script>\"'<w>" in name and name.isprintable() for name in names)


@pytest.mark.parametrize("format", ["svg", "json", "perfetto-trace"])
def test_the_same_schedule_gives_the_same_bytes(format: str) -> None:
    """Two traces of one kernel give one timeline."""
    first, second = (
        ks.timeline(ks.schedule(ks.trace(flash_attention.launch("2k"))), format=format).data for _ in range(2)
    )
    assert first == second


def test_a_ladder_leaves_deadlocks_out() -> None:
    """A policy that deadlocks is a note; where all do it is an error."""

    def kernel(t: ks.HbmTensor) -> None:
        x = tl.load(t[0:8, :])
        for _ in range(3):  # one more than the slots: a CPU that waits for it never comes to the receives
            tl.send("next", x)
        for _ in range(3):
            x = x + tl.recv("prev", (8, 8), "f32")
        tl.store(t[0:8, :], x)

    graph = ks.trace(kernel, ks.hbm((8, 8), "f32"), ranks=2)
    ladder = ks.compare(graph)
    dead = [row.policy for row in ladder if row.schedule is None]
    assert dead and len(dead) < len(ladder)
    made = ks.timeline(ladder, format="json")
    assert made.notes == tuple(f"{policy}: left out, it ends in a deadlock" for policy in dead)
    with pytest.raises(ks.OptionError, match="no schedule"):
        ks.timeline(ks.compare(graph, policies=dead), format="json")


def test_what_is_no_schedule_is_refused(tmp_path: Path) -> None:
    """No schedule, a graph, an unknown extension, a folder that is not there: one clear error each, nothing written."""
    graph = ks.trace(flash_attention.launch("2k"))
    schedule = ks.schedule(graph, effort="fast")
    with pytest.raises(ks.OptionError, match="no schedule to show"):
        ks.timeline([])
    with pytest.raises(ks.OptionError, match="not Node"):
        ks.timeline(graph)
    with pytest.raises(ks.OptionError, match="unknown picture format"):
        ks.timeline(schedule, tmp_path / "a.gif")
    with pytest.raises(ks.OutputError, match="there is no folder"):
        ks.timeline(schedule, tmp_path / "none" / "a.json")
    assert not list(tmp_path.iterdir())


def test_png_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing matplotlib is an error that says which extra brings it; other formats need none."""
    schedule = ks.schedule(ks.trace(flash_attention.launch("2k")), effort="fast")
    monkeypatch.delitem(sys.modules, "kernscope.backends.timelines.gantt_png", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ks.MissingExtraError, match="matplotlib") as caught:
        ks.timeline(schedule, format="png")
    assert "kernscope[plot]" in caught.value.help
    assert ks.timeline(schedule, format="svg").data


def test_png_is_a_picture_of_all_policies(ladder: ks.Ladder, tmp_path: Path) -> None:
    """A PNG file, higher with every schedule, and the same bytes every time."""
    pytest.importorskip("matplotlib")
    one = ks.timeline(schedules(ladder)[:1], format="png").data
    path = tmp_path / "ladder.png"
    made = ks.timeline(ladder, path)
    assert path.read_bytes() == made.data == ks.timeline(ladder, format="png").data
    (_, low), (_, high) = (np.frombuffer(data[16:24], dtype=">u4") for data in (one, made.data))
    assert made.data.startswith(b"\x89PNG") and high > 3 * low


def test_the_command_writes_and_says_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One policy by default, several when asked; the format is the extension's."""
    target = str(Path(ks.__file__).parent / "kernels" / "flash_attention.py")
    path = tmp_path / "flash.json"
    assert main(["timeline", target, "--launch", "2k", "-o", str(path)]) == 0
    assert f"{path}: 326 slices, 0 instants, 800 edges" in capsys.readouterr().out
    assert main(["timeline", target, "--launch", "2k", "-o", str(path), "--policy", "lazy", "--policy", "list"]) == 0
    processes = [e["args"]["name"] for e in events_of(path.read_bytes()) if e.get("name") == "process_name"]
    assert [name.partition(":")[0] for name in processes] == [
        f"rank 0, flash_attention on ahbm-pe, {policy}" for policy in ("lazy", "list")
    ]
    assert main(["timeline", target, "-o", str(tmp_path / "flash.gif")]) == 2
    assert "formats are" in capsys.readouterr().err


# --- facts ----------------------------------------------------------------------------------------------------------


def nameless(graph: ks.Graph) -> ks.Graph:
    """The graph with scopes that have neither a name nor a place."""
    empty = graph.names.index("") if "" in graph.names else len(graph.names)
    names = graph.names if "" in graph.names else (*graph.names, "")
    count = len(graph.scopes)
    scopes = attrs.evolve(graph.scopes, name=np.full(count, empty), stack=np.full(count, -1))
    return attrs.evolve(graph, names=names, scopes=scopes)


def grid_of_two(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    with tl.scratch_scope("tile"):
        tl.store(o[tl.program_id(0), :], tl.load(x[tl.program_id(0), :]))


ROWS = ks.hbm((4, 8), "f32")


@pytest.mark.parametrize(
    "graph",
    [
        pk.messages(),
        pk.nested(2, 3),
        nameless(pk.nested(2, 3)),
        ks.trace(grid_of_two, ROWS, ROWS, grid=4, ranks=2),
        nameless(ks.trace(grid_of_two, ROWS, ROWS, grid=4, ranks=2)),
        attrs.evolve(pk.sweep(2), nodes=attrs.evolve(pk.sweep(2).nodes, stack=np.full(len(pk.sweep(2)), -1))),
    ],
    ids=["messages", "nested", "nameless", "grid", "nameless grid", "placeless"],
)
def test_facts_are_those_of_each_node(graph: ks.Graph) -> None:
    """Looked up by the columns: source, scope path, work, accesses, cause, place, as the node itself tells them."""
    schedule = ks.schedule(graph, "blocking")
    facts = facts_of(schedule)
    chain = set(schedule.critical_chain().nodes)
    row = 0
    for node in graph:
        path, scope = [], int(graph.nodes.scope[node.id])
        while scope >= 0 and graph.scopes.parent[scope] >= 0:
            path.insert(0, graph.describe_scope(scope))
            scope = int(graph.scopes.parent[scope])
        assert facts.scopes[facts.scope[node.id]] == (" / ".join(path) or "kernel")
        place = node.location
        frames = () if place is None else (place, *place.stack)
        said = ", called at ".join(f"{frame.short} in {frame.function}" for frame in frames)
        assert facts.sources[facts.source[node.id]] == said
        assert facts.places[facts.place[node.id]] == node.op + (f" at {place.short}" if place else "")
        work = dict(facts.works[facts.work[node.id]])
        counted = {"bytes": ["bytes"], "elements": ["elements"], "mnk": ["m", "n", "k"], "nothing": []}
        names = counted[node.operation.work_kind.value]
        assert [*work] == [*names, *(["dtype"] if names else [])]
        assert [work[name] for name in names] == list(node.work[: len(names)])
        accesses = [facts.accesses[facts.access[row + at]] for at in range(len(node.reads) + len(node.writes))]
        assert sorted(accesses) == sorted(str(access) for access in (*node.reads, *node.writes))
        row += len(accesses)
        waited = schedule.waited_for[node.id]
        assert facts.cause_node[node.id] == (-1 if waited is None or waited.node is None else waited.node)
        assert facts.critical[node.id] == (node.id in chain)
    assert facts.slack_ps.tolist() == schedule.slack_ps.tolist()


def test_edges_are_named_by_reason_and_reuse() -> None:
    """By twice the reason's number, and one more where the bytes are used anew."""
    labels = edge_labels()
    assert labels[:2] == ("data edge", "data edge, reused scratch")
    assert len(labels) == 2 * len(Reason) and len(set(labels)) == len(labels)
    for reason in Reason:
        for recycled in (False, True):
            assert labels[2 * reason + recycled] == edge_label(reason, recycled)
            assert (", reused scratch" in edge_label(reason, recycled)) is recycled
