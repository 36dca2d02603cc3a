"""``libdevice``: functions of single numbers, beside those of Python and scipy."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tritonkernels import launched, same_in_turn, tl

from kernscope.ir.errors import MissingExtraError
from kernscope.ir.ops import special_functions
from kernscope.tracer.triton.language import LIBDEVICE, REFUSED_LIBDEVICE

libdevice = SimpleNamespace(**LIBDEVICE)
RNG = np.random.default_rng(3)


def one(x_ptr, o_ptr, F: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(o_ptr + i, F(tl.load(x_ptr + i)))


def two(x_ptr, y_ptr, o_ptr, F: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(o_ptr + i, F(tl.load(x_ptr + i), tl.load(y_ptr + i)))


def three(x_ptr, y_ptr, z_ptr, o_ptr, F: tl.constexpr, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    tl.store(o_ptr + i, F(tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)))


def of(name: str, *operands: Any, result: Any = None) -> Any:
    """What a function of `libdevice` makes of arrays, in a launch and in the run of its graph."""
    size = 1 << (len(operands[0]) - 1).bit_length()  # a line has a power of two of elements
    out = np.zeros(size, operands[0].dtype if result is None else result)
    kernel = {1: one, 2: two, 3: three}[len(operands)]
    made = launched(kernel, 1, *(np.resize(x, size) for x in operands), out, F=LIBDEVICE[name], N=size)
    same_in_turn(made, {"o_ptr": out})
    return out[: len(operands[0])]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "wanted", "low", "high"),
    [
        ("erfc", math.erfc, -7, 27),
        ("lgamma", math.lgamma, 0.01, 50),
        ("tgamma", math.gamma, 0.1, 30),
        ("rcbrt", lambda x: 1 / math.cbrt(x), 0.1, 1e6),
        ("sinpi", lambda x: math.sin(math.pi * math.remainder(x, 2)), -1000, 1000),
        ("cospi", lambda x: math.cos(math.pi * math.remainder(x, 2)), -1000, 1000),
        ("logb", lambda x: math.frexp(x)[1] - 1, 1e-30, 1e30),
        ("normcdf", lambda x: math.erfc(-x / math.sqrt(2)) / 2, -5, 5),
    ],
)
def test_functions_of_one_number_are_those_of_python(
    name: str, wanted: Any, low: float, high: float, dtype: Any
) -> None:
    """To the last places of their type, next to 0 as well."""
    if name in ("lgamma", "tgamma", "normcdf"):
        pytest.importorskip("scipy")
    x = RNG.uniform(low, high, 512).astype(dtype)
    exact = np.array([wanted(float(v)) for v in x])
    tiny = 1e-30 if dtype == np.float32 else 1e-300
    eps = float(np.finfo(dtype).eps)
    near_0 = 4 * eps if name == "lgamma" else tiny  # it crosses 0 at 1 and 2
    np.testing.assert_allclose(of(name, x), exact, rtol=64 * eps, atol=near_0)


@pytest.mark.parametrize(
    ("name", "inverse", "low", "high"),
    [("erf", "erfinv", -2, 2), ("erfc", "erfcinv", -2, 2), ("normcdf", "normcdfinv", -3, 3)],
)
def test_inverses_lead_back(name: str, inverse: str, low: float, high: float) -> None:
    """In f64, where little is lost on the way."""
    pytest.importorskip("scipy")
    x = RNG.uniform(low, high, 128)
    np.testing.assert_allclose(of(inverse, of(name, x)), x, rtol=1e-9, atol=1e-12)


def test_bessel_functions_obey_their_equations() -> None:
    """The Wronskian of J and Y, the recurrence of three orders, and the derivative of I0 by differences."""
    pytest.importorskip("scipy")
    x = RNG.uniform(0.5, 20, 128)
    wronskian = of("j1", x) * of("y0", x) - of("j0", x) * of("y1", x)
    np.testing.assert_allclose(wronskian, 2 / (np.pi * x), rtol=1e-9)
    order = np.full(128, 2, np.int32)
    np.testing.assert_allclose(of("jn", order, x, result=np.float64), 2 / x * of("j1", x) - of("j0", x), atol=1e-10)
    np.testing.assert_allclose(of("yn", order, x, result=np.float64), 2 / x * of("y1", x) - of("y0", x), atol=1e-8)
    h = 1e-5
    slope = (of("cyl_bessel_i0", x + h) - of("cyl_bessel_i0", x - h)) / (2 * h)
    np.testing.assert_allclose(of("cyl_bessel_i1", x), slope, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_bits_are_counted_and_turned(dtype: Any) -> None:
    """Of every width and sign, 0 and the smallest and largest numbers included."""
    limits, width = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    x = RNG.integers(limits.min, limits.max, 64, dtype)
    x[:4] = 0, 1, limits.min, limits.max
    bits = [int(v) % (1 << width) for v in x]
    text = [f"{v:0{width}b}" for v in bits]
    assert of("clz", x, result=np.int32).tolist() == [width - v.bit_length() for v in bits]
    assert of("popc", x, result=np.int32).tolist() == [v.bit_count() for v in bits]
    assert of("ffs", x, result=np.int32).tolist() == [(v & -v).bit_length() for v in bits]
    assert [int(v) % (1 << width) for v in of("brev", x)] == [int(t[::-1], 2) for t in text]


@pytest.mark.parametrize(("way", "rounded"), [("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil)])
def test_conversions_round_as_they_say(way: str, rounded: Any) -> None:
    """To integers of both sizes, from both floats."""
    x = RNG.uniform(-100, 100, 64)
    x[:4] = [0.5, 1.5, -0.5, -2.5]
    for source, dtype in (("float", np.float32), ("double", np.float64)):
        given = x.astype(dtype)
        for whole, kind in (("int", np.int32), ("ll", np.int64)):
            found = of(f"{source}2{whole}_{way}", given, result=kind)
            assert found.tolist() == rounded(given).astype(kind).tolist()
        found = of(f"{source}2uint_{way}", np.abs(given), result=np.uint32)
        assert found.tolist() == rounded(np.abs(given)).astype(np.uint32).tolist()


def test_the_rest() -> None:
    """Norms, means of integers, distances, powers of two, remainders, and numbers that are rounded away from zero."""
    x, y = RNG.uniform(-50, 50, 64), RNG.uniform(1, 9, 64)
    np.testing.assert_allclose(of("norm3d", x, y, x), np.sqrt(2 * x * x + y * y))
    np.testing.assert_allclose(of("rnorm3d", x, y, x), 1 / np.sqrt(2 * x * x + y * y))
    np.testing.assert_allclose(of("rhypot", x, y), 1 / np.hypot(x, y))
    assert of("remainder", x, y).tolist() == [math.remainder(a, b) for a, b in zip(x, y, strict=True)]
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.5, 4.0, -7.0])
    assert of("llround", halves, result=np.int64).tolist() == [1, 2, 3, -1, -2, 4, 4, -7]
    assert of("remainder", halves, np.ones(8)).tolist() == [math.remainder(v, 1) for v in halves]
    assert of("ilogb", np.abs(x) + 1, result=np.int32).tolist() == [math.frexp(abs(v) + 1)[1] - 1 for v in x]
    exponent = RNG.integers(-60, 60, 64).astype(np.int32)
    assert of("ldexp", x, exponent).tolist() == [math.ldexp(v, int(n)) for v, n in zip(x, exponent, strict=True)]
    assert of("fdim", x, y).tolist() == [max(a - b, 0.0) for a, b in zip(x, y, strict=True)]
    a, b = (RNG.integers(-(2**31), 2**31, 64).astype(np.int32) for _ in range(2))
    sums = [int(p) + int(q) for p, q in zip(a, b, strict=True)]
    assert of("hadd", a, b).tolist() == [s >> 1 for s in sums]
    assert of("rhadd", a, b).tolist() == [(s + 1) >> 1 for s in sums]
    c, d = (RNG.integers(0, 1000, 64).astype(np.uint32) for _ in range(2))
    assert of("sad", c, d, c).tolist() == (np.abs(c.astype(int) - d.astype(int)) + c).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_hold_at_the_ends_of_their_type(dtype: Any) -> None:
    """Powers of two of numbers that are subnormal, infinite, none or zero, by powers far outside of the type; numbers
    beside one half and next to where there are no halves; infinities."""
    tiny, most = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    numbers = np.array([0.0, -0.0, 1.5, -1.5, tiny, -3 * tiny, most, -most, np.inf, np.nan], dtype)
    for power in (-(2**31), -1200, -300, -24, -1, 0, 1, 300, 1200, 2**31 - 1):
        found = of("ldexp", numbers, np.full(len(numbers), power, np.int32))
        with np.errstate(all="ignore"):
            assert found.tobytes() == np.ldexp(numbers, power).tobytes(), power
        assert of("scalbn", numbers, np.full(len(numbers), power, np.int32)).tobytes() == found.tobytes()
    below, whole = np.nextafter(dtype(0.5), dtype(0)), 1 / np.finfo(dtype).eps
    halves = np.array([below, -below, 0.5, -0.5, 2.5, -2.5, whole + 1, -whole - 1, whole / 2 + 0.5, 0.0], dtype)
    wanted = [0, 0, 1, -1, 3, -3, whole + 1, -whole - 1, whole / 2 + 1, 0]
    assert of("round", halves).tolist() == wanted
    assert of("llround", halves, result=np.int64).tolist() == wanted
    assert of("rint", halves).tolist() == np.rint(halves).tolist()
    infinite = (
        np.array([np.inf, np.inf, -np.inf, 1, 1, np.nan], dtype),
        np.array([np.inf, 1, 1, np.inf, -np.inf, 1], dtype),
    )
    np.testing.assert_array_equal(of("fdim", *infinite), np.array([0, np.inf, 0, 0, np.inf, np.nan], dtype))
    x, y = np.array([1, -1, most, 3, 5, 7, tiny], dtype), np.array([np.inf, -np.inf, most, 2, 2, -2, most], dtype)
    assert of("remainder", x, y).tolist() == [math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    x = np.array([np.nextafter(dtype(1.5 * v), dtype(0)) for v in np.linspace(1, 2, 257)], dtype)
    y = np.linspace(1, 2, 257).astype(dtype)
    assert of("remainder", x, y).tolist() == [math.remainder(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_without_scipy_its_functions_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And which extra brings it; what needs none of it runs."""

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(special_functions.importlib, "import_module", missing)
    x = np.ones(4, np.float32)
    with pytest.raises(
        MissingExtraError, match=r"scipy is not installed: it computes gammaln[\s\S]*kernscope\[special\]"
    ):
        launched(one, 1, x, x, F=libdevice.lgamma, N=4)
    np.testing.assert_allclose(of("erfc", x), math.erfc(1), rtol=1e-6)


def test_a_name_runs_or_is_refused() -> None:
    """Never both; reasons are told."""
    assert not set(LIBDEVICE) & set(REFUSED_LIBDEVICE)
    assert all(REFUSED_LIBDEVICE.values())
