"""The operation table: documentation, engines, and the rule that gives each result's shape and dtype."""

import ast
import re
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope.ir import dtypes
from kernscope.ir.dtypes import ALL, DType
from kernscope.ir.layout import Layout
from kernscope.ir.ops import OPERATIONS, Family, Kind, Operation, WorkKind, cast_array

FLOATS = [d for d in ALL if d.is_float]
INTEGERS = [d for d in ALL if d.is_integer]
ELEMENTWISE = (Family.UNARY, Family.BINARY, Family.TERNARY)

#: What the language lists, by family, with the kind of numbers each takes.
ARITHMETIC = ["add", "sub", "mul", "floordiv", "mod", "pow", "neg", "abs", "floor", "ceil", "round", "clamp", "fma"]
TRANSCENDENTAL = ["div", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos"]
TRANSCENDENTAL += ["exp_fma"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]
EXTREMA = ["maximum", "minimum", "fmax", "fmin"]
BITS = ["and", "or", "xor", "not"]
SHIFTS = ["shl", "shr"]
#: Integers whose sums keep the dtype.
KEPT = ("u32", "i64", "u64")
ORDER = ["sort", "topk", "flip", "gather", "histogram"]
REDUCTIONS = ["sum", "max", "min", "argmax", "argmin", "nanmax", "nanmin", "nanargmax", "nanargmin"]


def dense(shape: tuple[int, ...], dtype: DType) -> Layout:
    return Layout.dense(shape, dtype)


def arity(name: str) -> int:
    return {Family.UNARY: 1, Family.BINARY: 2, Family.TERNARY: 3}[OPERATIONS[name].family]


def result(name: str, *operands: Any, **static: Any) -> tuple[tuple[int, ...], DType]:
    return OPERATIONS[name].rule(operands, **static)


def test_the_table_holds_what_the_language_lists_and_nothing_else() -> None:
    """Adding an operation is one declaration: this list is the second opinion."""
    listed = ARITHMETIC + TRANSCENDENTAL + COMPARISONS + EXTREMA + BITS + SHIFTS + REDUCTIONS
    listed += [
        "where",
        "cast",
        "bitcast",
        "mulhi",
        "truncdiv",
        "rem",
        "cumsum",
        "cumprod",
        "recurrence",
        "softmax",
        "fill",
        "arange",
        "load",
        "store",
        "move",
        "copy_to",
        "atomic",
        "fetch",
        "take",
        "scatter",
        "scatter_atomic",
        "dot",
    ]
    listed += [*ORDER, "join", "randint", "rand", "randn"]
    listed += [
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "log1p",
        "expm1",
        "log10",
        "cbrt",
        "trunc",
    ]
    listed += ["lgamma", "tgamma", "erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "sinpi", "cospi"]
    listed += ["j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1", "logb", "clz", "popc", "ffs", "brev"]
    listed += ["jn", "yn", "remainder", "ldexp", "round_half_away"]
    listed += ["atan2", "hypot", "copysign", "nextafter"]
    listed += ["decide", "send", "recv", "recv_async", "wait", "notify", "wait_for", "scope_enter", "scope_exit"]
    assert sorted(OPERATIONS) == sorted(listed)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
def test_every_operation_is_documented_with_an_example_that_parses(operation: Operation) -> None:
    """The documentation is a sentence and an example in Python."""
    example = re.search(r"Example: ``(.+)``\.$", operation.doc)
    if operation.family is Family.MARKER:
        assert operation.doc.endswith(".")
        return
    assert example is not None, operation.doc
    ast.parse(example.group(1))
    assert "\n" not in operation.doc


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda o: o.name)
def test_the_log_entry_says_kind_and_name(operation: Operation) -> None:
    """MATH operations log `math/NAME` (`copy` for copy_to); what has no engine has no entry."""
    special = {
        "load": "memory/dma_read",
        "store": "memory/dma_write",
        "move": "memory/move",
        "copy_to": "math/copy",
        "atomic": "memory/atomic",
        "fetch": "memory/fetch",
        "take": "memory/dma_gather",
        "scatter": "memory/dma_scatter",
        "scatter_atomic": "memory/scatter_atomic",
        "dot": "gemm/dot",
        "send": "ipcq/ipcq_copy",
        "recv": "",
        "recv_async": "",
        "wait": "",
        "notify": "ipcq/notify",
        "wait_for": "",
        "decide": "",
        "scope_enter": "",
        "scope_exit": "",
    }
    assert operation.log == special.get(operation.name, f"math/{operation.name}")
    assert (operation.kind is Kind.NONE) == (operation.log == "")


def test_engines_and_what_they_count() -> None:
    """Bytes for transfers and links, (M, N, K) for products, elements for elementwise work."""
    kinds = {o.kind: o.work_kind for o in OPERATIONS.values()}
    assert kinds == {
        Kind.TRANSFER: WorkKind.BYTES,
        Kind.LINK: WorkKind.BYTES,
        Kind.MATMUL: WorkKind.MNK,
        Kind.ELEMENTWISE: WorkKind.ELEMENTS,
        Kind.NONE: WorkKind.NOTHING,
    }
    names = {o.engine for o in OPERATIONS.values()}
    assert names == {"dma_read", "dma_write", "dma", "link", "gemm", "math", "none"}


def test_what_an_elementwise_operation_costs_is_asked_for() -> None:
    """A declaration without a class of cost is refused, not taken for one cycle; other kinds have none."""
    declared = OPERATIONS["exp"]
    with pytest.raises(AssertionError, match="what does exp cost"):
        attrs.evolve(declared, cost=None)
    assert all((o.cost is not None) == (o.kind is Kind.ELEMENTWISE) for o in OPERATIONS.values())


def test_roles_follow_from_what_an_operation_does() -> None:
    """Each mask names the operations that the language means by it."""
    named = {
        "loads": {"load", "fetch", "take"},
        "stores": {"store", "atomic", "scatter", "scatter_atomic"},
        "copies": {"copy_to"},
        "sends": {"send", "notify"},
        "receives": {"recv", "recv_async", "wait_for"},
        "waits": {"wait"},
        "markers": {"scope_enter", "scope_exit"},
    }
    for role, names in named.items():
        mask = getattr(OPERATIONS, role)
        assert {name for name, chosen in zip(OPERATIONS.names, mask.tolist(), strict=True) if chosen} == names


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC + TRANSCENDENTAL + COMPARISONS + EXTREMA + BITS + SHIFTS)
def test_elementwise_operations_give_the_dtype_that_the_language_says(name: str, dtype: DType) -> None:
    """Arithmetic keeps the dtype; `/` and transcendental functions on integers give f32; comparisons bool; bits take
    no floats; arithmetic and shifts take no bool."""
    operands = [dense((4, 3), dtype)] * arity(name)
    refused = (name in ARITHMETIC + TRANSCENDENTAL + SHIFTS and dtype.kind == "bool") or (
        name in BITS + SHIFTS and dtype.is_float
    )
    if refused:
        with pytest.raises(ks.DTypeError) as caught:
            result(name, *operands)
        assert "h.to(" in caught.value.help
        return
    wanted = dtype
    if name in TRANSCENDENTAL and not dtype.is_float:
        wanted = dtypes.float32
    if name in COMPARISONS:
        wanted = dtypes.bool_
    assert result(name, *operands) == ((4, 3), wanted)


@pytest.mark.parametrize("name", ["add", "div", "lt", "maximum"])
def test_shapes_broadcast_and_dtypes_promote(name: str) -> None:
    """Two tensors of different shapes and dtypes meet in their common shape and dtype."""
    shape, dtype = result(name, dense((4, 1), dtypes.float16), dense((3,), dtypes.bfloat16))
    assert shape == (4, 3)
    assert dtype is (dtypes.bool_ if name == "lt" else dtypes.float32)


@pytest.mark.parametrize("name", ["fma", "exp_fma", "clamp", "where"])
def test_three_operands_broadcast_together(name: str) -> None:
    """No one of three has the common shape."""
    first = dtypes.bool_ if name == "where" else dtypes.float32
    operands = dense((2, 1, 1), first), dense((3, 1), dtypes.float32), dense((4,), dtypes.float32)
    assert result(name, *operands) == ((2, 3, 4), dtypes.float32)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_python_numbers_take_the_tensors_dtype(dtype: DType) -> None:
    """An integer or a bool changes nothing (but for bool tensors, which give way); a float makes integers f32."""
    tensor = dense((4,), dtype)
    for order in ((tensor, 2), (2, tensor)):
        assert result("maximum", *order)[1] is (dtypes.int32 if dtype.kind == "bool" else dtype)
    assert result("maximum", tensor, True)[1] is dtype
    for order in ((tensor, 2.5), (2.5, tensor)):
        assert result("maximum", *order)[1] is (dtype if dtype.is_float else dtypes.float32)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        *[("i8", 128), ("i8", -129), ("u8", -1), ("u8", 256), ("i16", 1 << 15), ("i32", 1 << 31), ("u16", 1 << 16)],
        *[("u32", 1 << 32), ("i64", 1 << 63), ("i64", -(1 << 63) - 1), ("u64", 1 << 64), ("u64", -1)],
    ],
)
def test_an_integer_that_the_tensor_cannot_hold_is_refused(dtype: str, value: int) -> None:
    """Nothing wraps in silence at the kernel's own constants, but the extremes themselves pass."""
    tensor = dense((4,), dtypes.of(dtype))
    with pytest.raises(ks.DTypeError, match=f"{value} does not fit {dtype}"):
        result("add", tensor, value)
    assert result("add", tensor, value - 1 if value > 0 else value + 1)[1] is tensor.dtype


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize <= 4], ids=str)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_finite_number_that_a_float_cannot_hold_is_refused(dtype: DType, sign: float) -> None:
    """Exactly where rounding to the dtype would make it infinite (or NaN): one float below that passes. The help holds
    when it is followed."""
    tensor = dense((4,), dtype)
    finite, beyond = sign * float(ml_dtypes.finfo(dtype.numpy).max), sign * 4e38
    for _ in range(80):  # halve the interval in which rounding turns
        middle = (finite + beyond) / 2
        with np.errstate(over="ignore"):
            rounds_to = float(cast_array(np.float64(middle), dtype))
        finite, beyond = (middle, beyond) if np.isfinite(rounds_to) else (finite, middle)
    assert result("add", tensor, finite)[1] is dtype
    with pytest.raises(ks.DTypeError, match=f"does not fit {dtype}") as caught:
        result("add", tensor, beyond)
    advised = re.match("use (-?[0-9.e+]+)", caught.value.help)
    assert advised is not None
    assert result("add", tensor, float(advised[1]))[1] is dtype


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_numbers_of_f64_are_told_from_larger_integers(sign: int) -> None:
    """An integer passes exactly where Python's float takes it; nothing wider is advised."""
    tensor, first_beyond = dense((4,), dtypes.float64), (1 << 1024) - (1 << 970)
    assert result("add", tensor, sign * (first_beyond - 1))[1] is tensor.dtype
    with pytest.raises(OverflowError):
        float(first_beyond)
    with pytest.raises(ks.DTypeError, match="an integer of 1024 bits does not fit f64"):
        result("add", tensor, sign * first_beyond)


@pytest.mark.parametrize(
    ("dtype", "value", "wider"),
    [
        ("i8", 300, "int32"),
        ("u8", -1, "int32"),
        ("i32", 1 << 31, "int64"),
        ("u32", -(1 << 31) - 1, "int64"),
        ("i64", 1 << 63, "uint64"),
        ("f16", 1e5, "float32"),
        ("f16", 1e300, "float64"),
        ("f32", -1e39, "float64"),
    ],
)
def test_a_number_that_does_not_fit_is_told_the_first_dtype_that_holds_it(dtype: str, value: Any, wider: str) -> None:
    """The help is true when it is followed."""
    with pytest.raises(ks.DTypeError) as caught:
        result("add", dense((4,), dtypes.of(dtype)), value)
    assert f"h.to(tl.{wider})" in caught.value.help
    assert result("add", dense((4,), dtypes.of(wider)), value)[1] is dtypes.of(wider)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_infinities_and_nan_pass_where_the_dtype_has_them(dtype: DType, value: float) -> None:
    """All floats have NaN; of infinities f8e4m3 has none, and the error says so."""
    if dtype is dtypes.float8e4m3 and np.isinf(value):
        with pytest.raises(ks.DTypeError, match="no infinity"):
            result("maximum", dense((4,), dtype), value)
    else:
        assert result("maximum", dense((4,), dtype), value)[1] is dtype


def test_an_integer_beyond_every_float_is_refused() -> None:
    """A number that no float holds would only fail when the graph runs."""
    with pytest.raises(ks.DTypeError, match="1329 bits does not fit f16"):
        result("mul", dense((4,), dtypes.float16), 10**400)


def test_at_least_one_operand_is_a_tensor() -> None:
    """Python numbers are computed by Python."""
    with pytest.raises(ks.ArgumentError, match=r"no operand is a tensor: 1, 2\.0"):
        result("maximum", 1, 2.0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize(("axis", "keep", "shape"), [(0, False, (5,)), (1, True, (4, 1)), (-1, False, (4,))])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_drop_or_keep_the_axis(
    name: str, axis: int, keep: bool, shape: tuple[int, ...], dtype: DType
) -> None:
    """The shape is numpy's; sums of narrow integers are i32, positions are i32, extrema keep the dtype."""
    wanted = dtype
    if "arg" in name or (name == "sum" and not dtype.is_float and dtype.short not in KEPT):
        wanted = dtypes.int32
    assert result(name, dense((4, 5), dtype), axis=axis, keep_dims=keep) == (shape, wanted)
    array = np.zeros((4, 5))
    assert np.max(array, axis=axis, keepdims=keep).shape == shape


@pytest.mark.parametrize("name", REDUCTIONS)
def test_without_an_axis_a_reduction_covers_everything(name: str) -> None:
    """`axis=None` gives a tensor without dimensions, or with all of them 1."""
    assert result(name, dense((4, 5), dtypes.float32), axis=None, keep_dims=False)[0] == ()
    assert result(name, dense((4, 5), dtypes.float32), axis=None, keep_dims=True)[0] == (1, 1)


def test_where_takes_a_bool_tensor_and_promotes_the_branches() -> None:
    """The condition has no part in the dtype; two numbers give f32 or i32."""
    mask = dense((4, 1), dtypes.bool_)
    assert result("where", mask, dense((3,), dtypes.float16), float("-inf")) == ((4, 3), dtypes.float16)
    assert result("where", mask, 1, 0) == ((4, 1), dtypes.int32)
    assert result("where", mask, 1, 0.5) == ((4, 1), dtypes.float32)
    for condition in (dense((4,), dtypes.int32), True):
        with pytest.raises(ks.DTypeError, match="not a bool tensor"):
            result("where", condition, 1.0, 2.0)


def test_where_refuses_numbers_that_do_not_fit() -> None:
    """Two integers give i32, so both have to be one."""
    with pytest.raises(ks.DTypeError, match="does not fit i32"):
        result("where", dense((4,), dtypes.bool_), 1 << 40, 0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_softmax_and_cumsum_keep_the_shape(dtype: DType) -> None:
    """Softmax of integers is f32, a running sum of narrow ones i32."""
    source = dense((4, 5), dtype)
    assert result("softmax", source, axis=1) == ((4, 5), dtype if dtype.is_float else dtypes.float32)
    summed = dtype if dtype.is_float or dtype.short in KEPT else dtypes.int32
    for name in ("cumsum", "cumprod"):
        assert result(name, source, axis=0) == ((4, 5), summed)


@pytest.mark.parametrize("name", ["sum", "max", "min"])
@pytest.mark.parametrize(("axis", "shape"), [((0, 2), (5,)), ((1, -1), (4,)), ((2,), (4, 5)), ((0, 1, 2), ())])
def test_reductions_go_along_several_axes(name: str, axis: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """In any order, counted from either end: the shape is numpy's, the work all that is read."""
    source = dense((4, 5, 6), dtypes.float32)
    assert result(name, source, axis=axis, keep_dims=False)[0] == shape
    kept = np.max(np.zeros((4, 5, 6)), axis=axis, keepdims=True).shape
    assert result(name, source, axis=axis, keep_dims=True)[0] == kept


@pytest.mark.parametrize(
    ("name", "axis"), [("sum", (0, 0)), ("sum", (0, -2)), ("max", ()), ("max", (0, 2)), ("argmax", (0, 1))]
)
def test_axes_that_are_none_are_refused(name: str, axis: tuple[int, ...]) -> None:
    """One twice, none at all, one that does not exist; a place has one axis."""
    with pytest.raises(ks.ShapeError) as caught:
        result(name, dense((4, 5), dtypes.float32), axis=axis, keep_dims=False)
    assert caught.value.help


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_rearranged_elements_keep_the_dtype(dtype: DType) -> None:
    """The shape too, but for the k largest and for what an index says; sorting is paid by what it reads."""
    source, index = dense((4, 5), dtype), dense((4, 9), dtypes.int16)
    assert result("sort", source, axis=1, descending=False) == ((4, 5), dtype)
    assert result("flip", source, axis=0) == ((4, 5), dtype)
    assert result("topk", source, k=2, axis=0) == ((2, 5), dtype)
    assert result("gather", source, index, axis=1) == ((4, 9), dtype)
    assert OPERATIONS["topk"].work((source,), dense((2, 5), dtype)) == (20, 0, 0)
    assert OPERATIONS["gather"].work((source, index), dense((4, 9), dtype)) == (36, 0, 0)


@pytest.mark.parametrize(
    ("name", "operands", "static", "error", "words"),
    [
        ("topk", [((4, 5), "f32")], {"k": 0, "axis": 1}, ks.ArgumentError, "the 0 largest of 5"),
        ("topk", [((4, 5), "f32")], {"k": 6, "axis": 1}, ks.ArgumentError, "the 6 largest of 5"),
        ("sort", [((4, 5), "f32")], {"axis": 2, "descending": False}, ks.ShapeError, "axis 2"),
        ("gather", [((4, 5), "f32"), ((4, 5), "f32")], {"axis": 1}, ks.DTypeError, "an index of f32"),
        ("gather", [((4, 5), "f32"), ((3, 9), "i32")], {"axis": 1}, ks.ShapeError, "(3, 9)"),
        ("gather", [((4, 5), "f32"), ((4,), "i32")], {"axis": 1}, ks.ShapeError, "(4,)"),
        ("bitcast", [((4,), "f32")], {"dtype": dtypes.int16}, ks.DTypeError, "f32 as i16"),
        ("bitcast", [((4,), "i8")], {"dtype": dtypes.bool_}, ks.DTypeError, "i8 as bool"),
        ("mulhi", [((4,), "i16"), ((4,), "i16")], {}, ks.DTypeError, "i16"),
        ("mulhi", [((4,), "f32"), ((4,), "f32")], {}, ks.DTypeError, "f32"),
    ],
)
def test_what_cannot_be_rearranged_is_refused(
    name: str, operands: Any, static: Any, error: type[ks.KernscopeError], words: str
) -> None:
    """With the shapes or dtypes in the message, and what would do."""
    with pytest.raises(error) as caught:
        result(name, *[dense(shape, dtypes.of(dtype)) for shape, dtype in operands], **static)
    assert words in caught.value.message and caught.value.help


def test_a_batch_of_products_is_one_product_after_the_other() -> None:
    """(B, M, K) x (B, K, N) gives (B, M, N), with the work of one product that is B times as deep."""
    a, b = dense((6, 4, 8), dtypes.float16), dense((6, 8, 3), dtypes.float16)
    assert result("dot", a, b, out_dtype=dtypes.float32) == ((6, 4, 3), dtypes.float32)
    assert OPERATIONS["dot"].work((a, b), dense((6, 4, 3), dtypes.float32)) == (4, 3, 48)
    for other in (dense((5, 8, 3), dtypes.float16), dense((8, 3), dtypes.float16)):
        with pytest.raises(ks.ShapeError, match="dot of shapes"):
            result("dot", a, other, out_dtype=dtypes.float32)


def test_dot_multiplies_matrices_that_fit() -> None:
    """(M, K) x (K, N) gives (M, N), its work is M, N, K; an accumulator has that shape and the result's dtype."""
    a, b = dense((4, 8), dtypes.float16), dense((8, 3), dtypes.float16)
    assert result("dot", a, b, out_dtype=dtypes.float32) == ((4, 3), dtypes.float32)
    assert result("dot", a, b, dense((4, 3), dtypes.float32), out_dtype=dtypes.float32) == ((4, 3), dtypes.float32)
    assert OPERATIONS["dot"].work((a, b), dense((4, 3), dtypes.float32)) == (4, 3, 8)


@pytest.mark.parametrize(
    ("a", "b", "out", "error", "words"),
    [
        (((4, 8), "f16"), ((4, 8), "f16"), "f32", ks.ShapeError, "inner sizes 8 and 4 differ"),
        (((2, 4, 8), "f16"), ((8, 3), "f16"), "f32", ks.ShapeError, "(2, 4, 8)"),
        (((8,), "f16"), ((8, 3), "f16"), "f32", ks.ShapeError, "(8,)"),
        (((4, 8), "f16"), ((8, 3), "f32"), "f32", ks.DTypeError, "f16 and f32"),
        (((4, 8), "i8"), ((8, 3), "i8"), "f32", ks.DTypeError, "i8 into f32"),
        (((4, 8), "f16"), ((8, 3), "f16"), "i32", ks.DTypeError, "f16 into i32"),
        (((4, 8), "bool"), ((8, 3), "bool"), "i32", ks.DTypeError, "bool"),
    ],
)
def test_dot_refuses_what_does_not_fit(a: Any, b: Any, out: str, error: type[ks.KernscopeError], words: str) -> None:
    """Each mistake is an error with the shapes or dtypes in it."""
    with pytest.raises(error) as caught:
        result("dot", dense(a[0], dtypes.of(a[1])), dense(b[0], dtypes.of(b[1])), out_dtype=dtypes.of(out))
    assert words in caught.value.message
    assert caught.value.help


@pytest.mark.parametrize(
    ("acc", "error"),
    [(((3, 4), "f32"), ks.ShapeError), (((4, 3), "f16"), ks.DTypeError), (((4, 1), "f32"), ks.ShapeError)],
)
def test_dot_refuses_an_accumulator_of_another_kind(acc: Any, error: type[ks.KernscopeError]) -> None:
    """Nothing broadcasts into an accumulator, and nothing is converted on the way."""
    a, b = dense((4, 8), dtypes.float16), dense((8, 3), dtypes.float16)
    with pytest.raises(error):
        result("dot", a, b, dense(acc[0], dtypes.of(acc[1])), out_dtype=dtypes.float32)


def test_fill_refuses_a_float_for_integers() -> None:
    """`full((4,), 1.5, "i32")` would lose what was written."""
    with pytest.raises(ks.DTypeError, match=r"cannot fill i32 with 1\.5"):
        result("fill", shape=(4,), value=1.5, dtype=dtypes.int32)
    with pytest.raises(ks.DTypeError, match="300 does not fit u8"):
        result("fill", shape=(4,), value=300, dtype=dtypes.uint8)


def test_arange_has_elements() -> None:
    """The end is above the start, and all numbers fit i32."""
    assert result("arange", start=-2, end=3) == ((5,), dtypes.int32)
    with pytest.raises(ks.ArgumentError, match="no elements"):
        result("arange", start=3, end=3)
    with pytest.raises(ks.DTypeError, match="does not fit i32"):
        result("arange", start=0, end=(1 << 31) + 1)
    assert result("arange", start=(1 << 31) - 2, end=1 << 31) == ((2,), dtypes.int32)
    assert result("arange", start=-(1 << 31), end=1 - (1 << 31)) == ((1,), dtypes.int32)
    with pytest.raises(ks.DTypeError, match="-2147483649 does not fit i32"):
        result("arange", start=-(1 << 31) - 1, end=0)
