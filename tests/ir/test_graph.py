"""A graph as an object: its nodes, counts and storages as they are read."""

from __future__ import annotations

from typing import Any

import pytest

import kernscope as ks
from kernscope import tl


@ks.kernel
def _small(x: Any, o: Any) -> None:
    a = tl.load(x[:, :])
    with tl.scratch_scope("inner"):
        b = tl.exp(tl.abs(tl.exp(a)))
        tl.store(o[:, :], b)
    tl.store(o[:, :], tl.abs(a))


def small(rows: int = 4) -> ks.Graph:
    return ks.trace(_small, ks.hbm((rows, 4), "f32"), ks.hbm((rows, 4), "f32"))


def test_the_summary_has_the_commonest_first() -> None:
    """Equal numbers by name; the numbers are all nodes."""
    graph = small()
    assert list(graph.summary().items()) == [
        ("abs", 2),
        ("exp", 2),
        ("store", 2),
        ("load", 1),
        ("scope_enter", 1),
        ("scope_exit", 1),
    ]
    assert sum(graph.summary().values()) == len(graph)


def test_an_empty_graph_is_true_and_equal_to_its_like() -> None:
    """A graph is no container whose emptiness means nothing was traced; of another type nothing is equal."""
    empty = ks.trace(ks.kernel(lambda: None))
    assert empty and len(empty) == 0 and list(empty) == []
    assert small() == small() and small() != small(8)
    assert small() != "graph" and (small().nodes == 1) is False
    assert small().nodes == small().nodes != small(8).nodes


def test_a_storage_tells_where_and_how_long_it_lives() -> None:
    """Scope, the nodes that it is made before and freed at, its bytes as they are and as they are held."""
    graph = small()
    named = {graph.storage(row).name: graph.storage(row) for row in range(len(graph.storages))}
    a, b = named["a"], named["b"]
    (enter,) = (node for node in graph if node.op == "scope_enter")
    (close,) = (node for node in graph if node.op == "scope_exit")
    assert (graph.describe_scope(b.scope), a.scope) == (graph.describe_scope(enter.scope), 0)
    assert a.born <= enter.id < b.born <= close.id and (a.freed, b.freed) == (-1, close.id)
    assert (a.nbytes, a.held_bytes) == (64, 64)
    assert named["x"].is_hbm and not a.is_hbm


def test_nodes_are_counted_from_both_ends() -> None:
    """And there are no others."""
    graph = small()
    assert graph[-1].id == len(graph) - 1 and graph[0].id == 0
    for index in (len(graph), -len(graph) - 1):
        with pytest.raises(IndexError):
            graph[index]


def test_the_log_leaves_out_what_has_no_entry() -> None:
    """Markers write none; ``count`` takes a log's entry, or the name of an operation without one."""
    graph = small()
    assert graph.op_log() == [
        "memory/dma_read",
        *("math/exp", "math/abs", "math/exp"),
        "memory/dma_write",
        "math/abs",
        "memory/dma_write",
    ]
    assert (graph.count("memory/dma_write"), graph.count("scope_enter"), graph.count("store")) == (2, 1, 0)
