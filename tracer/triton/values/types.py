"""Types as kernels see them: ``tl.float32``, pointers, and blocks of them."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from ....ir import dtypes
from ....ir.dtypes import DType
from ....ir.errors import TritonNameError

__all__ = [
    "MISSING",
    "TYPES",
    "BlockType",
    "MissingType",
    "PointerType",
    "Type",
    "int_type",
    "type_of_name",
    "type_of_numpy",
]


class Type:
    """An element type. ``dtype`` is kernscope's own, ``name`` Triton's."""

    dtype: DType
    SINT_TYPES: ClassVar = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar = ["fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES: ClassVar = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar = ["void"]

    def __init__(self, name: str, dtype: DType | None = None) -> None:
        name = _TESTED.get(name, name)
        dtype = dtypes.of(_NAMES.get(name, name)) if dtype is None else dtype
        self.name, self.dtype, self.numpy = name, dtype, dtype.numpy
        self.primitive_bitwidth = 1 if name == "int1" else dtype.itemsize * 8
        self.itemsize = dtype.itemsize
        self.element_ty = self.scalar = self
        self.shape: tuple[int, ...] = ()

    @property
    def int_bitwidth(self) -> int:
        """The bits of an integer."""
        return self.primitive_bitwidth

    @property
    def int_signedness(self) -> str:
        """What stands first in an integer's name."""
        return "unsigned" if self.dtype.kind == "uint" else "signed"

    @property
    def fp_mantissa_width(self) -> int:
        """The bits of a float's fraction."""
        return {"f64": 52, "f32": 23, "f16": 10, "bf16": 7, "f8e4m3": 3, "f8e5m2": 2}[self.dtype.short]

    @property
    def exponent_bias(self) -> int:
        """What is added to the exponent of a float."""
        return {"f64": 1023, "f32": 127, "f16": 15, "bf16": 127, "f8e4m3": 7, "f8e5m2": 15}[self.dtype.short]

    def is_floating(self) -> bool:
        """Whether it is a float."""
        return self.dtype.is_float

    def is_int(self) -> bool:
        """Whether it is an integer, or a truth value."""
        return not self.dtype.is_float

    def is_int_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.dtype.kind == "int"

    def is_int_unsigned(self) -> bool:
        """Whether it is an unsigned integer."""
        return self.dtype.kind in ("uint", "bool")

    def is_standard_floating(self) -> bool:
        """Whether it is a float of 16 bits and more."""
        return self.dtype.is_float and self.dtype.itemsize > 1

    def is_fp8(self) -> bool:
        """Whether it is a float of 8 bits."""
        return self.dtype.is_float and self.dtype.itemsize == 1

    def is_bool(self) -> bool:
        """Whether it is a truth value."""
        return self.dtype.kind == "bool"

    def is_ptr(self) -> bool:
        """It is none."""
        return False

    def is_block(self) -> bool:
        """It is none."""
        return False

    def is_void(self) -> bool:
        """It is none."""
        return False

    is_const = is_void

    def __getattr__(self, name: str) -> Any:
        # is_fp16(), is_int32(), is_bf16(), ...: one of each type.
        if name.startswith("is_") and name[3:] in _TESTED:
            return lambda: self.name == _TESTED[name[3:]]
        raise AttributeError(name)

    def to(self, *_: Any) -> Type:
        """Itself."""
        return self

    def __call__(self, value: Any) -> Any:
        raise TypeError(f"tl.{self.name} is a type: convert with tl.cast or x.to(tl.{self.name})")

    def __repr__(self) -> str:
        return f"triton.language.{self.name}"

    def __str__(self) -> str:
        return {"int1": "int1", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}.get(
            self.name, self.name
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


_NAMES = {
    "int1": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8e4nv": "f8e4m3",
    "float8e5": "f8e5m2",
}
_SHORT_FLOATS = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
_TESTED = {**{name: name for name in _NAMES}, **_SHORT_FLOATS, "fp8e4nv": "float8e4nv", "fp8e5": "float8e5"}

#: Triton's element types by name.
TYPES: dict[str, Type] = {name: Type(name, dtypes.of(short)) for name, short in _NAMES.items()}
_BY_DTYPE = {kind.dtype: kind for kind in TYPES.values()}


def type_of_numpy(dtype: np.dtype[Any]) -> Type:
    """The type of a numpy dtype."""
    return _BY_DTYPE[dtypes.of_numpy(dtype)]


def int_type(bitwidth: int, signed: bool) -> Type:
    """``tl.core.get_int_dtype``: integers of so many bits."""
    return TYPES[f"{'' if signed or bitwidth == 1 else 'u'}int{bitwidth}"]


class MissingType:
    """A type that kernscope does not have: it can be named, and nothing can be made of it."""

    primitive_bitwidth = 8

    def __init__(self, name: str) -> None:
        self.name = name
        self.scalar = self.element_ty = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def refuse(self) -> NoReturn:
        """Say that there is no such type. Raises ``TritonNameError``."""
        raise TritonNameError(
            f"tl.{self.name} is refused by kernscope: it has no such type",
            help=f"8-bit floats that run: {', '.join(n for n in TYPES if n.startswith('float8'))}",
        )

    def __repr__(self) -> str:
        return f"triton.language.{self.name}"


#: Such types by name.
MISSING = {name: MissingType(name) for name in ("float8e4b15", "float8e4b8", "float8e5b16")}


class PointerType:
    """A pointer to elements of a type."""

    primitive_bitwidth = 64

    def __init__(self, element_ty: Any, address_space: int = 1, const: bool = False) -> None:
        self.element_ty = element_ty
        self.scalar = self
        self.name = f"pointer<{element_ty}>"

    def is_ptr(self) -> bool:
        """It is one."""
        return True

    def is_floating(self) -> bool:
        """It is none."""
        return False

    is_int = is_block = is_bool = is_int_signed = is_fp8 = is_const = is_floating

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and other.element_ty == self.element_ty

    def __hash__(self) -> int:
        return hash((PointerType, self.element_ty))

    def __repr__(self) -> str:
        return self.name


class BlockType:
    """A tile of elements: the ``type`` of a value that has a shape."""

    def __init__(self, element_ty: Any, shape: Any) -> None:
        self.element_ty, self.shape = element_ty, tuple(int(n) for n in shape)
        self.scalar = element_ty
        self.numel = int(np.prod(self.shape))

    def is_block(self) -> bool:
        """It is one."""
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("element_ty", "scalar"):
            raise AttributeError(name)
        return getattr(self.element_ty, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockType) and (other.element_ty, other.shape) == (self.element_ty, self.shape)

    def __hash__(self) -> int:
        return hash((self.element_ty, self.shape))

    def __repr__(self) -> str:
        return f"<{list(self.shape)}, {self.element_ty}>"


#: What Triton calls types in the signatures of kernels.
_IN_SIGNATURES = {
    "i1": "int1",
    "u1": "int1",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "fp8e4b15": "float8e4b15",
    "fp8e4b8": "float8e4b8",
    "fp8e5b16": "float8e5b16",
    **_TESTED,
}


def type_of_name(name: str, const: Any = None) -> Any:
    """``tl.str_to_ty``: the type that a kernel's signature calls so, ``*fp32`` for a pointer."""
    if name.startswith("*"):
        return PointerType(type_of_name(name[1:].removeprefix("k")), const=name.startswith("*k"))
    known = {**TYPES, **MISSING}
    return known[_IN_SIGNATURES.get(name, name)]
