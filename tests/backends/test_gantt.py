"""Gantt charts: every slice is the schedule's own, none overlaps on its lane, and names are harmless."""

from __future__ import annotations

import itertools
from collections import defaultdict
from xml.etree import ElementTree

import kernelgen
import numpy as np
import picturekernels as pk
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.timelines.gantt import _name as slice_name
from kernscope.backends.timelines.gantt import _teller as teller
from kernscope.backends.timelines.gantt import gantt_svg
from kernscope.backends.timelines.gantt_slices import merge_below, slices_of
from kernscope.backends.timelines.time_axis import exact_time, ticks
from kernscope.ir.forms.text import quote

SVG = "{http://www.w3.org/2000/svg}"
POLICIES = ("blocking", "lazy", "queued", "list")
any_program = st.one_of(kernelgen.programs(max_size=25), kernelgen.programs(ranks=3, max_size=12))


def rectangles(svg: str) -> list[ElementTree.Element]:
    """The slices of a chart."""
    return [e for e in ElementTree.fromstring(svg.encode()).iter(f"{SVG}rect") if e.get("data-node") is not None]


def number(element: ElementTree.Element, name: str) -> int:
    return int(element.get(name, ""))


def working(schedule: ks.Schedule) -> set[int]:
    """The nodes that keep an engine busy for some time."""
    return set(np.flatnonzero((schedule.engine >= 0) & (schedule.end_ps > schedule.start_ps)).tolist())


@pytest.mark.parametrize("policy", POLICIES)
@given(program=any_program)
@kernelgen.examples(12)
def test_every_slice_is_the_schedules_own(policy: str, program: kernelgen.Program) -> None:
    """One slice for each node at work, with its exact start and end, as wide as its time, in the row of its engine."""
    try:
        schedule = ks.schedule(program.trace(), policy, program.machine)
    except ks.DeadlockError:  # a policy that waits for every message may leave ranks in a circle
        reject()
    shown = rectangles(gantt_svg([schedule])[0])
    assert sorted(number(e, "data-node") for e in shown) == sorted(working(schedule))
    scale = 1052 / max(schedule.makespan_ps, schedule.bound_ps, 1)
    row_of: dict[tuple[int, int], str] = {}
    for e in shown:
        node = number(e, "data-node")
        assert number(e, "data-start-ps") == schedule.start_ps[node]
        assert number(e, "data-end-ps") == schedule.end_ps[node]
        assert float(e.get("x", "")) == pytest.approx(128 + schedule.start_ps[node] * scale, abs=0.01)
        width = (schedule.end_ps[node] - schedule.start_ps[node]) * scale
        assert float(e.get("width", "")) == pytest.approx(max(width, 0.2), abs=0.01)
        place = (int(schedule.engine[node]), int(schedule.lane[node]))
        assert row_of.setdefault(place, e.get("y", "")) == e.get("y")
    assert len(set(row_of.values())) == len(row_of)


@given(program=any_program, column_ps=st.integers(1, 400_000))
@kernelgen.examples(30)
def test_slices_never_overlap_on_a_lane(program: kernelgen.Program, column_ps: int) -> None:
    """As they are and merged, slices of one lane follow each other; merging loses no node and no busy time."""
    schedule = ks.schedule(program.trace(), "list", program.machine)
    single = slices_of(schedule)
    for slices in (single, merge_below(single, column_ps)):
        lanes = defaultdict(list)
        columns = (slices.engine, slices.lane, slices.start_ps, slices.end_ps)
        for engine, lane, start, end in zip(*(column.tolist() for column in columns), strict=True):
            lanes[engine, lane].append((start, end))
        for spans in lanes.values():
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        assert slices.count.sum() == len(single)
        assert slices.busy_ps.sum() == single.busy_ps.sum()
        assert bool(np.all(slices.busy_ps <= slices.end_ps - slices.start_ps))


def test_only_narrow_slices_of_one_column_are_merged() -> None:
    """A slice as wide as a column stays alone, and no merged one is wider than two columns."""
    single = slices_of(ks.schedule(pk.sweep(30), "blocking"))
    width = 20_000  # most math takes less, loads and stores take more
    merged = merge_below(single, width)
    assert len(merged) < len(single)
    assert bool(np.all((merged.end_ps - merged.start_ps < 2 * width) | (merged.count == 1)))
    wide = single.node[single.end_ps - single.start_ps >= width]
    assert set(wide.tolist()) <= set(merged.node[merged.count == 1].tolist())


def test_merging_nothing_gives_nothing() -> None:
    """A schedule whose nodes take no time has no slices, merged or not."""
    none = slices_of(ks.schedule(ks.trace(nothing)))
    assert len(none) == len(merge_below(none, 5.0)) == 0


def test_a_merged_chart_says_so_and_counts_every_node() -> None:
    """Above the limit the picture names how many slices are merged; below it nothing is, and nothing is said."""
    schedule = ks.schedule(pk.sweep(400), "list")
    svg, notes = gantt_svg([schedule], merge_above=100)
    shown = rectangles(svg)
    assert sum(number(e, "data-count") for e in shown) == len(working(schedule)) > len(shown)
    assert len(notes) == 1
    assert notes[0] in "".join(ElementTree.fromstring(svg.encode()).itertext())
    plain, silent = gantt_svg([schedule])
    assert silent == ()
    assert len(rectangles(plain)) == len(working(schedule))


def test_as_many_slices_as_the_limit_are_drawn_one_by_one() -> None:
    """One more than the limit and those narrower than so many pixels are merged: the others never."""
    schedule = ks.schedule(pk.sweep(30), "blocking")
    count = len(slices_of(schedule))
    for limit, pixels, merged in ((count, 1e9, False), (count - 1, 1e9, True), (count - 1, 1e-6, False)):
        svg, notes = gantt_svg([schedule], merge_above=limit, pixels=pixels)
        assert (len(rectangles(svg)) < count) is bool(notes) is merged


def test_a_chart_for_a_page_leaves_its_head_and_style_to_the_page() -> None:
    """A standalone one has both; its axis ends with the longest schedule unless it is to reach further."""
    schedule = ks.schedule(pk.sweep(3), "blocking")
    alone, within = (gantt_svg([schedule], **options)[0] for options in ({}, {"standalone": False}))
    assert alone == gantt_svg([schedule], standalone=True, span_ps=schedule.makespan_ps, pixels=1.0)[0]
    assert alone.startswith("<?xml") and "<style>" in alone
    assert within.startswith("<svg") and "<style>" not in within
    last = [max(float(e.get("x", "")) for e in rectangles(gantt_svg([schedule], span_ps=s)[0])) for s in (0, 10**9)]
    assert last[1] < last[0]


def test_schedules_share_one_axis() -> None:
    """Two policies one under the other: equal times stand at equal places, and the second lies below the first."""
    graph = pk.sweep(5)
    both = [ks.schedule(graph, policy) for policy in ("blocking", "list")]
    shown = rectangles(gantt_svg(both)[0])
    first = [e for e in shown if float(e.get("y", "")) < max(float(x.get("y", "")) for x in shown) / 2]
    assert len(first) == len(working(both[0])) == len(shown) - len(first)
    scale = 1052 / both[0].makespan_ps
    for e in shown:
        assert float(e.get("x", "")) == pytest.approx(128 + number(e, "data-start-ps") * scale, abs=0.01)


def test_the_critical_chain_is_marked() -> None:
    """Each slice of the chain says so, is outlined or underlined, and no other is."""
    schedule = ks.schedule(pk.sweep(6), "lazy")
    root = ElementTree.fromstring(gantt_svg([schedule])[0].encode())
    told = {
        number(e, "data-node") for e in root.iter(f"{SVG}rect") if "critical chain" in (e.findtext(f"{SVG}title") or "")
    }
    assert told == set(schedule.critical_chain().nodes) & working(schedule)
    classes = [e.get("class", "") for e in root.iter(f"{SVG}rect")]
    assert sum("critical" in c or c == "strip" for c in classes) == len(told)


def test_rows_are_named_under_their_ranks() -> None:
    """Engines at work have a title, ranks where there are several."""
    several, _ = gantt_svg([ks.schedule(pk.messages(3))])
    texts = [t.text for t in ElementTree.fromstring(several.encode()).iter(f"{SVG}text")]
    assert [t for t in texts if t and t.startswith("rank")] == ["rank 0", "rank 1", "rank 2"]
    assert texts.count("link:next") == 3
    single = gantt_svg([ks.schedule(pk.sweep(2))])[0]
    assert "rank 0" not in single
    assert ">gemm<" in single


def test_a_slice_is_named_by_what_there_is_room_for() -> None:
    """Operation and tensor; else the tensor; else the operation; a slice too narrow for any has no name. What moves no
    tensor has its operation."""

    @ks.kernel
    def kernel(x: ks.HbmTensor, long_name: ks.HbmTensor) -> None:
        tile = tl.load(x[0:64, :])
        other = tl.load(long_name[:, :])
        tl.store(x[0:64, :], tl.dot(tile, tile) + other)
        tl.load(x[0:1, 0:1])

    made = ks.schedule(ks.trace(kernel, ks.hbm((64, 64), "f32"), ks.hbm((64, 64), "f32")), "blocking")
    root = ElementTree.fromstring(gantt_svg([made])[0].encode())
    names = [t.text or "" for t in root.iter(f"{SVG}text")]
    assert {"load x", "load long_name", "store x", "dot"} <= set(names)
    graph = made.graph
    assert [slice_name(graph, 1, "load", room) for room in (14, 13, 9, 8, 4, 3)] == [
        "load long_name",
        "long_name",
        "long_name",
        "load",
        "load",
        "",
    ]
    assert [slice_name(graph, node, graph[node].op, 99) for node in (0, 2, 4)] == ["load x", "dot", "store x"]


def test_of_many_slices_each_tells_its_operation_and_line() -> None:
    """Above the limit a slice's text is ``%3 = load  # file:line``; below it is all of the node."""
    made = ks.schedule(pk.sweep(3), "blocking")
    (place,) = {node.location.short for node in made.graph if node.op == "dot" and node.location}
    (dot, *_) = (node for node in made.graph if node.op == "dot")
    assert teller(made.graph, detailed=False)(dot.id) == f"%{dot.id} = dot  # {place}"
    assert teller(made.graph, detailed=True)(dot.id) == str(dot)


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_names_survive(name: str) -> None:
    """A hostile name is text in a well-formed file, whatever it contains."""
    graph = pk.renamed(pk.sweep(2), name)
    schedule = ks.schedule(graph, "lazy")
    root = ElementTree.fromstring(gantt_svg([schedule])[0].encode())
    told = [title.text or "" for title in root.iter(f"{SVG}title")]
    spelt = {quote(name), name.replace("\\", "\\\\")}  # the text form of a node doubles backslashes
    assert any(word in text for text in told for word in spelt)
    assert quote(name) in root.get("aria-label", "")
    assert {e.tag for e in root.iter()} <= {SVG + tag for tag in ("svg", "style", "rect", "line", "text", "title")}


@ks.kernel
def nothing() -> None:
    """Does nothing."""


def test_an_empty_schedule_is_an_empty_chart() -> None:
    """No node, no slice, no division by zero."""
    assert rectangles(gantt_svg([ks.schedule(ks.trace(nothing))])[0]) == []


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (0, "0 ns"),
        (1, "0.001 ns"),
        (500, "0.5 ns"),
        (612_000, "612 ns"),
        (1_224_000, "1.224 us"),
        (1_224_001, "1,224.001 ns"),
        (43_066_000, "43.066 us"),
        (10**12, "1,000,000 us"),
    ],
)
def test_exact_times(ps: int, text: str) -> None:
    """Nothing is rounded away."""
    assert exact_time(ps) == text


@given(span=st.integers(0, 10**15), most=st.integers(2, 20))
def test_ticks_are_round_and_few(span: int, most: int) -> None:
    """From 0 in equal steps of 1, 2 or 5 times a power of ten, never past the end, never more than asked for plus 0."""
    at = [ps for ps, _ in ticks(span, most)]
    assert at[0] == 0
    assert at[-1] <= span
    assert len(at) <= most + 1
    steps = {b - a for a, b in itertools.pairwise(at)}
    assert len(steps) <= 1
    assert all(str(step).rstrip("0") in ("1", "2", "5") for step in steps)
    assert len({label for _, label in ticks(span, most)}) == len(at)
