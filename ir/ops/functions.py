"""Functions that numpy has not: of f64 the error function, and a product and sum rounded once; of integers the high
half of a product."""

from __future__ import annotations

import numpy as np

from .numbers import Array

__all__ = ["bit_length", "erf_of", "erfc_of", "fused", "high_product", "reversed_bits"]


def fused(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of f64, rounded once, where the product and its parts are normal numbers; elsewhere rounded twice.

    Error-free product and sums (Dekker 1971, Knuth), whose rest is rounded to odd before it is added (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    product, product_rest = _product(a, b)
    low, low_rest = _sum(c, product_rest)
    high, high_rest = _sum(product, low)
    exact = high + _odd_sum(low_rest, high_rest)
    # A sum of 0 has the sign that IEEE 754 gives the plain one.
    return np.where(np.isfinite(exact) & (exact != 0), exact, a * b + c)


def _halves(x: Array) -> tuple[Array, Array]:
    scaled = x * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _odd_sum(a: Array, b: Array) -> Array:
    total, rest = map(np.asarray, _sum(a, b))
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    return np.where(even & (rest != 0), np.nextafter(total, np.where(rest > 0, np.inf, -np.inf)), total)


def _polynomials(above: str, below: str) -> tuple[list[float], list[float]]:
    """Numerator and denominator, from the lowest power."""
    return [float(number) for number in above.split()], [float(number) for number in below.split()]


#: Of erf, by where |x| lies. FreeBSD's ``s_erf.c`` (Sun Microsystems, 1993), whose error stays below one unit in the
#: last place.
_ERF_NEAR_0 = _polynomials(
    "1.28379167095512558561e-01 -3.25042107247001499370e-01 -2.84817495755985104766e-02 -5.77027029648944159157e-03 "
    "-2.37630166566501626084e-05",
    "1.0 3.97917223959155352819e-01 6.50222499887672944485e-02 5.08130628187576562776e-03 "
    "1.32494738004321644526e-04 -3.96022827877536812320e-06",
)
_ERF_NEAR_1 = _polynomials(
    "-2.36211856075265944077e-03 4.14856118683748331666e-01 -3.72207876035701323847e-01 3.18346619901161753674e-01 "
    "-1.10894694282396677476e-01 3.54783043256182359371e-02 -2.16637559486879084300e-03",
    "1.0 1.06420880400844228286e-01 5.40397917702171048937e-01 7.18286544141962662868e-02 "
    "1.26171219808761642112e-01 1.36370839120290507362e-02 1.19844998467991074170e-02",
)
_ERF_MIDDLE = _polynomials(
    "-9.86494403484714822705e-03 -6.93858572707181764372e-01 -1.05586262253232909814e01 -6.23753324503260060396e01 "
    "-1.62396669462573470355e02 -1.84605092906711035994e02 -8.12874355063065934246e01 -9.81432934416914548592e00",
    "1.0 1.96512716674392571292e01 1.37657754143519042600e02 4.34565877475229228821e02 "
    "6.45387271733267880336e02 4.29008140027567833386e02 1.08635005541779435134e02 6.57024977031928170135e00 "
    "-6.04244152148580987438e-02",
)
_ERF_FAR = _polynomials(
    "-9.86494292470009928597e-03 -7.99283237680523006574e-01 -1.77579549177547519889e01 -1.60636384855821916062e02 "
    "-6.37566443368389627722e02 -1.02509513161107724954e03 -4.83519191608651397019e02",
    "1.0 3.03380607434824582924e01 3.25792512996573918826e02 1.53672958608443695994e03 "
    "3.19985821950859553908e03 2.55305040643316442583e03 4.74528541206955367215e02 -2.24409524465858183362e01",
)
_ERF_OF_1 = 8.45062911510467529297e-01


def _ratio(table: tuple[list[float], list[float]], x: Array) -> Array:
    above, below = (np.polynomial.polynomial.polyval(x, coefficients) for coefficients in table)
    return np.asarray(above / below)


def erf_of(x: Array) -> Array:
    """The Gauss error function of f64, to a unit in the last place."""
    found = np.where(np.isnan(x), x, np.sign(x))  # from 6 on it rounds to one
    size = np.abs(x)
    for low, high, of_part in (
        (0.0, 0.84375, lambda v: np.abs(v) + np.abs(v) * _ratio(_ERF_NEAR_0, v * v)),
        (0.84375, 1.25, lambda v: _ERF_OF_1 + _ratio(_ERF_NEAR_1, np.abs(v) - 1)),
        (1.25, 1 / 0.35, lambda v: _tail(_ERF_MIDDLE, np.abs(v))),
        (1 / 0.35, 6.0, lambda v: _tail(_ERF_FAR, np.abs(v))),
    ):
        here = (low <= size) & (size < high)
        found[here] = np.copysign(of_part(x[here]), x[here])
    return found


def erfc_of(x: Array) -> Array:
    """One less the error function, of f64, exact also where that is next to 0."""
    found = np.where(np.isnan(x), x, np.where(x > 0, 0.0, 2.0))  # from 28 on it is 0, below -6 it rounds to two
    for low, high, of_part in (
        (-6.0, -1 / 0.35, lambda v: 2 - _far(_ERF_FAR, -v)),
        (-1 / 0.35, -1.25, lambda v: 2 - _far(_ERF_MIDDLE, -v)),
        (-1.25, -0.84375, lambda v: 1 + (_ERF_OF_1 + _ratio(_ERF_NEAR_1, -v - 1))),
        (-0.84375, 0.25, lambda v: 1 - (v + v * _ratio(_ERF_NEAR_0, v * v))),
        (0.25, 0.84375, lambda v: 0.5 - (v - 0.5 + v * _ratio(_ERF_NEAR_0, v * v))),
        (0.84375, 1.25, lambda v: 1 - _ERF_OF_1 - _ratio(_ERF_NEAR_1, v - 1)),
        (1.25, 1 / 0.35, lambda v: _far(_ERF_MIDDLE, v)),
        (1 / 0.35, 28.0, lambda v: _far(_ERF_FAR, v)),
    ):
        here = (low <= x) & (x < high)
        found[here] = of_part(x[here])
    return found


def _far(table: tuple[list[float], list[float]], x: Array) -> Array:
    # The square of a number of 21 bits is exact.
    short = (x.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    rest = np.exp((short - x) * (short + x) + _ratio(table, 1 / (x * x)))
    return np.asarray(np.exp(-short * short - 0.5625) * rest / x)


def bit_length(x: Array) -> Array:
    """The bits of integers without their leading zeros."""
    size = x.dtype.itemsize * 8
    bits = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    high = bits >> np.uint64(32)
    part = np.where(high > 0, high, bits)  # of 32 bits, which a float holds exactly
    return np.asarray(np.frexp(part.astype(np.float64))[1] + np.where((high > 0) & (size > 32), 32, 0))


def reversed_bits(x: Array) -> Array:
    """Integers with their bits in the other order."""
    octets = np.ascontiguousarray(x)[..., None].view(np.uint8)
    turned = np.packbits(np.unpackbits(octets, axis=-1)[..., ::-1], axis=-1)
    return np.ascontiguousarray(turned).view(x.dtype)[..., 0]


def _tail(table: tuple[list[float], list[float]], x: Array) -> Array:
    return np.asarray(1 - _far(table, x))


def high_product(a: Array, b: Array) -> Array:
    """The high half of the product of integers of one dtype, of 32 or 64 bits."""
    if a.dtype.itemsize == 4:
        wide = np.dtype(f"{a.dtype.kind}8")
        return np.asarray(a.astype(wide) * b.astype(wide) >> 32).astype(a.dtype)
    if a.dtype.kind == "u":
        return _high_of_u64(a, b)
    # Of two's complement numbers: each negative one was taken for 2**64 more (Warren, "Hacker's Delight", 8-3).
    high = _high_of_u64(a.astype(np.uint64), b.astype(np.uint64)).astype(np.int64)
    return np.asarray(high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0))


def _high_of_u64(a: Array, b: Array) -> Array:
    low = np.uint64(0xFFFFFFFF)
    (ah, al), (bh, bl) = (a >> 32, a & low), (b >> 32, b & low)
    middle = ah * bl + (al * bl >> 32)
    other = al * bh + (middle & low)
    return np.asarray(ah * bh + (middle >> 32) + (other >> 32))
