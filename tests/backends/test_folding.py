"""Folding a graph into few boxes: counts are exact, and only what is equal is drawn as one."""

from __future__ import annotations

from collections import Counter

import kernelgen
import networkx as nx
import numpy as np
import picturekernels as pk
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.graph_picture.folding import Folded, Grade, fold, fold_to_fit
from kernscope.backends.graph_picture.implied_edges import reduce_data_edges
from kernscope.backends.graph_picture.repeats import first_of_repeats
from kernscope.ir.tables import Reason

any_program = st.one_of(kernelgen.programs(), kernelgen.programs(ranks=3, max_size=20))


def titles(folded: Folded) -> dict[str, int]:
    """How many scopes the frames stand for, by the scopes' names."""
    scopes = folded.graph.scopes
    found: Counter[str] = Counter()
    for frame in folded.frames:
        if frame.parent >= 0:
            found[folded.graph.names[scopes.name[frame.scope]]] += frame.scopes
    return dict(found)


def check_counts(folded: Folded) -> None:
    """Every node is in one box or a marker, every scope in one frame, every edge counted once or within a box."""
    graph = folded.graph
    markers = sum(graph.count(name) for name in ("scope_enter", "scope_exit"))
    assert folded.markers == markers
    assert sum(box.count for box in folded.boxes) == len(graph) - markers
    assert sum(frame.scopes for frame in folded.frames) == len(graph.scopes)
    counted: Counter[str] = Counter()
    for box in folded.boxes:
        assert sum(count for _, count in box.operations) == box.count
        counted.update(dict(box.operations))
    assert dict(counted) == {k: n for k, n in graph.summary().items() if not k.startswith("scope_")}
    edges, box_of = graph.edges, folded.box_of
    wanted = Counter(
        (int(box_of[s]), int(box_of[t]), int(r), bool(c))
        for s, t, r, c in zip(edges.source, edges.target, edges.reason, edges.recycled, strict=True)
    )
    e = folded.edges
    columns = (e.source, e.target, e.reason, e.recycled, e.count)
    got = {(s, t, r, c): n for s, t, r, c, n in zip(*(column.tolist() for column in columns), strict=True)}
    assert len(got) == len(e)
    assert {key: n for key, n in wanted.items() if key[0] != key[1]} == {k: n for k, n in got.items() if k[0] != k[1]}


def test_a_box_names_its_commonest_operation_first() -> None:
    """By number, the most first; equal numbers by name. It stands for the first of its nodes, in that one's frame."""

    def mixed(o: ks.HbmTensor) -> None:
        with tl.scratch_scope("part"):
            a = tl.zeros((4, 4), tl.float32)
            tl.store(o[:, :], tl.exp(tl.abs(tl.exp(-a))))

    folded = fold(ks.trace(mixed, ks.hbm((4, 4), "f32")), Grade.SCOPES)
    named = [box.operations for box in folded.boxes if len(box.operations) > 1]
    assert named == [(("exp", 2), ("abs", 1), ("fill", 1), ("neg", 1), ("store", 1))]
    for at, box in enumerate(folded.boxes):
        nodes = np.flatnonzero(folded.box_of == at)
        assert box.node == nodes[0]
        assert folded.frames[box.frame].scope == folded.graph.nodes.scope[box.node]


@pytest.mark.parametrize("grade", list(Grade))
@given(program=any_program)
@kernelgen.examples(25)
def test_counts_are_exact_at_every_grade(grade: Grade, program: kernelgen.Program) -> None:
    """Nodes, operations, scopes and edges of random kernels add up, however far they are folded."""
    check_counts(fold(program.trace(), grade))


@given(program=any_program)
@kernelgen.examples(40)
def test_a_node_is_drawn_for_equal_nodes_only(program: kernelgen.Program) -> None:
    """Nodes in one box of folded iterations have one operation, one source stack, one channel and equal layouts."""
    graph = program.trace()
    folded = fold(graph, Grade.ITERATIONS)
    for index in np.flatnonzero(folded.box_of >= 0).tolist():
        node, drawn = graph[index], graph[folded.boxes[folded.box_of[index]].node]
        assert (node.op, node.location, node.channel) == (drawn.op, drawn.location, drawn.channel)
        assert node.rank == drawn.rank
        assert [(a.layout, a.mode) for a in node.accesses] == [(a.layout, a.mode) for a in drawn.accesses]


@pytest.mark.parametrize("tiles", [1, 2, 64])
def test_equal_iterations_are_drawn_once(tiles: int) -> None:
    """A loop of alike scopes has the boxes of one iteration, each standing for all of them."""
    graph = pk.sweep(tiles)
    folded = fold(graph, Grade.ITERATIONS)
    inside = [box for box in folded.boxes if folded.frames[box.frame].parent >= 0]
    assert [graph[box.node].op for box in inside] == ["load", "dot", "exp", "add", "copy_to"]
    assert {box.count for box in inside} == {tiles}
    assert titles(folded) == {"tile": tiles}
    assert len(folded.boxes) == 7


def test_nested_iterations_are_counted_inside_and_in_all() -> None:
    """Of 3 equal rows of 5 equal columns one row with one column is drawn; the column stands for 15."""
    folded = fold(pk.nested(3, 5), Grade.ITERATIONS)
    assert titles(folded) == {"row": 3, "col": 15}
    assert {box.count for box in folded.boxes} == {3, 15}


@pytest.mark.parametrize(
    ("widths", "frames"),
    [((8, 8, 8), [3]), ((8, 8, 4), [2, 1]), ((8, 4, 8), [1, 1, 1]), ((4, 8, 8, 8, 4, 4), [1, 3, 2])],
)
def test_only_consecutive_equal_scopes_are_folded(widths: tuple[int, ...], frames: list[int]) -> None:
    """Another shape is another content, and ends the run."""
    folded = fold(pk.unequal(*widths), Grade.ITERATIONS)
    assert [frame.scopes for frame in folded.frames if frame.parent >= 0] == frames


def test_loads_of_other_widths_are_folded_by_place_only() -> None:
    """Scopes of one line are one box at the coarse grades, whatever their shapes."""
    graph = pk.unequal(8, 4, 8)
    folded = fold(graph, Grade.PLACES)
    assert [frame.scopes for frame in folded.frames] == [1, 3]
    assert [(box.count, box.operations) for box in folded.boxes] == [(9, (("exp", 3), ("load", 3), ("store", 3)))]


def test_ranks_are_folded_where_they_do_the_same() -> None:
    """A ring's ranks do the same and are drawn once, except where each is asked for."""
    graph = pk.messages(ranks=3, steps=4)
    for grade in Grade:
        folded = fold(graph, grade)
        mixed = any(
            len(set(graph.nodes.rank[folded.box_of == index].tolist())) > 1 for index in range(len(folded.boxes))
        )
        assert mixed == (grade in (Grade.ALIKE, Grade.LINES, Grade.SCOPES, Grade.RANKS))
    assert [frame.ranks for frame in fold(graph, Grade.RANKS).frames] == [(0, 1, 2), (0, 1, 2)]


def test_the_finest_grade_that_fits_is_taken() -> None:
    """Few boxes stay as they are; more are folded by iteration, then by scope, and at last whatever it takes."""
    graph = pk.sweep(64)  # 322 boxes, 7 of folded iterations, 2 of scopes
    assert [fold_to_fit(graph, limit).grade for limit in (322, 321, 7, 6, 2, 1)] == [
        Grade.NODES,
        Grade.ITERATIONS,
        Grade.ITERATIONS,
        Grade.SCOPES,
        Grade.SCOPES,
        Grade.RANKS,
    ]


@pytest.mark.parametrize(
    ("graph", "grade"),
    [
        (pk.sweep(3), Grade.NODES),
        (pk.sweep(64), Grade.ITERATIONS),
        (pk.messages(40, 2), Grade.ALIKE),
        (pk.unequal(*range(1, 60)), Grade.LINES),
        (pk.straight(150), Grade.NODES),
    ],
)
def test_a_picture_is_folded_only_as_far_as_it_takes_to_read_it(graph: ks.Graph, grade: Grade) -> None:
    """Iterations first, then ranks that do the same, then lines; but never to next to nothing."""
    assert fold_to_fit(graph, 800, readable=60).grade is grade


@pytest.mark.parametrize("finest", list(Grade))
def test_nothing_finer_than_asked_for_is_drawn(finest: Grade) -> None:
    """Where every scope is to be one box, no node has one of its own."""
    assert fold_to_fit(pk.sweep(2), 800, finest=finest).grade is finest


@pytest.mark.parametrize("size", [2, 3, 100])
def test_loops_without_scopes_are_folded(size: int) -> None:
    """A loop around a loop, neither with a scope, has the boxes of one iteration of one iteration."""
    graph = pk.unscoped(size, 4)
    folded = fold(graph, Grade.ITERATIONS)
    assert [graph[box.node].op for box in folded.boxes] == ["load", "exp", "store"]
    assert [box.count for box in folded.boxes] == [size, 4 * size, size]


@given(st.lists(st.integers(0, 3), max_size=60))
def test_a_place_stands_for_its_like(sequence: list[int]) -> None:
    """What stands for a place holds the same symbol, stands for itself, and lies not behind it."""
    symbols = np.array(sequence, dtype=np.int64)
    first = first_of_repeats(symbols)
    assert np.array_equal(symbols[first], symbols)
    assert np.array_equal(first[first], first)
    assert (first <= np.arange(len(symbols))).all()


@pytest.mark.parametrize(
    ("sequence", "stands"),
    [
        ([0, 1, 2, 0, 1, 2, 2], [0, 1, 2, 3, 4, 5, 5]),
        ([2, 2, 0, 1, 2, 0, 1], [0, 0, 2, 3, 4, 5, 6]),
        ([0, 1, 0, 1, 2, 0, 1, 2], [0, 1, 0, 1, 4, 5, 6, 7]),
    ],
)
def test_repeats_do_not_overlap(sequence: list[int], stands: list[int]) -> None:
    """A place that a shorter repeat has taken belongs to no longer one, were it only one place."""
    assert first_of_repeats(np.array(sequence)).tolist() == stands


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True), st.integers(1, 6), st.integers(0, 4))
def test_a_repeated_stretch_is_found(stretch: list[int], times: int, around: int) -> None:
    """Whatever stands before and after it."""
    before, after = [20 + i for i in range(around)], [40 + i for i in range(around)]
    first = first_of_repeats(np.array(before + stretch * times + after))
    assert len(set(first.tolist())) == len(stretch) + 2 * around


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("grade", list(Grade))
def test_counts_of_what_is_kept_are_exact(grade: Grade, rank: int) -> None:
    """Of one rank: its nodes and no others, and the edges among them."""
    graph = pk.messages(3, 4)
    keep = graph.nodes.rank == rank
    folded = fold(graph, grade, keep)
    markers = sum(node.op.startswith("scope_") for node in graph if node.rank == rank)
    assert sum(box.count for box in folded.boxes) == folded.kept == int(keep.sum()) - markers
    assert not (folded.box_of[~keep] >= 0).any()
    assert {rank for frame in folded.frames for rank in frame.ranks} == {rank}
    assert sum(frame.scopes for frame in folded.frames) == int((graph.scopes.rank == rank).sum())
    if grade is Grade.NODES:
        edges = graph.edges
        assert folded.edges.count.sum() == (keep[edges.source] & keep[edges.target]).sum()


@pytest.mark.parametrize("grade", [Grade.NODES, Grade.ITERATIONS])
@given(program=any_program)
@kernelgen.examples(20)
def test_a_reduction_keeps_what_is_reachable(grade: Grade, program: kernelgen.Program) -> None:
    """The forward data edges that are left lead from where to where all of them did; none of them is implied."""
    folded = fold(program.trace(), grade)
    reduced, saved = reduce_data_edges(folded)
    assert saved == len(folded.edges) - len(reduced.edges)
    before, after = nx.DiGraph(forward_data(folded)), nx.DiGraph(forward_data(reduced))
    assert set(after.edges) == set(nx.transitive_reduction(before).edges) if before else not after
    assert others(folded) == others(reduced)


def forward_data(folded: Folded) -> list[tuple[int, int]]:
    e = folded.edges
    rows = zip(e.source.tolist(), e.target.tolist(), e.reason.tolist(), strict=True)
    return [(s, t) for s, t, reason in rows if reason == Reason.DATA and s < t]


def others(folded: Folded) -> list[tuple[int, ...]]:
    e = folded.edges
    rows = zip(*(c.tolist() for c in (e.source, e.target, e.reason, e.recycled, e.count)), strict=True)
    return [row for row in rows if row[2] != Reason.DATA or row[0] >= row[1]]


@ks.kernel
def nothing() -> None:
    """Does nothing."""


@pytest.mark.parametrize("grade", list(Grade))
def test_a_graph_without_nodes_has_no_boxes(grade: Grade) -> None:
    """An empty kernel is folded to nothing."""
    folded = fold(ks.trace(nothing), grade)
    assert (len(folded.boxes), len(folded.edges), folded.markers) == (0, 0, 0)
