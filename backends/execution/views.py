"""Views of raw bytes: how the executor reads an operand and writes a result through a layout."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...ir import dtypes
from ...ir.layout import Layout
from ...ir.tables import IntArray

__all__ = ["Array", "View"]

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
