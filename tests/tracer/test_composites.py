"""The composite GEMM: what it allocates, what it logs, tile by tile."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl


def gemm(
    m: int, n: int, k: int, *, dtype: str = "f16", handles: str = "", after: Any = None, **options: Any
) -> ks.Graph:
    """Trace one composite over (M, K) x (K, N); the operands named in `handles` are loaded first."""

    def kernel(a: Any, b: Any) -> None:
        left = tl.load(a) if "a" in handles else tl.ref(a)
        right = tl.load(b) if "b" in handles else tl.ref(b)
        result = tl.composite("gemm", left, right, **options)
        assert (result.shape, result.dtype) == ((m, n), ks.ir.dtypes.of(options.get("out_dtype", "f32")))
        if after is not None:
            after(result)

    shape_b = (n, k) if options.get("trans_b") else (k, n)
    return ks.trace(kernel, ks.hbm((m, k), dtype), ks.hbm(shape_b, dtype))


def tiles(size: int, tile: int) -> int:
    return -(-size // tile)


@pytest.mark.parametrize("shape", [(256, 256, 256), (128, 128, 128), (200, 130, 300), (8, 128, 2048), (1, 1, 1)])
@pytest.mark.parametrize("trans_b", [False, True])
def test_each_step_loads_its_tiles_and_multiplies_them(shape: tuple[int, int, int], trans_b: bool) -> None:
    """Per step a load per `ref` operand and a dot; per tile of the result one copy: exact counts, ragged tiles
    included."""
    m, n, k = shape
    graph = gemm(m, n, k, trans_b=trans_b)
    steps = tiles(m, 128) * tiles(n, 128) * tiles(k, 128)
    finishes = tiles(m, 128) * tiles(n, 128)
    assert graph.count("memory/dma_read") == 2 * steps
    assert graph.count("gemm/dot") == steps
    assert graph.count("math/copy") == finishes
    assert len(graph) == 3 * steps + finishes


def test_the_log_goes_m_n_k_and_finishes_each_tile() -> None:
    """Tile (0, 0) over all of k, its epilogue, then tile (0, 1)."""
    graph = gemm(128, 256, 256)
    step, finish = ["memory/dma_read", "memory/dma_read", "gemm/dot"], ["math/copy"]
    assert graph.op_log() == (step * 2 + finish) * 2


def test_work_counts_ragged_tiles_as_they_are() -> None:
    """The last tiles are smaller: all dots together are exactly M x N x K."""
    graph = gemm(200, 130, 300)
    dots = [node.work for node in graph if node.op == "dot"]
    assert sum(m * n * k for m, n, k in dots) == 200 * 130 * 300
    assert dots[-1] == (72, 2, 44)
    assert sum(node.work[0] for node in graph if node.op == "copy_to") == 200 * 130
    assert {node.work[0] for node in graph if node.op == "load"} >= {128 * 128 * 2, 72 * 44 * 2, 44 * 2 * 2}


@pytest.mark.parametrize(
    ("handles", "buffers"), [("", 4), ("a", 2), ("b", 2), ("ab", 0)], ids=["both streamed", "b", "a", "none"]
)
def test_it_allocates_the_result_an_accumulator_and_two_buffers_a_ref(handles: str, buffers: int) -> None:
    """All of them at once, held until the enclosing scope exits; a handle is read in place."""
    graph = gemm(256, 256, 256, handles=handles)
    made = [graph.storage(row) for row in range(2 + len(handles), len(graph.storages))]
    assert [(s.layout.shape, s.layout.dtype.short) for s in made] == [
        ((256, 256), "f32"),
        ((128, 128), "f32"),
        *[((128, 128), "f16")] * buffers,
    ]
    assert {s.freed for s in made} == {-1}
    assert graph.count("memory/dma_read") == len(handles) + 8 * (2 - len(handles))


def test_buffers_are_no_larger_than_the_operands() -> None:
    """8 query rows take an accumulator of 8 rows."""
    graph = gemm(8, 64, 32)
    shapes = [graph.storage(row).layout.shape for row in range(2, len(graph.storages))]
    assert shapes == [(8, 64), (8, 64), (8, 32), (8, 32), (32, 64), (32, 64)]


def test_buffers_alternate() -> None:
    """Step by step the other one: the load of a step need not wait for the dot of the one before."""
    graph = gemm(128, 128, 512)
    loads = [node.writes[0].storage.row for node in graph if node.op == "load"]
    assert loads == [4, 6, 5, 7, 4, 6, 5, 7]
    dots = [[a.storage.row for a in node.reads] for node in graph if node.op == "dot"]
    assert dots == [[4, 6], [5, 7, 3], [4, 6, 3], [5, 7, 3]]
    first, second = (node.id for node in graph if node.op == "dot" and node.id < 6)
    assert first not in {edge.source for node in graph for edge in node.edges_in if node.id in (second - 2, second - 1)}


def test_it_is_one_command() -> None:
    """All its nodes belong to the first; nodes outside belong to themselves."""
    graph = gemm(128, 128, 256, handles="a", after=lambda result: tl.exp(result))
    commands = [node.command for node in graph]
    assert commands == [0, *[1] * (len(graph) - 2), len(graph) - 1]


def test_tiles_can_be_chosen() -> None:
    """(m, n, k), as a tuple or list, numpy's integers too."""
    graph = gemm(64, 64, 64, tile=[np.int64(32), 16, 64])
    assert graph.count("gemm/dot") == 2 * 4


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, ["math/copy"]),
        ({"out_dtype": "f16"}, ["math/cast"]),
        ({"epilogue": ["exp"]}, ["math/exp"]),
        ({"epilogue": [("mul", 0.125), "exp"]}, ["math/mul", "math/exp"]),
        ({"epilogue": [("mul", np.float32(0.125))], "out_dtype": tl.bfloat16}, ["math/mul", "math/cast"]),
        ({"epilogue": []}, ["math/copy"]),
        ({"epilogue": (("maximum", 0),)}, ["math/maximum"]),
    ],
)
def test_the_epilogue_finishes_each_tile(options: dict[str, Any], steps: list[str]) -> None:
    """Its elementwise steps in order, a cast where the result's dtype asks for one, at least a copy; the last step
    writes the tile of the result."""
    graph = gemm(256, 128, 128, **options)
    math = [entry for entry in graph.op_log() if entry.startswith("math/")]
    assert math == steps * 2
    last = [node for node in graph if node.op == steps[-1].replace("math/", "").replace("copy", "copy_to")]
    assert {node.writes[0].storage.row for node in last[len(last) // 2 :]} == {2}


def test_integers_accumulate_in_i32() -> None:
    """The accumulator and the default of the result."""
    graph = gemm(16, 16, 16, dtype="i8", out_dtype="i32")
    assert graph.storage(3).layout.dtype is tl.int32


def test_a_pending_handle_is_read_in_place() -> None:
    """The dot waits for the load; no copy is made."""
    graph = gemm(64, 64, 64, handles="ab")
    assert [(e.source, e.reason.label) for e in graph[2].edges_in] == [(0, "data"), (1, "data")]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda a, b: tl.composite("gem", a, b), ks.ArgumentError, "composite 'gem'"),
        (lambda a, b: tl.composite("gemm", a, b, tile=(64, 64)), ks.ShapeError, "tile (64, 64)"),
        (lambda a, b: tl.composite("gemm", a, b, tile=(64, 0, 64)), ks.ShapeError, "tile (64, 0, 64)"),
        (lambda a, b: tl.composite("gemm", a, b, trans_b=True), ks.ShapeError, "inner sizes 32 and 16 differ"),
        (lambda a, b: tl.composite("gemm", a, b, out_dtype="i32"), ks.DTypeError, "f16 into i32"),
        (lambda a, b: tl.composite("gemm", a, tl.zeros((32, 16), "f32")), ks.DTypeError, "f16 and f32"),
        (lambda a, b: tl.composite("gemm", a, tl.zeros((32,), "f16")), ks.ShapeError, "(32,)"),
        (lambda a, b: tl.composite("gemm", a, 1.0), ks.ArgumentError, "operand b is 1.0"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=["expp"]), ks.ArgumentError, "'expp'"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=["mul"]), ks.ArgumentError, "'mul'"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=[("exp", 1.0)]), ks.ArgumentError, "('exp', 1.0)"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=[("lt", 1.0)]), ks.DTypeError, "gives bool"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue="exp"), ks.ArgumentError, "epilogue"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=[3]), ks.ArgumentError, "epilogue step 3"),
        (lambda a, b: tl.composite("gemm", a, b, epilogue=[("mul", None)]), ks.ArgumentError, "None"),
    ],
)
def test_what_does_not_fit_is_refused(
    call: Callable[[Any, Any], Any], error: type[ks.KernscopeError], words: str
) -> None:
    """At the line, with what was given, and nothing of the composite is recorded."""
    log: list[Any] = []

    def kernel(a: Any, b: Any) -> None:
        left, right = tl.ref(a), tl.ref(b)
        tl.load(a)
        with pytest.raises(error) as caught:
            call(left, right)
        log.append(caught.value)

    graph = ks.trace(kernel, ks.hbm((8, 32), "f16"), ks.hbm((32, 16), "f16"))
    assert words in log[0].message
    assert log[0].help
    assert log[0].places[0][1].file == __file__
    assert graph.count("memory/dma_read") == 1
    assert set(graph.op_log()) <= {"memory/dma_read", "math/fill"}


def test_a_handle_given_as_a_whole_tensor_is_told_to_use_ref() -> None:
    """An HBM tensor itself is no operand."""
    with pytest.raises(ks.ArgumentError) as caught:
        ks.trace(lambda a: tl.composite("gemm", a, a), ks.hbm((8, 8), "f16"))
    assert "tl.ref" in caught.value.help


@pytest.mark.parametrize("streamed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_both_operands_may_be_transposed_and_have_any_number_of_buffers(streamed: str, stages: int) -> None:
    """``a.T @ b.T``, ragged tiles too; what is streamed goes through so many buffers in turn; in every policy."""
    rng = np.random.default_rng(stages)
    a, b = rng.integers(-3, 4, (21, 9)).astype(np.float32), rng.integers(-3, 4, (11, 21)).astype(np.float32)

    def kernel(a: Any, b: Any, o: Any) -> None:
        left = tl.ref(a) if "a" in streamed else tl.load(a)
        right = tl.ref(b) if "b" in streamed else tl.load(b)
        tl.store(o, tl.composite("gemm", left, right, trans_a=True, trans_b=True, stages=stages, tile=(4, 4, 4)))

    graph = ks.trace(kernel, a, b, ks.hbm((9, 11), "f32"))
    for policy in ("blocking", "lazy", "queued", "list"):
        np.testing.assert_array_equal(ks.run(graph, order=ks.schedule(graph, policy), poison=True)["o"], a.T @ b.T)
    used = {node.writes[0].storage.row for node in graph if node.op == "load"}
    assert len(used) == len(streamed) * stages + (2 - len(streamed))


@pytest.mark.parametrize("stages", [0, -1, 65, 2.0, True, "two"])
def test_what_is_no_number_of_buffers_is_refused(stages: Any) -> None:
    """A composite needs at least one."""

    def kernel(a: Any, o: Any) -> None:
        tl.store(o, tl.composite("gemm", tl.ref(a), tl.ref(a), stages=stages))

    with pytest.raises(ks.ArgumentError, match="stages="):
        ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"))


@pytest.mark.parametrize("into", [False, True])
def test_an_epilogue_takes_tiles_that_broadcast_and_acc_is_added_to(into: bool) -> None:
    """A bias for each column, a scale for each row and a whole tile, ragged tiles included; with `acc` the product is
    added to what is there, and the epilogue goes over that. Nothing else is allocated then."""
    rng = np.random.default_rng(3)
    m, n, k = 10, 7, 9
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    bias, scale, whole = (rng.standard_normal(shape).astype(np.float32) for shape in ((n,), (m, 1), (m, n)))
    peak: list[int] = []

    def kernel(a: Any, b: Any, bias: Any, scale: Any, whole: Any, o: Any) -> None:
        left, right, shift, factor, more = (tl.load(t) for t in (a, b, bias, scale, whole))
        acc = tl.full((m, n), 2.0, tl.float32) if into else None
        before = tl.empty((1,), tl.uint8).address
        steps: Any = [("mul", factor), ("add", shift), ("maximum", more)]
        made = tl.composite("gemm", left, right, tile=(4, 3, 4), epilogue=steps, acc=acc)
        assert not into or made is acc
        peak.append(tl.empty((1,), tl.uint8).address - before)
        tl.store(o, made)

    graph = ks.trace(kernel, a, b, bias, scale, whole, ks.hbm((m, n), "f32"))
    found = ks.run(graph)["o"]
    wanted = np.maximum((a @ b + (2.0 if into else 0.0)) * scale + bias, whole)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert (peak == [16]) == into  # the one byte that was asked for in between


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"epilogue": ("add", (4,))}, ks.ShapeError, r"of shape \(4,\) for a result of \(8, 6\)"),
        ({"epilogue": ("add", (1, 8, 6))}, ks.ShapeError, "broadcasts to the result"),
        ({"acc": ((8, 5), "f32")}, ks.ShapeError, r"\(8, 5\)"),
        ({"acc": ((8, 6), "f16")}, ks.DTypeError, "f16"),
        ({"acc": ((8, 6), "f16"), "out_dtype": "f16"}, ks.DTypeError, "out_dtype='f32'"),
    ],
)
def test_tiles_that_do_not_fit_are_refused_before_anything_is_recorded(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    """Tiles of an epilogue broadcast to the result, nothing broadcasts to `acc`."""
    left_behind: list[int] = []

    def kernel(a: Any, b: Any) -> None:
        given: dict[str, Any] = dict(options)
        if "epilogue" in given:
            name, shape = given["epilogue"]
            given["epilogue"] = [(name, tl.empty(shape, "f32"))]
        if "acc" in given:
            given["acc"] = tl.empty(*given["acc"])
        with pytest.raises(error, match=said):
            tl.composite("gemm", tl.ref(a), tl.ref(b), **given)
        left_behind.append(1)

    graph = ks.trace(kernel, ks.hbm((8, 4), "f32"), ks.hbm((4, 6), "f32"))
    assert left_behind and len(graph) == 0


@pytest.mark.parametrize("which", ["a", "b", "view"])
def test_a_product_is_not_added_to_one_of_its_operands(which: str) -> None:
    """Tiles of it would be read after they were written; a view is as little its own as the whole."""

    def kernel(a: Any) -> None:
        square, other = tl.load(a), tl.zeros((6, 6), "f32")
        operands = (other, square) if which == "b" else (square, other)
        acc = tl.trans(square) if which == "view" else square
        with pytest.raises(ks.ArgumentError, match="over one of its operands"):
            tl.composite("gemm", *operands, tile=(3, 3, 3), acc=acc)
        tl.composite("gemm", *operands, tile=(3, 3, 3), acc=tl.zeros((6, 6), "f32"))

    ks.trace(kernel, ks.hbm((6, 6), "f32"))
