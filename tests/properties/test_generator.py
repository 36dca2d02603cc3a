"""What the other property tests rely on: the generator makes what it says it makes."""

from collections import Counter

import kernelgen
import numpy as np
import pytest
from hypothesis import given

from kernscope.backends.execution.execute import execute
from kernscope.ir.tables import Reason
from kernscope.memory.liveness import ViolationKind, liveness

SEEDS = range(40)


@given(kernelgen.programs())
@kernelgen.examples(40)
def test_programs_without_faults_are_legal(program: kernelgen.Program) -> None:
    """Their handles are used in time and after they are written, in strict tracing too, and all values are finite."""
    graph = program.trace(strict=True)
    assert liveness(graph).violations == ()
    done = execute(graph, program.inputs())
    for name, array in done.outputs.items():
        stored = ~done.unstored[name].mask() if name in done.unstored else slice(None)
        assert np.isfinite(array[stored].astype(np.float64)).all()


@given(kernelgen.programs(ranks=3, max_size=20))
@kernelgen.examples(20)
def test_programs_of_many_ranks_are_legal(program: kernelgen.Program) -> None:
    """The same holds on every rank, and every message is received."""
    graph = program.trace(strict=True)
    assert liveness(graph).violations == ()
    execute(graph, program.inputs())
    assert graph.count("ipcq/ipcq_copy") == graph.count("recv") + graph.count("recv_async")


def test_every_operation_of_a_kind_appears() -> None:
    """Some seed makes each kind of instruction and node that the properties are about."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        graph = kernelgen.random_kernel(seed, ranks=2).trace()
        seen.update(graph.summary())
        seen.update(f"view {access.layout.is_dense}" for node in graph for access in node.accesses)
        seen.update(f"edge {reason}" for reason in np.unique(graph.edges.reason).tolist())
        seen["recycled"] += int(graph.edges.recycled.sum())
        seen["composite"] += int((graph.nodes.command != np.arange(len(graph))).sum())
    for ranks in (1, 2):
        for seed in SEEDS:
            program = kernelgen.random_kernel(seed, ranks=ranks, machines=True)
            seen.update(name for name, *_ in program.instructions)
            seen.update(path for path, _ in program.options)
            seen["unequal"] += len(set(np.bincount(program.trace().nodes.rank).tolist())) > 1
    wanted = (
        "unequal ragged ragged_row dead_load alone uneven_messages dma_read.channels link.slots scratch.align "
        "exchange meet notify wait_for random join "
        "load store copy_to dot fill arange scope_enter send recv recv_async wait cumsum softmax recycled composite"
    )
    # Decisions by loaded values are of another front end.
    edges = [f"edge {reason:d}" for reason in Reason if reason is not Reason.CONTROL]
    assert [name for name in [*wanted.split(), "view False", *edges] if not seen[name]] == []


@pytest.mark.parametrize("kind", ViolationKind)
def test_every_fault_appears(kind: ViolationKind) -> None:
    """Some seed makes each kind of lifetime fault; the sizes of the generator never overflow."""
    found = Counter(
        violation.kind
        for seed in SEEDS
        for violation in liveness(kernelgen.random_kernel(seed, faults=True).trace()).violations
    )
    assert bool(found[kind]) == (kind is not ViolationKind.OVERFLOW)


def test_a_seed_gives_the_same_program() -> None:
    """Seeds, and the text form of a program, make it again."""
    program = kernelgen.random_kernel(7, ranks=2, faults=True)
    assert kernelgen.random_kernel(7, ranks=2, faults=True) == program
    assert eval(repr(program), {"Program": kernelgen.Program}) == program


def test_composites_have_operands_of_every_kind() -> None:
    """Both streamed, one, none; as they lie and transposed; over bytes of a load that is still in flight."""
    found: Counter[tuple[int, bool]] = Counter()
    over_a_load = 0
    for seed in range(120):
        graph = kernelgen.random_kernel(seed).trace()
        for command in np.unique(graph.nodes.command[graph.nodes.command != np.arange(len(graph))]).tolist():
            nodes = [node for node in graph if graph.nodes.command[node.id] == command]
            loads = sum(node.op == "load" for node in nodes) // sum(node.op == "dot" for node in nodes)
            found[loads, any(not a.layout.is_dense for node in nodes if node.op == "dot" for a in node.reads)] += 1
            over_a_load += any(graph[e.source].op == "load" and e.recycled for node in nodes for e in node.edges_in)
    assert set(found) == {(loads, strided) for loads in (0, 1, 2) for strided in (False, True)}
    assert over_a_load
