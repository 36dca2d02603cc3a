"""Slices of HBM with steps, and negative ones with an open end: numpy's elements, their cost, and their bounds."""

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = np.arange(20 * 12, dtype=np.float32).reshape(20, 12)


def loaded(items: Any, **options: Any) -> Any:
    """What a load of `x[items]` brings, and its graph."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[items], **options)
        tl.store(o[...] if tile.shape else o[0], tl.reshape(tile, (1,))[0] if not tile.shape else tile)

    shape = X[items].shape if not options else options.pop("shape", None) or X[items].shape
    graph = ks.trace(kernel, X, ks.hbm(shape or (1,), "f32"))
    return ks.run(graph)["o"], graph


@pytest.mark.parametrize(
    "items",
    [
        (slice(None, None, 2), slice(None)),
        (slice(1, None, 3), slice(None)),
        (slice(None), slice(None, None, 4)),
        (slice(2, 19, 5), slice(1, 12, 2)),
        (slice(-6, None), slice(None)),
        (slice(None, -3), slice(-4, None)),
        (slice(-7, None, 3), 5),
        (3, slice(None, -1, 2)),
    ],
)
def test_a_slice_is_numpys(items: Any) -> None:
    """The elements that numpy takes; what is moved is what they hold."""
    found, graph = loaded(items)
    np.testing.assert_array_equal(found, X[items])
    (load,) = [node for node in graph if node.op == "load"]
    assert load.work == (X[items].nbytes, 0, 0)


def test_a_slice_of_a_slice_goes_on_with_its_steps() -> None:
    """As numpy's does."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.load(x[1::3, ::2][1::2, 2:5]))

    expected = X[1::3, ::2][1::2, 2:5]
    graph = ks.trace(kernel, X, ks.hbm(expected.shape, "f32"))
    np.testing.assert_array_equal(ks.run(graph)["o"], expected)


@pytest.mark.parametrize(("start", "step"), [(-5, 2), (-4, 3), (16, 3), (15, 2), (30, 2), (-9, 4), (0, 7)])
def test_a_ragged_one_fills_what_lies_outside(start: int, step: int) -> None:
    """Six of them from any place on: each inside is moved, each outside is the pad; stores leave these out."""

    def kernel(x: Any, o: Any, p: Any) -> None:
        tile = tl.load(x[start : start + 6 * step : step, :], pad=-1.0)
        tl.store(o[:, :], tile)
        tl.store(p[start : start + 6 * step : step, :], tile, clip=True)

    graph = ks.trace(kernel, X, ks.hbm((6, 12), "f32"), np.zeros_like(X))
    out = ks.run(graph)
    left = np.zeros_like(X)
    for row, place in enumerate(range(start, start + 6 * step, step)):
        inside = 0 <= place < 20
        np.testing.assert_array_equal(out["o"][row], X[place] if inside else np.full(12, -1, np.float32))
        if inside:
            left[place] = X[place]
    if start < 20:  # else nothing is stored
        np.testing.assert_array_equal(out["p"], left)


def test_bounds_are_those_of_the_last_element() -> None:
    """Rows 1, 7, 13, 19 lie inside, whatever the stop says beyond; one more does not."""
    assert loaded((slice(1, 24, 6), slice(None)), shape=(4, 12))[0].shape == (4, 12)
    with pytest.raises(ks.BoundsError, match=r"x\[1:26:6, 0:12\]"):
        loaded((slice(1, 26, 6), slice(None)), shape=(5, 12))


def test_steps_go_forward() -> None:
    """The help's flip is what reverses."""
    for backward in (slice(None, None, -1), slice(0, 4, 0)):
        with pytest.raises(ks.IndexingError, match="slice step") as caught:
            loaded(backward, shape=(4, 12))
        assert "tl.flip" in caught.value.help


def test_what_a_strided_store_leaves_is_seen() -> None:
    """KS504 names every second row, none where both halves are stored; ranks that take turns at rows do not race."""

    def half(x: Any, o: Any) -> None:
        tl.store(o[::2, :], tl.load(x[::2, :]))

    def both(x: Any, o: Any) -> None:
        half(x, o)
        tl.store(o[1::2, :], tl.load(x[1::2, :]))

    def turns(x: Any, o: Any) -> None:
        rank, ranks = tl.program_id(0), tl.num_programs(0)
        tl.store(o[rank::ranks, :], tl.load(x[rank::ranks, :]))

    o = ks.hbm(X.shape, "f32")
    assert [found.code for found in ks.lint(half, X, o)].count("KS504") == 1
    assert "KS504" not in [found.code for found in ks.lint(both, X, o)]
    assert [found.code for found in ks.lint(turns, X, o, ranks=4) if found.severity == "error"] == []
    np.testing.assert_array_equal(ks.run(ks.trace(turns, X, o, ranks=4))["o"], X)
