"""KS502: two ranks, the same HBM bytes, one writing, and no path of edges either way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.linter.analyses.races import find_races

X = ks.hbm((8, 8), "f32")


def races_of(kernel: Callable[..., Any], ranks: int = 2, x: Any = X) -> list[tuple[int, ...]]:
    """The nodes of each race."""
    return [race.nodes for race in find_races(ks.trace(kernel, x, ranks=ranks))]


# --- the rule itself, pair by pair ------------------------------------------------------------------------------------


def elements_of(graph: ks.Graph, row: int) -> set[int]:
    """The elements that an access shows."""
    layout = graph.layouts[graph.accesses.layout[row]]
    grid = np.zeros(layout.shape, dtype=np.int64) + int(graph.accesses.offset[row])
    for axis, stride in enumerate(layout.strides):
        shape = [1] * layout.ndim
        shape[axis] = layout.shape[axis]
        grid = grid + (np.arange(layout.shape[axis]) * stride).reshape(shape)
    return set(grid.reshape(-1).tolist())


def racing_nodes(graph: ks.Graph) -> set[int]:
    """By definition: every pair of accesses of different ranks, and every path of edges."""
    digraph = nx.DiGraph()
    digraph.add_nodes_from(range(len(graph)))
    digraph.add_edges_from(zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True))
    after = {node: nx.descendants(digraph, node) for node in digraph}
    rows = [
        (int(graph.accesses.node[row]), int(graph.accesses.storage[row]), int(graph.accesses.mode[row]), row)
        for row in range(len(graph.accesses))
        if graph.storage(int(graph.accesses.storage[row])).is_hbm
    ]
    elements = {row: elements_of(graph, row) for *_, row in rows}
    found: set[int] = set()
    for u, storage, mode, row in rows:
        for v, other_storage, other_mode, other in rows:
            apart = graph[u].rank != graph[v].rank and storage == other_storage and (mode or other_mode)
            apart = apart and not (graph[u].operation.atomic and graph[v].operation.atomic)
            if apart and elements[row] & elements[other] and v not in after[u] and u not in after[v]:
                found.update((u, v))
    return found


def random_kernel(seed: int, ranks: int) -> Callable[[Any], None]:
    """Rounds of loads, stores and copies on few buffers and few places of one tensor, with messages to and fro."""

    def kernel(x: Any) -> None:
        rank = tl.program_id(0)
        shared, own = random.Random(seed), random.Random(seed * 31 + rank)
        buffers = [tl.zeros((2, 4), tl.float32) for _ in range(2)]
        for _ in range(shared.randint(1, 5)):
            for _ in range(own.randint(0, 3)):
                buffer = own.choice(buffers)
                row, col = own.choice((0, 0, 1, 4)), own.choice((0, 2, 4))
                place = x[row : row + 2, col : col + 4]
                match own.randint(0, 4):
                    case 0:
                        tl.load(place, out=buffer)
                    case 1 | 2:
                        tl.store(place, buffer)
                    case 3:
                        tl.load(x + own.randint(0, 50), (2, 4), out=buffer)
                    case 4:
                        tl.copy_to(buffers[0], buffers[1])
            if ranks > 1:
                there, back = ("next", "prev") if shared.random() < 0.7 else ("prev", "next")
                tl.send(there, own.choice(buffers))
                tl.recv(back, (2, 4), tl.float32, out=own.choice(buffers))

    return kernel


@given(st.integers(0, 10**6), st.sampled_from((2, 3, 4)))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_nodes_that_race_are_those_of_the_definition(seed: int, ranks: int) -> None:
    """On random kernels with messages: every racing node is reported, and no other."""
    graph = ks.trace(random_kernel(seed, ranks), X, ranks=ranks)
    races = find_races(graph)
    assert {node for race in races for node in race.nodes} == racing_nodes(graph)
    for race in races:
        assert race.first < race.second
        assert {race.first, race.second} <= set(race.nodes)
        assert graph[race.first].rank != graph[race.second].rank


def test_the_random_kernels_hold_races_and_ordered_accesses() -> None:
    """Else the comparison would say nothing: some accesses overlap and race, some overlap and are ordered."""
    ordered = raced = 0
    for seed in range(40):
        graph = ks.trace(random_kernel(seed, 3), X, ranks=3)
        races = {node for race in find_races(graph) for node in race.nodes}
        without = without_channels(graph)
        loose = {node for race in find_races(without) for node in race.nodes}
        raced += len(races)
        ordered += len(loose - races)
    assert raced > 100
    assert ordered > 10


def without_channels(graph: ks.Graph) -> ks.Graph:
    """The same accesses with nothing between the ranks."""
    kept = {name: column[:0] for name, column in graph.channels.columns().items()}
    channels = type(graph.channels).make(**kept)
    columns = {**graph.nodes.columns(), "channel": np.full(len(graph), -1)}
    return attrs.evolve(graph, channels=channels, nodes=type(graph.nodes).make(**columns))


# --- where it must and must not act -----------------------------------------------------------------------------------


def test_reads_of_the_same_bytes_are_no_race() -> None:
    """Queries, keys and values are read by every rank."""

    def kernel(x: Any) -> None:
        tl.exp(tl.load(x[:, :]))

    assert races_of(kernel, ranks=4) == []


def test_one_rank_never_races_with_itself() -> None:
    """Its accesses are ordered by edges."""

    def kernel(x: Any) -> None:
        h = tl.load(x[:, :])
        tl.store(x[:, :], h)
        tl.store(x[:, :], h)

    assert races_of(kernel, ranks=1) == []


def test_each_rank_in_its_own_part_is_no_race() -> None:
    """Rows, columns, interleaved tiles: boxes that touch do not overlap."""

    def rows(x: Any) -> None:
        r = tl.program_id(0)
        tl.store(x[r * 2 : r * 2 + 2, :], tl.zeros((2, 8), tl.float32))

    def columns(x: Any) -> None:
        r = tl.program_id(0)
        tl.store(x[:, r * 2 : r * 2 + 2], tl.zeros((8, 2), tl.float32))

    def interleaved(x: Any) -> None:
        r = tl.program_id(0)
        for i in range(8):
            for j in range(8):
                if (i + j) % 4 == r:
                    tl.store(x[i : i + 1, j : j + 1], tl.zeros((1, 1), tl.float32))

    for kernel in (rows, columns, interleaved):
        assert races_of(kernel, ranks=4) == []


def test_two_writes_and_a_write_beside_a_read_race() -> None:
    """Also where only one element is shared."""

    def writes(x: Any) -> None:
        r = tl.program_id(0)
        tl.store(x[r * 3 : r * 3 + 4, r * 3 : r * 3 + 4], tl.zeros((4, 4), tl.float32))

    def beside_a_read(x: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(x[0:1, :], tl.zeros((1, 8), tl.float32))
        else:
            tl.load(x[:, 7:8])

    assert races_of(writes) == [(1, 3)]
    assert races_of(beside_a_read) == [(1, 2)]


def test_a_pointers_range_that_is_no_box_is_compared_element_by_element() -> None:
    """Elements 6 to 9 of eight columns are no box; a column that its covering boxes miss is no fault."""

    def kernel(x: Any, column: int) -> None:
        if tl.program_id(0) == 0:
            tl.store(x + 6, tl.zeros((4,), tl.float32))
        else:
            tl.load(x[0:2, column : column + 1])

    for column, raced in ((0, True), (1, True), (2, False), (5, False), (6, True), (7, True)):
        graph = ks.trace(kernel, X, column, ranks=2)
        assert bool(find_races(graph)) is raced


def test_program_order_alone_does_not_order_but_a_dependence_through_a_message_does() -> None:
    """The reader's buffer is the one that the message fills: its load has to come later. Into another buffer it need
    not."""

    def kernel(x: Any, same: bool) -> None:
        buffer = tl.zeros((8, 8), tl.float32)
        if tl.program_id(0) == 0:
            tl.store(x[:, :], buffer)
            tl.copy_to(buffer, tl.zeros((8, 8), tl.float32))  # waits for the store to have read it
            tl.send("next", buffer)
        else:
            tl.recv("prev", (8, 8), tl.float32, out=buffer)
            tl.load(x[:, :], out=buffer if same else None)

    assert find_races(ks.trace(kernel, X, True, ranks=2)) == []
    assert len(find_races(ks.trace(kernel, X, False, ranks=2))) == 1


def test_a_credit_orders_too() -> None:
    """A send that needs the slot which a receive frees comes after it."""

    def kernel(x: Any) -> None:
        tile = tl.zeros((8, 8), tl.float32)
        if tl.program_id(0) == 0:
            for _ in range(3):
                tl.send("next", tile)  # the third needs the first one's slot
            tl.copy_to(tile, tl.zeros((8, 8), tl.float32))
            tl.store(x[:, :], tile)
        else:
            got = tl.load(x[:, :])
            for _ in range(3):
                tl.recv("prev", (8, 8), tl.float32, out=got)

    assert races_of(kernel) == []


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_race_of_all_ranks_at_one_line_is_one_finding(ranks: int) -> None:
    """However many tiles and ranks take part."""

    def kernel(x: Any) -> None:
        for i in range(8):
            tl.store(x[i : i + 1, :], tl.zeros((1, 8), tl.float32))

    (nodes,) = races_of(kernel, ranks=ranks)
    assert len(nodes) == 8 * ranks


def test_edges_that_close_a_cycle_do_not_stop_the_search() -> None:
    """A deadlock is another rule's; paths are still found, around the cycle too."""

    def kernel(x: Any) -> None:
        h = tl.zeros((8, 8), tl.float32)
        tl.store(x[:, :], h)
        tl.recv("prev", (8, 8), tl.float32, out=h)
        tl.send("next", h)

    graph = ks.trace(kernel, X, ranks=2)
    assert {node for race in find_races(graph) for node in race.nodes} == racing_nodes(graph) == {1, 5}


@pytest.mark.parametrize(
    ("change", "races"),
    [
        (lambda x, i, t: tl.atomic_add(x[:, :], t), False),
        (lambda x, i, t: tl.atomic_max(x[0:8, :], t) if tl.program_id(0) else tl.atomic_add(x[:, :], t), True),
        (lambda x, i, t: tl.atomic_add(x[0:8, :], t) if tl.program_id(0) else tl.atomic_add(x[:, :], t), False),
        (lambda x, i, t: tl.atomic_add(x[:, :], t, index=i), False),
        (lambda x, i, t: tl.scatter(x[:, :], i, t), True),
        (lambda x, i, t: tl.scatter(x[:, :], i, t) if tl.program_id(0) else tl.atomic_add(x[:, :], t), True),
        (lambda x, i, t: tl.store(x[:, :], t) if tl.program_id(0) else tl.atomic_add(x[:, :], t), True),
        (lambda x, i, t: tl.load(x[:, :]) if tl.program_id(0) else tl.atomic_add(x[:, :], t), True),
    ],
)
def test_atomics_take_turns_with_their_like_and_with_nothing_else(
    change: Callable[[Any, Any, Any], Any], races: bool
) -> None:
    """Two ranks that change one element as one step, in the same way, lose nothing; a store, a load or a scatter beside
    one does, and of a sum and a largest number it counts which was first. Rows by an index tile may be any of their
    region."""

    def kernel(x: Any) -> None:
        change(x, tl.arange(0, 8), tl.zeros((8, 8), tl.float32))

    assert bool(races_of(kernel)) == races
