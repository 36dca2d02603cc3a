"""Views of raw bytes: how the executor reads an operand and writes a result through a layout."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...ir import dtypes
from ...ir.indices import Index
from ...ir.layout import Layout
from ...ir.tables import IntArray

__all__ = ["Array", "IndexedView", "View"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class View:
    """A layout in bytes: ``strides`` are in bytes, as numpy takes them. Made once per layout, used for every access."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    itemsize: int
    is_dense: bool
    nbytes: int

    @classmethod
    def of(cls, layout: Layout) -> View:
        """The view of a layout."""
        itemsize = layout.dtype.itemsize
        strides = tuple(stride * itemsize for stride in layout.strides)
        return cls(layout.shape, strides, layout.dtype.numpy, itemsize, layout.is_dense, layout.nbytes)

    def read(self, memory: IntArray, start: int) -> Array:
        """A fresh, aligned, row-major copy of the elements that begin at byte ``start``."""
        if self.dtype == dtypes.bool_.numpy:
            # Bytes that were never bool (poison, stale floats) must not become a bool that is neither 0 nor 1.
            truth: Array = np.ndarray(self.shape, np.uint8, memory, start, self.strides) != 0
            return truth
        return np.ndarray(self.shape, self.dtype, memory, start, self.strides).copy()

    def write(self, memory: IntArray, start: int, values: Array) -> None:
        """Write ``values``, of the view's own shape and dtype, to the elements that begin at byte ``start``."""
        assert values.shape == self.shape and values.dtype == self.dtype, (values.shape, values.dtype, self)
        np.ndarray(self.shape, self.dtype, memory, start, self.strides)[...] = values

    def marks(self, per_byte: IntArray, start: int) -> IntArray:
        """The view's bytes in an array that holds one entry per byte of memory (a view: assign to mark them)."""
        if self.is_dense:
            return per_byte[start : start + self.nbytes]
        size = per_byte.itemsize
        strides = (*(stride * size for stride in self.strides), size)
        return np.ndarray((*self.shape, self.itemsize), per_byte.dtype, per_byte, start * size, strides)

    def mark(self, per_byte: IntArray, start: int) -> None:
        """Set the view's entries in an array that holds one per byte of memory."""
        self.marks(per_byte, start)[...] = True


@attrs.frozen(eq=False)
class IndexedView:
    """The elements that an index names, in bytes: as a :class:`View` to those who read and write through it. What the
    index leaves out is read as zeros, and not written; of elements that stand in one place the last one is written."""

    index: Index
    dtype: np.dtype[Any]
    elements: IntArray

    @classmethod
    def of(cls, index: Index, layout: Layout) -> IndexedView:
        """The view of an index into a range of this layout."""
        return cls(index, layout.dtype.numpy, index.elements())

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def _range(self, memory: IntArray, start: int) -> Array:
        return np.ndarray((self.index.span,), self.dtype, memory, start)

    def read(self, memory: IntArray, start: int) -> Array:
        """A fresh copy of the elements of the range that begins at byte ``start``, in the shape of the tile."""
        there = self.elements >= 0
        found = self._range(memory, start)[np.where(there, self.elements, 0)]
        if self.dtype == dtypes.bool_.numpy:
            found = found.view(np.uint8) != 0
        return np.where(there, found, self.dtype.type(0))

    def write(self, memory: IntArray, start: int, values: Array) -> None:
        """Write a tile to the elements of the range that begins at byte ``start``."""
        there = self.elements >= 0
        self._range(memory, start)[self.elements[there]] = values[there]

    def marks(self, per_byte: IntArray, start: int) -> IntArray:
        """The elements' bytes in an array that holds one entry per byte of memory, as rows to look at: to assign to
        them use :meth:`mark`."""
        return per_byte[self._bytes(start)]

    def mark(self, per_byte: IntArray, start: int) -> None:
        """Set the elements' entries in an array that holds one per byte of memory."""
        per_byte[self._bytes(start)] = True

    def _bytes(self, start: int) -> IntArray:
        rows: IntArray = start + self.index.accessed()[:, None] * self.itemsize + np.arange(self.itemsize)
        return rows
