"""What reordering gains: who overtakes whom between two schedules of one graph."""

from collections import Counter

import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.ir.ops import OPERATIONS, Family
from kernscope.kernels.flash_attention import flash_attention
from kernscope.scheduler.result.reordering import moved_nodes


@ks.kernel
def late_load(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    """Three exponentials of the first tile, then the load of the second one, which could start with the first."""
    first = tl.load(x[:16, :])
    first = tl.exp(tl.exp(tl.exp(first)))
    second = tl.load(x[16:, :])
    tl.store(o[:, :], first + second)


def moves(graph: ks.Graph) -> tuple[ks.Schedule, ks.Schedule]:
    return ks.schedule(graph, "list"), ks.schedule(graph, "lazy")


def test_a_load_that_comes_too_late_is_the_first_to_move() -> None:
    """The second load starts with the first exponential, as soon as the channel is free. It overtakes the other two,
    and moves by the time of all three."""
    graph = ks.trace(late_load, ks.hbm((32, 16), "f32"), ks.hbm((16, 16), "f32"))
    listed, lazy = moves(graph)
    load, *others = listed.moved_against(lazy)
    second = [node.id for node in graph if node.op == "load"][1]
    assert (load.op, load.name, load.count, load.node) == ("load", "second", 1, second)
    assert load.mean_places == 2.0
    assert load.mean_ps == load.most_ps == lazy.start_ps[second] - listed.start_ps[second] > 0
    assert load.location is not None
    assert str(load).startswith(f"test_reordering.py:{load.location.line}: load second x 1: 2.0 places sooner, ")
    assert [row.mean_places for row in others if row.op == "exp"] == [0.0, -1.0, -1.0]


def test_what_only_starts_sooner_overtakes_nobody() -> None:
    """Where all starts move alike, places stay; times tell."""
    graph = ks.trace(late_load, ks.hbm((32, 16), "f32"), ks.hbm((16, 16), "f32"))
    start = ks.schedule(graph, "lazy").start_ps
    rows = moved_nodes(graph, start, start + 1000)
    assert {(row.mean_places, row.mean_ps, row.most_ps) for row in rows} == {(0.0, 1000, 1000)}


def test_the_order_of_starts_in_flash_attention() -> None:
    """The next tile's loads and its first product overtake the current tile's softmax; what closes a tile falls
    behind."""
    graph = ks.trace(flash_attention.launch("2k"))
    listed, lazy = moves(graph)
    rows = listed.moved_against(lazy)
    assert next(row.name for row in rows if row.op == "load") == "k_tile"
    assert [row.op for row in rows[:2]] == ["load", "dot"]
    assert rows[-1].mean_places < 0


@given(st.one_of(kernelgen.programs(max_size=20), kernelgen.programs(ranks=2, max_size=12)))
@kernelgen.examples(25)
def test_moves_add_up(program: kernelgen.Program) -> None:
    """Every node but the markers is counted once; on each rank as many places are lost as won; against itself nothing
    moves; and the other way round all signs turn."""
    graph = program.trace()
    listed, queued = (ks.schedule(graph, "list", program.machine, effort) for effort in ("normal", "fast"))
    backwards = np.max(queued.start_ps, initial=0) - queued.start_ps
    rows, turned = (moved_nodes(graph, *pair) for pair in ((listed.start_ps, backwards), (backwards, listed.start_ps)))
    nodes = [node for node in graph if OPERATIONS[node.op].family is not Family.MARKER]
    counted: Counter[str] = Counter()
    for row in rows:
        counted[row.op] += row.count
    assert counted == Counter(node.op for node in nodes)
    assert sum(row.mean_places * row.count for row in rows) == pytest.approx(0, abs=1e-6)
    assert [row.mean_places for row in rows] == sorted((row.mean_places for row in rows), reverse=True)
    assert sorted(-row.mean_places for row in turned) == pytest.approx(sorted(row.mean_places for row in rows))
    assert all(row.mean_ps <= row.most_ps for row in rows)
    assert {(row.mean_places, row.mean_ps) for row in listed.moved_against(listed)} <= {(0.0, 0)}


def test_schedules_of_different_graphs_do_not_compare() -> None:
    """The error names both kernels."""
    graph = ks.trace(late_load, ks.hbm((32, 16), "f32"), ks.hbm((16, 16), "f32"))
    other = ks.trace(flash_attention.launch("small"))
    with pytest.raises(ks.ArgumentError, match="different graphs: flash_attention and late_load"):
        ks.schedule(other).moved_against(ks.schedule(graph))
