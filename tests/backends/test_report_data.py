"""What a page's script is given: every column, unpacked, is that of the graph, of its scratch and of its schedules."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from typing import Any

import attrs
import kernelgen
import numpy as np
import picturekernels as pk
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.palette import ENGINE_COLOURS, engine_kind
from kernscope.backends.report import embedding
from kernscope.backends.report.charts import cause_style
from kernscope.backends.report.data import NumbersRow, ReportData
from kernscope.backends.report.embedding import embedded_schedules, embedded_text
from kernscope.backends.report.panes import panes
from kernscope.backends.report.paths import PagePaths
from kernscope.backends.report.source import LineTable
from kernscope.backends.report.strip import strip
from kernscope.face import presentation
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.tables import Reason
from kernscope.machine.units import format_ps
from kernscope.scheduler.result.schedule import machine_of

programs = st.one_of(kernelgen.programs(max_size=12), kernelgen.programs(ranks=2, max_size=10))


def data_of(graph: ks.Graph, machine: ks.Machine | None = None) -> ReportData:
    return presentation.gather(graph, machine_of(graph, machine), effort="fast", numbers=False)


def document_of(data: ReportData) -> Any:
    """What the script reads, its columns unpacked to lists."""
    return _unpacked(json.loads(embedded_text(data, None, LineTable(data.graph, data.sources))))


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() != {"type", "size", "delta", "data"}:
        return {name: _unpacked(one) for name, one in value.items()}
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(value["data"])), dtype=f"<{value['type']}").astype(
        np.int64
    )
    assert len(numbers) == value["size"]
    return (np.cumsum(numbers) if value["delta"] else numbers).tolist()


@given(program=programs)
@kernelgen.examples(15)
def test_the_graph_is_the_graph(program: kernelgen.Program) -> None:
    """Nodes, accesses, edges, allocations and scopes, row for row."""
    data = data_of(program.trace(), program.machine)
    graph, live, told = data.graph, data.liveness, document_of(data)
    nodes = {name: getattr(graph.nodes, name) for name in ("op", "rank", "scope", "stack", "work0", "work1", "work2")}
    nodes |= {"cursor": live.cursor, "live": live.live_bytes}
    assert told["nodes"] == {name: column.tolist() for name, column in nodes.items()}
    assert told["accesses"] == {
        "count": [len(node.reads) + len(node.writes) for node in graph],
        "storage": graph.accesses.storage.tolist(),
        "write": graph.accesses.mode.tolist(),
        "layout": graph.accesses.layout.tolist(),
    }
    counts = Counter(graph.edges.target.tolist())
    assert told["edges"]["count"] == [counts[node] for node in range(len(graph))]
    assert told["edges"]["back"] == [
        int(t) - int(s) for s, t in zip(graph.edges.source, graph.edges.target, strict=True)
    ]
    kinds = zip(graph.edges.reason.tolist(), graph.edges.recycled.tolist(), strict=True)
    assert told["edges"]["kind"] == [2 * reason + recycled for reason, recycled in kinds]
    storages = told["storages"]
    for row in range(len(graph.storages)):
        storage = graph.storage(row)
        assert storages["names"][storages["name"][row]] == storage.name
        assert storages["hbm"][row] == storage.is_hbm
    assert (storages["rank"], storages["address"]) == (graph.storages.rank.tolist(), graph.storages.address.tolist())
    assert storages["names"] == list(dict.fromkeys(storages["names"]))
    assert (storages["bytes"], storages["born"]) == (live.held_bytes.tolist(), graph.acquired.tolist())
    freed = graph.storages.freed if graph.is_scoped else graph.released + 1
    assert storages["freed"] == freed.tolist()
    scopes = told["scopes"]
    titles = [scopes["titles"][at] for at in scopes["title"]]
    assert titles == [graph.describe_scope(row) for row in range(len(graph.scopes))]
    assert len(scopes["titles"]) == len(set(titles))
    for name in ("rank", "parent", "enter", "exit", "base"):
        assert scopes[name] == getattr(graph.scopes, name).tolist()
    assert told["peaks"] == [
        {
            "bytes": live.peak_bytes_by_rank[rank],
            "node": live.peak_node_by_rank[rank],
            "holders": live.held_at_peak(rank).tolist(),
        }
        for rank in range(graph.ranks)
    ]


@given(program=programs)
@kernelgen.examples(15)
def test_the_schedules_are_the_schedules(program: kernelgen.Program) -> None:
    """The best one first; each node's engine, lane, start, duration, cause and slack; the chain."""
    data = data_of(program.trace(), program.machine)
    graph, told = data.graph, document_of(data)
    kept = embedded_schedules(data)
    assert [one["policy"] for one in told["schedules"]] == [schedule.policy for schedule in kept]
    assert not kept or kept[0] is data.best
    for schedule, one in zip(kept, told["schedules"], strict=True):
        assert (one["makespan"], one["bound"]) == (schedule.makespan_ps, schedule.bound_ps)
        engines = [(e.rank, e.name, engine_kind(e.name, e.kind), e.channels) for e in schedule.engines]
        assert [(e["rank"], e["name"], e["kind"], e["lanes"]) for e in one["engines"]] == engines
        order, free = one["order"], 0
        assert sorted(order) == list(range(len(graph)))
        rows = []
        for node, engine, lane, gap, duration in zip(
            order, one["engine"], one["lane"], one["gap"], one["duration"], strict=True
        ):
            start = free + gap
            free = start + duration
            rows.append((engine, lane, start, node))
            assert (engine, lane) == (schedule.engine[node], schedule.lane[node])
            assert (start, free) == (schedule.start_ps[node], schedule.free_ps[node])
        assert rows == sorted(rows)
        assert (one["cause"], one["slack"]) == (schedule.cause.tolist(), schedule.slack_ps.tolist())
        behind = [node - back if back else -1 for node, back in enumerate(one["behind"])]
        assert behind == schedule.cause_node.tolist()
        assert one["chain"] == list(schedule.critical_chain().nodes)
        causes = schedule.critical_chain().by_cause()
        assert one["causes"] == [[cause, ps, *cause_style(cause)] for cause, ps in causes.items()]


def test_the_words_of_the_document() -> None:
    """What the numbers in the columns stand for."""
    data = data_of(pk.messages())
    graph, told = data.graph, document_of(data)
    operations = [OPERATIONS[name] for name in told["operations"]]
    assert [operations[code].name for code in told["nodes"]["op"]] == [node.op for node in graph]
    assert told["engine_kinds"] == [operation.engine for operation in operations]
    assert told["work_kinds"] == [operation.work_kind.value for operation in operations]
    assert [told["operations"][code] for code in told["marker"]] == ["scope_enter", "scope_exit"]
    reasons = [Reason(code).label for code in graph.edges.reason.tolist()]
    assert [told["reasons"][kind // 2] for kind in told["edges"]["kind"]] == reasons
    assert [told["places"][row] for row in told["nodes"]["stack"]] == [
        "" if node.location is None else node.location.short for node in graph
    ]
    assert told["layouts"] == [repr(layout) for layout in graph.layouts]
    assert (told["ranks"], told["budget"], told["title"]) == (3, data.liveness.budget_bytes, data.title)
    assert {name: told["colours"][name]["solid"] for name in told["colours"]} == {
        name: colour.solid for name, colour in ENGINE_COLOURS.items()
    }
    waits = {
        told["causes"][str(code)] for one in told["schedules"] for code in one["cause"] if str(code) in told["causes"]
    }
    assert {"its engine", "program order", "message"} & waits


def test_the_costs_of_the_lines_are_those_of_their_nodes() -> None:
    """By line of the source the time its nodes keep engines busy, and its part of the critical chain."""
    data = data_of(pk.messages())
    lines = LineTable(data.graph, data.sources)
    numbers = [text.first + offset for text in data.sources for offset in range(len(text.lines))]
    for schedule, one in zip(embedded_schedules(data), document_of(data)["schedules"], strict=True):
        busy, chain = Counter[int](), Counter[int]()
        for node in data.graph:
            if node.location is not None:
                busy[node.location.line] += int(schedule.free_ps[node.id] - schedule.start_ps[node.id])
        for part in schedule.critical_chain().parts:
            place = None if part.node is None else data.graph[part.node].location
            if place is not None:
                chain[place.line] += part.duration_ps
        assert one["costs"] == {"busy": [busy[n] for n in numbers], "chain": [chain[n] for n in numbers]}
        assert sum(busy.values()) and sum(chain.values())
    assert len(lines) == len(numbers)


# --- the panes and the strip ------------------------------------------------------------------------------------------


def panes_of(data: ReportData) -> str:
    return "".join(panes(data, LineTable(data.graph, data.sources), PagePaths.of(())))


@pytest.mark.parametrize(("graph", "ranks"), [(pk.sweep(2), 1), (pk.messages(2), 2), (pk.messages(3), 3)])
def test_a_rank_is_chosen_where_there_are_several(graph: ks.Graph, ranks: int) -> None:
    """The choice of one rank is not shown; each option tells that rank's peak."""
    data = data_of(graph)
    text = panes_of(data)
    assert ("<label hidden>rank" in text) is (ranks == 1) and ("<label>rank" in text) is (ranks > 1)
    for rank, peak in enumerate(data.liveness.peak_bytes_by_rank):
        assert f'<option value="{rank}">{rank}: peak {peak:,} B</option>' in text


def test_a_policy_is_chosen_by_name_and_makespan() -> None:
    """The best one first; the colours of its engines are named, each once."""
    data = data_of(pk.messages())
    text = panes_of(data)
    for at, schedule in enumerate(embedded_schedules(data)):
        assert f'<option value="{at}">{schedule.policy}: {format_ps(schedule.makespan_ps)}</option>' in text
    best = data.best
    assert best is not None
    kinds = dict.fromkeys(engine_kind(engine.name, engine.kind) for engine in best.engines)
    assert re.findall(r"background-color:(#\w+)", text) == [ENGINE_COLOURS[kind].solid for kind in kinds]
    assert '<option value="time">' in text and '<span class="key line"></span>critical' in text
    assert "No timeline of" not in text and "To keep the page small" not in text


def test_what_has_no_timeline_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies that have no schedule, with why; those that are not embedded; without any schedule there are neither
    colours nor an axis of time."""
    data = data_of(pk.messages())
    first, *others = data.policies
    stuck = attrs.evolve(data, policies=(attrs.evolve(first, schedule=None, verdict="unmatched"), *others))
    assert f"No timeline of {first.policy}: unmatched." in panes_of(stuck)
    monkeypatch.setattr(embedding, "NODES_EMBEDDED", 2 * len(data.graph))
    kept = {schedule.policy for schedule in embedded_schedules(data)}
    left = [row.policy for row in data.policies if row.policy not in kept]
    assert len(kept) == 2
    assert f"To keep the page small, {', '.join(left)} are summed up above only." in panes_of(data)
    none = attrs.evolve(data, policies=tuple(attrs.evolve(row, schedule=None) for row in data.policies))
    text = panes_of(none)
    assert "No policy has a schedule: deadlock." in text
    assert '<option value="time">' not in text
    assert '<span class="key line">' not in text
    assert 'class="chip"' not in text


@pytest.mark.parametrize("budget", [16, 496, 512, 528, 1 << 20])
def test_the_strip_says_whether_it_fits(budget: int) -> None:
    """The peak as a share of the budget, as a bar that is full at most, and red above it."""
    machine = ks.load_machine("ahbm-pe").override({"tcm.bytes": str(budget)})

    @ks.kernel
    def held(o: ks.HbmTensor) -> None:
        tl.store(o[:, :], tl.zeros((16, 8), tl.float32))

    data = data_of(ks.trace(held, ks.hbm((16, 8), "f32"), machine=machine, on_overflow="record"), machine)
    peak = data.liveness.peak_bytes
    text = strip(data)
    over = peak > budget
    assert f"{peak:,} of {budget:,} B" in text
    assert f'class="meter{" over" if over else ""}"><i style="width:{min(100 * peak / budget, 100):.2f}%"' in text
    assert ('<strong class="bad">' in text.partition("f-fit")[2].partition("</div>")[0]) is over


def test_the_strip_names_the_most_frequent_causes() -> None:
    """Four at most, with their shares of the chain."""
    for graph in (pk.messages(), pk.sweep(3), ks.trace(lambda: None)):
        data = data_of(graph)
        best = data.best
        assert best is not None
        causes = list(best.critical_chain().by_cause().items())
        found = re.findall(
            r"<li><span>([^<]*)</span><span class=.mini.>.*?<b>([\d.]+) %</b><span>([^<]*)<", strip(data)
        )
        whole = max(best.makespan_ps, 1)
        assert found == [(cause, f"{100 * ps / whole:.1f}", format_ps(ps)) for cause, ps in causes[:4]]
    assert len(data_of(pk.messages()).best.critical_chain().by_cause()) > 4


def test_the_strip_says_whether_it_is_right() -> None:
    """Findings by severity; numbers that agree with the largest error, that differ, or that were not compared."""
    data = data_of(pk.sweep(2))
    rows = tuple(NumbersRow(name, e, e, e, 1e-3, e < 1e-3) for name, e in (("a", 1e-4), ("b", 2e-4), ("c", 0.5)))
    for shown, said in (
        (rows[:2], ("agree", "largest error 0.0002")),
        (rows[:1], ("agree", "largest error 0.0001")),
        (rows, ("differ", "1 of 3 tensors")),
        (rows[2:], ("differ", "1 of 1 tensor<")),
        ((), ("not compared", "no reference")),
    ):
        text = strip(attrs.evolve(data, numbers=shown, numbers_note=""))
        assert all(words in text for words in said)
    assert "because<" in strip(attrs.evolve(data, numbers=(), numbers_note="because: of this"))
