"""Every function of `tl`: the handle it gives, the node it records, the bytes it takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = ks.hbm((64, 32), "f16")


def trace(body: Callable[..., None], *args: Any, **options: Any) -> ks.Graph:
    return ks.trace(body, *(args or (X,)), **options)


def one(make: Callable[[Any], Any], dtype: str = "f16") -> tuple[ks.Graph, Any]:
    """The graph of one load (32 x 16) and one more call, and what the call returned."""
    found: list[Any] = []

    def kernel(x: Any) -> None:
        found.append(make(tl.load(x)))

    return ks.trace(kernel, ks.hbm((32, 16), dtype)), found[0]


ELEMENTWISE: list[tuple[str, Callable[[Any], Any], str, str]] = [
    ("add", lambda h: h + h, "f16", "f16"),
    ("add", lambda h: 1.0 + h, "f16", "f16"),
    ("sub", lambda h: h - 1, "f16", "f16"),
    ("sub", lambda h: 1 - h, "f16", "f16"),
    ("mul", lambda h: h * 0.5, "f16", "f16"),
    ("mul", lambda h: 0.5 * h, "f16", "f16"),
    ("div", lambda h: h / h, "f16", "f16"),
    ("div", lambda h: 1 / h, "i32", "f32"),
    ("floordiv", lambda h: h // 2, "i32", "i32"),
    ("floordiv", lambda h: 2 // h, "i32", "i32"),
    ("mod", lambda h: h % 2, "i32", "i32"),
    ("mod", lambda h: 2 % h, "i32", "i32"),
    ("pow", lambda h: h**2, "f16", "f16"),
    ("pow", lambda h: 2**h, "f16", "f16"),
    ("neg", lambda h: -h, "f16", "f16"),
    ("abs", abs, "f16", "f16"),
    ("lt", lambda h: h < 0, "f16", "bool"),
    ("le", lambda h: h <= h, "f16", "bool"),
    ("gt", lambda h: h > 0, "f16", "bool"),
    ("ge", lambda h: h >= 0, "f16", "bool"),
    ("eq", lambda h: h == 0, "f16", "bool"),
    ("ne", lambda h: h != 0, "f16", "bool"),
    ("gt", lambda h: (lambda zero: zero < h)(0), "f16", "bool"),
    ("and", lambda h: h & 7, "i16", "i16"),
    ("and", lambda h: 7 & h, "i16", "i16"),
    ("or", lambda h: h | h, "bool", "bool"),
    ("or", lambda h: 1 | h, "u8", "u8"),
    ("xor", lambda h: h ^ 1, "i8", "i8"),
    ("xor", lambda h: 1 ^ h, "i8", "i8"),
    ("not", lambda h: ~h, "bool", "bool"),
    ("shl", lambda h: h << 2, "i32", "i32"),
    ("shl", lambda h: 1 << h, "i32", "i32"),
    ("shr", lambda h: h >> 2, "i32", "i32"),
    ("shr", lambda h: 64 >> h, "i32", "i32"),
    ("abs", lambda h: tl.abs(h), "f16", "f16"),
    ("exp", lambda h: tl.exp(h), "f16", "f16"),
    ("exp", lambda h: tl.exp(h), "i8", "f32"),
    ("exp2", lambda h: tl.exp2(h), "f16", "f16"),
    ("log", lambda h: tl.log(h), "f16", "f16"),
    ("log2", lambda h: tl.log2(h), "f16", "f16"),
    ("sqrt", lambda h: tl.sqrt(h), "bf16", "bf16"),
    ("rsqrt", lambda h: tl.rsqrt(h), "f16", "f16"),
    ("tanh", lambda h: tl.tanh(h), "f16", "f16"),
    ("sigmoid", lambda h: tl.sigmoid(h), "f16", "f16"),
    ("erf", lambda h: tl.erf(h), "f16", "f16"),
    ("sin", lambda h: tl.sin(h), "f16", "f16"),
    ("cos", lambda h: tl.cos(h), "f16", "f16"),
    ("floor", lambda h: tl.floor(h), "f16", "f16"),
    ("ceil", lambda h: tl.ceil(h), "f16", "f16"),
    ("round", lambda h: tl.round(h), "f16", "f16"),
    ("maximum", lambda h: tl.maximum(h, 0.0), "f16", "f16"),
    ("maximum", lambda h: tl.maximum(0.0, h), "f16", "f16"),
    ("minimum", lambda h: tl.minimum(h, h), "f16", "f16"),
    ("minimum", lambda h: tl.minimum(a=h, b=6), "f16", "f16"),
    ("where", lambda h: tl.where(h, 1.0, 0.0), "bool", "f32"),
    ("clamp", lambda h: tl.clamp(h, -1, 1), "f16", "f16"),
    ("fma", lambda h: tl.fma(h, h, h), "f16", "f16"),
    ("cast", lambda h: tl.cast(h, tl.float32), "f16", "f32"),
    ("cast", lambda h: h.to("bf16"), "f16", "bf16"),
    ("cast", lambda h: h.to(tl.float16), "f16", "f16"),
    ("mul", lambda h: np.float32(2) * h, "f16", "f16"),
    ("mul", lambda h: h * np.float64(2), "f16", "f16"),
    ("sub", lambda h: np.sqrt(2) - h, "f16", "f16"),
    ("gt", lambda h: h > np.int64(0), "i8", "bool"),
    ("lt", lambda h: np.int64(0) < h, "i8", "bool"),
]


@pytest.mark.parametrize(("name", "make", "source", "result"), ELEMENTWISE)
def test_elementwise_calls_record_one_math_node(
    name: str, make: Callable[[Any], Any], source: str, result: str
) -> None:
    """One node, one log entry, fresh bytes of the operand's shape and the declared dtype; its work is its elements."""
    graph, handle = one(make, source)
    assert graph.op_log() == ["memory/dma_read", f"math/{name}"]
    assert graph[1].op == name
    assert (handle.shape, handle.dtype.short, handle.space) == ((32, 16), result, "tcm")
    assert handle.address == -(-graph.storage(0).nbytes // 16) * 16
    assert graph[1].work == (512, 0, 0)
    assert graph[1].engine == "math"


def test_a_comparison_keeps_its_sense_with_the_number_on_the_left() -> None:
    """Python turns `0 < h` into `h > 0`: both say the same."""
    graph, _ = one(lambda h: (lambda zero: zero < h)(0))
    assert (graph[1].op, graph[1].static, graph[1].operands[1]) == ("gt", {}, 0)
    graph, _ = one(lambda h: np.float32(0) < h)
    assert (graph[1].op, graph[1].operands[0]) == ("lt", 0.0)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda h: tl.sum(h, axis=1), (32,)),
        (lambda h: tl.sum(h, 1, True), (32, 1)),
        (lambda h: tl.max(h, axis=-1, keep_dims=True), (32, 1)),
        (lambda h: tl.min(h, axis=0, keepdims=True), (1, 16)),
        (lambda h: tl.argmax(h, axis=np.int64(1)), (32,)),
        (lambda h: tl.argmin(h, axis=0), (16,)),
        (lambda h: tl.sum(h), ()),
        (lambda h: tl.max(h, keep_dims=True), (1, 1)),
        (lambda h: tl.sum(h, axis=(0, 1)), ()),
        (lambda h: tl.max(h, axis=[1, 0], keep_dims=True), (1, 1)),
        (lambda h: tl.cumsum(h, axis=0), (32, 16)),
        (lambda h: tl.cumprod(h, axis=-1), (32, 16)),
        (lambda h: tl.sort(h), (32, 16)),
        (lambda h: tl.sort(h, dim=0, descending=True), (32, 16)),
        (lambda h: tl.topk(h, 4), (32, 4)),
        (lambda h: tl.topk(h, np.int64(2), dim=0), (2, 16)),
        (lambda h: tl.softmax(h), (32, 16)),
        (lambda h: tl.softmax(h, axis=0), (32, 16)),
    ],
)
def test_reductions_record_one_math_node(make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    """`keep_dims` and `keepdims` are one; the work is what is read; the result is the only allocation."""
    graph, handle = one(make)
    assert handle.shape == shape
    assert len(graph) == 2
    assert graph[1].work == (512, 0, 0)
    assert len(graph.storages) == 3  # the tensor, the loaded tile, the result


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda h: tl.join(h, h), (32, 16, 2)),
        (lambda h: tl.join(h, h[:1, :]), (32, 16, 2)),
        (lambda h: tl.interleave(h, h[:, :1]), (32, 32)),
        (lambda h: tl.split(tl.join(h, h))[1], (32, 16)),
    ],
)
def test_joins_record_one_node_and_splits_none(make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    """A join is paid by what it writes; interleaving and splitting are views of it."""
    graph, handle = one(make)
    assert handle.shape == shape
    assert [node.op for node in graph] == ["load", "join"] and graph[1].work == (1024, 0, 0)


def test_split_gives_back_what_join_took() -> None:
    """And interleaved elements stand in turn, as of numpy's stack; a tile without dimensions joins, too."""
    a, b = np.arange(12, dtype=np.float32).reshape(3, 4), -np.arange(4, dtype=np.float32)

    def kernel(a: Any, b: Any, left: Any, right: Any, turns: Any, two: Any) -> None:
        x, y = tl.load(a), tl.load(b)
        first, second = tl.split(tl.join(x, y))
        tl.store(left, first)
        tl.store(right, second)
        tl.store(turns, tl.interleave(x, y))
        tl.store(two, tl.interleave(tl.max(x), tl.min(x)))

    got = ks.run(ks.trace(kernel, a, b, *[ks.hbm(s, "f32") for s in ((3, 4), (3, 4), (3, 8), (2,))]))
    both = np.stack(np.broadcast_arrays(a, b), axis=-1)
    np.testing.assert_array_equal(got["left"], a)
    np.testing.assert_array_equal(got["right"], both[..., 1])
    np.testing.assert_array_equal(got["turns"], both.reshape(3, 8))
    np.testing.assert_array_equal(got["two"], [11, 0])


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda h: tl.join(h, h.to("f32")), ks.DTypeError, "f16 and f32 do not join"),
        (lambda h: tl.join(h, h[:, :3]), ks.ShapeError, "3"),
        (lambda h: tl.split(h), ks.ShapeError, "last dimension has size 2"),
        (lambda h: tl.split(tl.max(h)), ks.ShapeError, "last dimension has size 2"),
        (lambda h: tl.join(h, 1.0), ks.ArgumentError, "join"),
    ],
)
def test_what_does_not_join_is_told(make: Callable[[Any], Any], error: Any, says: str) -> None:
    """At the line, with what to do."""
    with pytest.raises(error) as caught:
        one(make)
    assert says in str(caught.value)


def test_creation() -> None:
    """`full`, `zeros` and `arange` are one math node each; shapes may be lists, sizes numpy's."""

    def kernel(x: Any) -> None:
        a = tl.full((4, 8), float("-inf"), tl.float32)
        b = tl.zeros([np.int64(4), 8], dtype="bf16")
        c = tl.arange(0, 128)
        d = tl.full(4, np.float32(2), "f16")
        e = tl.full((2,), True, tl.bool)
        assert [(h.shape, h.dtype.short) for h in (a, b, c, d, e)] == [
            ((4, 8), "f32"),
            ((4, 8), "bf16"),
            ((128,), "i32"),
            ((4,), "f16"),
            ((2,), "bool"),
        ]

    graph = trace(kernel)
    assert graph.op_log() == ["math/fill", "math/fill", "math/arange", "math/fill", "math/fill"]
    assert [node.work[0] for node in graph] == [32, 32, 128, 4, 2]
    assert graph[3].static["value"] == 2.0


def test_what_is_filled_in_is_what_was_written() -> None:
    """1, 1.0 and True; 0.0 and -0.0: equal in Python, told apart here, in whatever order they come."""

    def kernel(x: Any) -> None:
        for value in (0, 0.0, -0.0, 1, 1.0):
            tl.full((4,), value, "f32")

    graph = trace(kernel)
    assert [repr(node.static["value"]) for node in graph] == ["0", "0.0", "-0.0", "1", "1.0"]

    def refused(x: Any) -> None:
        tl.full((4,), 1, "i32")
        tl.full((4,), 1.0, "i32")

    with pytest.raises(ks.DTypeError, match=r"cannot fill i32 with 1\.0"):
        trace(refused)


def test_empty_allocates_and_records_nothing() -> None:
    """Bytes without a node: the next allocation starts behind them."""

    def kernel(x: Any) -> None:
        held = tl.empty((5,), "f32")
        assert (held.shape, held.address, held.nbytes) == ((5,), 0, 20)
        assert tl.empty((1,), "i8").address == 32

    graph = trace(kernel)
    assert len(graph) == 0
    assert [graph.storage(row).nbytes for row in range(len(graph.storages))] == [64 * 32 * 2, 20, 1]


def test_views_share_bytes_and_record_nothing() -> None:
    """Slices, transposes, reshapes and broadcasts have the base's storage and scope, at an address inside it."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        views = {
            "rows": (h[2:4], (2, 32), 2 * 32 * 2),
            "column": (h[:, 3:4], (64, 1), 6),
            "row": (h[1], (32,), 64),
            "last": (h[-1, -1], (), 64 * 32 * 2 - 2),
            "wide": (h[:, None], (64, 1, 32), 0),
            "dots": (h[..., None], (64, 32, 1), 0),
            "T": (h.T, (32, 64), 0),
            "trans": (tl.trans(h), (32, 64), 0),
            "axes": (tl.trans(h, 1, 0), (32, 64), 0),
            "axes as one": (tl.trans(h, (1, 0)), (32, 64), 0),
            "flat": (tl.reshape(h, (2048,)), (2048,), 0),
            "sizes": (tl.reshape(h, 32, -1), (32, 64), 0),
            "named": (tl.reshape(h, shape=[4, 512]), (4, 512), 0),
            "expanded": (tl.expand_dims(h, -1), (64, 32, 1), 0),
            "broadcast": (tl.broadcast_to(h[0:1], (64, 32)), (64, 32), 0),
            "broadcast sizes": (tl.broadcast_to(h[0:1], 64, 32), (64, 32), 0),
            "pair": (tl.broadcast(h[0:1], h)[0], (64, 32), 0),
            "of a view": (tl.trans(h[2:4])[1:3, 1], (2,), 2 * 32 * 2 + 64 + 2),
        }
        for name, (view, shape, start) in views.items():
            assert view.shape == shape, name
            assert view.address - h.address == start, name
            assert (view.storage, view.scope, view.dtype) == (h.storage, h.scope, h.dtype), name

    graph = trace(kernel)
    assert graph.op_log() == ["memory/dma_read"]
    assert len(graph.storages) == 2


def test_dot_writes_over_a_destination() -> None:
    """`out=` is not read: without anything written before there is no finding, and the product stands there alone; it
    is no operand of its own product, and not beside `acc=`."""

    def kernel(a: Any, b: Any, c: Any) -> None:
        x, y = tl.load(a), tl.load(b)
        bank = tl.empty((8, 4), "f32")
        assert tl.dot(x, y, out=bank) is bank
        tl.dot(x, y, acc=bank)
        tl.dot(x, y, out=bank)
        tl.store(c, bank)
        with pytest.raises(ks.ShapeError, match="shape"):
            tl.dot(x, y, out=tl.empty((4, 8), "f32"))
        with pytest.raises(ks.ArgumentError, match="both acc= and out="):
            tl.dot(x, y, out=bank, acc=bank)
        square = tl.zeros((4, 4), "f32")
        with pytest.raises(ks.ArgumentError, match="over one of its operands"):
            tl.dot(square, tl.zeros((4, 4), "f32"), out=square)

    graph = trace(kernel, ks.hbm((8, 16), "f32"), ks.hbm((16, 4), "f32"), ks.hbm((8, 4), "f32"))
    assert not [finding for finding in ks.lint(graph) if finding.code == "KS204"]
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(8, 16)).astype("f4"), rng.normal(size=(16, 4)).astype("f4")
    (c,) = ks.run(graph, {"a": a, "b": b}, poison=True).values()
    assert np.allclose(c, a @ b, atol=1e-5)


def test_dot_takes_and_returns_an_accumulator() -> None:
    """`acc=` is filled in place and returned; without it the result is fresh f32 (i32 of integers)."""

    def kernel(a: Any, b: Any) -> None:
        x, y = tl.load(a), tl.load(b)
        fresh = tl.dot(x, y)
        assert (fresh.shape, fresh.dtype) == ((8, 4), tl.float32)
        half = tl.dot(x, y, out_dtype=tl.float16)
        assert half.dtype is tl.float16
        assert tl.dot(x, y, acc=half) is half
        assert tl.dot(x, y, acc=fresh) is fresh

    graph = trace(kernel, ks.hbm((8, 16), "f16"), ks.hbm((16, 4), "f16"))
    assert graph.count("gemm/dot") == 4
    assert [node.work for node in graph][2:] == [(8, 4, 16)] * 4
    assert {node.dtype.short for node in graph} == {"f16"}
    assert len(graph.storages) == 6
    into = graph[5]
    assert [a.storage.row for a in into.reads] == [2, 3, 4]
    assert [a.storage.row for a in into.writes] == [4]


def test_dot_of_integers_is_i32() -> None:
    """Without a word about it."""
    _, handle = one(lambda h: tl.dot(h, tl.trans(h)), "i8")
    assert handle.dtype is tl.int32


def test_inplace_operators_give_fresh_bytes() -> None:
    """`acc += x` is `acc = acc + x`."""

    def kernel(x: Any) -> None:
        acc = before = tl.load(x)
        acc += before
        assert acc is not before
        assert acc.address == 64 * 32 * 2
        acc *= 2.0
        assert acc.address == 2 * 64 * 32 * 2

    assert trace(kernel).op_log() == ["memory/dma_read", "math/add", "math/mul"]


def test_the_program() -> None:
    """On a ring axis 0 is the rank; the other axes have one place. Nothing is recorded."""
    seen: list[tuple[int, ...]] = []

    def kernel(x: Any) -> None:
        seen.append((tl.program_id(0), tl.num_programs(0), tl.program_id(1), tl.num_programs(axis=np.int64(2))))
        assert tl.program_id() == tl.program_id(axis=0)
        assert tl.num_programs() == tl.num_programs(axis=0)
        assert tl.cdiv(7, 4) == 2 and tl.cdiv(np.int64(8), 4) == 2
        assert list(tl.static_range(3)) == [0, 1, 2]

    assert len(trace(kernel, ranks=3)) == 0
    assert seen == [(0, 3, 0, 1), (1, 3, 0, 1), (2, 3, 0, 1)]


def test_cdiv_works_outside_a_trace() -> None:
    """A grid is computed where the kernel is launched."""
    assert tl.cdiv(1000, 128) == 8
    with pytest.raises(ks.ArgumentError):
        tl.cdiv(1000, 0)
    with pytest.raises(ks.ArgumentError):
        tl.cdiv(4.5, 2)


def test_every_function_is_listed_and_documented() -> None:
    """`tl.__all__` names them; each has a docstring."""
    for name in tl.__all__:
        value = getattr(tl, name)
        if callable(value) and not isinstance(value, type(tl.float32)):
            assert value.__doc__, name


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tl.exp(tl.load(x), 1), "exp: too many positional arguments"),
        (lambda x: tl.maximum(tl.load(x)), "maximum: missing a required argument: 'b'"),
        (lambda x: tl.load(x, mask=None), "unexpected keyword argument 'mask'"),
        (lambda x: tl.dot(tl.load(x), tl.load(x), tl.load(x)), "dot: too many positional arguments"),
        (lambda x: tl.zeros((4, 4)), "zeros: missing a required argument: 'dtype'"),
        (lambda x: tl.sum(tl.load(x), axes=1), "unexpected keyword argument 'axes'"),
        (lambda x: tl.arange(128), "arange: missing a required argument: 'end'"),
        (lambda x: tl.copy_to(tl.load(x)), "copy_to: missing a required argument: 'src'"),
    ],
)
def test_a_call_with_the_wrong_arguments_names_the_line_and_the_signature(call: Any, words: str) -> None:
    """As every other mistake of a kernel author: a class of its own, at the line, with help."""
    with pytest.raises(ks.ArgumentError) as caught:
        trace(lambda x: call(x))
    assert words in caught.value.message
    assert caught.value.places[0][1].file == __file__
    assert "signature" in caught.value.help or "regions" in caught.value.help


def test_a_function_that_does_not_exist_names_the_nearest() -> None:
    """Inside a trace with the line, outside as any module's attribute."""
    with pytest.raises(ks.UnknownNameError) as caught:
        trace(lambda x: tl.maximun(1, 2))
    assert "did you mean 'maximum'" in caught.value.help
    assert caught.value.places
    assert not hasattr(tl, "maximun")
    with pytest.raises(AttributeError):
        _ = tl.float128


@pytest.mark.parametrize("name", ["matmul", "mean", "permute", "zeros_like", "static_assert"])
def test_functions_of_other_languages_say_what_to_write(name: str) -> None:
    """Names that authors bring along."""
    with pytest.raises(ks.UnknownNameError) as caught:
        trace(lambda x: getattr(tl, name))
    assert caught.value.help.startswith("write ")


def test_tl_outside_a_trace_says_so() -> None:
    """There is nothing to record into."""
    with pytest.raises(ks.NotTracingError, match="outside a trace") as caught:
        tl.zeros((4,), "f32")
    assert "ks.trace" in caught.value.help


def _composite(h: Any) -> Any:
    return tl.composite("gemm", h[0:16, :], h[0:16, :], epilogue=[("mul", 1e300)])


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda h: h + 1e30, "f16"),
        (lambda h: h > -1e30, "f16"),
        (lambda h: h * 70000, "f16"),
        (lambda h: tl.maximum(h, np.float32(1e30)), "f16"),
        (lambda h: tl.where(h > 0, h, -1e30), "f16"),
        (lambda h: tl.where(h > 0, 1e300, 0.0), "f16"),
        (lambda h: tl.clamp(h, -1e5, 1e5), "f16"),
        (lambda h: tl.fma(h, 2.0, 1e5), "f16"),
        (lambda h: tl.full((4,), 1000.0, tl.float8e4m3), "f16"),
        (lambda h: tl.full((4,), float("inf"), tl.float8e4m3), "f16"),
        (lambda h: h - 3.4028235e38, "bf16"),
        (_composite, "f16"),
    ],
)
def test_a_constant_that_the_dtype_cannot_hold_is_refused_at_its_line(make: Callable[[Any], Any], dtype: str) -> None:
    """A float is no kinder than an integer: nothing becomes infinite, or NaN, that was not written so."""
    with pytest.raises(ks.DTypeError, match="does not fit") as caught:
        one(make, dtype)
    assert caught.value.help
    assert caught.value.places[0][1].file == __file__


@pytest.mark.parametrize("pad", [1e30, 70000, -1e300])
def test_a_pad_that_the_dtype_cannot_hold_is_refused(pad: float) -> None:
    """What fills the outside is a constant like any other."""
    with pytest.raises(ks.DTypeError, match="does not fit f16"):
        trace(lambda x: tl.load(x[60:70, :], pad=pad))


def test_a_masked_row_is_infinite_only_on_request() -> None:
    """`-inf` is what was written; a large constant belongs into a wide dtype."""
    for make in (
        lambda h: tl.where(h > 0, h, float("-inf")),
        lambda h: tl.where(h > 0, h.to(tl.float32), -1e30),
        lambda h: tl.where(h > 0, h, -65504.0),
    ):
        one(make, "f16")


def test_what_runs_along_an_axis_runs_along_the_last_one() -> None:
    """Unless told; negative axes count from the end."""

    def kernel(x: Any) -> None:
        h = tl.load(x[:, :])
        for function in (tl.cumsum, tl.softmax):
            function(h)
            function(h, axis=0)
            function(h, -2)

    graph = ks.trace(kernel, ks.hbm((4, 8), "f32"))
    axes = [node.static["axis"] for node in graph if node.op in ("cumsum", "softmax")]
    assert axes == [1, 0, 0] * 2
