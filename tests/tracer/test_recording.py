"""Recording apart from binding arguments: what a front end without kernels and launches has to go by."""

import gc
from pathlib import Path
from typing import Any

import attrs
import frontend
import kernelgen
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.dtypes import float32
from kernscope.ir.forms.text import format_graph
from kernscope.ir.layout import Layout
from kernscope.ir.source.frames import author_place, is_author_file, is_own_fault, own_folders
from kernscope.ir.target import Target
from kernscope.tracer.recording.current import CURRENT
from kernscope.tracer.trace import recording

MACHINE = ks.load_machine("ahbm-pe")
TILE = Layout.dense((8, 8), float32)


def double(x: Any, o: Any) -> None:
    tl.store(o[:, :], tl.load(x[:, :]) * 2.0)


def record(ranks: int = 1, **options: Any) -> ks.Graph:
    """``double``, without a kernel: tensors, ranks, and calls."""
    with recording(MACHINE.target, MACHINE.name, ranks, kernel="double", **options) as trace:
        x, o = trace.tensor("x", TILE), trace.tensor("o", TILE)
        for _ in trace.ranks():
            trace.call(double, x, o)
    return trace.finish({})


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_recording_is_the_trace_of_the_same_calls(ranks: int) -> None:
    """Tensors, ranks and calls, one by one, make the graph that tracing a kernel makes, its places included (but for
    the description of the machine, of which a recording has a target and a name)."""
    traced = ks.trace(double, x=ks.hbm((8, 8), "f32"), o=ks.hbm((8, 8), "f32"), ranks=ranks)
    assert traced.machine_toml == MACHINE.to_toml()
    traced = attrs.evolve(traced, machine_toml="")
    recorded = record(ranks)
    assert format_graph(recorded) == format_graph(traced)
    assert recorded == traced
    assert [recorded[n].location for n in range(len(recorded))] == [traced[n].location for n in range(len(traced))]


def test_a_recording_suspends_the_trace_around_it() -> None:
    """Within it what belongs to the outer trace is refused; after it, also after a failed one, the outer trace goes on
    and holds nothing of it."""
    graphs = []

    def outer(x: Any, o: Any) -> None:
        handle = tl.load(x[:, :])
        graphs.append(record())
        with (
            pytest.raises(ks.OwnerError),
            recording(MACHINE.target, MACHINE.name, kernel="inner") as trace,
        ):
            for _ in trace.ranks():
                handle + 1.0
        tl.store(o[:, :], handle * 2.0)

    graph = ks.trace(outer, x=ks.hbm((8, 8), "f32"), o=ks.hbm((8, 8), "f32"))
    assert [node.op for node in graph] == [node.op for node in graphs[0]] == ["load", "mul", "store"]
    assert CURRENT.get() is None


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_off_within_and_as_before_afterwards(collecting: bool) -> None:
    """However the block ends."""
    if not collecting:
        gc.disable()
    try:
        for fails in (False, True):
            try:
                with recording(MACHINE.target, MACHINE.name, kernel="k"):
                    assert not gc.isenabled()
                    if fails:
                        raise KeyError
            except KeyError:
                pass
            assert gc.isenabled() is collecting
    finally:
        gc.enable()


def test_a_finished_recording_takes_nothing_more() -> None:
    """A handle that outlives it is refused, as a handle of any trace that is over."""
    with recording(MACHINE.target, MACHINE.name, kernel="k") as trace:
        for _ in trace.ranks():
            handle = trace.recorder.compute("fill", (), (("shape", (4, 4)), ("value", 1.0), ("dtype", float32)))
    with pytest.raises(ks.OwnerError, match="not running"):
        handle + 1.0


def test_ranks_that_do_not_fill_the_mesh_are_refused() -> None:
    """As by ``ks.trace``: before anything is recorded."""
    mesh = Target(topology="mesh2d", shape=(2, 2))
    with pytest.raises(ks.ChannelError), recording(mesh, "mesh", 3, kernel="k"):
        pytest.fail("the block ran")


# --- whose frames -----------------------------------------------------------------------------------------------------


def test_a_front_ends_own_folders_are_never_the_authors() -> None:
    """Nodes are blamed on the author's line behind the front end's; one that is given no folders is an author itself.
    What one front end calls its own says nothing of another's trace."""
    program = kernelgen.random_kernel(1)
    folder = str(Path(frontend.__file__).parent)
    for own, hidden in ((frontend.FOLDERS, True), ((), False), (frontend.FOLDERS, True)):
        graph = frontend.unplaced(program, own)
        files = {
            place.file for node in graph if node.location is not None for place in (node.location, *node.location.stack)
        }
        assert files
        assert any(file.startswith(folder) for file in files) is not hidden


def test_files_and_errors_are_judged_by_the_folders_given(tmp_path: Path) -> None:
    """A file in such a folder, or below it, is no author's, through links too; a folder that only begins alike says
    nothing; an error that ends there is the front end's own fault."""
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    own = own_folders([tmp_path / "link"])
    for file in ("mine/a.py", "mine/deep/a.py", "link/a.py"):
        assert is_author_file(str(tmp_path / file))
        assert not is_author_file(str(tmp_path / file), own)
    assert is_author_file(str(tmp_path / "mine_too" / "a.py"), own)

    namespace: dict[str, Any] = {}
    exec(compile("def front(): raise ValueError('no')", str(tmp_path / "mine" / "front.py"), "exec"), namespace)
    with pytest.raises(ValueError, match="no") as caught:
        namespace["front"]()
    assert is_own_fault(caught.value, own)
    assert not is_own_fault(caught.value)
    ours, theirs = author_place(caught.value.__traceback__, own), author_place(caught.value.__traceback__)
    assert ours is not None
    assert ours.file == __file__
    assert theirs is not None
    assert theirs.file == str(tmp_path / "mine" / "front.py")


# --- automatic lifetimes ----------------------------------------------------------------------------------------------


def test_a_scope_is_refused_where_lifetimes_are_automatic() -> None:
    """No graph has both; the author's line is named."""

    def scoped(x: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[:, :])

    with (
        pytest.raises(ks.ScopeError, match="automatic lifetimes") as caught,
        recording(MACHINE.target, MACHINE.name, kernel="scoped", automatic=True) as trace,
    ):
        x = trace.tensor("x", TILE)
        for _ in trace.ranks():
            trace.call(scoped, x)
    assert caught.value.places[0][1].line == scoped.__code__.co_firstlineno + 1


def test_a_handle_shows_no_address_that_it_does_not_have() -> None:
    """Of an automatic lifetime, while the trace runs."""
    with recording(MACHINE.target, MACHINE.name, kernel="k", automatic=True) as trace:
        x = trace.tensor("x", TILE)
        for _ in trace.ranks():
            assert repr(tl.load(x[:, :])) == "<handle unnamed f32[8,8]>"
