"""A launch grid apart from ranks: which programs there are, where they run, and who knows of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import networkx as nx
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.cli.app import main
from kernscope.ir.grid import coordinates, dealt
from kernscope.ir.verifier.verify import verify

ROWS = ks.hbm((6, 64), "f32")
SEEN: list[tuple[int, ...]] = []


@ks.launch("six", grid=(2, 3), ranks=2, x=ROWS, o=ROWS)
@ks.kernel
def doubled(x: Any, o: Any) -> None:
    """Each program its row."""
    place = tuple(tl.program_id(axis) for axis in range(3))
    SEEN.append(place)
    assert [tl.num_programs(axis) for axis in range(3)] == [2, 3, 1]
    row = place[0] + 2 * place[1]
    h = tl.load(x[row, :])
    assert h.address == 0
    tl.store(o[row, :], h * 2.0)


def test_programs_are_dealt_to_the_ranks_in_order() -> None:
    """Axis 0 is the fastest; program n runs on rank n mod ranks; a rank's programs follow each other in fresh
    scratch."""
    SEEN.clear()
    graph = ks.trace(doubled.launch("six"))
    assert SEEN == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 0, 0), (1, 1, 0), (1, 2, 0)]
    assert graph.grid == (2, 3) and verify(graph) == []
    stores = [node for node in graph if node.op == "store"]
    assert [(n.rank, n.program) for n in stores] == [
        (0, (0, 0)),
        (0, (0, 1)),
        (0, (0, 2)),
        (1, (1, 0)),
        (1, (1, 1)),
        (1, (1, 2)),
    ]
    assert ks.liveness(graph).peak_bytes == 512


def test_a_scope_is_called_by_its_program_its_name_or_its_place() -> None:
    """What is outermost in a program by the program; a rank's own scope is the kernel."""

    def kernel(o: Any) -> None:
        with tl.scratch_scope("named"):
            tl.store(o[tl.program_id(0), :], tl.zeros((64,), tl.float32))
        with tl.scratch_scope():
            tl.store(o[tl.program_id(0), :], tl.zeros((64,), tl.float32))

    graph = ks.trace(kernel, ROWS, grid=(2, 3), ranks=2)
    line = kernel.__code__.co_firstlineno + 3
    called = [graph.describe_scope(row) for row in range(len(graph.scopes))]
    programs = [f"program ({rank}, {nth})" for rank in range(2) for nth in range(3)]
    inside = ["named", f"scope at test_grid.py:{line}"]
    assert called == [
        "kernel",
        *(name for p in programs[:3] for name in (p, *inside)),
        "kernel",
        *(name for p in programs[3:] for name in (p, *inside)),
    ]
    assert {graph.describe_scope(-1)} == {"kernel"}
    assert {graph.describe_program(node.id) for node in graph if node.program is not None} == set(programs)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 8])
def test_every_program_runs_once_whatever_the_ranks(ranks: int) -> None:
    """Also where there are more ranks than programs; what is computed is the same; a schedule in any policy agrees."""
    graph = ks.trace(doubled.launch("six"), ranks=ranks)
    x = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
    assert sorted({int(p) for p in graph.program}) == list(range(6)) and verify(graph) == []
    for policy in ("blocking", "lazy", "queued", "list"):
        schedule = ks.schedule(graph, policy)
        assert ks.check(schedule) == []
        np.testing.assert_array_equal(ks.run(graph, {"x": x}, order=schedule, poison=True)["o"], x * 2)


def test_numbers_and_places() -> None:
    """They are each other's inverse, and the deal leaves none out."""
    grid = (3, 4, 2)
    places = [coordinates(grid, n) for n in range(24)]
    assert places[:4] == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0)] and len(set(places)) == 24
    assert sorted(n for rank in range(5) for n in dealt(grid, rank, 5)) == list(range(24))


def test_the_grid_overrides_and_is_overridden() -> None:
    """A number is a grid of one axis; without one each rank is a program; ``grid=`` of a trace goes before the
    launch's."""

    def kernel(o: Any) -> None:
        tl.store(o[tl.program_id(0), :], tl.full((4,), tl.num_programs(0), "f32"))

    out = ks.hbm((4, 4), "f32")
    assert ks.trace(kernel, out, ranks=4).grid == ()
    graph = ks.trace(kernel, out, grid=4)
    assert graph.grid == (4,) and graph.ranks == 1
    assert np.unique(ks.run(graph)["o"]).tolist() == [4]
    assert ks.trace(doubled.launch("six"), grid=(2, 3), ranks=1).ranks == 1
    assert ks.lint(kernel, out, grid=4).ok


@pytest.mark.parametrize("grid", [0, (), (1, 2, 3, 4), (2, -1), 2.0, True, "4", [2, None]])
def test_what_is_no_grid_is_told(grid: Any) -> None:
    """When the launch is made, and when it is traced."""
    with pytest.raises(ks.ArgumentError, match="grid="):
        ks.launch("bad", grid=grid, x=ROWS, o=ROWS)(doubled.function)
    if grid != ():
        with pytest.raises(ks.ArgumentError, match="grid="):
            ks.trace(doubled.function, ROWS, ROWS, grid=grid)


def test_a_handle_of_another_program_is_out_of_reach() -> None:
    """Whether it ran on this rank or on another one: the deal decides nothing."""
    for ranks in (1, 2):
        kept: dict[str, Any] = {}

        def kernel(x: Any, o: Any, kept: dict[str, Any] = kept) -> None:
            row = tl.program_id(0)
            h = kept.setdefault("h", tl.load(x[row, :]))
            tl.store(o[row, :], h)

        with pytest.raises(ks.OwnerError) as caught:
            ks.trace(kernel, ROWS, ROWS, grid=6, ranks=ranks)
        assert f"belongs to program (0), and program ({ranks})" in str(caught.value)


def test_a_scope_that_a_program_leaves_open_is_told() -> None:
    """At the place where it was opened."""

    def kernel(x: Any, o: Any) -> None:
        tl.scratch_scope("mine").__enter__()

    with pytest.raises(ks.ScopeError, match="still open"):
        ks.trace(kernel, ROWS, ROWS, grid=2)


def test_faults_name_their_program() -> None:
    """One raised, and one found: out of bounds, and a race of two programs that one rank runs one after the other."""

    def beyond(x: Any, o: Any) -> None:
        i, j = tl.program_id(0), tl.program_id(1)
        tl.store(o[i + 2 * j, :], tl.load(x[i + 3 * j, :]))

    with pytest.raises(ks.BoundsError, match=r"in program \(0, 2\)"):
        ks.trace(beyond, ROWS, ROWS, grid=(2, 3))
    (finding,) = [d for d in ks.lint(beyond, ROWS, ROWS, grid=(2, 3)) if d.code == "KS501"]
    assert "first in program (0, 2)" in finding.message

    def racing(x: Any, o: Any) -> None:
        i, j = tl.program_id(0), tl.program_id(1)
        tl.store(o[i, :], tl.load(x[i + 2 * j, :]))

    for ranks in (1, 2, 3):
        (race,) = [d for d in ks.lint(racing, ROWS, ROWS, grid=(2, 3), ranks=ranks) if d.code == "KS502"]
        assert race.message.startswith("programs (0, 0), (1, 0), ... and (1, 2) touch the same bytes of `o`")


def test_a_load_is_late_within_its_program_only() -> None:
    """What the program before it did is nothing that its author could load above."""
    assert [d.code for d in ks.lint(doubled.launch("six"), ranks=1)] == []

    def late(x: Any, o: Any) -> None:
        row = tl.program_id(0)
        h = tl.load(x[row, :])
        for _ in range(8):
            h = tl.exp(h)
        tl.store(o[row, :], h + tl.load(x[row, 0:64]))

    codes = [d.code for d in ks.lint(late, ROWS, ROWS, grid=6, ignore=["KS503"])]
    assert codes == ["KS303"]


def test_whoever_shows_a_graph_shows_its_programs(tmp_path: Path) -> None:
    """Text, file, schedule, networkx, timeline and picture."""
    graph = ks.trace(doubled.launch("six"))
    assert "grid=(2,3)" in str(graph) and "scope_enter program (1, 2) cursor=0" in str(graph)
    assert "grid=(2, 3)" in repr(graph)
    graph.save(tmp_path / "graph.ks")
    loaded = ks.load(tmp_path / "graph.ks")
    assert loaded == graph and loaded[3].program == graph[3].program
    schedule = ks.schedule(graph)
    document = json.loads(schedule.to_json())
    assert document["grid"] == [2, 3]
    assert [tuple(node["program"]) for node in document["nodes"]] == [node.program for node in graph]
    view = ks.to_networkx(graph)
    assert view.graph["grid"] == "2,3" and nx.get_node_attributes(view, "program")[len(graph) - 1] == 5
    ks.timeline(schedule, tmp_path / "t.json")
    assert "program (1, 2)" in (tmp_path / "t.json").read_text(encoding="utf-8")
    ks.draw(graph, tmp_path / "g.dot")
    assert "program (1, 2)" in (tmp_path / "g.dot").read_text(encoding="utf-8")


def test_the_verifier_knows_the_deal() -> None:
    """A grid that does not fit the programs of the ranks."""
    graph = ks.trace(doubled.launch("six"))
    for grid, says in (((2, 4), "rank 0 has 3 programs, of the grid (2, 4) it runs 4"), ((2, 2, 1, 1), "a grid of")):
        found = verify(attrs.evolve(graph, grid=grid))
        assert any(v.rule == "programs" and says in v.message for v in found)
    plain = ks.trace(doubled.function, ks.hbm((6, 64), "f32"), ROWS, ranks=1, grid=(2, 3))
    bare = attrs.evolve(ks.trace(lambda o: tl.store(o, tl.zeros((4,), "f32")), ks.hbm((4,), "f32")), grid=(1,))
    assert verify(plain) == []
    assert {v.message for v in verify(bare)} >= {"node %0 belongs to no program of the grid"}


def test_the_command_line_takes_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of numbers with commas; what is none is refused in one line."""
    file = tmp_path / "kernel.py"
    file.write_text(
        "import kernscope as ks\nfrom kernscope import tl\n"
        "@ks.launch('a', o=ks.hbm((4, 8), 'f32'))\n@ks.kernel\ndef k(o):\n"
        "    tl.store(o[tl.program_id(0), :], tl.zeros((8,), 'f32'))\n",
        encoding="utf-8",
    )
    assert main(["trace", str(file), "--grid", "2,2"]) == 0
    assert "grid=(2,2)" in capsys.readouterr().out
    for wrong in ("2,x", "0", "1,1,1,1", ""):
        assert main(["trace", str(file), "--grid", wrong]) == 2
        assert "one to three positive integers" in capsys.readouterr().err
