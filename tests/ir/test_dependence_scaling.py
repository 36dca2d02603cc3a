"""Edges of large graphs, counted: what a reader waits for, and nothing else, however finely a tensor is cut.

A count says more than a time: a method that compares all pairs, or one that joins what need not be joined, would not
finish here or would count too many.
"""

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.tables import Reason


def reasons(graph: ks.Graph) -> dict[str, int]:
    """How many edges there are for each reason."""
    numbers, counts = np.unique(graph.edges.reason, return_counts=True)
    return {Reason(n).label: count for n, count in zip(numbers.tolist(), counts.tolist(), strict=True)}


@pytest.mark.slow
def test_a_tensor_stored_in_a_hundred_thousand_tiles() -> None:
    """Each store waits for the tile's load; a load of a stored tile waits for that store (data), the first one also for
    the other readers of the bytes it overwrites (war). No edge between tiles."""
    tiles = 100_000

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x)
        for i in range(tiles):
            tl.store(o[i * 4 : i * 4 + 4], tile)
        for i in range(0, tiles, 100):
            tl.load(o[i * 4 : i * 4 + 4], out=tile)

    graph = ks.trace(kernel, ks.hbm((4, 4), "f32"), ks.hbm((4 * tiles, 4), "f32"))
    assert len(graph) == 1 + tiles + tiles // 100
    loads = tiles // 100
    assert reasons(graph) == {"data": tiles + loads, "war": tiles - 1, "waw": loads - 1}


@pytest.mark.slow
def test_a_grid_of_tiles() -> None:
    """300 x 300 tiles stored, each read once by its row of tiles: as many edges as there are tiles."""
    n = 300

    def kernel(x: Any, o: Any, p: Any) -> None:
        tile = tl.load(x)
        for i in range(n):
            for j in range(n):
                tl.store(o[2 * i : 2 * i + 2, 2 * j : 2 * j + 2], tile)
        for i in range(n):
            with tl.scratch_scope():
                tl.store(p[2 * i : 2 * i + 2], tl.load(o[2 * i : 2 * i + 2]))

    graph = ks.trace(kernel, ks.hbm((2, 2), "f32"), ks.hbm((2 * n, 2 * n), "f32"), ks.hbm((2 * n, 2 * n), "f32"))
    # Each store reads the tile; each row's load waits for its n tiles, its store for the load; the next row's load for
    # the store that read the bytes before.
    assert reasons(graph) == {"data": n * n + n * n + n, "war": n - 1}


def test_many_slice_writes_met_by_many_whole_reads() -> None:
    """Rounds of slice writes and one whole read: each read waits for its own round's writes, each write for the last
    read."""
    slices, rounds = 400, 50

    def kernel(x: Any) -> None:
        row = tl.load(x)
        whole = tl.empty((slices, 4), "f32")
        for _ in range(rounds):
            for i in range(slices):
                tl.copy_to(whole[i : i + 1], row)
            with tl.scratch_scope():
                tl.exp(whole)

    graph = ks.trace(kernel, ks.hbm((1, 4), "f32"))
    assert reasons(graph) == {
        "data": rounds * slices + rounds * slices,
        "war": (rounds - 1) * slices,
        "waw": rounds - 1,
    }


def test_whole_reads_after_a_whole_write_do_not_meet_the_slices_before_it() -> None:
    """Slices, one whole write, then many whole reads: each read has one edge, whatever was cut before."""
    slices = reads = 1_500

    def kernel(x: Any) -> None:
        row = tl.load(x)
        whole = tl.empty((slices, 4), "f32")
        for i in range(slices):
            tl.copy_to(whole[i : i + 1], row)
        tl.copy_to(whole, tl.zeros((slices, 4), "f32"))
        for _ in range(reads):
            with tl.scratch_scope():
                tl.max(whole)

    graph = ks.trace(kernel, ks.hbm((1, 4), "f32"))
    assert reasons(graph) == {"data": slices + 1 + reads, "waw": slices + reads - 1}


@pytest.mark.slow
def test_a_scope_entered_fifty_thousand_times_has_edges_to_its_neighbour_only() -> None:
    """Recycled bytes: each iteration waits for the one before, not for all before it."""
    n = 50_000

    def kernel(x: Any) -> None:
        for _ in range(n):
            with tl.scratch_scope():
                tl.exp(tl.load(x))

    graph = ks.trace(kernel, ks.hbm((4, 4), "f32"))
    assert reasons(graph) == {"data": n, "war": n - 1, "waw": n - 1}
    assert int(graph.edges.recycled.sum()) == 2 * (n - 1)


def test_a_scope_filled_column_by_column_waits_for_the_two_iterations_before_it_at_most() -> None:
    """Writes with gaps end nobody's use of the bytes; yet an iteration does not wait for all those before it."""

    def edges(n: int) -> int:
        def kernel(x: Any, o: Any) -> None:
            for _ in range(n):
                with tl.scratch_scope():
                    whole = tl.empty((4, 8), "f32")
                    for column in range(0, 8, 2):
                        tl.load(x[:, column : column + 2], out=whole[:, column : column + 2])
                    tl.store(o, whole)

        return len(ks.trace(kernel, ks.hbm((4, 8), "f32"), ks.hbm((4, 8), "f32")).edges)

    steps = np.diff([edges(n) for n in (10, 11, 100, 101)])
    assert steps[0] == steps[2], "the hundredth iteration adds as many edges as the tenth"
