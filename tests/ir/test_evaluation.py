"""What operations compute: against plain numpy in f32, against Python's integers, rounded once."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from kernscope.ir import dtypes
from kernscope.ir.dtypes import ALL, DType
from kernscope.ir.layout import Layout
from kernscope.ir.ops import OPERATIONS, cast_array

Array = np.ndarray[Any, np.dtype[Any]]
FLOATS = [d for d in ALL if d.is_float]
INTEGERS = [d for d in ALL if d.is_integer]
F32 = np.float32


def wide(dtype: DType) -> Any:
    """What numpy computes floats of a dtype in."""
    return np.float64 if dtype is dtypes.float64 else F32


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": lambda x: -x,
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: F32(1) / np.sqrt(x),
    "tanh": np.tanh,
    "sigmoid": lambda x: F32(1) / (F32(1) + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def evaluate(name: str, *operands: Any, **static: Any) -> Array:
    """What an operation computes for arrays and numbers; checked to have the dtype and shape that its rule declares."""
    described = [Layout.dense(o.shape, dtypes.of_numpy(o.dtype)) if isinstance(o, np.ndarray) else o for o in operands]
    operation = OPERATIONS[name]
    shape, dtype = operation.rule(described, **static)
    value: Array = operation.evaluate(*operands, result=dtype, operands=described, **static)
    assert value.dtype == dtype.numpy, (name, value.dtype, dtype)
    assert value.shape == shape, (name, value.shape, shape)
    return value


def floats(dtype: DType, seed: int, count: int = 500) -> Array:
    """Numbers of all sizes, with zeros, infinities and NaN."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(count) * 10.0 ** generator.integers(-3, 3, count)
    values[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    return values.astype(dtype.numpy)


def integers(dtype: DType, seed: int, count: int = 500) -> Array:
    """Numbers over the whole range, its ends and zero among them."""
    info = np.iinfo(dtype.numpy)
    values = np.random.default_rng(seed).integers(info.min, info.max, count, endpoint=True, dtype=dtype.numpy)
    values[:5] = [info.min, info.max, 0, 1, info.max - 1]
    return values.astype(dtype.numpy)


def same_bits(a: Array, b: Array) -> None:
    """Equal bit for bit, where any NaN equals any other."""
    nan = np.isnan(a.astype(np.float64))
    np.testing.assert_array_equal(nan, np.isnan(b.astype(np.float64)))
    width = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(a[~nan].view(width), b[~nan].view(width))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_are_computed_in_f32_and_rounded_once(name: str, dtype: DType) -> None:
    """For f16, bf16 and f8, too: the value is the f32 one, rounded to the dtype; of f64 the f64 one."""
    x = floats(dtype, seed=1)
    with np.errstate(all="ignore"):
        wanted = UNARY[name](x.astype(wide(dtype))).astype(dtype.numpy)
    same_bits(evaluate(name, x), wanted)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_two_floats_are_computed_in_f32_and_rounded_once(name: str, dtype: DType) -> None:
    """As above, for operators."""
    a, b = floats(dtype, seed=2), floats(dtype, seed=3)[::-1].copy()
    with np.errstate(all="ignore"):
        wanted = BINARY[name](a.astype(wide(dtype)), b.astype(wide(dtype))).astype(dtype.numpy)
    same_bits(evaluate(name, a, b), wanted)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_erf_is_the_error_function(dtype: DType) -> None:
    """Python's own to a unit in the last place of f64, rounded once; signed zeros, infinities and NaN among them."""
    x = np.concatenate([floats(dtype, seed=25, count=2000), np.linspace(-7, 7, 4000).astype(dtype.numpy)])
    got, exact = evaluate("erf", x), np.array([math.erf(v) for v in x.astype(np.float64)])
    if dtype is dtypes.float64:
        np.testing.assert_array_max_ulp(got[~np.isnan(x)], exact[~np.isnan(x)], maxulp=1)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
        return
    same_bits(got, exact.astype(F32).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_compare_values(name: str, dtype: DType) -> None:
    """NaN equals nothing; everything else is as Python compares the numbers."""
    make = floats if dtype.is_float else integers
    a, b = make(dtype, seed=4), make(dtype, seed=5)
    b[::3] = a[::3]
    number = float if dtype.is_float else int
    wanted = [bool(COMPARISONS[name](number(x), number(y))) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(evaluate(name, a, b), wanted)


def wrapped(values: list[int], dtype: DType) -> Array:
    """Python's integers, the bits that do not fit dropped."""
    bits = 8 * dtype.itemsize
    whole = [v % (1 << bits) for v in values]
    signed = [v - (1 << bits) if dtype.kind == "int" and v >> (bits - 1) else v for v in whole]
    return np.array(signed, dtype=dtype.numpy)


INTEGER_ORACLES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "maximum": max,
    "minimum": min,
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", INTEGER_ORACLES)
def test_integers_wrap_around(name: str, dtype: DType) -> None:
    """Python's result with the bits that do not fit dropped; division by zero gives 0."""
    a, b = integers(dtype, seed=6), integers(dtype, seed=7)[::-1].copy()
    b[10:20] = 0
    wanted = [INTEGER_ORACLES[name](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(evaluate(name, a, b), wrapped(wanted, dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_unary_operations_on_integers_wrap(dtype: DType) -> None:
    """The smallest number has no positive twin; inversion flips every bit; rounding leaves integers alone."""
    x = integers(dtype, seed=8)
    numbers = [int(v) for v in x]
    np.testing.assert_array_equal(evaluate("neg", x), wrapped([-v for v in numbers], dtype))
    np.testing.assert_array_equal(evaluate("abs", x), wrapped([abs(v) for v in numbers], dtype))
    np.testing.assert_array_equal(evaluate("not", x), wrapped([~v for v in numbers], dtype))
    for name in ("floor", "ceil", "round"):
        np.testing.assert_array_equal(evaluate(name, x), x)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_shifts_lose_bits_and_keep_the_sign(dtype: DType) -> None:
    """Shifting by as many bits as there are, or more, leaves nothing (or the sign): a tile may say so, a constant is
    refused."""
    x = integers(dtype, seed=9)
    for bits in (0, 1, 7, 8 * dtype.itemsize - 1, 8 * dtype.itemsize, 8 * dtype.itemsize + 3):
        by = bits if bits < 8 * dtype.itemsize else np.full(x.shape, bits, dtype.numpy)
        numbers = [int(v) for v in x]
        np.testing.assert_array_equal(evaluate("shl", x, by), wrapped([v << bits for v in numbers], dtype))
        np.testing.assert_array_equal(evaluate("shr", x, by), wrapped([v >> bits for v in numbers], dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_powers_of_integers_wrap_and_negative_ones_round_toward_zero(dtype: DType) -> None:
    """`x ** 3` is Python's, wrapped; `x ** -1` is 1 or -1 of 1 and -1, else 0."""
    x = integers(dtype, seed=10)
    numbers = [int(v) for v in x]
    np.testing.assert_array_equal(evaluate("pow", x, 3), wrapped([v**3 for v in numbers], dtype))
    np.testing.assert_array_equal(evaluate("pow", x, 0), np.ones_like(x))
    if dtype.kind == "int":
        small = np.array([-3, -2, -1, 1, 2, 3], dtype=dtype.numpy)
        np.testing.assert_array_equal(evaluate("pow", small, -1), [0, 0, -1, 1, 0, 0])
        np.testing.assert_array_equal(evaluate("pow", small, -2), [0, 0, 1, 1, 0, 0])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_division_and_functions_of_integers_are_f32(dtype: DType) -> None:
    """`/` and `sqrt` of integers are those of the same numbers as f32."""
    a, b = integers(dtype, seed=11), np.maximum(integers(dtype, seed=12), 1)
    np.testing.assert_array_equal(evaluate("div", a, b), a.astype(F32) / b.astype(F32))
    np.testing.assert_array_equal(evaluate("sqrt", b), np.sqrt(b.astype(F32)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_number_takes_the_tensors_dtype_before_it_is_used(dtype: DType) -> None:
    """0.1 beside an f16 tensor is the f16 number nearest 0.1."""
    x = floats(dtype, seed=13)
    in_which = wide(dtype)
    tenth = np.array(0.1, dtype=dtype.numpy).astype(in_which)
    with np.errstate(all="ignore"):
        same_bits(evaluate("mul", x, 0.1), (x.astype(in_which) * tenth).astype(dtype.numpy))
        same_bits(evaluate("sub", 0.1, x), (tenth - x.astype(in_which)).astype(dtype.numpy))


def test_a_float_with_an_integer_tensor_gives_f32() -> None:
    """The integers become f32 first."""
    x = integers(dtypes.int8, seed=14)
    np.testing.assert_array_equal(evaluate("mul", x, 0.5), x.astype(F32) * F32(0.5))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_rounds_once(dtype: DType) -> None:
    """The product is exact: `x * x - x * x` rounded in between would not show the last bits."""
    a, b, c = (floats(dtype, seed=s)[6:] for s in (15, 16, 17))
    if dtype is dtypes.float64:
        c[:300] = -(a * b)[:300] * np.tile([1.0, 1 + 1e-15, 1 - 1e-9], 100)
        rounded = [float(Fraction(p) * Fraction(q) + Fraction(r)) for p, q, r in zip(a, b, c, strict=True)]
        np.testing.assert_array_equal(evaluate("fma", a, b, c), rounded)
        assert np.isinf(evaluate("fma", np.full(3, 1e300), 1e300, 0.0)).all()
        return
    with np.errstate(all="ignore"):
        exact = cast_array(a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64), dtype)
    same_bits(evaluate("fma", a, b, c), exact)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exp_fma_is_the_exponential_of_a_sum_that_no_one_sees(dtype: DType) -> None:
    """Not rounded to the operands' dtype on the way: the bits are those of `exp` of an f32 `fma`, of f64 of its own."""
    x, scale, shift = (floats(dtype, seed=s)[6:] for s in (18, 19, 20))
    inner = evaluate("fma", *(v.astype(wide(dtype)) for v in (x, scale, shift)))
    with np.errstate(all="ignore"):
        same_bits(evaluate("exp_fma", x, scale, shift), cast_array(evaluate("exp", inner), dtype))


def test_clamp_keeps_values_between_the_bounds() -> None:
    """As Python's min(max(x, low), high); NaN stays NaN."""
    x = np.array([-9.0, -1.0, 0.5, 3.0, np.nan, np.inf], dtype=F32)
    np.testing.assert_array_equal(evaluate("clamp", x, -1.0, 2), np.array([-1, -1, 0.5, 2, np.nan, 2], dtype=F32))


def test_where_chooses_and_broadcasts() -> None:
    """From either branch, tensors and numbers, in the branches' common dtype."""
    mask = np.array([[True], [False]])
    row = np.array([1, 2, 3], dtype=np.float16)
    chosen = evaluate("where", mask, row, float("-inf"))
    np.testing.assert_array_equal(chosen, np.array([[1, 2, 3], [-np.inf] * 3], dtype=np.float16))
    np.testing.assert_array_equal(evaluate("where", mask, 1, 0), np.array([[1], [0]], dtype=np.int32))


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", ALL, ids=str)
def test_casts_to_floats_round_to_nearest_even(source: DType, target: DType) -> None:
    """Between all pairs: the result is the nearest number of the target, of two equally near ones the even one."""
    if source.kind == "bool":
        x: Array = np.array([False, True])
    else:
        x = floats(source, seed=18) if source.is_float else integers(source, seed=18)
    got = evaluate("cast", x, dtype=target)
    if target.itemsize > 2:
        with np.errstate(all="ignore"):
            same_bits(got, x.astype(target.numpy))
        return
    with np.errstate(all="ignore"):
        numbers = np.arange(1 << 8 * target.itemsize, dtype=f"u{target.itemsize}").view(target.numpy).astype(np.float64)
    finite = np.unique(numbers[np.isfinite(numbers)])
    nearest_of = [Fraction(float(number)) for number in finite]
    for value, rounded in zip(x, got.astype(np.float64), strict=True):
        if not np.isfinite(value) or abs(float(value)) > finite[-1]:
            continue
        exact = Fraction(float(value)) if source.is_float else Fraction(int(value))
        at = int(np.searchsorted(finite, rounded))
        around = nearest_of[max(at - 1, 0) : at + 2]
        assert abs(Fraction(float(rounded)) - exact) == min(abs(number - exact) for number in around), (value, rounded)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("target", [d for d in FLOATS if d.itemsize <= 2], ids=str)
def test_casts_round_once_next_to_the_middle_of_two_numbers(target: DType, sign: int) -> None:
    """A number just beside the middle goes to the nearer one, although f32 cannot tell it from the middle."""
    step = {"f16": 2.0**-10, "bf16": 2.0**-7, "f8e4m3": 2.0**-3, "f8e5m2": 2.0**-2}[target.short]
    middle = 1 + step / 2
    x = sign * np.array([middle - 1e-12, middle, middle + 1e-12, middle + step - 1e-12, middle + step])
    wanted = sign * np.array([1, 1, 1 + step, 1 + step, 1 + 2 * step])
    np.testing.assert_array_equal(evaluate("cast", x, dtype=target).astype(np.float64), wanted)


@pytest.mark.parametrize(("source", "top"), [("i32", 30), ("u32", 31), ("i64", 62), ("u64", 63)])
def test_casts_of_integers_to_bf16_round_once(source: str, top: int) -> None:
    """As above: f32 has 24 bits, these integers more, and more than f64 those of 64."""
    dtype = dtypes.of(source)
    middle = (1 << top) + (1 << top - 8)
    x = np.array([middle - 1, middle, middle + 1], dtype=dtype.numpy)
    got = evaluate("cast", x, dtype=dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(got, [2.0**top, 2.0**top, 2.0**top + 2.0 ** (top - 7)])
    if dtype.kind == "int":
        np.testing.assert_array_equal(evaluate("cast", -x, dtype=dtypes.bfloat16).astype(np.float64), -got)


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_casts_of_floats_to_integers_round_toward_zero(source: DType, target: DType) -> None:
    """As Python's int(), for numbers that fit."""
    x = np.array([0.0, -0.0, 0.5, 1.5, 2.75, 7.0, 100.0], dtype=np.float64).astype(source.numpy)
    np.testing.assert_array_equal(evaluate("cast", x, dtype=target), [int(v) for v in x.astype(np.float64)])


def _within(value: float, limits: Any) -> int:
    return limits.max if value == np.inf else limits.min if value == -np.inf else _clipped(int(value), limits)


def _clipped(value: int, limits: Any) -> int:
    return max(int(limits.min), min(int(limits.max), value))


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_casts_of_floats_out_of_range_saturate(source: DType, target: DType) -> None:
    """The nearest integer there is; 0 for NaN. The same on every processor, however many elements there are."""
    limits = np.iinfo(target.numpy)
    edges = [-np.inf, -1e30, -300.7, -1.0, float(limits.min) - 1, float(limits.max) + 1, 300.7, 1e30, np.inf, np.nan]
    with np.errstate(all="ignore"):
        x = np.array(edges * 9, dtype=np.float64).astype(source.numpy)  # long enough for vector instructions
    numbers = x.astype(np.float64).tolist()
    wanted = [0 if math.isnan(v) else _within(v, limits) for v in numbers]
    assert evaluate("cast", x, dtype=target).tolist() == wanted
    assert [evaluate("cast", x[i : i + 1], dtype=target).item() for i in range(len(edges))] == wanted[: len(edges)]


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_casts_between_integers_drop_bits(source: DType, target: DType) -> None:
    """What does not fit wraps around."""
    x = integers(source, seed=19)
    np.testing.assert_array_equal(evaluate("cast", x, dtype=target), wrapped([int(v) for v in x], target))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_casts_to_bool_ask_whether_it_is_zero(dtype: DType) -> None:
    """Any other number is true."""
    x = np.array([0, 1, 2], dtype=np.float64).astype(dtype.numpy)
    np.testing.assert_array_equal(evaluate("cast", x, dtype=dtypes.bool_), [False, True, True])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("axis", "keep"), [(0, False), (1, True), (None, False), (None, True)])
def test_reductions_of_floats_accumulate_in_f32(axis: int | None, keep: bool, dtype: DType) -> None:
    """The sum is f32's, rounded once; extrema are exact; positions are of the first of equals."""
    x = np.random.default_rng(20).standard_normal((7, 5)).astype(dtype.numpy)
    x[2] = x[4]
    ready = x.astype(wide(dtype))
    same_bits(
        np.atleast_1d(evaluate("sum", x, axis=axis, keep_dims=keep)),
        np.atleast_1d(np.sum(ready, axis=axis, keepdims=keep, dtype=wide(dtype)).astype(dtype.numpy)),
    )
    for name, oracle in (("max", np.max), ("min", np.min)):
        wanted = oracle(ready, axis=axis, keepdims=keep)
        np.testing.assert_array_equal(evaluate(name, x, axis=axis, keep_dims=keep).astype(wide(dtype)), wanted)
    for name, position in (("argmax", np.argmax), ("argmin", np.argmin)):
        wanted = position(ready, axis=axis, keepdims=keep)
        np.testing.assert_array_equal(evaluate(name, x, axis=axis, keep_dims=keep), wanted)


@pytest.mark.parametrize("dtype", [*INTEGERS, dtypes.bool_], ids=str)
def test_sums_of_integers_are_i32_and_wrap_there(dtype: DType) -> None:
    """Small types do not overflow at their own width; i32 does, and u32, i64 and u64 at theirs."""
    x = integers(dtype, seed=21) if dtype.is_integer else np.array([True] * 300)
    summed = dtype if dtype.short in ("u32", "i64", "u64") else dtypes.int32
    exact = wrapped([sum(int(v) for v in x)], summed)[0]
    assert evaluate("sum", x, axis=0, keep_dims=False) == exact
    running = wrapped([sum(int(v) for v in x[: n + 1]) for n in range(len(x))], summed)
    np.testing.assert_array_equal(evaluate("cumsum", x, axis=0), running)


def test_nan_wins_in_extrema() -> None:
    """Of a reduction and of two operands alike."""
    x = np.array([1.0, np.nan, 3.0], dtype=np.float16)
    for name in ("max", "min"):
        assert np.isnan(evaluate(name, x, axis=0, keep_dims=False))
    for name in ("maximum", "minimum"):
        assert np.isnan(evaluate(name, x, 2.0)).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_computed_in_f32(axis: int, dtype: DType) -> None:
    """Along its axis it adds up to one, however large the scores; rounded once."""
    x = (np.random.default_rng(22).standard_normal((6, 9)) * 20).astype(dtype.numpy)
    ready = x.astype(wide(dtype))
    e = np.exp(ready - ready.max(axis=axis, keepdims=True))
    same_bits(evaluate("softmax", x, axis=axis), (e / e.sum(axis=axis, keepdims=True)).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dot_accumulates_floats_in_f32(dtype: DType) -> None:
    """The product is f32's whatever the operands; an accumulator is added in f32, then rounded once."""
    generator = np.random.default_rng(23)
    a = generator.standard_normal((5, 16)).astype(dtype.numpy)
    b = generator.standard_normal((16, 3)).astype(dtype.numpy)
    product = a.astype(wide(dtype)) @ b.astype(wide(dtype))
    np.testing.assert_array_equal(evaluate("dot", a, b, out_dtype=dtype.accumulator), product)
    start = generator.standard_normal((5, 3)).astype(np.float16)
    with np.errstate(all="ignore"):
        wanted = (start.astype(wide(dtype)) + product).astype(np.float16)
    np.testing.assert_array_equal(evaluate("dot", a, b, start, out_dtype=dtypes.float16), wanted)


def test_dot_accumulates_integers_in_i32() -> None:
    """127 x 127 x 200 is far beyond i8, and right."""
    a, b = np.full((1, 200), 127, dtype=np.int8), np.full((200, 1), 127, dtype=np.int8)
    assert evaluate("dot", a, b, out_dtype=dtypes.int32).tolist() == [[127 * 127 * 200]]
    for name in ("i64", "u64"):
        large = np.array([[2**40 + 1, 3]], dtype=dtypes.of(name).numpy)
        assert evaluate("dot", large, large.T.copy(), out_dtype=dtypes.of(name)).tolist() == [
            [2**41 + 1 + 2**80 % 2**64 + 9]
        ]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_fill_writes_one_value(dtype: DType) -> None:
    """In each dtype."""
    value = True if dtype.kind == "bool" else 3
    filled = evaluate("fill", shape=(2, 3), value=value, dtype=dtype)
    np.testing.assert_array_equal(filled.astype(F32), np.full((2, 3), float(value), F32))


def test_arange_counts() -> None:
    """From the start, without the end."""
    np.testing.assert_array_equal(evaluate("arange", start=-2, end=3), [-2, -1, 0, 1, 2])


def test_a_ragged_load_pads_around_what_lies_inside() -> None:
    """The tile holds the inside where it stands and the pad everywhere else."""
    inside = np.array([[1, 2], [3, 4]], dtype=np.float32)
    tile = evaluate("load", inside, shape=(3, 4), dtype=dtypes.float32, pad=-1.0, at=(0, 1))
    np.testing.assert_array_equal(tile, [[-1, 1, 2, -1], [-1, 3, 4, -1], [-1, -1, -1, -1]])
    nothing = evaluate("load", shape=(2, 2), dtype=dtypes.float32, pad=7, at=None)
    np.testing.assert_array_equal(nothing, np.full((2, 2), 7, F32))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, dtypes.bool_], ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_sort_orders_and_topk_begins_the_descending_order(dtype: DType, descending: bool, axis: int) -> None:
    """NaN is the largest; equal ones, 0.0 and -0.0 too, keep their order: Python's own stable sort, bit for bit."""
    make = (
        floats if dtype.is_float else integers if dtype.is_integer else lambda d, seed, count: np.arange(count) % 3 == 0
    )
    x = make(dtype, seed=26, count=60).reshape(6, 10)
    if dtype.is_float:
        x[3, 4:8] = [np.nan, -0.0, 0.0, -0.0]

    def key(v: Any) -> Any:
        number = float(v) if dtype.is_float else int(v)
        return (number != number, 0 if number != number else number)

    def in_order(row: Any) -> Array:
        return np.array(sorted(row, key=key, reverse=descending), dtype=dtype.numpy)

    got = evaluate("sort", x, axis=axis, descending=descending)
    same_bits(got, np.apply_along_axis(in_order, axis, x))
    if descending:
        same_bits(evaluate("topk", x, k=3, axis=axis), np.take(got, range(3), axis))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather_looks_up_and_flip_reverses(dtype: DType) -> None:
    """Along the axis, the other places their own; an index outside gives all bits set, also a negative one."""
    x = (np.arange(12) % 2 == 0 if dtype.kind == "bool" else np.arange(12)).astype(dtype.numpy).reshape(3, 4)
    index = np.array([[0, 3], [2, 2], [1, 0]], dtype=np.int64)
    np.testing.assert_array_equal(evaluate("gather", x, index, axis=1), np.take_along_axis(x, index, 1))
    np.testing.assert_array_equal(evaluate("flip", x, axis=0), x[::-1])
    outside = evaluate("gather", x, np.array([[4, -1, 2**40, 1]] * 3), axis=1)
    np.testing.assert_array_equal(outside[:, 3], x[:, 1])
    filled = np.ones(3, np.uint8) if dtype.kind == "bool" else np.full(3 * dtype.itemsize, 0xFF, np.uint8)
    for column in range(3):
        np.testing.assert_array_equal(outside[:, column].copy().view(np.uint8), filled)


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.itemsize >= 4], ids=str)
def test_mulhi_is_the_high_half_of_the_product(dtype: DType) -> None:
    """Python's product, shifted; the ends of the range among the factors."""
    a, b = integers(dtype, seed=27), integers(dtype, seed=28)[::-1].copy()
    b[:5], bits = a[:5], 8 * dtype.itemsize
    wanted = [int(x) * int(y) >> bits for x, y in zip(a, b, strict=True)]
    assert evaluate("mulhi", a, b).tolist() == wanted
    assert evaluate("mulhi", a, 3).tolist() == [int(x) * 3 >> bits for x in a]


@pytest.mark.parametrize("source", [d for d in ALL if d.kind != "bool"], ids=str)
def test_bitcast_keeps_the_bits(source: DType) -> None:
    """As every other dtype of the width and back, also of a transposed view; NaN's payload stays."""
    x = (floats if source.is_float else integers)(source, seed=29, count=48).reshape(6, 8).T
    for target in (d for d in ALL if d.itemsize == source.itemsize and d.kind != "bool"):
        there = evaluate("bitcast", x, dtype=target)
        assert there.tobytes() == x.tobytes()
        assert evaluate("bitcast", there, dtype=source).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_cumprod_multiplies_as_it_goes(dtype: DType) -> None:
    """Floats in f32 (f64), integers wrapped in the dtype of their sums."""
    x = (floats if dtype.is_float else integers)(dtype, seed=30, count=40)
    got = evaluate("cumprod", x, axis=0)
    if dtype.is_float:
        with np.errstate(all="ignore"):
            same_bits(got, np.cumprod(x.astype(wide(dtype)), dtype=wide(dtype)).astype(dtype.numpy))
        return
    wanted = wrapped([math.prod(int(v) for v in x[: n + 1]) for n in range(len(x))], dtypes.of_numpy(got.dtype))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("name", "oracle"), [("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_reductions_along_several_axes_are_numpys(name: str, oracle: Any) -> None:
    """Of f32 and of integers."""
    for dtype in (dtypes.float32, dtypes.int32):
        x = np.random.default_rng(31).integers(-50, 50, (3, 4, 5)).astype(dtype.numpy)
        for axis in ((0, 2), (1, 2), (0, 1, 2)):
            np.testing.assert_array_equal(evaluate(name, x, axis=axis, keep_dims=False), oracle(x, axis=axis))


def test_a_batch_of_products_is_each_with_its_own() -> None:
    """And each is added to its own accumulator."""
    generator = np.random.default_rng(32)
    a, b = (generator.integers(-9, 9, shape).astype(F32) for shape in ((5, 2, 7), (5, 7, 3)))
    wanted = np.stack([x @ y for x, y in zip(a, b, strict=True)])
    np.testing.assert_array_equal(evaluate("dot", a, b, out_dtype=dtypes.float32), wanted)
    np.testing.assert_array_equal(evaluate("dot", a, b, wanted, out_dtype=dtypes.float32), 2 * wanted)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_recurrence_goes_on_from_what_it_made(dtype: DType, axis: int) -> None:
    """Element by element, from 0 or from an initial value; narrow floats are rounded on the way out only."""
    rng = np.random.default_rng(axis)
    a, b = (rng.uniform(-1, 1, (5, 7)).astype(dtype.numpy) for _ in range(2))
    first = rng.uniform(-1, 1, (1, 7) if axis == 0 else (5, 1)).astype(dtype.numpy)
    for initial in ((), (first,)):
        got = evaluate("recurrence", a, b, *initial, axis=axis)
        ready = [np.moveaxis(x.astype(wide(dtype)), axis, 0) for x in (a, b, *initial)]
        state, rows = (ready[2][0] if initial else 0 * ready[0][0]), []
        for factor, term in zip(ready[0], ready[1], strict=True):
            state = factor * state + term
            rows.append(state)
        same_bits(got, np.moveaxis(np.stack(rows), 0, axis).astype(dtype.numpy))
