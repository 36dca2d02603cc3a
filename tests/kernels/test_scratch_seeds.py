"""The five tests that the founding records ask of scratch scopes (S1), with exact bytes."""

import math
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.execution.execute import execute

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, TILE, D = 16, 32, 64
#: q (16, 64) f16; m and l (16, 1) f32; acc (16, 64) f32.
PERSISTENT = 2_048 + 64 + 64 + 4_096
#: K and V tiles (32, 64) f16; s, s scaled, s - m and p (16, 32) f32; p in f16; the largest of a tile, m_new, m - m_new,
#: alpha, l * alpha, the sum of a tile and l_new (16, 1) f32; p V, acc * alpha and acc_new (16, 64) f32.
SCOPED = 2 * 4_096 + 4 * 2_048 + 1_024 + 7 * 64 + 3 * 4_096
#: acc / l (16, 64) f32, made outside, after the sweep.
RESULT = 4_096


@ks.kernel
def sweep(
    q: ks.HbmTensor,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    o: ks.HbmTensor,
    m_out: ks.HbmTensor,
    l_out: ks.HbmTensor,
    acc_out: ks.HbmTensor,
    *,
    scoped: bool,
) -> None:
    """An online softmax over tiles of K/V, with a scope a tile, or with none."""
    q_tile = tl.load(q[:, :])
    m, l = tl.full((ROWS, 1), float("-inf"), tl.float32), tl.zeros((ROWS, 1), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for start in range(0, k.shape[0], TILE):
        if scoped:
            with tl.scratch_scope():
                new = step(q_tile, k, v, start, m, l, acc)
                for old, value in zip((m, l, acc), new, strict=True):
                    tl.copy_to(old, value)
        else:
            m, l, acc = step(q_tile, k, v, start, m, l, acc)
    tl.store(m_out[:, :], m)
    tl.store(l_out[:, :], l)
    tl.store(acc_out[:, :], acc)
    tl.store(o[:, :], acc / l)


def step(
    q_tile: ks.TensorHandle,
    k: ks.HbmTensor,
    v: ks.HbmTensor,
    start: int,
    m: ks.TensorHandle,
    l: ks.TensorHandle,
    acc: ks.TensorHandle,
) -> tuple[ks.TensorHandle, ks.TensorHandle, ks.TensorHandle]:
    """(m, l, O) after one more tile, in fresh bytes."""
    k_tile, v_tile = tl.load(k[start : start + TILE, :]), tl.load(v[start : start + TILE, :])
    s = tl.dot(q_tile, tl.trans(k_tile)) * (1 / math.sqrt(D))
    m_new = tl.maximum(m, tl.max(s, axis=1, keep_dims=True))
    p, alpha = tl.exp(s - m_new), tl.exp(m - m_new)
    l_new = l * alpha + tl.sum(p, axis=1, keep_dims=True)
    return m_new, l_new, acc * alpha + tl.dot(p.to(v.dtype), v_tile)


def tensors(tiles: int) -> dict[str, Any]:
    """The arguments of a sweep over so many tiles."""
    keys = (tiles * TILE, D)
    column, block = ks.hbm((ROWS, 1), "f32"), ks.hbm((ROWS, D), "f32")
    given = {"q": ks.hbm((ROWS, D), "f16"), "k": ks.hbm(keys, "f16"), "v": ks.hbm(keys, "f16")}
    return given | {"o": block, "m_out": column, "l_out": column, "acc_out": block}


def numbers(tiles: int) -> dict[str, Array]:
    """Random inputs of a sweep over so many tiles."""
    rng = np.random.default_rng(tiles)
    shapes = {"q": (ROWS, D), "k": (tiles * TILE, D), "v": (tiles * TILE, D)}
    return {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


@pytest.mark.parametrize("tiles", [1, 2, 7, 64])
def test_the_peak_is_the_persistent_bytes_and_one_tile(tiles: int) -> None:
    """(1) The peak cursor of an N-tile loop is the persistent bytes plus one tile's footprint, whatever N."""
    live = ks.liveness(ks.trace(sweep, **tensors(tiles), scoped=True))
    assert PERSISTENT == 6_272
    assert SCOPED == 30_144
    assert live.peak_bytes == PERSISTENT + SCOPED
    assert live.cursor[-1] == PERSISTENT + RESULT


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_without_scopes_the_peak_grows_with_the_tiles(tiles: int) -> None:
    """The leak that scopes cure: without them every tile adds its footprint."""
    live = ks.liveness(ks.trace(sweep, **tensors(tiles), scoped=False))
    assert live.peak_bytes == PERSISTENT + tiles * SCOPED + RESULT


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_a_sweep_with_scopes_gives_the_same_result_as_without(tiles: int) -> None:
    """(2) Where both fit, O is the same with and without scopes, to the last bit, also with rewound bytes poisoned."""
    with_scopes = ks.trace(sweep, **tensors(tiles), scoped=True)
    without = ks.trace(sweep, **tensors(tiles), scoped=False)
    expected = ks.run(without, numbers(tiles))
    for poison in (False, True):
        outputs = ks.run(with_scopes, numbers(tiles), poison=poison)
        assert {name: array.tobytes() for name, array in outputs.items()} == {
            name: array.tobytes() for name, array in expected.items()
        }


def test_a_sweep_that_overflows_without_scopes_completes_with_them() -> None:
    """(3) 34 tiles fit the budget of 1 MiB without scopes, the 35th does not; with scopes any number does."""
    budget = 1 << 20
    fitting = (budget - PERSISTENT - RESULT) // SCOPED
    assert fitting == 34
    ks.trace(sweep, **tensors(fitting), scoped=False)
    with pytest.raises(ks.ScratchOverflowError, match="1,048,576 B are in use"):
        ks.trace(sweep, **tensors(fitting + 1), scoped=False)
    graph = ks.trace(sweep, **tensors(fitting + 1), scoped=True)
    assert ks.liveness(graph).peak_bytes == PERSISTENT + SCOPED
    assert np.isfinite(ks.run(graph, numbers(fitting + 1))["o"]).all()


def test_persistent_values_are_right_after_the_exits() -> None:
    """(4) After all exits the persistent (m, l, O) hold what plain numpy gives for all keys at once."""
    given = numbers(7)
    run = execute(ks.trace(sweep, **tensors(7), scoped=True), given, poison=True)
    scores = given["q"].astype(np.float32) @ given["k"].astype(np.float32).T / np.float32(math.sqrt(D))
    m = scores.max(axis=1, keepdims=True)
    weights = np.exp(scores - m)
    values = given["v"].astype(np.float32)
    np.testing.assert_allclose(run.outputs["m_out"], m, rtol=1e-5)
    np.testing.assert_allclose(run.outputs["l_out"], weights.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(run.outputs["acc_out"], weights @ values, rtol=2e-3, atol=2e-3)
    assert run.stale_reads == run.stale_writes == run.unwritten_reads == ()


def test_nested_scopes_rewind_to_their_own_save_points() -> None:
    """(5) Each exit rewinds to the cursor at its own entry; handles made outside keep their address."""
    addresses: dict[str, int] = {}

    @ks.kernel
    def nested(o: ks.HbmTensor) -> None:
        def make(name: str, nbytes: int) -> ks.TensorHandle:
            handle = tl.zeros((nbytes,), tl.uint8)
            addresses[name] = handle.address
            return handle

        outer = make("outer", 100)
        with tl.scratch_scope("block"):
            make("block", 33)
            for tile in ("first", "second"):
                with tl.scratch_scope("tile"):
                    make(f"{tile} tile", 16)
                    with tl.scratch_scope("part"):
                        make(f"{tile} part", 1)
                    make(f"{tile} after part", 17)
            make("after tiles", 5)
        make("after block", 64)
        tl.store(o[:], outer)

    graph = ks.trace(nested, ks.hbm((100,), "u8"))
    assert addresses == {
        "outer": 0,
        "block": 112,
        "first tile": 160,
        "first part": 176,
        "first after part": 176,
        "second tile": 160,
        "second part": 176,
        "second after part": 176,
        "after tiles": 160,
        "after block": 112,
    }
    live = ks.liveness(graph)
    assert live.peak_bytes == 176 + 32
    exits = [node.id for node in graph if node.op == "scope_exit"]
    assert live.cursor[exits].tolist() == [176, 160, 176, 160, 112]
