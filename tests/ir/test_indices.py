"""Accesses by an index: rows and lists of elements that no box can express, and atomics on them."""

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope.checker.check import check
from kernscope.ir import dtypes
from kernscope.ir.indices import LEFT_OUT, Index
from kernscope.ir.layout import Layout
from kernscope.ir.load import load_graph
from kernscope.ir.tables import AccessKind, AccessTable
from kernscope.ir.unstored import find_unstored
from kernscope.ir.verifier.verify import verify
from kernscope.memory.automatic import placed
from kernscope.scheduler.policy.registry import LADDER
from kernscope.tracer.trace import recording

MACHINE = ks.load_machine("ahbm-pe")
F32 = dtypes.float32
ELEMENTS = np.array([[3, 1], [LEFT_OUT, 9]])


def rows_index(rows: list[int], width: int) -> tuple[int, Index]:
    """Rows of a tensor of that width; LEFT_OUT for one that is not accessed."""
    first = np.array([[row * width if row >= 0 else LEFT_OUT] for row in rows])
    return Index.of(first, (0, 1), (len(rows), width))


def moved(target: tuple[int, Index], source: tuple[int, Index], shape: tuple[int, ...], how: str = "") -> ks.Graph:
    """Loads a tile from `x` by one index, and stores it to `o` by another; or adds it (`how`)."""
    with recording(MACHINE.target, MACHINE.name, kernel="moved", automatic=True) as trace:
        recorder = trace.recorder
        old = trace.tensor("old", Layout.dense(shape, F32)) if how else None
        x, o = trace.tensor("x", Layout.dense((16, 8), F32)), trace.tensor("o", Layout.dense((16, 8), F32))
        for _ in trace.ranks():
            view = Layout.dense((source[1].span,), F32)
            static = (("shape", shape), ("dtype", F32), ("pad", -1.0), ("at", None), ("index", source[1]))
            tile = recorder.record(recorder.plan("load", (view,), static), [(x.storage, source[0], view)])
            into = Layout.dense((target[1].span,), F32)
            read = [(tile.storage, 0, tile.layout)]
            if not how:
                plan = recorder.plan("store", (tile.layout,), (("index", target[1]),))
                recorder.record(plan, read, into=(o.storage, target[0], into))
                continue
            static = (("how", how), ("index", target[1]))
            assert old is not None
            found = recorder.record(
                recorder.plan("fetch", (into, tile.layout), static), [(o.storage, target[0], into), *read]
            )
            plan = recorder.plan("store", (found.layout,), ())
            recorder.record(plan, [(found.storage, 0, found.layout)], into=(old.storage, 0, old.layout))
            plan = recorder.plan("atomic", (tile.layout, into), static)
            recorder.record(plan, [*read, (o.storage, target[0], into)], into=(o.storage, target[0], into))
    return placed(trace.finish({}))


GRAPH = moved(rows_index([2, 7, 1, 3], 8), rows_index([5, 0, -1, 5], 8), (4, 8))
SCATTERED = moved(Index.of(ELEMENTS), Index.of(ELEMENTS), (2, 2))


@st.composite
def indices(draw: st.DrawFn) -> tuple[Index, dict[tuple[int, ...], int]]:
    """An index, and by place in the tile the offset it accesses there."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    walked = [draw(st.booleans()) for _ in shape]
    steps = tuple(draw(st.integers(1, 5)) if walk else 0 for walk in walked)
    listed = tuple(1 if walk else n for walk, n in zip(walked, shape, strict=True))
    size = int(np.prod(listed))
    offsets = np.array(draw(st.lists(st.integers(-1, 30), min_size=size, max_size=size))).reshape(listed)
    offsets.flat[draw(st.integers(0, size - 1))] = draw(st.integers(0, 30))
    first, index = Index.of(offsets, steps, shape)
    assert first == offsets[offsets >= 0].min()
    found = {}
    for place in np.ndindex(*shape):
        own = int(offsets[tuple(0 if walk else at for walk, at in zip(walked, place, strict=True))])
        if own >= 0:
            found[place] = own - first + sum(at * step for at, step in zip(place, steps, strict=True))
    return index, found


@given(indices())
@settings(max_examples=150, deadline=None)
def test_the_elements_of_an_index_are_those_counted_one_by_one(drawn: tuple[Index, dict[tuple[int, ...], int]]) -> None:
    """Where each element of the tile lies, which of memory are accessed, how many, and how far apart they are."""
    index, found = drawn
    elements = index.elements()
    assert elements.shape == index.shape
    assert {place: int(elements[place]) for place in np.ndindex(*index.shape)} == {
        place: found.get(place, LEFT_OUT) for place in np.ndindex(*index.shape)
    }
    assert index.accessed().tolist() == sorted(set(found.values()))
    assert index.count == len(found)
    assert (
        index.span
        == max(index.offsets.max(), 0)
        + sum((n - 1) * step for n, step in zip(index.shape, index.steps, strict=True))
        + 1
    )
    assert index.span > max(found.values())
    assert index.is_sound
    same = Index(index.shape, index.offsets.copy(), index.steps)
    assert same == index and hash(same) == hash(index) and index != "index"
    other = Index(index.shape, index.offsets, tuple(step + 1 for step in index.steps))
    assert other != index
    several = sum(n > 1 for n in index.offsets.shape) > 1
    assert index.is_rows is (len(index.shape) > 1 and not several)
    assert repr(index).startswith(f"<{int((index.offsets >= 0).sum())} {'rows' if index.is_rows else 'elements'}, ")


def test_an_index_reads_and_writes_what_it_names_and_nothing_else() -> None:
    """Numbers equal numpy's; what the index leaves out is the pad, or stays."""
    x = np.arange(128, dtype=np.float32).reshape(16, 8)
    o = np.zeros_like(x)
    expected = o.copy()
    expected[[2, 7, 3]] = x[[5, 0, 5]]
    expected[1] = -1
    assert np.array_equal(ks.run(GRAPH, {"x": x, "o": o})["o"], expected)
    expected = o.copy()
    expected.reshape(-1)[[3, 1, 9]] = x.reshape(-1)[[3, 1, 9]]
    assert np.array_equal(ks.run(SCATTERED, {"x": x, "o": o})["o"], expected)


@pytest.mark.parametrize("how", ["add", "max", "min", "xchg"])
def test_an_atomic_changes_what_stands_in_one_place_in_turn(how: str) -> None:
    """Elements that an index names twice are changed twice, and each finds what the one before left."""
    graph = moved(Index.of(np.array([4, 2, 4, 4])), Index.of(np.array([0, 1, 2, 3])), (4,), how)
    assert verify(graph) == []
    x, o = np.arange(1, 129, dtype=np.float32).reshape(16, 8), np.full((16, 8), 2.5, np.float32)
    expected, found = o.reshape(-1).copy(), []
    for place, value in ((4, 1.0), (2, 2.0), (4, 3.0), (4, 4.0)):
        old = expected[place]
        found.append(old)
        expected[place] = {"add": old + value, "max": max(old, value), "min": min(old, value), "xchg": value}[how]
    got = ks.run(graph, {"x": x, "o": o})
    assert np.array_equal(got["o"].reshape(-1), expected)
    assert got["old"].tolist() == found


@pytest.mark.parametrize(("graph", "kind"), [(GRAPH, AccessKind.ROWS), (SCATTERED, AccessKind.LIST)])
def test_its_kind_is_told_and_verified(graph: ks.Graph, kind: AccessKind) -> None:
    """An access by an index says so; one that says another kind, or covers another range, is refused."""
    assert verify(graph) == []
    inside = ~graph.in_scratch[graph.accesses.storage]
    assert set(graph.accesses.kind[inside].tolist()) == {kind}
    assert set(graph.accesses.kind[~inside].tolist()) == {AccessKind.BOX}
    for wrong in set(AccessKind) - {kind}:
        columns = {**graph.accesses.columns(), "kind": np.where(inside, wrong, graph.accesses.kind)}
        assert verify(attrs.evolve(graph, accesses=AccessTable.make(**columns)))
    index = graph[len(graph) - 1].attributes["index"]
    further = Index(index.shape, np.where(index.offsets > 0, index.offsets + 1, index.offsets), index.steps)
    attributes = tuple(entry and {**entry, "index": further} for entry in graph.attributes)
    assert verify(attrs.evolve(graph, attributes=attributes))


def test_work_is_what_is_moved() -> None:
    """Bytes of the elements that are accessed, not of the range that is covered; the checker agrees."""
    assert [node.work[0] for node in GRAPH] == [3 * 8 * 4, 4 * 8 * 4]
    assert [node.work[0] for node in SCATTERED] == [3 * 4, 3 * 4]
    for graph in (GRAPH, SCATTERED):
        for policy in LADDER:
            assert check(ks.schedule(graph, policy, MACHINE)) == []


def test_what_an_index_leaves_out_is_not_stored() -> None:
    """The covering range counts for no more than the elements."""
    (found,) = find_unstored(GRAPH)
    assert found.count == 128 - 32
    (found,) = find_unstored(SCATTERED)
    assert found.count == 128 - 3


def test_a_store_by_an_index_orders_what_comes_after() -> None:
    """It covers its range for dependence: what is stored there before and after keeps its order."""
    first, index = rows_index([2, 7], 8)
    with recording(MACHINE.target, MACHINE.name, kernel="ordered", automatic=True) as trace:
        recorder = trace.recorder
        o = trace.tensor("o", Layout.dense((16, 8), F32))
        whole = Layout.dense((16, 8), F32)
        for _ in trace.ranks():
            for own in (None, index, None):
                target = whole if own is None else Layout.dense((own.span,), F32)
                shape = (16, 8) if own is None else own.shape
                tile = recorder.compute("fill", (), (("shape", shape), ("value", 1.0), ("dtype", F32)))
                plan = recorder.plan("store", (tile.layout,), () if own is None else (("index", own),))
                read = (tile.storage, 0, tile.layout)
                recorder.record(plan, [read], into=(o.storage, 0 if own is None else first, target))
    graph = placed(trace.finish({}))
    assert verify(graph) == []
    stores = [node.id for node in graph if node.op == "store"]
    pairs = {(edge.source, edge.target) for node in graph for edge in node.edges_in}
    assert {(stores[0], stores[1]), (stores[1], stores[2])} <= pairs


@pytest.mark.parametrize("graph", [GRAPH, SCATTERED])
def test_an_index_is_saved(graph: ks.Graph, tmp_path: Path) -> None:
    """A graph with indices comes back equal."""
    graph.save(tmp_path / "saved.ksg")
    again = load_graph(tmp_path / "saved.ksg")
    assert again == graph
    assert str(again) == str(graph)


@pytest.mark.parametrize(
    "index",
    [
        Index((2,), np.array([1, 2]), (0,)),
        Index((2,), np.array([LEFT_OUT, LEFT_OUT]), (0,)),
        Index((2,), np.array([0, -7]), (0,)),
        Index((3,), np.array([0, 1]), (0,)),
        Index((2, 2), np.array([0, 1]), (0,)),
        Index((2,), np.array([0, 4]), (1,)),
    ],
)
def test_an_index_that_names_nothing_is_not_sound(index: Any) -> None:
    """The lowest offset is 0, something is accessed, and a dimension is walked or indexed."""
    assert not index.is_sound


def test_what_two_indices_name_is_compared_by_value() -> None:
    """Equal offsets make equal indices."""
    assert Index.of(ELEMENTS) == Index.of(ELEMENTS.copy())
    assert Index.of(ELEMENTS) != Index.of(ELEMENTS[:, ::-1])
    assert Index.of(ELEMENTS)[1].elements().tolist() == [[2, 0], [-1, 8]]
