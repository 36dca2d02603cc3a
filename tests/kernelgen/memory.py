"""Instructions that move: loads, stores, copies, what is made from nothing."""

from __future__ import annotations

import kernscope as ks
from kernscope import tl

from .values import (
    COLS,
    DTYPES,
    FLOATS,
    LARGEST,
    Holder,
    Value,
    size_of,
)


class Memory(Holder):
    """Between HBM and scratch, and within scratch."""

    def do_load(self, a: int, b: int, c: int, d: int) -> None:
        self.load((tl.float32, tl.float16)[a % 2], size_of(b), size_of(c), d)

    def do_load_out(self, a: int, b: int, c: int, d: int) -> None:
        into = self.target(a, (tl.float32, tl.float16))
        tl.load(self.region(into.dtype, *into.shape, b), out=into.handle)
        self.wrote(into, 1.0)

    def do_pointer(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.load(self.sources[tl.float32] + (d + self.rank), (size_of(b), size_of(c))), 1.0)

    def do_ragged(self, a: int, b: int, c: int, d: int) -> None:
        """A load that reaches over some edges of its tensor, or lies wholly outside."""
        rows, cols = size_of(b), size_of(c)
        row, col = (a % 10 - 4, d % 6 - 3) if a % 2 else (20 + a % 6, 8 + d % 6)
        region = self.sources[(tl.float16, tl.float32)[c % 2]][row : row + rows, col : col + cols]
        self.add(tl.load(region, pad=(0.0, -1.0, 0.5)[d % 3]), 1.0)

    def do_ragged_row(self, a: int, b: int, c: int, d: int) -> None:
        """A ragged load in which integer indices take some dimensions away: the first, one in the middle, the last."""
        rows, cols = size_of(b), size_of(c)
        row, col = d % 9 - 4, a % 16 - 4
        cube, pad = self.tensors.cube, (0.0, -1.0, 0.5)[a % 3]
        match a % 4:
            case 0:
                region = cube[b % 4, row : row + rows, col : col + cols]
            case 1:
                region = cube[row : row + rows, c % 6, col : col + cols]
            case 2:
                region = cube[d % 8 - 2 : d % 8 - 2 + rows, row : row + cols, b % 12]
            case 3:
                region = cube[b % 4, c % 6, col : col + cols]
        self.add(tl.load(region, pad=pad), 1.0)

    def do_dead_load(self, a: int, b: int, c: int, d: int) -> None:
        """A load that nobody uses, perhaps still in flight when its scope ends and others take its bytes over."""
        with self.scope():
            if a % 2:
                tl.empty((size_of(b), size_of(c)), FLOATS[c % 3])
            rows, cols = (24, 12) if d % 2 else (8, 8)
            tl.load(self.region((tl.float32, tl.float16)[b % 2], rows, cols, d))

    def do_move(self, a: int, b: int, c: int, d: int) -> None:
        """A value, or a view of one, in another of the rank's memories."""
        value = self.operand(a, DTYPES)
        others = [space for space in self.spaces if space != value.handle.space]
        if others:
            self.add(tl.move(self.read(value), others[b % len(others)]), value.base.bound)

    def do_space(self, a: int, b: int, c: int, d: int) -> None:
        """A result in a memory that is named: where its engine makes it, or where it is brought then."""
        value, space = self.operand(a), self.spaces[b % len(self.spaces)]
        match c % 3:
            case 0:
                self.add(tl.tanh(self.read(value), space=space), 1.0)
            case 1:
                self.add(tl.load(self.region(tl.float32, size_of(a), size_of(d), d), space=space), 1.0)
            case _:
                self.add(tl.full((size_of(a), size_of(d)), 0.5, tl.float32, space=space), 1.0)

    def do_store(self, a: int, b: int, c: int, d: int) -> None:
        self.keep(self.operand(a, DTYPES), clip=b % 4 == 0)

    def do_spill(self, a: int, b: int, c: int, d: int) -> None:
        value = self.cast(self.operand(a), tl.float32)
        tl.store(self.place(value.shape, b, c), self.read(value))

    def do_unspill(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.load(self.place((size_of(a), size_of(b)), c, d)), LARGEST)

    def do_take(self, a: int, b: int, c: int, d: int) -> None:
        """Rows, or columns, of an input by an index that is computed."""
        dtype, axis = (tl.float32, tl.float16)[a % 2], d % 2
        region = self.region(dtype, size_of(b), size_of(c), d)
        self.add(tl.take(region, self.index(c, region.shape[axis]), axis), 1.0)

    def do_scatter(self, a: int, b: int, c: int, d: int) -> None:
        """Rows of the rank's part of ``work`` by an index that is computed: written over, or changed in turn."""
        value = self.operand(a)
        tile = tl.tanh(self.read(self.cast(value, tl.float32)))
        index = self.index(b, 8, rows=tile.shape[0])
        place = self.place((8, tile.shape[1]), c, d)
        match d % 4:
            case 0:
                tl.scatter(place, index, tile)
            case 1:
                tl.atomic_add(place, tile, index=index)
            case 2:
                tl.atomic_max(place, tile, index=index)
            case _:
                tl.scatter(self.place((tile.shape[1], 8), c, d), index, tl.trans(tile), axis=1)

    def do_atomic(self, a: int, b: int, c: int, d: int) -> None:
        """A box of ``work`` that is changed as one step, and perhaps what was there."""
        tile = tl.tanh(self.read(self.cast(self.operand(a), tl.float32)))
        change = (tl.atomic_add, tl.atomic_max, tl.atomic_min)[c % 3]
        alone = self.line.size == 1 and self.alone_from == 0
        found = change(self.place(tile.shape, b, d), tile, fetch=alone and d % 2 == 0)
        if found is not None:
            self.add(found, LARGEST)

    def index(self, number: int, size: int, rows: int = 0) -> ks.TensorHandle:
        """An index tile of numbers below ``size``, of so many elements (0: as many as a value has rows)."""
        places = tl.argmax(self.read(self.operand(number)), axis=1)
        if rows:
            places = tl.broadcast_to(places[:1], (rows,)) + tl.arange(0, rows)
        return places % size

    def place(self, shape: tuple[int, int], row: int, col: int) -> ks.HbmRegion:
        """A box of the rank's part of ``work``, which overlaps others."""
        rows, cols = shape
        top, left = 16 * self.rank + row % (16 - rows + 1), col % (COLS - cols + 1)
        return self.tensors.work[top : top + rows, left : left + cols]

    def do_copy_to(self, a: int, b: int, c: int, d: int) -> None:
        source = self.operand(a, DTYPES)
        into = self.target(b, (source.dtype,))
        rows, cols = (min(pair) for pair in zip(source.shape, into.shape, strict=True))
        self.copy(into.corner(rows, cols), source.corner(rows, cols))

    def do_shift_within(self, a: int, b: int, c: int, d: int) -> None:
        """A copy between two overlapping parts of one value."""
        value = self.operand(a)
        rows, _ = value.shape
        if rows > 1 and self.may_write(value):
            low, high = value.view(lambda item: item[: rows - 1, :]), value.view(lambda item: item[1:, :])
            self.copy(high, low) if b % 2 else self.copy(low, high)

    def copy(self, into: Value, source: Value) -> None:
        tl.copy_to(into.handle, self.read(source))
        self.wrote(into, source.base.bound)

    def do_fill(self, a: int, b: int, c: int, d: int) -> None:
        dtype = DTYPES[c % len(DTYPES)]
        low = 0 if dtype.kind == "uint" else -2
        if d % 2:
            self.add(tl.zeros((size_of(a), size_of(b)), dtype), 0.0)
        else:
            self.add(tl.full((size_of(a), size_of(b)), c % 5 + low, dtype), 4.0)

    def do_arange(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.arange(a % 8, a % 8 + size_of(b)), 16.0)

    def do_empty(self, a: int, b: int, c: int, d: int) -> None:
        self.empty((size_of(a), size_of(b)), FLOATS[c % 3])
