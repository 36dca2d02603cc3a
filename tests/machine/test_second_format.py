"""The second format: memories and engines by name, and every number that an engine may have, in schedules that the
checker's own account agrees with."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import MachineError, tl
from kernscope.ir.forms.text import format_graph
from kernscope.machine.description import load_machine, machine_comments, parse_machine
from kernscope.machine.latency import node_times, shared_bound_ps, shared_time_ps

FIRST = Path(__file__).with_name("first_format.toml")
#: Two memories of a rank's own, a shared level, and a number of every sort.
RICH = """
name = "rich"
clock_ghz = 2.0
sustained = 0.5

[memory.hbm]
scope = "global"
bytes_per_ns = 100

[memory.l2]
scope = "level"
bytes = 65536
bytes_per_ns = 400

[memory.sbuf]
bytes = 1048576
align = 16
partitions = 128

[memory.psum]
bytes = 262144
align = 16

[engine.dma]
kind = "transfer"
reads = ["hbm", "sbuf"]
writes = ["sbuf", "hbm"]
lanes_of_work = 4
spread = 2
latency_ns = 100
bytes_per_ns = 32
pipelined = true
efficiency = [[64, 0.25], [512, 1]]

[engine.tensor]
kind = "matmul"
reads = ["sbuf"]
writes = ["psum"]
rows = 128
cols = 1
startup_cycles = 8
least_cycles = 64
latency_cycles = 50
feed_bytes_per_ns = 64
limits = { m = 128, n = 512, k = 128 }
[engine.tensor.rate]
default = 128
f32 = 32

[engine.vector]
kind = "elementwise"
reads = ["sbuf", "psum"]
writes = ["sbuf", "psum"]
ops = ["elementwise", "move"]
clock_ghz = 1.0
lanes = 128
startup_cycles = 60
latency_cycles = 40
[engine.vector.dtype]
default = 1
bf16 = 0.5
[engine.vector.both_in.sbuf]
default = 2
bf16 = 1

[place]
default = "sbuf"
dot = "psum"
"""


def mistakes_of(source: str) -> list[str]:
    """The lines of the error that a description raises, without the file."""
    with pytest.raises(MachineError) as caught:
        parse_machine(source, "m.toml")
    return [line.removeprefix("m.toml: ") for line in caught.value.message.splitlines()]


def test_the_first_format_is_the_same_machine() -> None:
    """The default preset as it was written before is equal to the one that is shipped, target and all."""
    first = parse_machine(FIRST.read_bytes(), "first.toml")
    assert first == load_machine("ahbm-pe") and first.target == load_machine("ahbm-pe").target


def test_the_first_format_on_a_base() -> None:
    """A file of either format may stand on a preset of the other."""
    old = parse_machine(
        'name = "mine"\nbase = "ahbm-pe"\n[dma_read]\nchannels = 3\n[scratch]\nbytes = 4096\n', "m.toml"
    )
    new = parse_machine(
        'name = "mine"\nbase = "ahbm-pe"\n[engine.dma_read]\nlanes_of_work = 3\n[memory.tcm]\nbytes = 4096\n', "m.toml"
    )
    assert old == new and old.engine["dma_read"].channels == 3


def test_a_description_survives_being_written_and_read() -> None:
    """With all that it can say."""
    rich = parse_machine(RICH, "rich.toml")
    assert parse_machine(rich.to_toml(), "again") == rich
    assert hash(parse_machine(rich.to_toml(), "again")) == hash(rich)


@pytest.mark.parametrize(
    ("before", "after", "mistake"),
    [
        ('kind = "matmul"', 'kind = "matmull"', "engine.tensor.kind: unknown kind \"matmull\"; did you mean 'matmul'?"),
        ('kind = "matmul"\n', "", "engine.tensor.kind: is missing"),
        ("rows = 128", "rwos = 128", "engine.tensor.rwos: unknown key; did you mean 'rows'?"),
        ("rows = 128", "rows = 0", "engine.tensor.rows: must be an integer above 0, not 0"),
        ("k = 128 }", "K = 128 }", "engine.tensor.limits.K: unknown key; known: m, n, k"),
        ('writes = ["psum"]', 'writes = ["pusm"]', "engine.tensor.writes: no memory 'pusm'; did you mean 'psum'?"),
        ('writes = ["psum"]', "writes = []", "engine.tensor: writes no memory"),
        ('writes = ["psum"]', 'writes = "psum"', 'engine.tensor.writes: must be a list of strings, not "psum"'),
        ('"move"]', '"mvoe"]', "engine.vector.ops: no operation 'mvoe'; did you mean 'move'?"),
        ("spread = 2", "spread = 3", "engine.dma.spread: must divide lanes_of_work, 4"),
        (
            "[512, 1]]",
            "[512, 2]]",
            "engine.dma.efficiency: must be a number above 0, at most 1, not 2",
        ),
        (
            "[[64, 0.25]",
            "[[640, 0.25]",
            "engine.dma.efficiency: must have longer runs, and no smaller shares",
        ),
        ('default = "sbuf"\n', "", "place.default: is missing: where do results go?"),
        ('dot = "psum"', 'dto = "psum"', "place.dto: unknown key; did you mean 'dot'?"),
        ('dot = "psum"', 'dot = "hbm"', "place.dot: no memory 'hbm'"),
        ('dot = "psum"', "dot = 3", "place.dot: must be a memory's name, not 3"),
        ("bytes = 262144", "bytes = 262144\nbytes_per_ns = 3", "memory.psum.bytes_per_ns: only what ranks share has"),
        ("bytes = 262144\n", "", "memory.psum.bytes: is missing"),
        ('scope = "level"', 'scope = "levle"', "memory.l2.scope: unknown scope 'levle'; did you mean 'level'?"),
        ('[memory.hbm]\nscope = "global"', '[memory.hbm]\nbytes = 4\nscope = "rank"', "memory.hbm.bytes_per_ns: only"),
        ("both_in.sbuf", "both_in.sbfu", "engine.vector.both_in.sbfu: no memory; did you mean 'sbuf'?"),
        ("sustained = 0.5", "sustained = 1.5", "sustained: must be a number above 0, at most 1, not 1.5"),
        ("[place]", "[palce]", "palce: unknown key; did you mean 'place'?"),
        ("[memory.psum]", '[memory."p sum"]', 'memory."p sum": must be a name of letters, digits, - and _'),
    ],
)
def test_a_mistake_is_named_with_its_path(before: str, after: str, mistake: str) -> None:
    """One mistake is one line: the path, what is wrong, and the nearest where a name is misspelt."""
    assert RICH.count(before) == 1, before
    assert any(line.startswith(mistake) for line in mistakes_of(RICH.replace(before, after))), mistakes_of(
        RICH.replace(before, after)
    )


def test_where_numbers_come_from_is_shown() -> None:
    """What stands behind a number in a file is told with it, of a base's numbers too; not of what was overridden."""
    told = machine_comments("ahbm-pe-2dma")
    assert told["engine.dma_read.lanes_of_work"] == "assumed" and told["memory.tcm.bytes"].startswith("record 0063")
    machine = load_machine("ahbm-pe-2dma")
    other = machine.override({"tcm.bytes": "4096"})
    text = other.to_toml(other.same_as(machine, told))
    assert "align = 16                      # record 0063" in text and "bytes = 4096\n" in text
    assert parse_machine(text, "again") == other
    assert machine_comments(FIRST)["memory.tcm.bytes"].startswith("record 0063")


def times_of(kernel: Any, *args: Any, ranks: int = 1, **changes: str) -> tuple[ks.Graph, Any]:
    """The graph of a kernel on the rich machine, with the times of its nodes; schedules are checked."""
    machine = parse_machine(RICH, "rich.toml").override({path.replace("__", "."): v for path, v in changes.items()})
    graph = ks.trace(kernel, *args, machine=machine, ranks=ranks)
    for policy in ("blocking", "lazy", "queued", "list"):
        made = ks.schedule(graph, policy, machine)
        assert ks.check(made) == []
        assert made.bound_ps <= made.makespan_ps
    return graph, node_times(graph, machine)


def of(graph: ks.Graph, times: Any, op: str) -> tuple[int, int]:
    """Occupancy and duration of the first node of an operation, in picoseconds."""
    node = next(node.id for node in graph if node.op == op)
    return int(times.occupancy_ps[node]), int(times.duration_ps[node])


def load_dot(x: Any, o: Any) -> None:
    tile = tl.load(x[:, :])
    tl.store(o[:, :], tl.move(tl.dot(tile, tile), "sbuf"))


def test_a_product_beyond_the_limits_goes_in_passes_and_is_fed() -> None:
    """Passes of 128 x 512 x 128, each with its start and no shorter than it can be; operands come in at the feed's
    rate; the result is there after the latency. The clock is sustained by half: a cycle is a nanosecond."""
    graph, times = times_of(load_dot, ks.hbm((256, 256), "bf16"), ks.hbm((256, 256), "f32"))
    fed = 4 * (128 * 128 + 128 * 256) * 2 * 1000 // 64
    assert of(graph, times, "dot") == (fed, fed + 50_000)
    quick, quick_times = times_of(
        load_dot, ks.hbm((256, 256), "bf16"), ks.hbm((256, 256), "f32"), tensor__feed_bytes_per_ns="1000"
    )
    assert of(quick, quick_times, "dot")[0] == 4 * (8 + 256) * 1000
    small, small_times = times_of(load_dot, ks.hbm((32, 32), "bf16"), ks.hbm((32, 32), "f32"))
    assert of(small, small_times, "dot")[0] == (8 + 64) * 1000


def test_a_transfer_is_spread_shared_and_efficient_by_its_runs() -> None:
    """Two queues of 32 B/ns; runs of 512 B go at all of that, of 64 B at a quarter; then what all ranks share binds
    what is loaded."""
    graph, times = times_of(
        load_dot, ks.hbm((256, 256), "bf16"), ks.hbm((256, 256), "f32"), memory__hbm__bytes_per_ns="1e6"
    )
    nbytes = 256 * 256 * 2
    assert of(graph, times, "load") == (nbytes * 1000 // 64, nbytes * 1000 // 64 + 100_000)

    def narrow(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.load(x[:, 0:32]))

    thin, thin_times = times_of(narrow, ks.hbm((256, 256), "bf16"), ks.hbm((256, 32), "bf16"))
    assert of(thin, thin_times, "load")[0] == 256 * 64 * 1000 // 16
    slow, slow_times = times_of(
        load_dot, ks.hbm((256, 256), "bf16"), ks.hbm((256, 256), "f32"), memory__hbm__bytes_per_ns="10"
    )
    assert of(slow, slow_times, "load")[0] == nbytes * 1000 // 10


def test_what_several_ranks_read_comes_out_of_global_memory_once() -> None:
    """While the level holds it; what is written goes no slower than the level takes it, whose own rate is paid each
    time. All that is moved has to get through in the end: each view once."""

    def shared(x: Any, o: Any) -> None:
        rank = tl.program_id(0)
        tl.store(o[rank], tl.load(x[:, :]))

    graph, times = times_of(
        shared, ks.hbm((64, 256), "f16"), ks.hbm((4, 64, 256), "f16"), ranks=4, memory__hbm__bytes_per_ns="8"
    )
    nbytes = 64 * 256 * 2
    assert of(graph, times, "load")[0] == max(nbytes * 4 // 8 // 4, nbytes * 4 // 400, nbytes // 64) * 1000
    assert of(graph, times, "store")[0] == max(nbytes * 4 // 400, nbytes // 64) * 1000
    machine = parse_machine(RICH, "m").override({"memory.hbm.bytes_per_ns": "8"})
    assert shared_time_ps(graph, machine)["hbm"] == (nbytes + 4 * nbytes) * 1000 // 8
    assert 0 < shared_bound_ps(graph, machine)["hbm"] <= shared_time_ps(graph, machine)["hbm"]
    apart, apart_times = times_of(
        shared,
        ks.hbm((64, 256), "f16"),
        ks.hbm((4, 64, 256), "f16"),
        ranks=4,
        memory__hbm__bytes_per_ns="8",
        memory__l2__bytes="16",
    )
    assert of(apart, apart_times, "load")[0] == nbytes * 4 * 1000 // 8


def test_elementwise_work_by_partition_dtype_and_memory() -> None:
    """A row costs what all of its elements do; two operands in one memory cost twice; half for half the bytes."""

    def sums(x: Any, o: Any) -> None:
        a, b = tl.load(x[:, :]), tl.load(x[:, :])
        tl.store(o[:, :], tl.exp(a) + b)

    def row(x: Any, o: Any) -> None:
        tl.store(o[0:1, :], tl.exp(tl.load(x[0:1, :])))

    cycle = 2000
    graph, times = times_of(sums, ks.hbm((128, 256), "f32"), ks.hbm((128, 256), "f32"))
    assert of(graph, times, "exp") == ((60 + 256) * cycle, (100 + 256) * cycle)
    assert of(graph, times, "add")[0] == (60 + 2 * 256) * cycle
    half, half_times = times_of(sums, ks.hbm((128, 256), "bf16"), ks.hbm((128, 256), "bf16"))
    assert of(half, half_times, "add")[0] == (60 + 128) * cycle
    alone, alone_times = times_of(row, ks.hbm((128, 256), "f32"), ks.hbm((1, 256), "f32"))
    assert of(alone, alone_times, "exp")[0] == (60 + 256) * cycle


def test_a_move_goes_by_the_engine_that_takes_it() -> None:
    """Out of PSUM the vector engine moves; it counts elements where a DMA engine would count bytes."""
    graph, times = times_of(load_dot, ks.hbm((128, 128), "bf16"), ks.hbm((128, 128), "f32"))
    machine = parse_machine(RICH, "rich.toml")
    node = next(node.id for node in graph if node.op == "move")
    assert machine.engines[times.engine[node]].name == "vector"
    # Both memories lie across the partitions, or neither does: PSUM here does not, and all lanes share its elements.
    assert of(graph, times, "move")[0] == (60 + 128) * 2000


def test_occupancy_is_no_more_than_the_duration() -> None:
    """Of every node; and only what says so lets go of its engine before."""
    _, times = times_of(load_dot, ks.hbm((128, 128), "bf16"), ks.hbm((128, 128), "f32"))
    assert np.all(times.occupancy_ps <= times.duration_ps)
    plain = ks.trace(load_dot_plain, ks.hbm((16, 16), "f16"), ks.hbm((16, 16), "f32"))
    known = node_times(plain, load_machine())
    assert np.array_equal(known.occupancy_ps, known.duration_ps)


def load_dot_plain(x: Any, o: Any) -> None:
    tile = tl.load(x[:, :])
    tl.store(o[:, :], tl.dot(tile, tile))


def test_efficiency_between_two_runs_is_between() -> None:
    """Linear in the bytes of a run."""

    def narrow(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.load(x[:, 0:144]))

    graph, times = times_of(narrow, ks.hbm((128, 256), "bf16"), ks.hbm((128, 144), "bf16"))
    share = Fraction(1, 4) + Fraction(3, 4) * Fraction(288 - 64, 512 - 64)
    assert of(graph, times, "load")[0] == int(128 * 288 * 1000 / (64 * share))


def test_what_is_taken_of_one_partition_is_taken_of_all(tmp_path: Path) -> None:
    """A row takes as much of a memory of 128 partitions as 128 rows do, 130 rows as much as 256; addresses, liveness,
    the peak, findings and the saved graph go by that, and a memory without partitions takes what a tile has."""
    machine = load_machine("trn1").override({"memory.sbuf.bytes": str(128 * 4096)})

    def kernel(x: Any, o: Any) -> None:
        row = tl.load(x[0:1, :])
        tall = tl.full((130, 4), 1.0, "f32")
        tl.store(o[0:1, :], row + tl.sum(tall))

    shapes = ks.hbm((4, 64), "f32"), ks.hbm((4, 64), "f32")
    graph = ks.trace(kernel, *shapes, machine=machine)
    held = {graph.storage(n).layout.shape: graph.storage(n).held_bytes for n in range(2, len(graph.storages))}
    assert held[1, 64] == 128 * 64 * 4 and held[130, 4] == 256 * 4 * 4
    assert ks.liveness(graph).peak_bytes >= 2 * held[1, 64] + held[130, 4]
    graph.save(tmp_path / "graph.json")
    assert ks.load(tmp_path / "graph.json") == graph and "partitions=128" in format_graph(graph)
    with pytest.raises(ks.ScratchOverflowError, match="sbuf overflow"):
        ks.trace(lambda x, o: tl.load(x), ks.hbm((1, 1100), "f32"), ks.hbm((1, 1), "f32"), machine=machine)
    plain = ks.trace(kernel, *shapes, machine="ahbm-pe")
    assert plain.storage(2).held_bytes == 64 * 4
    with pytest.raises(MachineError, match="must divide the bytes"):
        parse_machine(RICH.replace("partitions = 128", "partitions = 129"), "m")
    with pytest.raises(MachineError, match="must be at most 16,384"):
        parse_machine(RICH.replace("partitions = 128", "partitions = 16385"), "m")


#: Products whose left operand comes out of one memory and whose right one out of another.
ROLES = """
name = "roles"
clock_ghz = 1.0
[memory.hbm]
scope = "global"
[memory.ub]
bytes = 65536
[memory.l0a]
bytes = 4096
[memory.l0b]
bytes = 4096
[engine.dma]
kind = "transfer"
reads = ["hbm", "ub"]
writes = ["ub", "hbm"]
ops = ["load", "store"]
bytes_per_ns = 64
[engine.feed]
kind = "transfer"
reads = ["ub"]
writes = ["l0a", "l0b"]
bytes_per_ns = 64
[engine.left]
kind = "matmul"
reads = ["l0a", "l0b"]
operands = [["l0a"], ["l0b"]]
writes = ["ub"]
rows = 16
cols = 16
startup_cycles = 0
[engine.right]
kind = "matmul"
reads = ["l0a", "l0b"]
operands = [["l0b"], ["l0a"]]
writes = ["ub"]
rows = 1
cols = 1
startup_cycles = 0
[place]
default = "ub"
"""


def test_operands_lie_each_in_a_memory_of_its_own() -> None:
    """What is not there is moved to its own memory, the first engine's before the second's; an author who puts them the
    other way round gets the engine that takes them so; two in one memory are no product of either. The checker's own
    account agrees."""
    machine = parse_machine(ROLES, "roles.toml")

    def kernel(x: Any, y: Any, o: Any) -> None:
        a, b = tl.load(x), tl.load(y)
        plain = tl.dot(a, b)
        turned = tl.dot(tl.move(a, "l0b"), tl.move(b, "l0a"))
        tl.dot(tl.move(a, "l0a"), tl.move(b, "l0b"), acc=turned)
        with pytest.raises(ks.SpaceError, match="no engine does dot from l0a and ub") as error:
            tl.dot(tl.move(a, "l0a"), tl.move(b, "l0a"), acc=plain)
        assert "l0a and l0b to ub" in (error.value.help or "")
        tl.store(o, tl.dot(tl.move(a, "l0a"), b, acc=plain))

    shapes = (ks.hbm((8, 8), "f16"), ks.hbm((8, 8), "f16"), ks.hbm((8, 8), "f32"))
    graph = ks.trace(kernel, *shapes, machine=machine)
    assert ks.verify(graph) == []
    lie = [[access.storage.memory.name for access in node.reads][:2] for node in graph if node.op == "dot"]
    assert lie == [["l0a", "l0b"], ["l0b", "l0a"], ["l0a", "l0b"], ["l0a", "l0b"]]
    for policy in ("queued", "list"):
        made = ks.schedule(graph, policy, machine)
        assert ks.check(made) == []
        used = [made.engines[made.engine[node.id]].name for node in graph if node.op == "dot"]
        assert used == ["left", "right", "left", "left"]
    x, y = (np.full((8, 8), n, np.float16) for n in (1, 2))
    assert (ks.run(graph, {"x": x, "y": y}, poison=True)["o"] == 32).all()
    assert "l0a and l0b to ub" in str(graph.target.reaches[2])
    for wrong, message in (
        ('operands = [["l0a"], ["l0c"]]', "'l0c' is not among what it reads"),
        ('operands = [["l0a"], []]', "read from no memory"),
        ('operands = ["l0a"]', "must be a list of strings"),
    ):
        with pytest.raises(MachineError, match=message):
            parse_machine(ROLES.replace('operands = [["l0a"], ["l0b"]]', wrong), "m")
    assert parse_machine(machine.to_toml(), "again.toml") == machine


def test_a_product_between_memories_that_no_engine_takes_is_no_graph() -> None:
    """The verifier sees a right operand in the left one's memory."""
    machine = parse_machine(
        ROLES.replace("[engine.right]", "[engine.never]").replace('[["l0b"], ["l0a"]]', '[["l0a"], ["l0b"]]'), "m"
    )

    def kernel(x: Any, o: Any) -> None:
        a = tl.load(x)
        tl.store(o, tl.dot(tl.move(a, "l0a"), tl.move(a, "l0b")))

    graph = ks.trace(kernel, ks.hbm((8, 8), "f16"), ks.hbm((8, 8), "f32"), machine=machine)
    dot = next(node for node in graph if node.op == "dot")
    storages = graph.storages
    memory = storages.memory.copy()
    memory[dot.reads[1].storage.row] = graph.target.memory_names.index("l0a")
    broken = attrs.evolve(graph, storages=attrs.evolve(storages, memory=memory))
    assert any("dot takes l0a" in str(mistake) for mistake in ks.verify(broken))


#: As little as describes a machine.
BARE = """
name = "bare"
clock_ghz = 1
memory.hbm.scope = "global"
memory.sbuf.bytes = 65536
engine.dma = { kind = "transfer", reads = ["hbm", "sbuf"], writes = ["hbm", "sbuf"], bytes_per_ns = 1 }
engine.tensor = { kind = "matmul", reads = ["sbuf"], writes = ["sbuf"], rows = 8, cols = 8, startup_cycles = 1 }
engine.vector = { kind = "elementwise", reads = ["sbuf"], writes = ["sbuf"], lanes = 8, startup_cycles = 1 }
"""
#: A field that it leaves out, what that stands for, and another value.
UNSAID = [
    ("sustained", "1", "0.5"),
    ("strict_spaces", "false", "true"),
    ("memory.sbuf.align", "1", "2"),
    ("engine.dma.ops", "[]", '["load", "store"]'),
    ("engine.dma.lanes_of_work", "1", "2"),
    ("engine.dma.latency_ns", "0", "1"),
    ("engine.dma.pipelined", "false", "true"),
    ("engine.dma.efficiency", "[]", "[[64, 0.25]]"),
    ("engine.tensor.least_cycles", "0", "1"),
    ("engine.tensor.latency_cycles", "0", "1"),
    ("engine.tensor.rate.default", "1", "2"),
    ("engine.vector.latency_cycles", "0", "1"),
    ("engine.vector.cycles.default", "1", "2"),
    ("engine.vector.dtype.default", "1", "2"),
    ("cpu.issue_cycles.default", "0", "1"),
    ("topology.kind", '"ring"', '"mesh2d"'),
]


@pytest.mark.parametrize(("path", "same", "other"), UNSAID)
def test_what_a_description_leaves_out(path: str, same: str, other: str) -> None:
    """It is the same machine where the key says what leaving it out stands for, and another one for another value."""
    bare = parse_machine(BARE, "m.toml")
    assert attrs.evolve(bare.override({path: same}), name="bare") == bare
    assert attrs.evolve(bare.override({path: other}), name="bare") != bare


def test_a_mesh_is_open_at_its_borders_and_a_transfer_takes_one_queue() -> None:
    """Unless they say otherwise."""
    mesh = parse_machine(BARE, "m.toml").override({"topology.kind": '"mesh2d"', "engine.dma.lanes_of_work": "4"})
    for path, same, other in (("topology.wraps", "false", "true"), ("engine.dma.spread", "1", "2")):
        assert attrs.evolve(mesh.override({path: same}), name=mesh.name) == mesh
        assert attrs.evolve(mesh.override({path: other}), name=mesh.name) != mesh
