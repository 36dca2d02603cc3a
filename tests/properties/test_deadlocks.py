"""Deadlocks of random kernels: each policy reports them exactly where an independent model of waiting has a cycle."""

from collections import defaultdict
from pathlib import Path

import kernelgen
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.tables import Reason

GENERATOR = Path(kernelgen.__file__).parent
POLICIES = ("blocking", "lazy", "queued", "list")
TANGLED = st.one_of(
    kernelgen.programs(ranks=2, deadlocks=True, max_size=10),
    kernelgen.programs(ranks=3, deadlocks=True, max_size=8),
    kernelgen.programs(ranks=4, deadlocks=True, max_size=6, topology="mesh2d"),
)
LIVE = st.one_of(
    kernelgen.programs(ranks=2, max_size=20),
    kernelgen.programs(ranks=4, max_size=12),
    kernelgen.programs(ranks=4, max_size=12, topology="mesh2d"),
)


def deadlocks(graph: ks.Graph, policy: str) -> bool:
    """Whether a policy's waits close a cycle, from the rules alone: an event graph of issues, starts and ends.

    A node of the event graph is ("issue", command), ("start", node) or ("end", node); an arc means "not before".
    """
    events: nx.DiGraph = nx.DiGraph()
    command = graph.nodes.command.tolist()
    edges = list(
        zip(graph.edges.source.tolist(), graph.edges.target.tolist(), graph.edges.reason.tolist(), strict=True)
    )
    for node in range(len(graph)):
        events.add_edge(("start", node), ("end", node))
    for source, target, _ in edges:
        events.add_edge(("end", source), ("start", target))
    if policy != "list":
        for node in range(len(graph)):
            events.add_edge(("issue", command[node]), ("start", node))
        _add_queues(events, graph)
        _add_issues(events, graph, policy)
    if policy == "lazy":
        for source, target, reason in edges:
            waits = reason == Reason.DATA or (reason == Reason.CREDIT and graph[target].op == "send")
            if waits and command[source] != command[target]:
                events.add_edge(("end", source), ("issue", command[target]))
    return not nx.is_directed_acyclic_graph(events)


def _add_queues(events: nx.DiGraph, graph: ks.Graph) -> None:
    """An engine starts its commands in program order. A lane is never held for ever: what has started ends."""
    last: dict[tuple[int, str], int] = {}
    for node in graph:
        if node.engine != "none":
            engine = (node.rank, node.engine)
            if engine in last:
                events.add_edge(("start", last[engine]), ("start", node.id))
            last[engine] = node.id


def _add_issues(events: nx.DiGraph, graph: ks.Graph, policy: str) -> None:
    """A rank issues its commands one after another; how far the CPU waits for each is the policy's."""
    nodes_of: dict[int, list[int]] = defaultdict(list)
    for node, command in enumerate(graph.nodes.command.tolist()):
        nodes_of[command].append(node)
    last: dict[int, int] = {}
    for command in nodes_of:
        rank = graph[command].rank
        if rank in last:
            before = last[rank]
            events.add_edge(("issue", before), ("issue", command))
            composite = len(nodes_of[before]) > 1
            goes_on = composite or OPERATIONS[graph[before].op].asynchronous
            if policy == "blocking" or (policy == "lazy" and not goes_on):
                for node in nodes_of[before]:
                    events.add_edge(("end", node), ("issue", command))
        last[rank] = command


@given(TANGLED)
@kernelgen.examples(80)
def test_deadlocks_are_reported_exactly_where_there_are_any(program: kernelgen.Program) -> None:
    """Every policy ends in a deadlock where its waits close a cycle, and gives a checked schedule where they do not."""
    graph = program.trace()
    for row in ks.compare(graph, machine=program.machine):
        assert (row.deadlock is not None) == deadlocks(graph, row.policy), row.policy
        if row.schedule is not None:
            assert ks.check(row.schedule) == []


@given(TANGLED)
@kernelgen.examples(40)
def test_a_deadlock_names_its_cycle(program: kernelgen.Program) -> None:
    """``ks.schedule`` raises with the nodes and the source lines of a cycle; no rank is named that does not wait."""
    graph = program.trace()
    for policy in POLICIES:
        if not deadlocks(graph, policy):
            continue
        with pytest.raises(ks.DeadlockError) as caught:
            ks.schedule(graph, policy, machine=program.machine)
        assert len(caught.value.cycle) == len(caught.value.nodes) > 1
        assert all(Path(place.file).parent == GENERATOR for place in caught.value.cycle)
        assert len({graph[node].rank for node in caught.value.nodes}) > 1


@given(LIVE)
@kernelgen.examples(40)
def test_live_kernels_are_never_reported(program: kernelgen.Program) -> None:
    """Kernels whose messages are matched in order run under lazy, queued and list, whatever the ranks' work; under
    blocking too where nothing is posted ahead of the rank's own send."""
    graph = program.trace()
    for row in ks.compare(graph, machine=program.machine):
        assert row.deadlock is None or (row.policy == "blocking" and graph.count("recv_async"))
    assert list(ks.lint(graph, machine=program.machine, select=["KS401", "KS402"])) == []


@given(TANGLED)
@kernelgen.examples(40)
def test_the_linter_reports_the_deadlocks_of_lazy(program: kernelgen.Program) -> None:
    """KS402 fires where, and only where, the lazy policy deadlocks."""
    graph = program.trace()
    assert bool(list(ks.lint(graph, machine=program.machine, select=["KS402"]))) == deadlocks(graph, "lazy")


def test_the_generator_makes_both_kinds() -> None:
    """Among the tangled kernels of some seeds, each policy deadlocks in some and not in others; a freer policy never
    deadlocks where a stricter one does not."""
    found = np.array(
        [
            [deadlocks(graph, policy) for policy in POLICIES]
            for graph in (kernelgen.random_kernel(seed, ranks=3, deadlocks=True, size=6).trace() for seed in range(60))
        ]
    )
    assert found.any(axis=0).tolist() == [True] * 4
    assert (~found).any(axis=0).tolist() == [True] * 4
    assert np.all(found[:, :-1] >= found[:, 1:])
