"""Random programs of a front end without scopes: allocations live from their first access to their last one."""

import re
from pathlib import Path

import frontend
import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.backends.execution.execute import execute
from kernscope.backends.timelines.counters import counters_of
from kernscope.ir.forms.text import format_graph
from kernscope.ir.tables import UNPLACED
from kernscope.ir.verifier.verify import verify

POLICIES = ("blocking", "lazy", "queued", "list")
SOUND = st.one_of(
    kernelgen.programs(),
    kernelgen.programs(ranks=2, max_size=20),
    kernelgen.programs(ranks=3, max_size=12, topology="mesh2d"),
)
ANY = st.one_of(SOUND, kernelgen.programs(faults=True))
NUMBER = st.integers(0, 10_000)
#: What only a scope can bring about, or mend.
OF_SCOPES = ("KS103", "KS104", "KS201", "KS202", "KS203", "KS301")


def outputs_of(graph: ks.Graph, program: kernelgen.Program, **options: object) -> dict[str, bytes]:
    """The outputs of a run, as bytes."""
    return {name: array.tobytes() for name, array in ks.run(graph, program.inputs(), **options).items()}


@given(ANY)
@kernelgen.examples(60)
def test_every_graph_holds_together(program: kernelgen.Program) -> None:
    """The verifier finds nothing, edges included; no node and no allocation belongs to a scope."""
    graph = frontend.record(program)
    assert verify(graph) == []
    assert not graph.is_scoped
    assert np.all(graph.nodes.scope == -1)
    assert np.all(graph.storages.scope == -1)
    assert np.all(graph.storages.freed == -1)


@given(SOUND)
@kernelgen.examples(40)
def test_it_computes_what_the_kernel_with_scopes_does(program: kernelgen.Program) -> None:
    """The same instructions give the same outputs, bit for bit, whoever records them: without scopes nothing else is
    computed, only other bytes are used. Also where what is released is poisoned."""
    graph = frontend.record(program)
    expected = outputs_of(program.trace(), program)
    assert outputs_of(graph, program) == expected
    assert outputs_of(graph, program, poison=True) == expected


@given(SOUND, NUMBER)
@kernelgen.examples(40)
def test_every_legal_order_gives_the_same_bits(program: kernelgen.Program, seed: int) -> None:
    """No edge between allocations that share bytes is missing: each order, poisoned or not, gives program order's
    outputs."""
    graph = frontend.record(program)
    expected = outputs_of(graph, program)
    for number in range(seed, seed + 3):
        order = kernelgen.random_order(graph, number)
        assert outputs_of(graph, program, order=order, poison=bool(number % 2)) == expected


@given(SOUND)
@kernelgen.examples(40)
def test_the_checker_accepts_every_schedule(program: kernelgen.Program) -> None:
    """The checker finds nothing wrong with any policy's schedule, and each, carried out, gives the same outputs."""
    graph = frontend.record(program)
    expected = outputs_of(graph, program)
    for policy in POLICIES:
        try:
            schedule = ks.schedule(graph, machine=program.machine, policy=policy)
        except ks.DeadlockError:
            continue
        assert ks.check(schedule) == [], policy
        assert outputs_of(graph, program, order=schedule, poison=True) == expected


@given(ANY)
@kernelgen.examples(60)
def test_the_peak_is_the_high_water_mark(program: kernelgen.Program) -> None:
    """Liveness's peak is the byte array's high-water mark; no placement is below the largest sum of live bytes, and
    what is held is live, at each node; the peak's holders are those of the node at which the most is held."""
    graph = frontend.record(program)
    live = ks.liveness(graph)
    assert live.peak_bytes_by_rank == execute(graph, program.inputs()).high_water_bytes
    assert np.array_equal(live.live_bytes, live.cursor)
    assert live.peak_bound_bytes <= live.peak_bytes
    assert live.growth() == ()
    for rank in range(graph.ranks):
        held = live.held_at_peak(rank)
        assert int(live.held_bytes[held].sum()) == int(live.cursor[graph.nodes.rank == rank].max(initial=0))
        assert sum(line.held_bytes for line in live.peak_by_line(rank)) == int(live.held_bytes[held].sum())
        assert all(line.dead_bytes == 0 for line in live.peak_by_line(rank))


@given(SOUND)
@kernelgen.examples(40)
def test_it_needs_no_more_than_scopes_do(program: kernelgen.Program) -> None:
    """The placement lies near its bound, which is at most the peak of the same kernel with scopes (a load that is used
    after its scope aside: these kernels have none)."""
    graph = frontend.record(program)
    assert ks.liveness(graph).peak_bound_bytes <= ks.liveness(program.trace(on_overflow="record")).peak_bytes


@given(SOUND)
@kernelgen.examples(40)
def test_lint_gives_no_false_alarm(program: kernelgen.Program) -> None:
    """No rule of scopes or lifetimes speaks, and no finding tells a user to open a scope."""
    findings = list(ks.lint(frontend.record(program), machine=program.machine))
    assert [f.code for f in findings if f.code in (*OF_SCOPES, "KS204")] == []
    assert [f.help for f in findings if re.search(r"\bscope|scratch_scope", f.help)] == []


@given(kernelgen.programs(faults=True))
@kernelgen.examples(60)
def test_nothing_is_stale_and_what_is_unwritten_is_found(program: kernelgen.Program) -> None:
    """A use of what another front end's scope has freed is an ordinary one here; KS204 names what the poisoned run
    catches."""
    graph = frontend.record(program)
    run = execute(graph, program.inputs(), poison=True)
    assert run.tracked
    assert (run.stale_reads, run.stale_writes) == ((), ())
    assert [f for f in ks.lint(graph, machine=program.machine) if f.code in OF_SCOPES] == []
    reported = {node for finding in ks.lint(graph, select=["KS204"], machine=program.machine) for node in finding.nodes}
    assert reported == set(run.unwritten_reads)


@pytest.mark.parametrize("ranks", [1, 2])
def test_saved_forms_round_trip(ranks: int, tmp_path: Path) -> None:
    """A graph without scopes is saved and read again as it is, and means the same."""
    for seed in range(8):
        graph = frontend.record(kernelgen.random_kernel(seed, ranks=ranks))
        graph.save(tmp_path / "graph.ksg")
        again = ks.load(tmp_path / "graph.ksg")
        assert again == graph
        assert format_graph(again) == format_graph(graph)
        assert ks.schedule(again, policy="queued").to_json() == ks.schedule(graph, policy="queued").to_json()


@given(SOUND)
@kernelgen.examples(30)
def test_a_timeline_counts_what_is_live(program: kernelgen.Program) -> None:
    """In program order without overlap (`blocking`) the counter of live bytes peaks where liveness does, and the cursor
    stands at the rank's peak at its highest."""
    graph = frontend.record(program)
    live = ks.liveness(graph)
    try:
        schedule = ks.schedule(graph, machine=program.machine, policy="blocking")
    except ks.DeadlockError:
        return
    for counter in counters_of(schedule):
        if counter.name.endswith("cursor"):
            assert int(counter.value.max(initial=0)) == live.peak_bytes_by_rank[counter.rank]


def test_a_graph_is_unplaced_until_the_pass() -> None:
    """Until then its allocations have no addresses: the verifier says so, the text shows none, and what needs addresses
    refuses it with a help that holds."""
    program = kernelgen.random_kernel(3)
    graph = frontend.unplaced(program)
    assert np.all(graph.storages.address[graph.in_scratch] == UNPLACED)
    assert {v.rule for v in verify(graph)} == {"allocations"}
    assert "@?" in format_graph(graph)
    for use in (ks.liveness, ks.schedule, ks.lint, ks.run):
        with pytest.raises((ks.ArgumentError, ks.InvalidGraphError), match="address"):
            use(graph)
    assert verify(frontend.record(program)) == []
