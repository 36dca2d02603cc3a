"""Block pointers and tensor descriptors: a tensor, and the box of it that a load or a store moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..values.arithmetic import cast, elementwise, view
from ..values.types import BlockType
from ..values.value import MadeBy, Running, Value, lift, under_rank

__all__ = ["Descriptor"]

_I64 = np.dtype(np.int64)


class Descriptor:
    """``base`` is a pointer; ``shape``, ``strides``, ``offsets`` are values, ``block_shape`` numbers. A block pointer
    moves by ``advance``; a tensor descriptor is told where by each load and store, and always checks its bounds."""

    def __init__(
        self,
        base: Value,
        shape: Sequence[Any],
        strides: Sequence[Any],
        block_shape: Sequence[Any],
        padding: str = "zero",
        offsets: Sequence[Any] | None = None,
    ) -> None:
        self.base, self.shape, self.strides = base, list(shape), list(strides)
        self.block_shape = [int(n) for n in block_shape]
        self.padding = padding
        self.offsets = [0] * len(self.block_shape) if offsets is None else list(offsets)

    def fresh(self, copy: Callable[[Any], Any]) -> Descriptor:
        """A copy for another attempt."""
        shape, strides = map(copy, self.shape), map(copy, self.strides)
        return Descriptor(copy(self.base), list(shape), list(strides), self.block_shape, self.padding, self.offsets)

    @property
    def dtype(self) -> Any:
        """The elements' type."""
        return self.base.dtype.element_ty

    @property
    def type(self) -> Any:
        """The type, whose ``element_ty`` is that of a block."""
        return BlockType(self.dtype, self.block_shape)

    @property
    def block_type(self) -> Any:
        """The type of a block."""
        return BlockType(self.dtype, self.block_shape)

    def advance(self, by: Sequence[Any]) -> Descriptor:
        """The block pointer, advanced."""
        offsets = [elementwise("add", a, b) for a, b in zip(self.offsets, by, strict=True)]
        return Descriptor(self.base, self.shape, self.strides, self.block_shape, self.padding, offsets)

    def pointers(
        self, checked: Sequence[int] | None, offsets: Sequence[Any] | None = None
    ) -> tuple[Value, Value | None]:
        """The block's pointers, and the mask of those inside along the dimensions that are checked (None: all)."""
        where = self.offsets if offsets is None else list(offsets)
        rank, pointer = len(self.block_shape), self.base
        mask: Value | None = None
        for d, n in enumerate(self.block_shape):
            index = elementwise("add", cast(steps(n), _I64), cast(lift(where[d]), _I64))
            index = along(index, d, rank)
            pointer = elementwise("add", pointer, elementwise("mul", index, cast(lift(self.strides[d]), _I64)))
            if checked is None or d in checked:
                inside = elementwise("and", elementwise("ge", index, 0), elementwise("lt", index, self.shape[d]))
                mask = inside if mask is None else elementwise("and", mask, inside)
        return widened(pointer, tuple(self.block_shape)), mask

    @property
    def fill(self) -> Any:
        """What is read outside."""
        return float("nan") if self.padding == "nan" else 0

    # --- a descriptor's own operations ----------------------------------------------------------------------------

    def load(self, offsets: Sequence[Any]) -> Value:
        """The block at some offsets."""
        pointer, mask = self.pointers(None, offsets)
        found: Value = Running.tracing.load(pointer, mask, self.fill)
        return found

    def store(self, offsets: Sequence[Any], value: Any) -> None:
        """Store a block at some offsets."""
        pointer, mask = self.pointers(None, offsets)
        Running.tracing.store(pointer, value, mask)

    def _atomic(self, how: str, offsets: Sequence[Any], value: Any) -> None:
        pointer, mask = self.pointers(None, offsets)
        Running.tracing.atomic(how, pointer, value, mask, is_used=False)

    def atomic_add(self, offsets: Sequence[Any], value: Any) -> None:
        """Add a block."""
        self._atomic("add", offsets, value)

    def atomic_min(self, offsets: Sequence[Any], value: Any) -> None:
        """The smaller of a block and what is there."""
        self._atomic("min", offsets, value)

    def atomic_max(self, offsets: Sequence[Any], value: Any) -> None:
        """The larger of a block and what is there."""
        self._atomic("max", offsets, value)

    def gather(self, rows: Any, column: Any) -> Value:
        """Rows of a matrix by an index tile, from a column on."""
        pointer, mask = self._rows(lift(rows), column)
        found: Value = Running.tracing.load(pointer, mask, self.fill)
        return found

    def scatter(self, value: Any, rows: Any, column: Any) -> None:
        """Store rows of a matrix by an index tile, from a column on."""
        pointer, mask = self._rows(lift(rows), column)
        Running.tracing.store(pointer, value, mask)

    def _rows(self, rows: Value, column: Any) -> tuple[Value, Value]:
        index = along(cast(rows, _I64), 0, 2)
        columns = along(elementwise("add", cast(steps(self.block_shape[1]), _I64), cast(lift(column), _I64)), 1, 2)
        offset = elementwise("mul", index, cast(lift(self.strides[0]), _I64))
        pointer = elementwise("add", elementwise("add", self.base, offset), columns)
        inside = [
            elementwise("and", elementwise("ge", x, 0), elementwise("lt", x, n))
            for x, n in zip((index, columns), self.shape, strict=True)
        ]
        return pointer, elementwise("and", *inside)


def steps(n: int) -> Value:
    """``0, 1, ... n - 1``, i32."""
    array = np.arange(n, dtype=np.int32)[None]
    made_by = MadeBy("arange", (), (("start", 0), ("end", n)))
    return Value([array], (n,), made_by=made_by, stack=Running.tracing.here())


def along(line: Value, d: int, rank: int) -> Value:
    """A line as dimension ``d`` of a tile of that rank."""
    shape = (1,) * d + line.shape + (1,) * (rank - d - 1)

    def of_part(part: Any) -> Any:
        return part.reshape((len(part), *(1,) * d, -1, *(1,) * (rank - d - 1)))

    def of_handle(handle: Any) -> Any:
        return handle.view(_reshaped, shape)

    return view(line, shape, of_part, of_handle)


def _reshaped(layout: Any, shape: tuple[int, ...]) -> Any:
    kept = next((s for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1), 0)
    return type(layout).of(shape, tuple(kept if n > 1 else 0 for n in shape), layout.dtype)


def widened(pointer: Value, shape: tuple[int, ...]) -> Value:
    """A pointer broadcast to a shape."""
    return Value(
        [under_rank(p, len(shape)) for p in pointer.parts],
        shape,
        storage=pointer.storage,
        roots=pointer.roots,
        undefined=pointer.undefined,
        wrapped=pointer.wrapped,
        stack=pointer.stack,
        is_const=pointer.is_const,
    )
