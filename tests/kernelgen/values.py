"""What a random kernel holds: allocations, views of them, open scopes; and how an instruction picks operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import attrs
import numpy as np

import kernscope as ks
from kernscope import tl

Array = np.ndarray[Any, np.dtype[Any]]

SIZES = (1, 2, 3, 4, 6, 8)
COLS = 8  # of every HBM tensor that is stored to
LARGEST = 1e4  # no value grows past this (f16 ends at 65,504)
FLOATS = (tl.float32, tl.float16, tl.bfloat16, tl.float64)
INTEGERS = (tl.int32, tl.int64, tl.uint16, tl.uint32, tl.uint64)
DTYPES = FLOATS + INTEGERS


@attrs.define(eq=False)
class Base:
    """What is known of an allocation: which elements are written, whether anything read them since, and how large they
    can be."""

    handle: ks.TensorHandle
    written: Array
    bound: float
    unread: bool


@attrs.frozen(eq=False)
class Value:
    """A handle or a view: ``cells`` are the numbers of its elements in the allocation."""

    handle: ks.TensorHandle
    base: Base
    cells: Array

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.handle.shape
        return rows, cols

    @property
    def dtype(self) -> Any:
        return self.handle.dtype

    @property
    def readable(self) -> bool:
        return bool(self.base.written[self.cells].all())

    @property
    def writable(self) -> bool:
        return not self.handle.layout.is_broadcast

    def view(self, change: Callable[[Any], Any]) -> Value:
        """The view that indexing (of handles and of arrays alike) gives."""
        return Value(change(self.handle), self.base, change(self.cells))

    def corner(self, rows: int, cols: int) -> Value:
        """Its first rows and columns; itself where that is all of it."""
        if (rows, cols) == self.shape:
            return self
        return self.view(lambda item: item[:rows, :cols])


@attrs.define(eq=False)
class Frame:
    """What belongs to one open scope."""

    values: list[Value] = attrs.Factory(list)
    bases: list[Base] = attrs.Factory(list)


@attrs.frozen
class Tensors:
    """What a program reads, and where it stores to."""

    x: ks.HbmTensor
    h: ks.HbmTensor
    cube: ks.HbmTensor
    work: ks.HbmTensor
    clipped: ks.HbmTensor
    shared: ks.HbmTensor
    out: dict[str, ks.HbmTensor]


@attrs.frozen
class Line:
    """Where a rank stands: its number among all, its place in the ``size`` ranks that ``onward`` and ``backward`` lead
    along, and whether that line's ends are joined."""

    rank: int
    place: int
    size: int
    onward: str
    backward: str
    joined: bool


class Holder:
    """What one rank of a program holds. All ranks make the same shapes, whatever they do to get them."""

    def __init__(self, tensors: Tensors, line: Line, rows: int, slots: int) -> None:
        self.tensors, self.line, self.rows, self.slots = tensors, line, rows, slots
        self.sources = {tl.float32: tensors.x, tl.float16: tensors.h}
        self.frames = [Frame()]
        self.dead: list[Value] = []
        self.stored = 0
        self.exchanged = 0
        self.alone_from = 0  # the depth of the scope in which the rank works alone; 0: it does not
        #: Makes a scope; a front end whose kernels have none has another one here.
        self.scope: Callable[..., AbstractContextManager[object]] = tl.scratch_scope

    @property
    def rank(self) -> int:
        """The rank, of all."""
        return self.line.rank

    def keep_unread(self) -> None:
        """Store what was written in the innermost scope's allocations and never read."""
        for base in self.frames[-1].bases:
            if base.unread and base.written.all():
                self.keep(matrix_of(Value(base.handle, base, cells_of(base.handle))))

    def store_at_once(self, handle: ks.TensorHandle) -> None:
        """Keep a result that no other instruction sees: the ranks' values stay the same ones."""
        base = Base(handle, np.ones(handle.layout.size, dtype=bool), 1.0, unread=False)
        self.keep(matrix_of(Value(handle, base, cells_of(handle))))

    # --- values -----------------------------------------------------------------------------------------------------

    def add(self, handle: ks.TensorHandle, bound: float) -> Value:
        """A fresh result, of two dimensions at most."""
        base = Base(handle, np.ones(handle.layout.size, dtype=bool), bound, unread=True)
        self.frames[-1].bases.append(base)
        return self.show(Value(handle, base, cells_of(handle)))

    def show(self, value: Value) -> Value:
        """Make a value, brought to two dimensions, an operand of later instructions while its allocation lives."""
        value = matrix_of(value)
        depth = self.owner(value)
        if depth >= 0:
            # What a rank does alone shows in its own scope only.
            self.frames[max(depth, self.alone_from)].values.append(value)
        return value

    def read(self, value: Value) -> ks.TensorHandle:
        value.base.unread = False
        return value.handle

    def wrote(self, value: Value, bound: float) -> None:
        value.base.written[value.cells] = True
        value.base.unread = True
        value.base.bound = max(value.base.bound, bound)

    def living(self, accept: Callable[[Value], bool]) -> list[Value]:
        return [value for frame in self.frames for value in frame.values if accept(value)]

    def operand(self, number: int, dtypes: Iterable[Any] = FLOATS) -> Value:
        """A readable value of one of these dtypes; where there is none, one is loaded."""
        known = self.living(lambda value: value.readable and value.dtype in dtypes)
        if known:
            return known[-1 - number % len(known)]
        return self.load(tl.float32, 4, 4, number)

    def target(self, number: int, dtypes: Iterable[Any]) -> Value:
        """A value to write to; where there is none, an ``empty`` one."""
        known = self.living(lambda value: self.may_write(value) and value.dtype in dtypes)
        if known:
            return known[-1 - number % len(known)]
        return self.empty((4, 4), next(iter(dtypes)))

    def may_write(self, value: Value) -> bool:
        """Whether an instruction may write to a value. What one rank does alone must not change what all share."""
        return value.writable and (self.alone_from == 0 or self.owner(value) >= self.alone_from)

    def owner(self, value: Value) -> int:
        """The depth of the scope that a value's allocation belongs to; -1: of one that is closed."""
        return next(
            (depth for depth, frame in enumerate(self.frames) if any(value.base is base for base in frame.bases)), -1
        )

    def empty(self, shape: tuple[int, int], dtype: Any) -> Value:
        handle = tl.empty(shape, dtype)
        base = Base(handle, np.zeros(handle.layout.size, dtype=bool), 0.0, unread=False)
        self.frames[-1].bases.append(base)
        return self.show(Value(handle, base, cells_of(handle)))

    def load(self, dtype: Any, rows: int, cols: int, number: int) -> Value:
        return self.add(tl.load(self.region(dtype, rows, cols, number)), 1.0)

    def region(self, dtype: Any, rows: int, cols: int, number: int) -> ks.HbmRegion:
        """A box of an input; the ranks take different ones."""
        row, col = (number + 5 * self.rank) % (24 - rows + 1), number % (12 - cols + 1)
        return self.sources[dtype][row : row + rows, col : col + cols]

    def cast(self, value: Value, dtype: Any) -> Value:
        if value.dtype is dtype:
            return value
        return self.add(converted(self.read(value), dtype), value.base.bound)

    def keep(self, value: Value, clip: bool = False) -> None:
        """Store a value to rows of an output that nothing else touches."""
        rows, cols = value.shape
        first = self.rank * self.rows + self.stored * max(SIZES)
        self.stored += 1
        assert self.stored * max(SIZES) <= self.rows, "the outputs are too small"
        if clip:
            value = self.cast(value, tl.float32)
            if rows == 1:  # an integer index: one dimension less
                tl.store(self.tensors.clipped[first, :cols], self.read(value)[0, :], clip=True)
                return
            tl.store(self.tensors.clipped[first : first + rows, :cols], self.read(value), clip=True)
        else:
            tl.store(self.tensors.out[f"out_{value.dtype.short}"][first : first + rows, :cols], self.read(value))


def size_of(number: int) -> int:
    return SIZES[number % len(SIZES)]


def converted(handle: ks.TensorHandle, dtype: Any) -> ks.TensorHandle:
    """In another dtype and no larger: a negative integer would become a very large unsigned one."""
    return (abs(handle) if handle.dtype.kind == "int" and dtype.kind == "uint" else handle).to(dtype)


def cells_of(handle: ks.TensorHandle) -> Array:
    return np.arange(handle.layout.size).reshape(handle.shape)


def matrix_of(value: Value) -> Value:
    """The value as a view of two dimensions."""
    while value.handle.ndim < 2:
        value = value.view(lambda item: item[..., None])
    return value


def broadcastable(x: Value, y: Value) -> tuple[Value, Value]:
    """Corners of both that broadcast together."""
    sizes = [(m, n) if 1 in (m, n) else (min(m, n), min(m, n)) for m, n in zip(x.shape, y.shape, strict=True)]
    (xr, yr), (xc, yc) = sizes
    return x.corner(xr, xc), y.corner(yr, yc)
