"""Operations that read memory and change it as one: what several programs may do to one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import ArgumentError, DTypeError, ShapeError, did_you_mean
from ..indices import Index
from ..layout import Layout, Shape
from .elementwise import TABLE
from .numbers import Array, cast_array
from .operation import Family, Kind, Operand, Operation, Space, Work

__all__ = ["ATOMICS", "combine_at", "combined", "expect_numbers"]

_COMBINE: dict[str, np.ufunc] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
#: What an atomic can do.
ATOMICS = (*_COMBINE, "xchg", "cas")


def combined(how: str, old: Array, new: Array, expected: Array | None = None) -> Array:
    """What an atomic leaves where ``old`` was, given ``new`` (and, for ``"cas"``, what it ``expected``): arrays of one
    dtype."""
    if how == "cas":
        return np.where(old == expected, new, old)
    if how == "xchg":
        return np.broadcast_to(new, old.shape)
    dtype = dtypes.of_numpy(old.dtype)
    wide = dtype.computed_in if dtype.is_float else dtype
    with np.errstate(all="ignore"):
        return cast_array(_COMBINE[how](cast_array(old, wide), cast_array(new, wide)), dtype)


def expect_numbers(how: str, dtype: DType) -> None:
    """Refuse what adds or compares bools."""
    if dtype.kind == "bool" and how in ("add", "max", "min"):
        raise DTypeError(f"atomic_{how} of bool", help="keep it as numbers: a tensor of i32, and h.to(tl.int32)")


def combine_at(how: str, memory: Array, index: Array, new: Array) -> bool:
    """What several elements do to ``memory`` one after the other, where nobody asks what they find; whether numpy has
    it in one call, else nothing is done."""
    if how not in _COMBINE or memory.dtype.kind not in "iuf" or memory.dtype.itemsize < 4:
        return False  # narrow floats are combined in f32 and rounded each time
    with np.errstate(all="ignore"):
        _COMBINE[how].at(memory, index, new)
    return True


def _in_turn(how: str, value: Array, target: Array, index: Index | None, rest: Sequence[Array]) -> tuple[Array, Array]:
    """Element after element: what each finds, and what stands in its place when all are done."""
    expected = rest[0] if how == "cas" else None
    where = None if index is None else index.elements().reshape(-1)
    if where is None or len(index.accessed()) == np.count_nonzero(where >= 0):  # type: ignore[union-attr]  # no Index: no where
        return target, combined(how, target, value, expected)
    found, values = target.reshape(-1).copy(), value.reshape(-1)
    memory: dict[int, np.generic] = {}
    for place, element in enumerate(where.tolist()):
        if element >= 0:
            found[place] = memory.get(element, found[place])
            one = slice(place, place + 1)
            wanted = None if expected is None else expected.reshape(-1)[one]
            memory[element] = combined(how, found[one], values[one], wanted)[0]
    left = found.copy()
    for place, element in enumerate(where.tolist()):
        if element >= 0:
            left[place] = memory[element]
    return found.reshape(target.shape), left.reshape(target.shape)


def _check(value: Operand, target: Operand, how: str, index: Index | None) -> tuple[Shape, DType]:
    assert isinstance(value, Layout) and isinstance(target, Layout)
    if how not in ATOMICS:
        raise ArgumentError(f"an atomic {how!r}", help=did_you_mean(how, ATOMICS, what="there are"))
    if value.dtype is not target.dtype:
        raise DTypeError(f"an atomic of {value.dtype} on {target.dtype}", help="bring the value to the tensor's dtype")
    expect_numbers(how, target.dtype)
    shape = target.shape if index is None else index.shape
    if value.shape != shape:
        raise ShapeError(f"an atomic of shape {value.shape} on {shape}", help="both need one shape")
    return value.shape, value.dtype


def _atomic_rule(operands: Sequence[Operand], *, how: str, index: Index | None = None) -> tuple[Shape, DType]:
    return _check(operands[0], operands[1], how, index)


def _atomic(
    value: Array,
    target: Array,
    *addresses: Array,
    how: str,
    result: DType,
    operands: Sequence[Operand],
    index: Index | None = None,
) -> Array:
    return _in_turn(how, value, target, index, addresses)[1]


def _fetch_rule(operands: Sequence[Operand], *, how: str, index: Index | None = None) -> tuple[Shape, DType]:
    return _check(operands[1], operands[0], how, index)


def _fetch(
    target: Array,
    value: Array,
    *addresses: Array,
    how: str,
    result: DType,
    operands: Sequence[Operand],
    index: Index | None = None,
) -> Array:
    found = _in_turn(how, value, target, index, addresses)[0]
    return found if index is None else np.where(index.elements() >= 0, found, found.dtype.type(0))


def _touched(operands: Sequence[Operand], result: Layout) -> Work:
    return (result.nbytes, 0, 0)


TABLE.add(
    Operation(
        name="atomic",
        family=Family.MEMORY,
        kind=Kind.TRANSFER,
        log="memory/atomic",
        rule=_atomic_rule,
        evaluate=_atomic,
        work=_touched,
        doc="Change elements of HBM by a tile, each as one step (``how``: add, max, min, and, or, xor, xchg, or cas, "
        "which takes a tile of what it expects, too); elements "
        "that stand in one place change it in turn. Example: ``tl.atomic_add(counts + labels, 1)``.",
        then_from=(Space.GLOBAL, Space.SCRATCH),
        writes_to=Space.GLOBAL,
        atomic=True,
        like="store",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="fetch",
        family=Family.MEMORY,
        kind=Kind.TRANSFER,
        log="memory/fetch",
        rule=_fetch_rule,
        evaluate=_fetch,
        work=_touched,
        doc="What the elements of an atomic that follows find in HBM, in turn. Example: ``ticket = "
        "tl.atomic_add(counter, 1)``.",
        reads_from=Space.GLOBAL,
        then_from=(Space.SCRATCH,),
        atomic=True,
        like="load",
        public=False,
    )
)
