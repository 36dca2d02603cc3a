"""Static and dynamic views of scratch agree on random kernels: the linter and liveness beside the poisoned run."""

import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.backends.execution.execute import execute

FAULTY = st.one_of(kernelgen.programs(faults=True), kernelgen.programs(ranks=2, faults=True, max_size=20))
SEVERAL = st.one_of(
    kernelgen.programs(faults=True, memories=True), kernelgen.programs(ranks=2, faults=True, max_size=20, memories=True)
)
ANY = st.one_of(kernelgen.programs(), kernelgen.programs(faults=True), kernelgen.programs(ranks=3, max_size=20))


def reported(graph: ks.Graph, code: str) -> set[int]:
    """The nodes of a rule's findings."""
    return {node for finding in ks.lint(graph, select=[code]) for node in finding.nodes}


@given(FAULTY)
@kernelgen.examples(80)
def test_the_linter_reports_what_the_poisoned_run_catches(program: kernelgen.Program) -> None:
    """KS201, KS202 and KS204 name exactly the nodes that read stale, write stale and read unwritten bytes; where one
    both reads and writes a stale handle, KS201 alone speaks."""
    check_poisoned(program)


def check_poisoned(program: kernelgen.Program) -> None:
    graph = program.trace()
    assert ks.verify(graph) == []
    run = execute(graph, program.inputs(), poison=True)
    assert run.tracked
    assert reported(graph, "KS201") == set(run.stale_reads)
    assert set(run.stale_writes) - set(run.stale_reads) <= reported(graph, "KS202") <= set(run.stale_writes)
    assert reported(graph, "KS204") == set(run.unwritten_reads)


@given(SEVERAL)
@kernelgen.examples(80)
def test_the_linter_reports_what_the_poisoned_run_catches_in_every_memory(program: kernelgen.Program) -> None:
    """The same where a rank has several memories, moves by the recorder included."""
    check_poisoned(program)


@pytest.mark.slow
def test_the_linter_reports_what_the_poisoned_run_catches_in_every_memory_10_000_times() -> None:
    """Ten thousand random kernels over several memories, on one rank and on two."""
    for seed in range(10_000):
        check_poisoned(kernelgen.random_kernel(seed, ranks=1 + seed % 2, faults=True, size=20, memories=True))


@given(kernelgen.programs(memories=True), kernelgen.programs(memories=True, ranks=2, max_size=16))
@kernelgen.examples(40)
def test_no_order_of_several_memories_changes_a_bit(one: kernelgen.Program, two: kernelgen.Program) -> None:
    """In the order of every policy's schedule, poisoned; and the checker finds nothing in any."""
    for program in (one, two):
        graph = program.trace()
        outputs = execute(graph, program.inputs()).outputs
        for row in ks.compare(graph, machine=program.machine, effort="fast"):
            if row.schedule is None:
                assert row.policy == "blocking" and graph.count("recv_async")
                continue
            assert ks.check(row.schedule) == []
            again = ks.run(graph, program.inputs(), order=row.schedule, poison=True)
            assert all(again[name].tobytes() == array.tobytes() for name, array in outputs.items())


@given(kernelgen.programs())
@kernelgen.examples(40)
def test_kernels_without_faults_have_no_lifetime_findings(program: kernelgen.Program) -> None:
    """No false alarm of the three: views, copies and scopes used as they should be; and poison changes nothing."""
    graph = program.trace()
    assert list(ks.lint(graph, select=["KS201", "KS202", "KS204"])) == []
    plain = execute(graph, program.inputs()).outputs
    poisoned = execute(graph, program.inputs(), poison=True).outputs
    assert {name: array.tobytes() for name, array in plain.items()} == {
        name: array.tobytes() for name, array in poisoned.items()
    }


@given(ANY)
@kernelgen.examples(60)
def test_the_peak_is_the_high_water_mark(program: kernelgen.Program) -> None:
    """Liveness's peak of each rank is the byte array's high-water mark, and the highest rounded end of an allocation;
    the bound on the peak does not lie above it, nor live bytes above held ones."""
    graph = program.trace()
    live = ks.liveness(graph)
    assert live.peak_bytes_by_rank == execute(graph, program.inputs()).high_water_bytes
    ends = [0] * graph.ranks
    align = program.machine.memory["tcm"].align
    for row in range(len(graph.storages)):
        storage = graph.storage(row)
        if not storage.is_hbm:
            ends[storage.rank] = max(ends[storage.rank], storage.address + -(-storage.nbytes // align) * align)
    assert live.peak_bytes_by_rank == tuple(ends)
    assert live.peak_bytes == max(ends)
    assert live.peak_bound_bytes <= live.peak_bytes
    assert np.all(live.live_bytes <= live.cursor)
