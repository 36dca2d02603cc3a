"""Several buffers for every scope change where bytes stand and what waits for them, and nothing else."""

from pathlib import Path

import attrs
import kernelgen
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.memory.liveness import ViolationKind

SINGLE = kernelgen.programs()
MANY = st.one_of(kernelgen.programs(ranks=2, max_size=20), kernelgen.programs(ranks=2, grid=3, max_size=12))
ANY = st.one_of(SINGLE, MANY)
BUFFERS = st.integers(1, 4)


def counted(graph: ks.Graph, buffers: int) -> tuple[dict[int, int], dict[int, int]]:
    """Where storages and scopes belong, counted scope by scope from what each holds in program order."""
    inside: dict[int, list[tuple[int, str, int]]] = {row: [] for row in range(len(graph.scopes))}
    for row in range(len(graph.storages)):
        storage = graph.storage(row)
        if not storage.is_hbm:
            inside[storage.scope].append((2 * storage.born, "bytes", row))
    for row, parent in enumerate(graph.scopes.parent.tolist()):
        if parent >= 0:
            inside[parent].append((2 * int(graph.scopes.enter[row]) + 1, "scope", row))

    def size(scope: int) -> int:
        own = sum(graph.storage(row).held_bytes for _, what, row in inside[scope] if what == "bytes")
        children = [size(row) for _, what, row in inside[scope] if what == "scope"]
        return own + min(buffers, len(children)) * max(children, default=0)

    address: dict[int, int] = {}
    base: dict[int, int] = {}

    def lay_out(scope: int, cursor: int) -> None:
        base[scope] = cursor
        children = [row for _, what, row in inside[scope] if what == "scope"]
        largest = max((size(row) for row in children), default=0)
        copies = -1
        for _, what, row in sorted(inside[scope]):
            if what == "scope":
                if copies < 0:
                    copies = cursor
                    cursor += min(buffers, len(children)) * largest
                lay_out(row, copies + children.index(row) % buffers * largest)
            else:
                address[row] = cursor
                cursor += graph.storage(row).held_bytes

    for row in np.flatnonzero(graph.scopes.parent < 0).tolist():
        lay_out(row, 0)
    return address, base


def bits(
    program: kernelgen.Program, graph: ks.Graph, order: object = "program", poison: bool = False
) -> dict[str, bytes]:
    """The outputs of a run, as bytes."""
    outputs = ks.run(graph, program.inputs(), order=order, poison=poison)
    return {name: array.tobytes() for name, array in outputs.items()}


@given(ANY, BUFFERS)
@kernelgen.examples(60)
def test_everything_stands_where_the_copies_are_counted(program: kernelgen.Program, buffers: int) -> None:
    """Addresses, scope bases and the peak are those of the rule, counted naively; aligned; and the verifier agrees."""
    graph = program.trace()
    made = ks.rebuffer(graph, buffers)
    address, base = counted(graph, buffers)
    assert {row: made.storage(row).address for row in address} == address
    assert dict(enumerate(made.scopes.base.tolist())) == base
    align = graph.target.memories[graph.target.results_memory].align
    assert all(place % align == 0 for place in (*address.values(), *base.values()))
    ends = [address[row] + graph.storage(row).held_bytes for row in address]
    assert ks.liveness(made).peak_bytes == max(ends, default=0)
    assert ks.verify(made) == []


@given(ANY, BUFFERS)
@kernelgen.examples(40)
def test_nothing_but_addresses_changes(program: kernelgen.Program, buffers: int) -> None:
    """All columns but the addresses and bases are those of the traced graph, which stays as it was; edges differ in
    recycled ones only; what is live stays live; no lifetime finding appears."""
    graph, untouched = program.trace(), program.trace()
    made = ks.rebuffer(graph, buffers)
    assert graph == untouched
    back = attrs.evolve(
        made,
        storages=attrs.evolve(made.storages, address=graph.storages.address),
        scopes=attrs.evolve(made.scopes, base=graph.scopes.base),
        buffers=0,
    )
    assert back == graph
    for one, other in ((graph, made), (made, graph)):
        theirs = set(zip(other.edges.source.tolist(), other.edges.target.tolist(), strict=True))
        for edge in zip(*(column.tolist() for column in one.edges.columns().values()), strict=True):
            source, target, _, recycled = edge
            assert recycled or (source, target) in theirs
    assert np.array_equal(ks.liveness(made).live_bytes, ks.liveness(graph).live_bytes)
    # What one command does to bytes that it shares with itself (KS205) is no question of buffers.
    assert list(ks.lint(made, select=["KS2"], ignore=["KS205"])) == []


def check_schedules(program: kernelgen.Program, buffers: int) -> None:
    graph = program.trace()
    made = ks.rebuffer(graph, buffers)
    expected = bits(program, graph)
    assert bits(program, made, poison=True) == expected
    for row, traced in zip(
        ks.compare(made, machine=program.machine), ks.compare(graph, machine=program.machine), strict=True
    ):
        assert (row.schedule is None) == (traced.schedule is None)  # `blocking` may deadlock
        if row.schedule is not None:
            assert ks.check(row.schedule) == []
            assert bits(program, made, row.schedule, poison=True) == expected, row.policy
            assert bits(program, made, row.schedule) == expected, row.policy


@given(SINGLE, BUFFERS)
@kernelgen.examples(20)
def test_every_schedule_computes_the_same_bits(program: kernelgen.Program, buffers: int) -> None:
    """In program order and in every policy's order, poisoned or not, the outputs are those of the traced graph bit for
    bit, and the checker accepts each schedule."""
    check_schedules(program, buffers)


@given(MANY, BUFFERS)
@kernelgen.examples(12)
def test_every_schedule_computes_the_same_bits_on_many_ranks(program: kernelgen.Program, buffers: int) -> None:
    """The same with messages between ranks."""
    check_schedules(program, buffers)


@given(SINGLE)
@kernelgen.examples(40)
def test_more_buffers_never_cost_time_where_scopes_do_not_nest(program: kernelgen.Program) -> None:
    """With scopes of one level, 2 buffers ask for no wait that 1 does not, nor 4 one that 2 does not, nor 3 one that 1
    does not: children that share bytes then shared them before. So neither the longest path nor an in-order makespan
    grows. (Between 2 and 3, or where scopes nest, other iterations may come to share bytes, and it may. So may other
    bounds: their heads look back from samples of the nodes, which the longest paths choose.)"""
    graph = flat(program).trace()
    ladders = {
        buffers: ks.compare(ks.rebuffer(graph, buffers), policies=IN_ORDER, machine=program.machine)
        for buffers in (1, 2, 3, 4)
    }
    for fewer, more in ((1, 2), (2, 4), (1, 3)):
        less, enough = ladders[fewer].bounds, ladders[more].bounds
        assert less is not None
        assert enough is not None
        assert enough.each["longest path"] <= less.each["longest path"]
        for policy in IN_ORDER:
            assert ladders[more][policy].schedule.makespan_ps <= ladders[fewer][policy].schedule.makespan_ps


IN_ORDER = ("blocking", "lazy", "queued")


def flat(program: kernelgen.Program) -> kernelgen.Program:
    """The program with scopes of one level only, without the instructions that open one of their own."""
    kept: list[kernelgen.Instruction] = []
    inside = False
    for instruction in program.instructions:
        if (instruction[0] == "open" and inside) or instruction[0] in ("dead_load", "alone"):
            continue
        inside = instruction[0] == "open" or (inside and instruction[0] != "close")
        kept.append(instruction)
    return attrs.evolve(program, instructions=tuple(kept))


@given(ANY)
@kernelgen.examples(60)
def test_one_buffer_is_the_traced_layout_where_nothing_follows_a_child(program: kernelgen.Program) -> None:
    """Where no scope allocates after its first child scope, one buffer gives the traced addresses; else later
    allocations follow the children's bytes rather than taking them over, and no address is lower than traced (but those
    in a child that opens after such an allocation: its copy lies with its elder sisters')."""
    graph = program.trace()
    made = ks.rebuffer(graph, 1)
    opened: dict[int, int] = {}
    for row, parent in enumerate(graph.scopes.parent.tolist()):
        opened.setdefault(parent, int(graph.scopes.enter[row]))
    scratch = [graph.storage(row) for row in range(len(graph.storages)) if not graph.storage(row).is_hbm]
    if all(storage.born <= opened.get(storage.scope, storage.born) for storage in scratch):
        assert made == attrs.evolve(graph, buffers=1)
    last = dict(zip(graph.scopes.parent.tolist(), graph.scopes.enter.tolist(), strict=True))
    if not any(opened.get(s.scope, s.born) < s.born <= last.get(s.scope, -1) for s in scratch):
        assert np.all(made.storages.address >= graph.storages.address)


@given(ANY, BUFFERS, BUFFERS)
@kernelgen.examples(30)
def test_only_the_last_number_counts(program: kernelgen.Program, first: int, second: int) -> None:
    """Laying a graph out anew forgets how it was laid out before."""
    graph = program.trace()
    assert ks.rebuffer(ks.rebuffer(graph, first), second) == ks.rebuffer(graph, second)


@given(kernelgen.programs(faults=True), BUFFERS)
@kernelgen.examples(60)
def test_graphs_with_lifetime_faults_are_refused(program: kernelgen.Program, buffers: int) -> None:
    """Refused exactly where liveness sees a use after scope, a write after scope or a read before write; the error
    names each rule with its count."""
    graph = program.trace()
    names = {
        ViolationKind.USE_AFTER_SCOPE: "KS201 use-after-scope",
        ViolationKind.WRITE_AFTER_SCOPE: "KS202 write-after-scope",
        ViolationKind.READ_BEFORE_WRITE: "KS204 read-before-write",
    }
    kinds = [violation.kind for violation in ks.liveness(graph).violations if violation.kind in names]
    try:
        ks.rebuffer(graph, buffers)
    except ks.LifetimeError as error:
        assert kinds
        assert all((f"{names[kind]} ({kinds.count(kind):,} x)" in error.message) == (kind in kinds) for kind in names)
        assert error.places
    else:
        assert not kinds


@given(ANY, BUFFERS)
@kernelgen.examples(15)
def test_a_saved_graph_keeps_its_buffers(tmp_path_factory: object, program: kernelgen.Program, buffers: int) -> None:
    """Saving and loading a graph with buffers gives an equal one, and its text says how many."""
    made = ks.rebuffer(program.trace(), buffers)
    path = Path(tmp_path_factory.mktemp("saved")) / "graph.ksg"  # type: ignore[attr-defined]
    made.save(path)
    assert ks.load(path) == made
    assert str(made).splitlines()[0].endswith(f" buffers={buffers}")
