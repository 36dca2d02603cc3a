"""Operations that front ends ask for, and `tl` does not have: numbers equal Python's own."""

import math

import numpy as np
import pytest

from kernscope.ir import dtypes
from kernscope.ir.layout import Layout
from kernscope.ir.ops import OPERATIONS

PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5), (5, 0), (-5, 0)]
ONE = {
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "asinh": math.asinh,
    "atanh": math.atanh,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
    "trunc": math.trunc,
}
TWO = {"atan2": math.atan2, "hypot": math.hypot, "copysign": math.copysign}


def evaluated(name: str, *operands: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The table's own evaluation, in the dtype that its rule gives."""
    layouts = tuple(Layout.dense(x.shape, dtypes.of_numpy(x.dtype)) for x in operands)
    _, result = OPERATIONS[name].rule(layouts)
    found: np.ndarray = OPERATIONS[name].evaluate(*operands, result=result, operands=layouts)  # type: ignore[type-arg]
    assert found.dtype == result.numpy
    return found


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_division_rounds_toward_zero_and_the_remainder_has_the_sign_of_the_dividend(kind: str) -> None:
    """As in C; by zero both give 0."""
    a, b = np.array(PAIRS, dtype=kind).T
    assert evaluated("truncdiv", a, b).tolist() == [math.trunc(x / y) if y else 0 for x, y in PAIRS]
    assert evaluated("rem", a, b).tolist() == [int(math.fmod(x, y)) if y else 0 for x, y in PAIRS]


def test_division_without_signs_and_of_floats() -> None:
    """Unsigned integers divide as they are; floats are truncated, and keep the dividend's sign."""
    a, b = np.array([7, 2**32 - 1], np.uint32), np.array([2, 2**31], np.uint32)
    assert evaluated("truncdiv", a, b).tolist() == [3, 1]
    assert evaluated("rem", a, b).tolist() == [1, 2**31 - 1]
    x, y = np.array([-7.5, 7.5], np.float32), np.array([2, -2], np.float32)
    assert evaluated("truncdiv", x, y).tolist() == [-3.0, -3.0]
    assert evaluated("rem", x, y).tolist() == [-1.5, 1.5]


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_functions_of_floats_equal_pythons(name: str, kind: str) -> None:
    """To a few units in the last place of the dtype."""
    x, y = np.array([-0.9, -0.5, 0.25, 0.75], kind), np.array([0.5, -2, 3, -0.25], kind)
    given = (x,) if name in ONE else (x, y)
    function = ONE.get(name) or TWO[name]
    wanted = [function(*map(float, each)) for each in zip(*given, strict=True)]
    eps = float(np.finfo(kind).eps)
    np.testing.assert_allclose(evaluated(name, *given).astype(np.float64), wanted, rtol=8 * eps, atol=8 * eps)


def test_the_rest_of_them() -> None:
    """Where their numbers are defined elsewhere."""
    x = np.array([1.0, 10.0, 1000.0], np.float32)
    np.testing.assert_allclose(evaluated("log10", x), [0, 1, 3], rtol=1e-6)
    assert evaluated("acosh", x[:1]).tolist() == [0.0]
    up = evaluated("nextafter", x, x + 1)
    assert (up > x).all()
    assert (up - x < 1e-4).all()
