"""Every legal order gives the same bits: the proof that no edge is missing."""

import kernelgen
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir.tables import EdgeTable

SINGLE = kernelgen.programs()
MANY = st.one_of(
    kernelgen.programs(ranks=2, max_size=20),
    kernelgen.programs(ranks=3, max_size=16),
    kernelgen.programs(ranks=3, max_size=12, topology="mesh2d"),
    kernelgen.programs(ranks=2, grid=5, max_size=12),
)


def bits(
    program: kernelgen.Program, graph: ks.Graph, order: str | ks.Schedule | list[int] = "program", poison: bool = False
) -> dict[str, bytes]:
    """The outputs of a run, as bytes."""
    outputs = ks.run(graph, program.inputs(), order=order, poison=poison)
    return {name: array.tobytes() for name, array in outputs.items()}


def check_random_orders(program: kernelgen.Program, seed: int) -> None:
    graph = program.trace()
    expected = bits(program, graph)
    for number in range(seed, seed + 3):
        assert bits(program, graph, kernelgen.random_order(graph, number), poison=bool(number % 2)) == expected


def check_schedules(program: kernelgen.Program, seed: int) -> None:
    graph = program.trace()
    expected = bits(program, graph)
    for row in ks.compare(graph, machine=program.machine):
        if row.schedule is None:
            # A receive that is posted before its rank's own send: blocking waits for it, and nobody sends.
            assert row.policy == "blocking" and graph.count("recv_async")
            continue
        assert bits(program, graph, row.schedule, poison=True) == expected, row.policy


@given(SINGLE, st.integers(0, 999))
@kernelgen.examples(40)
def test_random_orders_give_the_same_bits(program: kernelgen.Program, seed: int) -> None:
    """Any topological order of the edges gives bit-identical outputs, poisoned or not."""
    check_random_orders(program, seed)


@given(MANY, st.integers(0, 999))
@kernelgen.examples(30)
def test_random_orders_give_the_same_bits_on_many_ranks(program: kernelgen.Program, seed: int) -> None:
    """Any topological order of the edges gives bit-identical outputs, with messages between the ranks."""
    check_random_orders(program, seed)


@given(SINGLE, st.just(0))
@kernelgen.examples(25)
def test_the_order_of_a_schedule_gives_the_same_bits(program: kernelgen.Program, seed: int) -> None:
    """Executing in the order of each policy's schedule, poisoned, gives the bits of program order."""
    check_schedules(program, seed)


@given(MANY, st.just(0))
@kernelgen.examples(20)
def test_the_order_of_a_schedule_gives_the_same_bits_on_many_ranks(program: kernelgen.Program, seed: int) -> None:
    """Executing in the order of each policy's schedule, poisoned, gives the bits of program order, on all ranks."""
    check_schedules(program, seed)


def test_a_missing_edge_changes_the_bits() -> None:
    """The property can fail: without the edges between recycled allocations some order gives other bits."""
    for seed in range(30):
        program = kernelgen.random_kernel(seed)
        graph = program.trace()
        expected = bits(program, graph)
        edges = graph.edges
        keep = ~edges.recycled
        columns = {name: column[keep] for name, column in edges.columns().items()}
        broken = program.trace()
        broken.__dict__["edges"] = EdgeTable.make(**columns)
        if any(
            bits(program, broken, kernelgen.random_order(broken, number), poison=True) != expected
            for number in range(6)
        ):
            return
    pytest.fail("no order showed the missing edges")
