"""Results that go into a handle which is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.ops import OPERATIONS, Family, Operation

X = np.random.default_rng(0).uniform(0.1, 2.0, (4, 8)).astype(np.float32)
ARITY = {Family.UNARY: 1, Family.BINARY: 2, Family.TERNARY: 3}
DECLARED = [o for o in OPERATIONS.values() if o.public and o.family in (*ARITY, Family.REDUCTION, Family.SOFTMAX)]


def operands(operation: Operation, x: Any) -> list[Any]:
    """Handles that an operation takes."""
    integers = operation.name in ("and", "or", "xor", "not", "shl", "shr", "mulhi")
    ready = x.to(tl.int32) if integers else x
    given = [ready] * ARITY.get(operation.family, 1)
    return [x > 1.0, *given[1:]] if operation.name == "where" else given


@pytest.mark.parametrize("operation", DECLARED, ids=lambda o: o.name)
def test_out_takes_the_result_and_nothing_is_allocated(operation: Operation) -> None:
    """The handle itself comes back, with the numbers that fresh bytes would hold; it may be a view with gaps."""
    function: Callable[..., Any] = getattr(tl, operation.function)
    axis = {"axis": 1} if operation.family in (Family.REDUCTION, Family.SOFTMAX) else {}
    taken: list[int] = []

    def kernel(x: Any, fresh: Any, given: Any) -> None:
        h = tl.load(x[:, :])
        arguments = operands(operation, h)
        result = function(*arguments, **axis)
        whole = tl.zeros((*result.shape, 2), result.dtype)
        out = whole[..., 1]
        below = tl.empty((1,), "f32").address
        assert function(*arguments, **axis, out=out) is out
        taken.append(tl.empty((1,), "f32").address - below)
        tl.store(fresh, result.to(tl.float32))
        tl.store(given, out.to(tl.float32))

    shape = OPERATIONS[operation.name].rule(
        [ks.ir.layout.Layout.dense((4, 8), ks.ir.dtypes.of("bool" if operation.name == "where" else "i32"))]
        * ARITY.get(operation.family, 1),
        **({**axis, "keep_dims": False} if operation.family is Family.REDUCTION else axis),
    )[0]
    graph = ks.trace(kernel, X, ks.hbm(shape, "f32"), ks.hbm(shape, "f32"))
    found = ks.run(graph)
    np.testing.assert_array_equal(found["fresh"], found["given"])
    assert taken == [16]
    (first, second) = [node for node in graph if node.op == operation.name][-2:]
    assert (first.work, first.static) == (second.work, second.static)


def test_an_operand_may_be_written_over() -> None:
    """Layer norm in the bytes of its tile: one tile and a few columns are all that it holds."""

    def kernel(x: Any, o: Any) -> None:
        h = tl.load(x[:, :])
        mean = tl.sum(h, axis=1, keep_dims=True) / 8.0
        tl.sub(h, mean, out=h)
        square = tl.sum(h * h, axis=1, keep_dims=True) / 8.0
        tl.mul(h, tl.rsqrt(square + 1e-5), out=h)
        tl.store(o[:, :], h)

    graph = ks.trace(kernel, X, ks.hbm((4, 8), "f32"))
    tiles = [row for row in range(2, len(graph.storages)) if graph.storage(row).nbytes >= X.nbytes]
    assert len(tiles) == 2  # the tile, and its square
    wanted = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(ks.run(graph)["o"], wanted, rtol=1e-5, atol=1e-5)
    assert ks.lint(graph).counts["error"] == 0


def test_cast_goes_into_a_handle() -> None:
    """Of its own dtype, converted or bit by bit."""

    def kernel(x: Any, o: Any, b: Any) -> None:
        h = tl.load(x[:, :])
        half, bits = tl.empty((4, 8), "f16"), tl.empty((4, 8), "u32")
        assert tl.cast(h, "f16", out=half) is half
        assert tl.cast(h, "u32", bitcast=True, out=bits) is bits
        tl.store(o, half)
        tl.store(b, bits)

    found = ks.run(ks.trace(kernel, X, ks.hbm((4, 8), "f16"), ks.hbm((4, 8), "u32")))
    np.testing.assert_array_equal(found["o"], X.astype(np.float16))
    np.testing.assert_array_equal(found["b"], X.view(np.uint32))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda h, x: tl.exp(h, out=h[:, :4]), ks.ShapeError, "exp(out=): shape (4, 8) into"),
        (lambda h, x: tl.add(h, h[:1], out=h[:1]), ks.ShapeError, "add(out=): shape (4, 8) into"),
        (lambda h, x: tl.sum(h, axis=1, out=h), ks.ShapeError, "sum(out=): shape (4,) into"),
        (lambda h, x: tl.lt(h, 1.0, out=h), ks.DTypeError, "lt(out=): bool into"),
        (lambda h, x: tl.cast(h, "f16", out=h), ks.DTypeError, "cast(out=): f16 into"),
        (lambda h, x: tl.exp(h, out=tl.broadcast_to(h[:1], (4, 8))), ks.ShapeError, "broadcast view"),
        (lambda h, x: tl.exp(h, out=x), ks.ArgumentError, "no handle in scratch"),
        (lambda h, x: tl.softmax(h, out=3), ks.ArgumentError, "no handle in scratch"),
        (lambda h, x: tl.exp(h, into=h), ks.ArgumentError, "into"),
    ],
)
def test_what_is_no_destination_is_refused(call: Any, error: type[ks.KernscopeError], words: str) -> None:
    """At its line, and nothing is recorded."""
    counts: list[int] = []

    def kernel(x: Any) -> None:
        h = tl.load(x[:, :])
        try:
            call(h, x)
        except ks.KernscopeError as caught:
            counts.append(1)
            raise caught

    with pytest.raises(error) as caught:
        ks.trace(kernel, X)
    assert words in caught.value.message
    assert caught.value.places[0][1].file == __file__
    assert counts == [1]
