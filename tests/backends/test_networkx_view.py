"""The networkx view says of every node and edge what the graph says."""

from __future__ import annotations

from pathlib import Path

import attrs
import kernelgen
import networkx as nx
import picturekernels as pk
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.backends.networkx_view import to_networkx
from kernscope.backends.palette import ENGINE_COLOURS, engine_kind, engines_of


def check_view(graph: ks.Graph) -> None:
    """Node by node and edge by edge."""
    view = to_networkx(graph)
    assert list(view) == list(range(len(graph)))
    assert (view.graph["kernel"], view.graph["ranks"]) == (graph.kernel, graph.ranks)
    for node in graph:
        seen = view.nodes[node.id]
        place = node.location
        for name in ("op", "log", "engine", "rank", "scope", "command", "channel"):
            assert seen[name] == getattr(node, name)
        assert (seen["work0"], seen["work1"], seen["work2"]) == node.work
        assert seen["scope_name"] == graph.describe_scope(node.scope)
        assert seen["work_kind"] == node.operation.work_kind.value
        assert seen["dtype"] == node.dtype.short
        assert place is not None
        assert (seen["file"], seen["line"], seen["function"]) == (place.file, place.line, place.function)
    edges = [(e.source, e.target, e.reason.label, e.recycled) for node in graph for e in node.edges_in]
    assert sorted((s, t, d["reason"], d["recycled"]) for s, t, d in view.edges(data=True)) == sorted(edges)


@given(program=st.one_of(kernelgen.programs(), kernelgen.programs(ranks=3, max_size=20)))
@kernelgen.examples(25)
def test_the_view_agrees_with_the_graph(program: kernelgen.Program) -> None:
    """Random kernels, on one rank and on several."""
    check_view(program.trace())


def test_values_are_plain_python() -> None:
    """No numpy scalar leaks out: other tools compare and serialise them."""
    view = to_networkx(pk.messages())
    kinds = {type(value) for _, data in view.nodes(data=True) for value in data.values()}
    kinds |= {type(value) for _, _, data in view.edges(data=True) for value in data.values()}
    assert kinds == {str, int, bool}


@pytest.mark.parametrize("form", ["graphml", "gexf", "gml"])
def test_what_networkx_writes_comes_back(form: str, tmp_path: Path) -> None:
    """All nodes, edges and attributes, whatever characters are in the names."""
    hostile = 'a\x00\x1b]0;b\n\ud800\u202e<&"]]>\u6838'
    graph = pk.messages()
    graph = attrs.evolve(graph, kernel=hostile, names=tuple(f"{hostile}{name}" for name in graph.names))
    view = to_networkx(graph)
    getattr(nx, f"write_{form}")(view, tmp_path / "graph")
    read = getattr(nx, f"read_{form}")(tmp_path / "graph")
    assert (len(read), read.number_of_edges()) == (len(view), view.number_of_edges())
    for node, data in view.nodes(data=True):
        assert {name: read.nodes[str(node)][name] for name in data} == data
    for source, target, data in view.edges(data=True):
        assert {name: read.edges[str(source), str(target)][name] for name in data} == data


def test_networkx_algorithms_apply() -> None:
    """One rank's graph is acyclic, and its longest path leads from a load to the store."""
    graph = pk.sweep(3)
    view = to_networkx(graph)
    assert nx.is_directed_acyclic_graph(view)
    path = nx.dag_longest_path(view)
    assert graph[path[-1]].op == "store"


def test_every_engine_has_a_colour_of_its_own() -> None:
    """Links share the link's; what is unknown has that of no engine."""
    graph = pk.messages()
    names, engine = engines_of(graph)
    assert names == ("dma_read", "dma_write", "dma", "gemm", "math", "link:next", "link:prev", "none")
    assert [names[i] for i in engine] == [node.engine for node in graph]
    assert {engine_kind(name) for name in names} == set(ENGINE_COLOURS)
    assert len({colour.solid for colour in ENGINE_COLOURS.values()}) == len(ENGINE_COLOURS)
    assert (engine_kind("link:next"), engine_kind("gemm"), engine_kind("other")) == ("link", "gemm", "none")
