"""Instructions that a correct kernel has not: uses after a scope, and of bytes that nothing wrote."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernscope import tl

from .values import (
    FLOATS,
    LARGEST,
    Holder,
    Value,
    size_of,
)


class Faults(Holder):
    """Only in programs that ask for them."""

    def do_stale_read(self, a: int, b: int, c: int, d: int) -> None:
        """Reads a handle, or a view, of a closed scope: by math, a copy, a store or a dot."""
        stale = self.stale(a, FLOATS)
        if stale is None:
            return
        if b % 4 == 0:
            self.add(tl.abs(stale.handle), LARGEST)
        elif b % 4 == 1:
            into = self.empty(stale.shape, stale.dtype)
            tl.copy_to(into.handle, stale.handle)
            self.wrote(into, LARGEST)
        elif b % 4 == 2:
            self.keep(stale)
        else:
            self.add(tl.dot(stale.handle, stale.handle.T), LARGEST)

    def do_stale_write(self, a: int, b: int, c: int, d: int) -> None:
        """Copies into a handle of a closed scope."""
        source = self.operand(b)
        stale = self.stale(a, (source.dtype,))
        if stale is not None and stale.writable:
            rows, cols = (min(pair) for pair in zip(source.shape, stale.shape, strict=True))
            tl.copy_to(stale.corner(rows, cols).handle, self.read(source.corner(rows, cols)))

    def do_stale_load(self, a: int, b: int, c: int, d: int) -> None:
        """Loads into, or accumulates in, a handle of a closed scope."""
        stale = self.stale(a, (tl.float32, tl.float16))
        if stale is None or not stale.writable:
            return
        if b % 2 or stale.dtype is not tl.float32:
            tl.load(self.region(stale.dtype, *stale.shape, c), out=stale.handle)
            return
        rows, cols = stale.shape
        x, y = self.load(tl.float32, rows, 2, c), self.load(tl.float32, 2, cols, d)
        tl.dot(self.read(x), self.read(y), acc=stale.handle)

    def do_unwritten_read(self, a: int, b: int, c: int, d: int) -> None:
        """Reads an ``empty`` handle that was written in part, or not at all."""
        known = self.living(lambda value: not value.readable)
        value = known[-1 - a % len(known)] if known else self.empty((size_of(b), size_of(c)), FLOATS[d % 3])
        self.add(-value.handle, LARGEST)

    def stale(self, number: int, dtypes: Iterable[Any]) -> Value | None:
        known = [value for value in self.dead if value.dtype in dtypes]
        return known[-1 - number % len(known)] if known else None
