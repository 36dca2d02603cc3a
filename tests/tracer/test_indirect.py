"""Rows of HBM by an index tile, and atomics: numbers, what is paid for, what is known while tracing, and refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = np.arange(24 * 8, dtype=np.float32).reshape(24, 8)
I = np.array([5, 0, 23, 5, 7], np.int32)


def ran(body: Callable[[Any, Any, Any], Any], o: Any = None, i: Any = I, **options: Any) -> Any:
    """What `o` holds after a kernel of `x`, the index tile and `o`, in program order and in a schedule's."""
    o = np.zeros((24, 8), np.float32) if o is None else o

    def kernel(x: Any, i: Any, o: Any) -> None:
        body(x, tl.load(i[...]), o)

    graph = ks.trace(kernel, X, i, o, **options)
    schedule = ks.schedule(graph)
    assert ks.check(schedule) == []
    found = ks.run(graph)["o"]
    np.testing.assert_array_equal(found, ks.run(graph, order=schedule, poison=True)["o"])
    return found


@pytest.mark.parametrize(
    ("i", "axis", "region"),
    [
        (I, 0, (slice(0, 24), slice(0, 8))),
        (I % 8, 1, (slice(0, 24), slice(0, 8))),
        (I % 6, -1, (slice(4, 10), slice(1, 7))),
        (I[:4].reshape(2, 2) % 6, 0, (slice(4, 10), slice(1, 7))),
        (I.astype(np.uint8), 0, (slice(0, 24), 3)),
    ],
)
def test_take_is_numpys(i: Any, axis: int, region: Any) -> None:
    """Along any axis of any region, by an index of any shape and integer dtype; its bytes alone are its work."""
    expected = np.take(X[region], i, axis=axis)

    def kernel(x: Any, i: Any, o: Any) -> None:
        tile = tl.take(x[region], tl.load(i[...]), axis)
        tl.store(o[...], tile)

    graph = ks.trace(kernel, X, i, ks.hbm(expected.shape, "f32"))
    np.testing.assert_array_equal(ks.run(graph)["o"], expected)
    (node,) = [node for node in graph if node.op == "take"]
    assert node.work == (expected.nbytes, 0, 0)
    assert ks.lint(graph).ok


def test_scatter_writes_the_named_rows_and_no_other() -> None:
    """As `o[i] = tile` does; of equal rows the last one stays."""
    held = np.full((24, 8), -1, np.float32)
    expected = held.copy()
    expected[I] = X[:5]
    np.testing.assert_array_equal(ran(lambda x, i, o: tl.scatter(o[:, :], i, tl.load(x[0:5, :])), held), expected)
    expected = held.copy()
    expected[3:9, I[:2] % 4 + 1] = X[:6, :2]
    found = ran(lambda x, i, o: tl.scatter(o[3:9, 1:7], i % 4, tl.load(x[0:6, 0:2]), 1), held, I[:2])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", ["add", "max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32"])
def test_atomics_change_every_row_that_is_named_in_turn(how: str, dtype: str) -> None:
    """Two of one place both count: numpy's `ufunc.at`; without an index each element once."""
    held = (X[::-1] * 0.5).astype({"f32": np.float32, "f16": np.float16, "i32": np.int32}[dtype])
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum}[how]
    change = getattr(tl, f"atomic_{how}")
    expected = held.copy()
    ufunc.at(expected, I, X[:5].astype(held.dtype))
    found = ran(lambda x, i, o: change(o[:, :], tl.load(x[0:5, :]).to(dtype), index=i), held)
    np.testing.assert_array_equal(found, expected)
    expected = held.copy()
    expected[2:7] = ufunc(expected[2:7], X[:5].astype(held.dtype))
    found = ran(lambda x, i, o: change(o[2:7, :], tl.load(x[0:5, :]).to(dtype)), held)
    np.testing.assert_array_equal(found, expected)


def test_fetch_gives_what_was_there_before() -> None:
    """Each one what the one before it left."""

    def body(x: Any, i: Any, o: Any) -> None:
        one = tl.full((1, 8), 1.0, tl.float32)
        for row in range(1, 4):
            found = tl.atomic_add(o[0:1, :], one, fetch=True)
            assert found is not None
            tl.store(o[row : row + 1, :], found)

    found = ran(body)
    assert found[:4, 0].tolist() == [3.0, 0.0, 1.0, 2.0]


def test_ranks_add_to_one_place() -> None:
    """All that they add is in it, in whichever order they come; no race, and the checker agrees."""

    def kernel(o: Any) -> None:
        tl.atomic_add(o[:, :], tl.full((4, 4), tl.program_id(0) + 1, tl.int32))

    graph = ks.trace(kernel, np.zeros((4, 4), np.int32), ranks=4)
    assert ks.lint(graph).ok
    for policy in ("blocking", "lazy", "queued", "list"):
        schedule = ks.schedule(graph, policy=policy)
        assert ks.check(schedule) == []
        assert (ks.run(graph, order=schedule)["o"] == 10).all()


def test_an_index_out_of_its_region_is_found_when_it_is_executed() -> None:
    """Also a negative one: the error names the element, its value, and the line; the help's clamp works."""
    for wrong in (24, -1):
        i = np.array([0, wrong, wrong], np.int32)
        for body in (
            lambda x, i, o: tl.store(o[0:3, :], tl.take(x[:, :], i)),
            lambda x, i, o: tl.scatter(o[:, :], i, tl.load(x[0:3, :])),
            lambda x, i, o: tl.atomic_add(o[:, :], tl.load(x[0:3, :]), index=i),
        ):
            with pytest.raises(
                ks.IndexTileError, match=rf"element \[1\] of the index is {wrong}, .* 24 rows \(and 1"
            ) as e:
                ran(body, None, i)
            assert [place.file for _, place in e.value.places] == [__file__]
            assert "tl.clamp(i, 0, 23)" in e.value.help
        ran(lambda x, i, o: tl.store(o[0:3, :], tl.take(x[:, :], tl.clamp(i, 0, 23))), None, i)


def test_the_region_covers_what_an_index_may_name() -> None:
    """A take waits for a store to any row of its region, and for none beside it; the file keeps all of it."""

    def kernel(x: Any, i: Any, o: Any) -> None:
        at = tl.load(i[:])
        one = tl.full((1, 8), 1.0, tl.float32)
        tl.store(o[3:4, :], one)
        tl.store(o[20:21, :], one)
        tl.store(x[0:5, :], tl.take(o[0:10, :], at % 10))

    graph = ks.trace(kernel, X, I, np.zeros((24, 8), np.float32))
    (take,) = [node.id for node in graph if node.op == "take"]
    stores = [node.id for node in graph if node.op == "store"]
    waits = set(graph.edges.source[graph.edges.target == take].tolist())
    assert stores[0] in waits and stores[1] not in waits


def test_a_saved_graph_keeps_them(tmp_path: Any) -> None:
    """The file of one gives an equal graph."""

    def kernel(x: Any, i: Any, o: Any) -> None:
        at = tl.load(i[:])
        tl.atomic_min(o[:, :], tl.take(x[:, :], at), index=at)
        tl.scatter(o[:, :], at, tl.take(x[:, :], at))

    graph = ks.trace(kernel, X, I, X.copy())
    graph.save(tmp_path / "g.ks")
    assert ks.load(tmp_path / "g.ks") == graph


@pytest.mark.parametrize("machine", ks.machine_names())
def test_every_machine_has_an_engine_for_them(machine: str) -> None:
    """What loads and stores also moves by an index tile and changes as one step, at the cost of its rows."""

    def kernel(x: Any, i: Any, o: Any) -> None:
        at = tl.load(i[:])
        tl.atomic_add(o[:, :], tl.take(x[:, :], at), index=at)
        tl.atomic_max(o[0:5, :], tl.take(x[:, :], at))
        tl.scatter(o[:, :], at, tl.take(x[:, :], at))

    graph = ks.trace(kernel, X, I, X.copy(), machine=machine)
    for policy in ("blocking", "lazy", "queued", "list"):
        assert ks.check(ks.schedule(graph, policy=policy)) == []
    ks.run(graph)


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (lambda x, i, o: tl.take(tl.load(x[:, :]), i), ks.ArgumentError, "tl.gather"),
        (lambda x, i, o: tl.take(x + 3, i), ks.ArgumentError, "name a region"),
        (lambda x, i, o: tl.take(x[:, :], [1, 2]), ks.ArgumentError, ""),
        (lambda x, i, o: tl.take(x[:, :], i, 2), ks.ShapeError, "axes"),
        (lambda x, i, o: tl.take(x[:, :], i.to(tl.float32)), ks.DTypeError, "integers"),
        (lambda x, i, o: tl.take(x[0:25, :], i), ks.BoundsError, ""),
        (lambda x, i, o: tl.take(x[:, :], i, out=tl.zeros((4, 8), tl.float32)), ks.ShapeError, "equal"),
        (lambda x, i, o: tl.scatter(o[:, :], i, tl.load(x[0:4, :])), ks.ShapeError, "index's shape"),
        (lambda x, i, o: tl.scatter(o[:, :], i, tl.load(x[0:5, :]).to(tl.float16)), ks.DTypeError, "convert"),
        (lambda x, i, o: tl.scatter(tl.load(x[0:5, :]), i, o), ks.ArgumentError, "comes first"),
        (lambda x, i, o: tl.atomic_add(o[0:4, :], tl.load(x[0:5, :])), ks.ShapeError, "one shape"),
        (lambda x, i, o: tl.atomic_add(o[:, :], tl.load(x[0:5, :]), index=i, fetch=True), ks.ArgumentError, "tl.take"),
    ],
)
def test_what_does_not_fit_is_refused(
    body: Callable[[Any, Any, Any], Any], error: type[ks.KernscopeError], said: str
) -> None:
    """At its line, with help."""
    with pytest.raises(error) as caught:
        ran(body)
    assert said in caught.value.help
    assert [place.file for _, place in caught.value.places] == [__file__]


def test_what_is_found_is_not_known_on_several_ranks() -> None:
    """Which rank comes first is no part of a trace."""

    def kernel(o: Any) -> None:
        tl.atomic_add(o[:, :], tl.zeros((4, 4), tl.float32), fetch=True)

    with pytest.raises(ks.ArgumentError, match="fetch on 2 ranks"):
        ks.trace(kernel, ks.hbm((4, 4), "f32"), ranks=2)


def test_a_recorded_fault_belongs_to_a_node() -> None:
    """A region that leaves its tensor is a finding of the linter, as of a load or a store."""

    def kernel(x: Any, i: Any, o: Any) -> None:
        at = tl.load(i[:])
        tile = tl.take(x[20:30, :], at)
        tl.scatter(o[20:30, :], at, tile)
        tl.atomic_add(o[20:25, :], tile)

    report = ks.lint(kernel, X, I, X)
    assert [finding.code for finding in report].count("KS501") == 3
