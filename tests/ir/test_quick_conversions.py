"""The ways around slow conversions and large temporaries give the bits of the straight way."""

from typing import Any

import numpy as np
import pytest

from kernscope.ir import dtypes
from kernscope.ir.ops import OPERATIONS, cast_array

Array = np.ndarray[Any, np.dtype[Any]]
F16, F32 = dtypes.of("f16"), dtypes.float32
EIGHT_BITS = [d for d in dtypes.ALL if d.is_float and d.itemsize == 1]
RNG = np.random.default_rng(0)


def around_halves() -> Array:
    """f16's subnormals and smallest normals, what lies between two of them, the neighbours of both, and a grid over
    all that is smaller; either sign; infinity, NaN, and the largest."""
    halves = np.arange(0x500, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[1:] + halves[:-1]) / 2
    exact = np.concatenate([halves, middles, np.float32([np.inf, np.nan, 65504, 65519.99, 65520, 1e30])])
    near = [np.nextafter(exact, np.float32(to)) for to in (np.inf, -np.inf)]
    grid = np.arange(0, 0x39000000, 9973, dtype=np.uint32).view(np.float32)
    numbers = np.concatenate([exact, *near, grid])
    return np.concatenate([numbers, -numbers])


@pytest.mark.parametrize("step", [1, 3])
def test_halves_are_what_numpy_rounds_to(step: int) -> None:
    """More of them than are converted at once, in order and with gaps; zeros keep their sign."""
    numbers = np.tile(around_halves(), 2)[::step]
    assert numbers.size > 1 << 16
    with np.errstate(all="ignore"):
        expected = numbers.astype(np.float16)
    assert np.array_equal(cast_array(numbers, F16).view(np.uint16), expected.view(np.uint16))


def test_small_halves_are_not_reported_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy is given nothing to round below f16's normal numbers: it would tell the processor of each."""
    monkeypatch.setattr(np, "errstate", lambda **_: _Nothing())
    small = RNG.normal(size=1000).astype(np.float32) * np.float32(1e-6)
    with pytest.raises(FloatingPointError), _raising():
        small.astype(np.float16)
    with _raising():
        cast_array(small, F16)


class _Nothing:
    """A context that sets nothing."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class _raising:
    """Within it an underflow of numpy's is an error."""

    def __enter__(self) -> None:
        self.before = np.seterr(under="raise")

    def __exit__(self, *_: object) -> None:
        np.seterr(**self.before)


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_types_of_8_bits_are_looked_up(dtype: dtypes.DType) -> None:
    """All 256 of them, NaN's bits included, in any order in memory."""
    numbers = np.arange(256, dtype=np.uint8).view(dtype.numpy).reshape(16, 16)
    for given in (numbers, numbers.T, numbers[::3, 1::2]):
        assert np.array_equal(cast_array(given, F32).view(np.uint32), given.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("shared", ["none", "a", "b", "acc", "a and b", "all"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_a_large_batch_is_multiplied_in_parts_that_change_nothing(shared: str, batch: tuple[int, ...]) -> None:
    """Each product is that of its own matrices, bit for bit, also where all share an operand."""
    count = 150
    shapes = {"a": (64, 32), "b": (32, 64), "acc": (64, 64)}
    few = ("a", "b", "acc") if shared == "all" else shared.split(" and ")
    made = {name: RNG.normal(size=(1 if name in few else count, *batch, *s)) for name, s in shapes.items()}
    a, b = (made[name].astype(np.float16) for name in "ab")
    acc = made["acc"].astype(np.float32)
    for more in ((), (acc,)):
        evaluate: Any = OPERATIONS["dot"].evaluate
        found = evaluate(a, b, *more, out_dtype=F32, result=F32, operands=())
        expected = np.matmul(a.astype(np.float32), b.astype(np.float32))
        expected = more[0] + expected if more else expected
        assert np.array_equal(found, expected)
