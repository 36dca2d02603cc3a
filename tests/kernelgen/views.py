"""Instructions that take views of values, which no node does."""

from __future__ import annotations

import numpy as np

from kernscope import tl

from .values import (
    SIZES,
    Holder,
    Value,
    size_of,
)


class Views(Holder):
    """Slices, transposes, reshapes, broadcasts."""

    def do_slice(self, a: int, b: int, c: int, d: int) -> None:
        value = self.any_value(a)
        rows, cols = value.shape
        top, left = b % rows, c % cols
        bottom, right = top + 1 + d % (rows - top), left + 1 + (a + d) % (cols - left)
        self.show(value.view(lambda item: item[top:bottom, left:right]))

    def do_trans(self, a: int, b: int, c: int, d: int) -> None:
        value = self.any_value(a)
        self.show(value.view(lambda item: item.T))

    def do_reshape(self, a: int, b: int, c: int, d: int) -> None:
        value = self.any_value(a)
        rows, cols = value.shape
        if value.handle.layout.is_dense and rows * cols <= max(SIZES):
            shape = (1, rows * cols) if b % 2 else (rows * cols, 1)
            self.show(Value(tl.reshape(value.handle, shape), value.base, value.cells.reshape(shape)))

    def do_broadcast(self, a: int, b: int, c: int, d: int) -> None:
        value = self.any_value(a)
        rows, cols = value.shape
        shape = (rows, size_of(b)) if cols == 1 else (size_of(b), cols) if rows == 1 else (rows, cols)
        if shape != value.shape:
            cells = np.broadcast_to(value.cells, shape)
            self.show(Value(tl.broadcast_to(value.handle, shape), value.base, cells))

    def any_value(self, number: int) -> Value:
        known = self.living(lambda value: True)
        return known[-1 - number % len(known)] if known else self.operand(number)
