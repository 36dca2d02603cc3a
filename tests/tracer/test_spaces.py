"""Named memories in kernels: where results go, what is moved by itself, and what is refused."""

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import SpaceError, tl
from kernscope.machine.description import Machine, load_machine, parse_machine
from kernscope.tracer.recording.routes import Router

#: Products from l0 into psum; arithmetic from and to sbuf; the DMA engine brings psum to sbuf and sbuf to l0.
SPLIT = """
name = "split"
clock_ghz = 1.0
[memory.hbm]
scope = "global"
[memory.sbuf]
bytes = 65536
align = 16
[memory.l0]
bytes = 16384
align = 16
[memory.psum]
bytes = 16384
align = 64
[engine.dma]
kind = "transfer"
reads = ["hbm", "sbuf"]
writes = ["sbuf", "hbm"]
ops = ["load", "store"]
bytes_per_ns = 64
[engine.feed]
kind = "transfer"
reads = ["sbuf"]
writes = ["l0"]
bytes_per_ns = 64
[engine.tensor]
kind = "matmul"
reads = ["l0"]
writes = ["psum"]
rows = 16
cols = 16
startup_cycles = 0
[engine.drain]
kind = "elementwise"
reads = ["psum"]
writes = ["sbuf"]
ops = ["move"]
lanes = 64
startup_cycles = 0
[engine.vector]
kind = "elementwise"
reads = ["sbuf"]
writes = ["sbuf"]
lanes = 64
startup_cycles = 0
[place]
default = "sbuf"
"""
MACHINE = parse_machine(SPLIT, "split.toml")


def product(x: Any, y: Any, o: Any) -> None:
    a, b = tl.load(x[:, :]), tl.load(y[:, :])
    s = tl.dot(a, b)
    tl.store(o[:, :], tl.exp(s))


def square() -> tuple[Any, Any, Any]:
    return ks.hbm((16, 16), "f32"), ks.hbm((16, 16), "f32"), ks.hbm((16, 16), "f32")


def traced(kernel: Any, machine: Machine = MACHINE, **options: Any) -> ks.Graph:
    graph = ks.trace(kernel, *square(), machine=machine, **options)
    assert ks.verify(graph) == []
    return graph


def spaces(graph: ks.Graph) -> list[str]:
    """Operation and memory of what each node writes."""
    return [f"{node.op}:{','.join(a.storage.memory.name for a in node.writes)}" for node in graph]


def test_a_kernel_that_says_nothing_runs_where_engines_reach_different_memories() -> None:
    """Operands are moved to where the engine reads, results from where it writes; the numbers are those of a machine
    with one memory; every schedule passes the checker."""
    graph = traced(product)
    assert spaces(graph) == [
        *("load:sbuf", "load:sbuf", "move:l0", "move:l0", "dot:psum"),
        *("move:sbuf", "exp:sbuf", "store:hbm"),
    ]
    moves = [node for node in graph if node.op == "move"]
    assert all(node.static == {"automatic": True} for node in moves)
    lines = {node.location.line for node in moves if node.location is not None}
    asked = {node.location.line for node in graph if node.op in ("dot", "exp") and node.location is not None}
    assert lines == asked
    x = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32) / 4
    inputs = {"x": x, "y": x}
    plain = ks.run(traced(product, load_machine()), inputs)["o"]
    assert np.array_equal(ks.run(graph, inputs)["o"], plain)
    for policy in ("blocking", "lazy", "queued", "list"):
        made = ks.schedule(graph, policy)
        assert ks.check(made) == []
        assert np.array_equal(ks.run(graph, inputs, order=made)["o"], plain)
    assert ks.lint(graph).ok


def test_results_go_where_the_kernel_says() -> None:
    """By ``space=`` of what makes them, and by ``tl.move``; the handle knows it; nothing more is moved."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        a, b = (tl.move(tl.load(t[:, :]), "l0") for t in (x, y))
        s = tl.dot(a, b, space="psum")
        assert (a.space, s.space) == ("l0", "psum") and "in psum" in repr(s)
        kept = tl.empty((16, 16), "f32", space="psum")
        assert kept.space == "psum" and kept.address == 1024
        e = tl.move(s, "sbuf")
        assert e.space == "sbuf" and "in" not in repr(e).split(">")[0].split()
        tl.store(o[:, :], e)

    graph = traced(kernel)
    assert [node.op for node in graph].count("move") == 3
    assert all(node.static == {"automatic": False} or not node.static for node in graph if node.op == "move")


def test_a_result_that_is_wanted_elsewhere_is_moved_there() -> None:
    """Where no engine makes it there."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        s = tl.dot(tl.load(x[:, :]), tl.load(y[:, :]), space="sbuf")
        tl.store(o[:, :], s)

    assert spaces(traced(kernel))[4:] == ["dot:psum", "move:sbuf", "store:hbm"]


def test_a_product_is_added_to_where_its_engine_writes() -> None:
    """An accumulator in another memory is brought there and back; the sum is the same."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        total = tl.zeros((16, 16), "f32")
        for _ in range(2):
            tl.dot(tl.load(x[:, :]), tl.load(y[:, :]), acc=total)
        tl.store(o[:, :], total)

    from_sbuf = MACHINE.override(
        {"engine.vector.writes": '["sbuf", "psum"]', "engine.vector.ops": '["elementwise", "move"]'}
    )
    graph = traced(kernel, from_sbuf)
    inputs = {"x": np.eye(16, dtype=np.float32), "y": np.full((16, 16), 3, dtype=np.float32)}
    assert np.array_equal(ks.run(graph, inputs)["o"], np.full((16, 16), 6, dtype=np.float32))
    with pytest.raises(SpaceError, match="no engine does dot from sbuf into sbuf"):
        traced(kernel)


def test_a_move_into_a_handle_takes_no_bytes() -> None:
    """`move(x, out=h)` writes over a handle in another memory, over several engines if need be, and returns it; where
    that is the same memory, of another shape, or beside a name, it is refused."""

    def kernel(x: Any, y: Any, z: Any) -> None:
        left, right = (tl.empty((8, 8), "f16", space="l0") for _ in range(2))
        held = tl.load(x)
        assert tl.move(held, out=left) is left
        tl.move(tl.load(y), out=right)
        product = tl.dot(left, right, space="psum")
        again = tl.empty((8, 8), "f32")
        tl.store(z, tl.move(product, out=again))
        with pytest.raises(ks.ShapeError):
            tl.move(held, out=tl.empty((4, 8), "f16", space="l0"))
        with pytest.raises(SpaceError, match="from sbuf to sbuf"):
            tl.move(held, out=tl.empty((8, 8), "f16"))
        for named in ({}, {"space": "l0", "out": left}):
            with pytest.raises(ks.ArgumentError, match="one of the two"):
                tl.move(held, **named)

    machine = parse_machine(SPLIT, "split.toml")
    graph = ks.trace(kernel, *(ks.hbm((8, 8), d) for d in ("f16", "f16", "f32")), machine=machine)
    assert graph.count("memory/move") == 3 and not any(node.attributes.get("automatic") for node in graph)
    ones = np.ones((8, 8), np.float16)
    assert (ks.run(graph, {"x": ones, "y": 2 * ones}, poison=True)["z"] == 16).all()


def test_strict_spaces_refuse_what_else_is_moved() -> None:
    """With the move to write; and once it is written, the kernel runs."""
    strict = MACHINE.override({"strict_spaces": "true"})
    with pytest.raises(SpaceError, match=r"no engine does dot from sbuf: it takes matmul from l0 to psum") as caught:
        traced(product, strict)
    assert caught.value.help == 'bring it there: tl.move(h, "l0")'

    def kernel(x: Any, y: Any, o: Any) -> None:
        a, b = (tl.move(tl.load(t[:, :]), "l0") for t in (x, y))
        tl.store(o[:, :], tl.exp(tl.move(tl.dot(a, b), "sbuf")))

    assert sorted(spaces(traced(kernel, strict))) == sorted(spaces(traced(product)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('tl.empty((4,), "f32", space="psmu")', "no memory 'psmu'\n  help: did you mean 'psum'?"),
        ('tl.empty((4,), "f32", space="hbm")', "no memory 'hbm'"),
        ("tl.empty((4,), 'f32', space=3)", "no memory 3"),
        ('tl.move(tl.load(x[:, :]), "sbuf")', "from sbuf to sbuf\n  help: it is there already"),
        ('tl.move(tl.load(x[:, :]), "psum")', "help: no engine of the machine brings it there"),
        ('tl.exp(tl.load(x[:, :]), space="psum")', "no engine does exp from sbuf into psum"),
    ],
)
def test_memories_that_are_not_reached_are_refused(line: str, message: str) -> None:
    """With the nearest name, or what there is."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        eval(line, {"tl": tl, "x": x})

    with pytest.raises(SpaceError) as caught:
        traced(kernel)
    assert message in f"{caught.value.message}\n  help: {caught.value.help}"


def test_an_overflow_names_the_memory_and_the_lines_that_hold_it() -> None:
    """KS101 and the error alike."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        a = tl.move(tl.load(x[:, :]), "l0")
        held = [tl.dot(a, a) for _ in range(17)]
        tl.store(o[:, :], tl.exp(held[0]))

    with pytest.raises(ks.ScratchOverflowError, match="psum overflow on rank 0"):
        traced(kernel)
    report = ks.lint(ks.trace(kernel, *square(), machine=MACHINE, on_overflow="record"), machine=MACHINE)
    found = next(finding for finding in report if finding.code == "KS101")
    assert "psum" in found.message and "held" in str(found)


def test_a_saved_graph_keeps_its_memories(tmp_path: Any) -> None:
    """Read again it is the same, and is scheduled without naming the machine."""
    graph = traced(product)
    graph.save(tmp_path / "g.ksg")
    again = ks.load(tmp_path / "g.ksg")
    assert again == graph and ks.schedule(again).makespan_ps == ks.schedule(graph).makespan_ps


def test_a_route_has_as_few_moves_as_can_be() -> None:
    """Of several engines the one that needs the fewest; of equal ones the first listed."""
    router = Router(MACHINE.target)
    names = MACHINE.target.memory_names
    assert router.path(names.index("psum"), (names.index("l0"),)) == (names.index("sbuf"), names.index("l0"))
    assert router.path(names.index("l0"), (names.index("psum"),)) is None
    assert router.path(names.index("l0"), (names.index("l0"),)) == ()
