"""Element types: their names, their numpy twins, and what two of them give."""

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope.ir import dtypes
from kernscope.ir.dtypes import ALL, DType, of, of_numpy, promote

SHORT = {d.short: d for d in ALL}

#: Every unordered pair of different dtypes, and what the language says it gives.
PROMOTIONS = {
    ("f32", "f16"): "f32",
    ("f32", "bf16"): "f32",
    ("f32", "f8e4m3"): "f32",
    ("f32", "f8e5m2"): "f32",
    ("f32", "i32"): "f32",
    ("f32", "i16"): "f32",
    ("f32", "i8"): "f32",
    ("f32", "u8"): "f32",
    ("f32", "bool"): "f32",
    ("f16", "bf16"): "f32",
    ("f16", "f8e4m3"): "f16",
    ("f16", "f8e5m2"): "f16",
    ("f16", "i32"): "f16",
    ("f16", "i16"): "f16",
    ("f16", "i8"): "f16",
    ("f16", "u8"): "f16",
    ("f16", "bool"): "f16",
    ("bf16", "f8e4m3"): "bf16",
    ("bf16", "f8e5m2"): "bf16",
    ("bf16", "i32"): "bf16",
    ("bf16", "i16"): "bf16",
    ("bf16", "i8"): "bf16",
    ("bf16", "u8"): "bf16",
    ("bf16", "bool"): "bf16",
    ("f8e4m3", "f8e5m2"): "f16",
    ("f8e4m3", "i32"): "f8e4m3",
    ("f8e4m3", "i16"): "f8e4m3",
    ("f8e4m3", "i8"): "f8e4m3",
    ("f8e4m3", "u8"): "f8e4m3",
    ("f8e4m3", "bool"): "f8e4m3",
    ("f8e5m2", "i32"): "f8e5m2",
    ("f8e5m2", "i16"): "f8e5m2",
    ("f8e5m2", "i8"): "f8e5m2",
    ("f8e5m2", "u8"): "f8e5m2",
    ("f8e5m2", "bool"): "f8e5m2",
    ("i32", "i16"): "i32",
    ("i32", "i8"): "i32",
    ("i32", "u8"): "i32",
    ("i32", "bool"): "i32",
    ("i16", "i8"): "i16",
    ("i16", "u8"): "i16",
    ("i16", "bool"): "i16",
    ("i8", "u8"): "i16",
    ("i8", "bool"): "i8",
    ("u8", "bool"): "u8",
    **{("f64", other): "f64" for other in ("f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i32", "i16", "i8", "u8", "bool")},
    **{("f64", other): "f64" for other in ("i64", "u16", "u32", "u64")},
    **{(f, i): f for f in ("f32", "f16", "bf16", "f8e4m3", "f8e5m2") for i in ("i64", "u16", "u32", "u64")},
    **{("i64", other): "i64" for other in ("i32", "i16", "i8", "u8", "u16", "u32", "bool")},
    **{("u16", signed): "i32" for signed in ("i32", "i16", "i8")},
    **{("u32", signed): "i64" for signed in ("i32", "i16", "i8")},
    **{("u64", other): "u64" for other in ("u32", "u16", "u8", "bool")},
    **{("u32", other): "u32" for other in ("u16", "u8", "bool")},
    **{("u16", other): "u16" for other in ("u8", "bool")},
}
#: Pairs that no dtype holds.
REFUSED = [("u64", "i64"), ("u64", "i32"), ("u64", "i16"), ("u64", "i8")]


def test_the_promotion_table_names_every_pair() -> None:
    """The table above is complete: no pair of different dtypes is left out."""
    expected = {frozenset((a.short, b.short)) for a in ALL for b in ALL if a is not b}
    assert {frozenset(pair) for pair in (*PROMOTIONS, *REFUSED)} == expected


@pytest.mark.parametrize("pair", REFUSED, ids="-".join)
def test_what_no_dtype_holds_is_refused_in_both_orders(pair: tuple[str, str]) -> None:
    """Neither f64, which drops low bits, nor one of the two: the author says which."""
    for a, b in (pair, pair[::-1]):
        with pytest.raises(ks.DTypeError, match=f"{a} with {b}: no integer dtype holds both") as caught:
            promote(SHORT[a], SHORT[b])
        assert "h.to(tl.int64)" in caught.value.help


@pytest.mark.parametrize(("pair", "result"), PROMOTIONS.items(), ids="-".join)
def test_integers_are_promoted_to_what_holds_both(pair: tuple[str, str], result: str) -> None:
    """No value of either is lost: numpy's own rule."""
    a, b = SHORT[pair[0]], SHORT[pair[1]]
    if a.is_integer and b.is_integer:
        assert SHORT[result].numpy == np.promote_types(a.numpy, b.numpy)


@pytest.mark.parametrize(("pair", "result"), PROMOTIONS.items(), ids="-".join)
def test_promotion_follows_the_table_in_both_orders(pair: tuple[str, str], result: str) -> None:
    """`a op b` and `b op a` have the dtype that the language declares."""
    a, b = SHORT[pair[0]], SHORT[pair[1]]
    assert promote(a, b) is SHORT[result]
    assert promote(b, a) is SHORT[result]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_equal_dtypes_stay(dtype: DType) -> None:
    """A dtype with itself gives itself."""
    assert promote(dtype, dtype) is dtype


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_dtype_is_found_by_each_of_its_names(dtype: DType) -> None:
    """Long name, short name, numpy dtype, numpy scalar type and the dtype itself all mean the same object."""
    for name in (dtype.name, dtype.short, dtype.numpy, dtype.numpy.type, dtype):
        assert of(name) is dtype
    assert getattr(ks.tl, dtype.name) is dtype
    assert getattr(ks.tl, dtype.short) is dtype


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_dtype_has_the_size_of_its_numpy_twin(dtype: DType) -> None:
    """The bytes counted in scratch are those of the array that holds the numbers."""
    assert dtype.itemsize == np.zeros(3, dtype.numpy).nbytes // 3


def test_the_small_floats_are_those_of_ml_dtypes() -> None:
    """bf16 and f8 have the bits of `ml_dtypes`: f8e4m3 without infinities (`fn`)."""
    assert of("bf16").numpy == np.dtype(ml_dtypes.bfloat16)
    assert of("f8e4m3").numpy == np.dtype(ml_dtypes.float8_e4m3fn)
    assert of("f8e5m2").numpy == np.dtype(ml_dtypes.float8_e5m2)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_dtype_survives_pickling_as_the_same_object(dtype: DType) -> None:
    """Identity comparison works in another process, too."""
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_floats_accumulate_in_f32_and_integers_in_i32(dtype: DType) -> None:
    """What a contraction of each dtype accumulates in; what is as wide or wider, in itself."""
    wide = ("f64", "i64", "u32", "u64")
    narrow = dtypes.float32 if dtype.kind == "float" else dtypes.int32
    assert dtype.accumulator is (dtype if dtype.short in wide else narrow)


@pytest.mark.parametrize(
    ("name", "help"),
    [("f17", "f16"), ("float8e5m3", "float8e5m2"), ("tl.float16", "float16"), ("quaternion", "f32, f16, bf16")],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, help: str) -> None:
    """A misspelt dtype names what was meant; a hopeless one lists them all."""
    with pytest.raises(ks.DTypeError) as caught:
        of(name)
    assert repr(name) in caught.value.message
    assert help in caught.value.help


@pytest.mark.parametrize(
    ("given", "help"),
    [
        (np.longdouble, "array.astype(np.float32)"),
        (np.dtype(">i8"), "array.astype(np.int32)"),
        (np.dtype(">f4"), "array.astype(np.float32)"),
        (np.dtype("complex64"), "use f32"),
        (None, "use a name"),
        (3, "use a name"),
        (object(), "use a name"),
    ],
    ids=str,
)
def test_what_the_device_does_not_have_is_refused_with_the_way_out(given: Any, help: str) -> None:
    """Another byte order and the like say how to convert; what is no dtype at all says how to name one."""
    with pytest.raises(ks.DTypeError) as caught:
        of(given)
    assert help in caught.value.help
    assert isinstance(caught.value, TypeError)


def test_pythons_types_are_those_of_numpy() -> None:
    """`bool` means the same as `tl.bool`, `float` f64, `int` i64."""
    assert of(float) is of("f64") and of(int) is of("i64")
    assert of(bool) is of("bool") is of_numpy(np.dtype(np.bool_))
