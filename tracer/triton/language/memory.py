"""Loads, stores and atomics."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ..constexpr import bare
from ..values.arithmetic import elementwise
from ..values.value import Running, Value, lift
from .descriptors import Descriptor

__all__ = [
    "advance",
    "atomic_cas",
    "atomics",
    "load",
    "load_descriptor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "store",
    "store_descriptor",
]


def _mask(mask: Any) -> Value | None:
    mask = bare(mask)
    if mask is None or mask is True:
        return None
    value = lift(mask)
    return value if value.numpy == np.bool_ else elementwise("ne", value, 0)


def _checked(boundary_check: Any) -> list[int]:
    given = bare(boundary_check)
    return [int(bare(d)) for d in (given if isinstance(given, tuple | list) else (given,))]


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: Any = "",
    cache_modifier: Any = "",
    eviction_policy: Any = "",
    volatile: Any = False,
) -> Value:
    """``tl.load``."""
    if isinstance(pointer, Descriptor):
        block = pointer
        pointer, inside = block.pointers(_checked(boundary_check))
        fill = float("nan") if bare(padding_option) == "nan" else 0
        found: Value = Running.tracing.load(pointer, inside, fill)
        return found
    found = Running.tracing.load(lift(pointer), _mask(mask), bare(other))
    return found


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: Any = "",
    eviction_policy: Any = "",
) -> None:
    """``tl.store``."""
    if isinstance(pointer, Descriptor):
        pointer, inside = pointer.pointers(_checked(boundary_check))
        Running.tracing.store(pointer, value, inside)
        return
    Running.tracing.store(lift(pointer), value, _mask(mask))


def make_block_ptr(
    base: Any,
    shape: Sequence[Any],
    strides: Sequence[Any],
    offsets: Sequence[Any],
    block_shape: Sequence[Any],
    order: Any = None,
) -> Descriptor:
    """``tl.make_block_ptr``."""
    return Descriptor(lift(base), shape, strides, [bare(n) for n in block_shape], "zero", offsets)


def advance(base: Any, offsets: Sequence[Any]) -> Any:
    """``tl.advance``."""
    return base.advance(offsets)


def make_tensor_descriptor(
    base: Any, shape: Sequence[Any], strides: Sequence[Any], block_shape: Sequence[Any], padding_option: Any = "zero"
) -> Descriptor:
    """``tl.make_tensor_descriptor``."""
    pointer, last = lift(base), int(bare(block_shape[-1]))
    size = pointer.dtype.element_ty.itemsize
    if last * size < 16:
        raise Running.tracing.refused(
            f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {last} * {size} = "
            f"{last * size} bytes",
            "widen the block",
        )
    return Descriptor(lift(base), shape, strides, [bare(n) for n in block_shape], bare(padding_option))


def load_descriptor(desc: Any, offsets: Sequence[Any]) -> Value:
    """``tl.load_tensor_descriptor``."""
    found: Value = desc.load(offsets)
    return found


def store_descriptor(desc: Any, offsets: Sequence[Any], value: Any) -> None:
    """``tl.store_tensor_descriptor``."""
    desc.store(offsets, value)


# --- atomics ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _discarding(code: CodeType) -> frozenset[int]:
    """The calls of a code object whose result is thrown away, by their place in it. A running call stands at its
    instruction, or, once Python has specialised it, anywhere in the cache behind that."""
    found: list[int] = []
    before = -1
    for instruction in dis.get_instructions(code):
        if instruction.opname == "POP_TOP":
            found += range(before, instruction.offset)
        before = instruction.offset
    return frozenset(found)


def _is_used(depth: int) -> bool:
    """Whether the caller of the function that asks does anything with its result."""
    frame = sys._getframe(depth)
    return frame.f_lasti not in _discarding(frame.f_code)


def _atomic(how: str) -> Callable[..., Value]:
    def call(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Value:
        used = _is_used(2)
        found: Value = Running.tracing.atomic(how, lift(pointer), val, _mask(mask), is_used=used)
        return found

    call.__name__, call.__doc__ = f"atomic_{how}", f"``tl.atomic_{how}``."
    return call


#: By name.
atomics = {f"atomic_{how}": _atomic(how) for how in ("add", "max", "min", "and", "or", "xor", "xchg")}


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Value:
    """``tl.atomic_cas``."""
    found: Value = Running.tracing.swap(lift(pointer), cmp, val)
    return found
