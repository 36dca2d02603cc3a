"""What judges a graph verifies it first, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.tables import EdgeTable, Table
from kernscope.ir.verifier import verify
from kernscope.ir.verifier.verify import require_valid

X = ks.hbm((8, 8), "f32")


def traced() -> ks.Graph:
    def kernel(x: Any, o: Any) -> None:
        rank = tl.program_id(0)
        rows = slice(8 * rank, 8 * rank + 8)
        tl.store(o[rows, :], tl.load(x[:, :]) + tl.full((8, 8), 1.0, "f32"))

    return ks.trace(kernel, X, ks.hbm((16, 8), "f32"), ranks=2)


def changed(graph: ks.Graph, table: str, column: str, row: int, value: int) -> ks.Graph:
    """A graph with one number changed, as no trace makes it."""
    old: Table = getattr(graph, table)
    columns = {name: array.copy() for name, array in old.columns().items()}
    columns[column][row] = value
    return attrs.evolve(graph, **{table: type(old).make(**columns)})


JUDGES: list[Callable[[ks.Graph], Any]] = [
    ks.lint,
    ks.schedule,
    ks.compare,
    lambda graph: ks.run(graph, {"x": np.zeros((8, 8), np.float32)}),
]


@pytest.mark.parametrize("judge", JUDGES)
def test_a_graph_that_no_trace_makes_is_refused(judge: Callable[[ks.Graph], Any]) -> None:
    """A node of rank 1 that reaches into rank 0's scratch: the error lists it, and says whose fault that can be."""
    graph = traced()
    judge(graph)
    of_rank_1 = next(node for node in graph if node.rank == 1 and node.op == "add")
    of_rank_0 = next(node for node in graph if node.rank == 0 and node.op == "fill")
    broken = changed(graph, "accesses", "storage", of_rank_1.reads[0].row, of_rank_0.writes[0].storage.row)
    with pytest.raises(ks.InvalidGraphError, match="another rank's scratch") as caught:
        judge(broken)
    assert caught.value.violations and "bug of kernscope" in caught.value.help


def test_a_graph_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks, and another graph anew: also one at the place of a graph that is gone."""
    runs: list[int] = []
    counted = verify._run
    monkeypatch.setattr(verify, "_run", lambda wave, graph: runs.append(id(graph)) or counted(wave, graph))
    graph = traced()
    verify.require_valid(graph)
    first = len(runs)
    verify.require_valid(graph)
    verify.require_valid(graph, edges=False)
    assert len(runs) == first > 0
    for _ in range(5):
        del graph
        graph = traced()
        before = len(runs)
        verify.require_valid(graph)
        assert len(runs) > before


def test_edges_are_judged_unless_they_are_not_needed() -> None:
    """An edge that points backwards is refused; whoever has no use for edges does not look, and looks no second time
    at what was found sound."""

    def backwards() -> ks.Graph:
        graph = traced()
        graph.__dict__["edges"] = EdgeTable.make(source=[3], target=[1], reason=[0], recycled=[0])
        return graph

    for options in ({}, {"edges": True}):
        with pytest.raises(ks.InvalidGraphError, match="edges-point-forward"):
            require_valid(backwards(), **options)
    require_valid(graph := backwards(), edges=False)
    require_valid(graph, edges=False)
    with pytest.raises(ks.InvalidGraphError, match="edges-point-forward"):
        require_valid(graph)
    require_valid(sound := traced())
    del sound.__dict__["edges"]
    require_valid(sound, edges=False)
    require_valid(sound)
    assert "edges" not in sound.__dict__
