"""Element types: names, sizes, their numpy twins, and the promotion rules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs
import ml_dtypes
import numpy as np

from .errors import DTypeError, did_you_mean, shown

__all__ = ["ALL", "DType", "bool_", "float32", "float64", "int32", "of", "of_numpy", "promote"]


@attrs.frozen(eq=False)
class DType:
    """One element type. ``index`` is its number in a graph's columns; ``kind`` is ``"float"``, ``"int"``, ``"uint"`` or
    ``"bool"``; ``numpy`` is the numpy dtype of the same bits (bf16 and f8 come from ``ml_dtypes``)."""

    name: str
    short: str
    kind: str
    itemsize: int
    numpy: np.dtype[Any]
    index: int

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def computed_in(self) -> DType:
        """What elements of this type are computed in: f32 for floats (f64 in itself), integers and bool in
        themselves."""
        return float32 if self.is_float and self is not float64 else self

    @property
    def accumulator(self) -> DType:
        """What a contraction or a sum of this type accumulates in: f32 for floats (f64 in itself), i32 for bool and
        integers of less than 32 bits; wider integers in themselves."""
        if self.is_float:
            return self.computed_in
        return self if self.itemsize >= int32.itemsize else int32

    def __str__(self) -> str:
        return self.short

    def __repr__(self) -> str:
        return f"tl.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (of, (self.name,))


def _declare() -> tuple[DType, ...]:
    rows = [
        ("float32", "f32", "float", np.float32),
        ("float16", "f16", "float", np.float16),
        ("bfloat16", "bf16", "float", ml_dtypes.bfloat16),
        ("float8e4m3", "f8e4m3", "float", ml_dtypes.float8_e4m3fn),
        ("float8e5m2", "f8e5m2", "float", ml_dtypes.float8_e5m2),
        ("int32", "i32", "int", np.int32),
        ("int16", "i16", "int", np.int16),
        ("int8", "i8", "int", np.int8),
        ("uint8", "u8", "uint", np.uint8),
        ("bool", "bool", "bool", np.bool_),
        # New rows come last: a saved graph holds a node's dtype by its place.
        ("float64", "f64", "float", np.float64),
        ("int64", "i64", "int", np.int64),
        ("uint16", "u16", "uint", np.uint16),
        ("uint32", "u32", "uint", np.uint32),
        ("uint64", "u64", "uint", np.uint64),
    ]
    return tuple(
        DType(name, short, kind, np.dtype(twin).itemsize, np.dtype(twin), index)
        for index, (name, short, kind, twin) in enumerate(rows)
    )


#: All element types, each at its ``index``.
ALL: tuple[DType, ...] = _declare()
_BY_NAME: Mapping[str, DType] = MappingProxyType({key: d for d in ALL for key in (d.name, d.short)})
_BY_NUMPY: Mapping[np.dtype[Any], DType] = MappingProxyType({d.numpy: d for d in ALL})

float32, float16, bfloat16, float8e4m3, float8e5m2, int32, int16, int8, uint8, bool_ = ALL[:10]
float64, int64, uint16, uint32, uint64 = ALL[10:]
_SIGNED: Mapping[int, DType] = MappingProxyType({d.itemsize: d for d in ALL if d.kind == "int"})


def of(name: str | DType | np.dtype[Any] | type) -> DType:
    """The dtype of a name (``"float16"``, ``"f16"``), of a numpy dtype or scalar type, or of itself.

    Raises ``DTypeError`` for anything else, naming the nearest known dtype.
    """
    if isinstance(name, DType):
        return name
    if isinstance(name, str):
        found = _BY_NAME.get(name)
        if found is None:
            near = did_you_mean(name, _BY_NAME)
            known = "it can be " + ", ".join(d.short for d in ALL)
            raise DTypeError(f"unknown dtype {name!r}", help=near if near.startswith("did") else known)
        return found
    try:
        twin = None if name is None else np.dtype(name)  # numpy takes None for float64
    except TypeError:
        twin = None
    if twin is None:
        raise DTypeError(f"not a dtype: {shown(name)}", help="use a name such as 'f16' or tl.float16")
    return of_numpy(twin)


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The dtype of the same bits as a numpy dtype. Raises ``DTypeError`` where there is none (complex,
    another byte order...)."""
    found = _BY_NUMPY.get(dtype)
    if found is None:
        near = "float32" if dtype.kind == "f" else "int32" if dtype.kind in "iu" else None
        raise DTypeError(
            f"numpy dtype {dtype} has no counterpart on the device",
            help=f"convert it first: array.astype(np.{near})" if near else "use " + ", ".join(d.short for d in ALL),
        )
    return found


def promote(a: DType, b: DType) -> DType:
    """The dtype of ``a op b`` (symmetric).

    Equal dtypes stay; bool gives way; a float wins over an integer; two floats give the wider, except f16 with bf16
    (f32) and two f8 (f16); integers give the wider, mixed signs the narrowest signed type that holds both. Raises
    ``DTypeError`` for u64 with a signed integer: no type holds both.
    """
    if a is b:
        return a
    if a.kind == "bool":
        return b
    if b.kind == "bool":
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
        return float32 if a.itemsize == 2 else float16
    wide, narrow = (a, b) if a.itemsize >= b.itemsize else (b, a)
    if a.kind == b.kind or (wide.kind == "int" and wide.itemsize > narrow.itemsize):
        return wide
    unsigned = a if a.kind == "uint" else b
    if unsigned is uint64:
        raise DTypeError(
            f"{a} with {b}: no integer dtype holds both",
            help="cast one side: h.to(tl.int64) keeps numbers below 2**63, h.to(tl.uint64) those that are not negative",
        )
    return _SIGNED[2 * unsigned.itemsize]
