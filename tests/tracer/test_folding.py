"""Scans and reductions by a function of the author's: numbers of a loop, what it costs, what is refused."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

RNG = np.random.default_rng(5)


def ran(kernel: Callable[..., None], inputs: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> Any:
    """What a kernel stores, and its graph; every schedule of it is legal, and its errors are none."""
    given = {**inputs, **{name: ks.hbm(shape, "f32") for name, shape in shapes.items()}}
    graph = ks.trace(kernel, **given)
    assert not [finding for finding in ks.lint(graph) if finding.severity == "error"]
    for policy in ("lazy", "list"):
        assert ks.check(ks.schedule(graph, policy)) == []
    return ks.run(graph, poison=True), graph


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("combine", [operator.add, tl.maximum, lambda a, b: a * 0 + b, lambda a, b: a + b * 0])
def test_a_scan_is_a_loop_over_the_axis(size: int, axis: int, reverse: bool, combine: Any) -> None:
    """Earlier elements first, also of functions that are not commutative; from the end where it is reversed."""
    shape = (size, 3) if axis == 0 else (3, size)
    x = RNG.integers(-8, 8, shape).astype(np.float32)

    def kernel(x: Any, o: Any) -> None:
        tl.store(o, tl.associative_scan(tl.load(x), axis, combine, reverse=reverse))

    plain = np.maximum if combine is tl.maximum else combine
    wanted = np.moveaxis(x.copy(), axis, 0)
    order = range(size)[::-1] if reverse else range(size)
    for last, at in itertools.pairwise(order):
        wanted[at] = plain(wanted[last], wanted[at])
    found, _ = ran(kernel, {"x": x}, {"o": shape})
    np.testing.assert_array_equal(found["o"], np.moveaxis(wanted, 0, axis))


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_several_tiles_are_scanned_together(size: int) -> None:
    """The recurrence h = a h + b, as affine maps that follow one another, which do not commute."""
    a, b = (RNG.uniform(-1, 1, (4, size)).astype(np.float32) for _ in range(2))

    def follow(a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Any]:
        return a * c, c * b + d

    def kernel(a: Any, b: Any, o: Any) -> None:
        _, h = tl.associative_scan((tl.load(a), tl.load(b)), 1, follow)
        tl.store(o, h)

    wanted = np.zeros_like(a)
    for i in range(size):
        wanted[:, i] = a[:, i] * (wanted[:, i - 1] if i else 0) + b[:, i]
    found, _ = ran(kernel, {"a": a, "b": b}, {"o": a.shape})
    np.testing.assert_allclose(found["o"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 16, 31])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_takes_every_element_once(size: int, keep: bool, axis: int) -> None:
    """The largest element and where it stands first, of two tiles; and a product."""
    shape = (size, 3) if axis == 0 else (3, size)
    x = RNG.integers(1, 4, shape).astype(np.float32)
    place = np.broadcast_to(np.arange(size, dtype=np.float32).reshape((-1, 1) if axis == 0 else (1, -1)), shape)

    def larger(a: Any, i: Any, b: Any, j: Any) -> tuple[Any, Any]:
        first = (a > b) | ((a == b) & (i < j))
        return tl.where(first, a, b), tl.where(first, i, j)

    def kernel(x: Any, place: Any, most: Any, where: Any, product: Any) -> None:
        h = tl.load(x)
        value, index = tl.reduce((h, tl.load(place)), axis, larger, keep_dims=keep)
        tl.store(most, value)
        tl.store(where, index)
        tl.store(product, tl.reduce(h, axis, operator.mul, keep_dims=keep))

    kept = np.sum(x, axis, keepdims=keep).shape
    found, graph = ran(kernel, {"x": x, "place": np.array(place)}, {"most": kept, "where": kept, "product": kept})
    np.testing.assert_array_equal(found["most"], x.max(axis, keepdims=keep))
    np.testing.assert_array_equal(found["where"], x.argmax(axis, keepdims=keep))
    np.testing.assert_array_equal(found["product"], x.prod(axis, keepdims=keep))
    calls = int(np.floor(np.log2(size))) + bin(size)[3:].count("1") if size > 1 else 0
    assert graph.count("math/mul") == calls


def test_a_scan_calls_its_function_about_log2_n_times() -> None:
    """On tiles, whatever their size."""
    calls: list[tuple[int, ...]] = []

    def seen(a: Any, b: Any) -> Any:
        calls.append(a.shape)
        return a + b

    def kernel(x: Any, o: Any) -> None:
        tl.store(o, tl.associative_scan(tl.load(x), 0, seen))

    ks.trace(kernel, ks.hbm((100, 2), "f32"), ks.hbm((100, 2), "f32"))
    assert calls == [(100 - step, 2) for step in (1, 2, 4, 8, 16, 32, 64)]


def test_nothing_of_what_is_folded_changes() -> None:
    """The result has bytes of its own, also of one element."""

    def kernel(x: Any, o: Any, p: Any) -> None:
        h = tl.load(x)
        scanned, one = tl.associative_scan(h, 1, operator.add), tl.reduce(h[:, 0:1], 1, operator.add, keep_dims=True)
        alone = tl.associative_scan(h[:, 0:1], 1, operator.add)
        for made in (scanned, one, alone):
            tl.copy_to(made, made * 0.0)
        tl.store(o, h)
        tl.store(p, one + alone)

    x = RNG.standard_normal((4, 6)).astype(np.float32)
    found, _ = ran(kernel, {"x": x}, {"o": x.shape, "p": (4, 1)})
    np.testing.assert_array_equal(found["o"], x)


@pytest.mark.parametrize("fold", [tl.associative_scan, tl.reduce])
@pytest.mark.parametrize(
    ("combine", "error", "said"),
    [
        (lambda a, b: tl.sum(a + b, axis=0), ks.ShapeError, "element by element"),
        (lambda a, b: (a + b).to("f16"), ks.DTypeError, r"h.to\(tl.float32\)"),
        (lambda a, b: (a, b), ks.ArgumentError, "2 of 1 tiles"),
        (lambda a, b: None, ks.ArgumentError, "no handle"),
    ],
)
def test_what_the_function_returns_is_looked_at(fold: Any, combine: Any, error: type[Exception], said: str) -> None:
    """One error each, at the kernel's line."""

    def kernel(x: Any) -> None:
        fold(tl.load(x), 0, combine)

    with pytest.raises(error, match=said) as caught:
        ks.trace(kernel, ks.hbm((8, 4), "f32"))
    assert "test_folding.py" in str(caught.value)


@pytest.mark.parametrize(
    ("x", "axis", "error"),
    [
        ((), 0, ks.ArgumentError),
        ((3.0,), 0, ks.ArgumentError),
        ("pair", 0, ks.ShapeError),
        ("one", 2, ks.ShapeError),
    ],
)
def test_what_cannot_be_folded_is_refused(x: Any, axis: int, error: type[Exception]) -> None:
    """No tiles, numbers, tiles of several shapes, an axis that there is not."""

    def kernel(x_: Any) -> None:
        h = tl.load(x_)
        given = {"pair": (h, h[:, 0:2]), "one": h}.get(x, x) if isinstance(x, str) else x
        with pytest.raises(error):
            tl.associative_scan(given, axis, operator.add)

    ks.trace(kernel, ks.hbm((8, 4), "f32"))
