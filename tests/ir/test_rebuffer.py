"""The layout of rotating buffers on small kernels in exact bytes, and what the verifier says of a wrong one."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.rebuffer import rebuffered

TILE = 16 * 16 * 4  # bytes of a tile below


@ks.kernel
def sweep(x: ks.HbmTensor, o: ks.HbmTensor, *, tiles: int = 4) -> None:
    """A running maximum: one persistent tile, then one scope of two tiles each, then a result."""
    top = tl.load(x[:16, :])
    for i in range(tiles):
        with tl.scratch_scope():
            tl.copy_to(top, tl.maximum(top, tl.load(x[i * 16 : (i + 1) * 16, :])))
    tl.store(o[:, :], -top)


@ks.kernel
def nested(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    """Two blocks of three tiles each; between the tiles the block allocates, too."""
    for block in range(2):
        with tl.scratch_scope("block"):
            total = tl.load(x[:16, :])
            for i in range(3):
                with tl.scratch_scope("tile"):
                    tl.copy_to(total, total + tl.load(x[i * 16 : (i + 1) * 16, :]))
            tl.store(o[block * 16 : (block + 1) * 16, :], -total)


def of_sweep(tiles: int = 4) -> ks.Graph:
    return ks.trace(sweep, ks.hbm((16 * tiles, 16), "f32"), ks.hbm((16, 16), "f32"), tiles=tiles)


def of_nested() -> ks.Graph:
    return ks.trace(nested, ks.hbm((48, 16), "f32"), ks.hbm((32, 16), "f32"))


def bases(graph: ks.Graph) -> list[int]:
    """Where the scopes begin, in tiles; without the kernel's own."""
    return (graph.scopes.base[1:] // TILE).tolist()


@pytest.mark.parametrize(
    ("buffers", "begin", "last"),
    [
        (1, [1, 1, 1, 1], 3),
        (2, [1, 3, 1, 3], 5),
        (3, [1, 3, 5, 1], 7),
        (4, [1, 3, 5, 7], 9),
        (9, [1, 3, 5, 7], 9),
    ],
)
def test_child_scopes_rotate_and_later_allocations_follow(buffers: int, begin: list[int], last: int) -> None:
    """One persistent tile, copies of two tiles, then the result: more buffers than child scopes are not made."""
    graph = ks.rebuffer(of_sweep(), buffers)
    assert bases(graph) == begin
    assert int(graph.storages.address[-1]) == last * TILE
    assert ks.liveness(graph).peak_bytes == (last + 1) * TILE


def test_nested_scopes_multiply() -> None:
    """A block of two buffers is two tiles of its own and two copies of two tiles; both blocks' copies stand side by
    side."""
    graph = ks.rebuffer(of_nested(), 2)
    assert bases(graph) == [0, 1, 3, 1, 6, 7, 9, 7]
    assert ks.liveness(graph).peak_bytes == 2 * 6 * TILE


def test_the_second_iteration_need_not_wait_for_the_first_ones_bytes() -> None:
    """With two buffers the second load starts right behind the first one's end, with one it waits for the maximum."""
    for buffers, waits in ((1, True), (2, False)):
        graph = ks.rebuffer(of_sweep(), buffers)
        second = [node for node in graph if node.op == "load"][2]
        assert any(edge.recycled for edge in second.edges_in) == waits


def test_a_kernel_without_scopes_stays_as_it_is() -> None:
    """Without child scopes nothing moves."""
    graph = of_sweep(0 + 1)
    alone = ks.trace(lambda x: tl.store(x[:, :], -tl.load(x[:, :])), ks.hbm((8, 8), "f32"))
    assert ks.rebuffer(alone, 3) == attrs.evolve(alone, buffers=3)
    assert ks.rebuffer(graph, 3) != attrs.evolve(graph, buffers=3)


def test_ranks_are_laid_out_each_for_itself() -> None:
    """Every rank's scratch begins at 0."""
    graph = ks.trace(sweep, ks.hbm((64, 16), "f32"), ks.hbm((16, 16), "f32"), ranks=2)
    made = ks.rebuffer(graph, 2)
    assert bases(made) == [1, 3, 1, 3, 0, 1, 3, 1, 3]
    assert ks.verify(made) == []


def test_overflow_is_recorded() -> None:
    """Copies past the budget are laid out all the same: the linter says so, and running them is refused."""
    machine = ks.load_machine("ahbm-pe").override({"scratch.bytes": str(5 * TILE)})
    graph = ks.trace(sweep, ks.hbm((64, 16), "f32"), ks.hbm((16, 16), "f32"), machine=machine)
    made = ks.rebuffer(graph, 2)
    assert [finding.code for finding in ks.lint(made, select=["KS1"]) if finding.severity == "error"] == ["KS101"]
    assert ks.lint(graph, select=["KS101"]).ok
    with pytest.raises(ks.ExecutionError, match="overflows"):
        ks.run(made, {"x": np.zeros((64, 16), np.float32)})


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True, None])
def test_numbers_below_one_are_refused(wrong: object) -> None:
    """There is at least one copy, and a whole number of them."""
    with pytest.raises(ks.OptionError, match=r"buffers=.*\n  help: pass a whole number"):
        ks.rebuffer(of_sweep(), wrong)  # type: ignore[arg-type]


def test_sizes_that_no_memory_has_are_refused() -> None:
    """Deep nesting multiplies: past 2^48 bytes it is an error, not an overflow of integers."""

    def deep(x: ks.HbmTensor, level: int = 0) -> None:
        tl.store(x[:, :], -tl.load(x[:, :]))
        for _ in range(2 if level < 9 else 0):
            with tl.scratch_scope():
                deep(x, level + 1)

    graph = ks.trace(deep, ks.hbm((1024, 1024), "f32"), on_overflow="record")
    wide = attrs.evolve(graph, storages=attrs.evolve(graph.storages, nbytes=graph.storages.nbytes * (1 << 20)))
    with pytest.raises(ks.InfeasibleError, match=r"the scopes take .* B with buffers=2\n  help: ask for fewer"):
        rebuffered(wide, 2)


def moved(graph: ks.Graph, **changes: np.ndarray) -> ks.Graph:
    """The graph with columns of its storages (``address``, ``born``, ``scope``) or scopes (``base``) changed."""
    tables = {"storages": graph.storages, "scopes": graph.scopes}
    for name, column in changes.items():
        table = "scopes" if name == "base" else "storages"
        tables[table] = attrs.evolve(tables[table], **{name: column})
    return attrs.evolve(graph, **tables)


def changed(column: np.ndarray, row: int, by: int) -> np.ndarray:
    copy = column.copy()
    copy[row] += by
    return copy


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (
            lambda g: moved(g, address=changed(g.storages.address, -1, 16)),
            "storage 11 is at 0x1410, with buffers=2 it belongs at",
        ),
        (
            lambda g: moved(g, base=changed(g.scopes.base, 2, -1024)),
            "scope 2 begins at 2048, with buffers=2 it belongs at 3072",
        ),
        (lambda g: attrs.evolve(g, buffers=1), "with buffers=1 it belongs at"),
        (lambda g: attrs.evolve(g, buffers=3), "with buffers=3 it belongs at"),
        (lambda g: attrs.evolve(g, buffers=0), "the cursor was"),
        (lambda g: attrs.evolve(g, buffers=-2), "a graph of buffers=-2"),
        (lambda g: moved(g, scope=changed(g.storages.scope, -1, 1)), "storage 11 is made outside its scope 1"),
        (lambda g: moved(g, scope=changed(g.storages.scope, -1, -1)), "an allocation belongs to no scope or no rank"),
        (lambda g: moved(g, born=changed(g.storages.born, 3, 2)), "storage 4 comes after one that is made later"),
    ],
)
def test_the_verifier_knows_the_layout(break_it: Callable[[ks.Graph], ks.Graph], message: str) -> None:
    """Whatever does not stand where its buffers put it is a violation; so is a number of buffers that is not the
    layout's."""
    graph = ks.rebuffer(of_sweep(), 2)
    assert ks.verify(graph) == []
    found = [str(violation) for violation in ks.verify(break_it(graph)) if violation.rule == "bump-allocation"]
    assert any(message in line for line in found), found


def test_the_verifier_refuses_uses_after_scope_with_buffers() -> None:
    """A graph with buffers has no stale use: its meaning would hang on the number."""

    def stale(x: ks.HbmTensor) -> None:
        with tl.scratch_scope():
            inner = tl.load(x[:, :])
        tl.store(x[:, :], -inner)

    graph = ks.trace(stale, ks.hbm((16, 16), "f32"))
    assert ks.verify(graph) == []
    assert any("after its allocation's scope" in str(violation) for violation in ks.verify(rebuffered(graph, 2)))


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        (3, "with buffers=3 it belongs at"),
        (0, "scope 2 saves cursor 3072, which was 1024"),
        (1 << 40, "it belongs at"),
        (-1, "the number -1 is out of range"),
        (1 << 60, "out of range"),
        (2.0, "a float where a int belongs"),
        (None, "a NoneType where a int belongs"),
    ],
)
def test_a_saved_graph_cannot_lie_about_its_buffers(tmp_path: Path, buffers: object, message: str) -> None:
    """A file whose number of buffers is another than its addresses say, or none, is one clear error."""
    path = tmp_path / "sweep.ksg"
    ks.rebuffer(of_sweep(), 2).save(path)
    assert ks.load(path).buffers == 2
    data = path.read_bytes()[:-32]
    start = data.index(b"\n") + 1
    size = int.from_bytes(data[start : start + 8], "little")
    header = json.loads(data[start + 8 : start + 8 + size])
    text = json.dumps({**header, "buffers": buffers}).encode()
    body = data[:start] + len(text).to_bytes(8, "little") + text + data[start + 8 + size :]
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(ks.GraphFormatError, match=re.escape(message)):
        ks.load(path)
