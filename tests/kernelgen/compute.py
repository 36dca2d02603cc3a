"""Instructions that compute: elementwise, reductions, products, composites."""

from __future__ import annotations

from typing import Any

import kernscope as ks
from kernscope import tl

from .values import (
    DTYPES,
    INTEGERS,
    LARGEST,
    Holder,
    Value,
    broadcastable,
    converted,
    size_of,
)


class Compute(Holder):
    """On every engine that computes."""

    def do_unary(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a)
        handle, bound = self.read(value), value.base.bound
        match b % 9:
            case 0:
                self.add(abs(handle), bound)
            case 1:
                self.add(-handle, bound)
            case 2:
                self.add(tl.floor(handle), bound + 1)
            case 3:
                self.add(tl.exp(-bound + handle), 1.0)
            case other:
                self.add((tl.tanh, tl.sigmoid, tl.sin, tl.cos, tl.softmax)[other - 4](handle), 1.0)

    def do_binary(self, a: int, b: int, c: int, d: int) -> None:
        x, y = self.operand(a), self.operand(b)
        if d % 4 == 0:
            self.add(self.read(x) * 0.5 + (d % 3), x.base.bound + 2 if x.base.bound < LARGEST else LARGEST)
            return
        x, y = broadcastable(x, y)
        bx, by = x.base.bound, y.base.bound
        left, right = self.read(x), self.read(y)
        if c % 5 == 0 and bx * by <= LARGEST:
            self.add(left * right, bx * by)
        elif c % 5 == 1 and bx + by <= LARGEST:
            self.add(left - right, bx + by)
        elif c % 5 == 2 and bx + by <= LARGEST:
            self.add(left + right, bx + by)
        else:
            self.add(tl.maximum(left, right) if c % 2 else tl.minimum(left, right), max(bx, by))

    def do_into(self, a: int, b: int, c: int, d: int) -> None:
        """A result that goes into a handle: its own operand, the other one, or a third; also a part of it."""
        x, y = self.operand(a), self.operand(b)
        into = x if d % 3 == 0 else self.target(c, (x.dtype,))
        rows, cols = (min(sizes) for sizes in zip(x.shape, into.shape, strict=True))
        x, into = x.corner(rows, cols), into.corner(rows, cols)
        if not self.may_write(into) or into.dtype is not x.dtype:
            return
        match c % 4:
            case 0:
                tl.tanh(self.read(x), out=into.handle)
            case 1:
                tl.mul(self.read(x), -0.5, out=into.handle)
            case 2:
                other = self.read(self.cast(y, x.dtype))[:1, :1]
                tl.minimum(self.read(x), other, out=into.handle)
            case _:
                into = into.corner(1, cols)
                tl.max(self.read(x), axis=0, keep_dims=True, out=into.handle)
        self.wrote(into, max(x.base.bound, y.base.bound, 1.0))

    def do_where(self, a: int, b: int, c: int, d: int) -> None:
        x, y = broadcastable(self.operand(a), self.operand(b))
        left, right = self.read(x), self.read(y)
        chosen = tl.where(left > right if c % 2 else left <= right, right, 0.25 if d % 2 else left)
        self.add(chosen, max(x.base.bound, y.base.bound, 1.0))

    def do_fma(self, a: int, b: int, c: int, d: int) -> None:
        x = self.operand(a)
        if b % 3 == 0:
            self.add(tl.exp_fma(self.read(x), 0.5, -x.base.bound), 1.0)
            return
        self.add(tl.fma(self.read(x), 0.5, self.read(x)[:1, :1]), min(2 * x.base.bound, 2 * LARGEST))

    def do_cast(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a, DTYPES)
        self.add(converted(self.read(value), DTYPES[b % len(DTYPES)]), value.base.bound)

    def do_integers(self, a: int, b: int, c: int, d: int) -> None:
        dtype = INTEGERS[d % len(INTEGERS)]
        x, y = broadcastable(self.operand(a, (dtype,)), self.operand(b, (dtype,)))
        x, y = self.cast(x, dtype), self.cast(y, dtype)
        left, right = self.read(x) & 255, self.read(y)
        match c % 4:
            case 0:
                left = left ^ (right & 15)
            case 1:
                left = left | 3
            case 2:
                left = left << 2
            case 3:
                left = left % 7
        self.add(left, 1024.0)

    def do_reduce(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a)
        handle, bound = self.read(value), value.base.bound
        axis, keep = (0, 1, None, (0, 1))[b % 4], bool(c % 2)
        function = (tl.sum, tl.max, tl.min, tl.argmax)[d % 4]
        if function is tl.argmax:
            axis = None if axis == (0, 1) else axis
            self.add(tl.argmax(handle, axis=axis, keep_dims=keep), 64.0)
            return
        if function is tl.sum and bound * 64 > LARGEST:
            function = tl.max
        self.add(function(handle, axis=axis, keep_dims=keep), bound * 64 if function is tl.sum else bound)

    def do_scan(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a)
        match c % 4:
            case 2:
                least = (tl.maximum, tl.minimum)[d % 2]
                self.add(tl.associative_scan(self.read(value), b % 2, least, reverse=bool(a % 2)), value.base.bound)
            case 3:
                self.add(tl.reduce(self.read(value), b % 2, tl.maximum, keep_dims=bool(d % 2)), value.base.bound)
            case other:
                self.add((tl.cumsum, tl.cumprod)[other](tl.tanh(self.read(value)), axis=b % 2), 8.0)

    def do_rearrange(self, a: int, b: int, c: int, d: int) -> None:
        """Sorted, reversed, looked up: no element becomes another number."""
        value = self.operand(a, DTYPES)
        handle, dim = self.read(value), b % 2
        match c % 4:
            case 0:
                made = tl.sort(handle, dim=dim, descending=bool(d % 2))
            case 1:
                made = tl.topk(handle, 1 + d % handle.shape[dim], dim=dim)
            case 2:
                made = tl.flip(handle, dim)
            case _:
                other = self.read(self.operand(d)) if d % 2 else handle
                size, (rows, cols) = handle.shape[dim], handle.shape
                place = tl.argmin(other, keep_dims=True) % size
                made = tl.gather(handle, tl.broadcast_to(place, (rows, 2) if dim else (2, cols)), dim)
        self.add(made, value.base.bound)

    def do_random(self, a: int, b: int, c: int, d: int) -> None:
        """Random numbers of offsets that were computed, or of those of a range; four tiles at once, too."""
        if a % 2:
            offset = tl.argmax(self.read(self.operand(b)), axis=1, keep_dims=True)
        else:
            offset = tl.arange(a % 8, a % 8 + size_of(b))[:, None]
        match d % 3:
            case 0:
                self.add(tl.rand(c, offset), 1.0)
            case 1:
                self.add(tl.randn4x(c, offset, 3)[b % 4], 8.0)
            case _:
                self.add((tl.randint(c, offset) >> 24).to(tl.int32), 256.0)

    def do_join(self, a: int, b: int, c: int, d: int) -> None:
        """Two tiles, one of them perhaps repeated: in turn, or joined and one part of it taken."""
        x = self.operand(a, DTYPES)
        y = self.cast(x if d % 3 == 0 else self.operand(b), x.dtype)
        x, y = broadcastable(x, y)
        bound = max(x.base.bound, y.base.bound)
        if c % 2:
            made = tl.interleave(self.read(x), self.read(y))
            self.add(made[:, : min(8, made.shape[1])], bound)
        else:
            self.add(tl.split(tl.join(self.read(x), self.read(y)))[d % 2], bound)

    def do_bits(self, a: int, b: int, c: int, d: int) -> None:
        """A float's bits, without its exponent or sign: small integers; and high halves of products."""
        value = self.operand(a)
        handle = self.read(value)
        dtype = {2: tl.uint16, 4: (tl.int32, tl.uint32)[b % 2], 8: (tl.int64, tl.uint64)[b % 2]}[handle.dtype.itemsize]
        bits = handle.to(dtype, bitcast=True)
        self.add(tl.mulhi(bits, 1000) & 511 if c % 2 and dtype.itemsize >= 4 else bits & 255, 511.0)

    def do_dot(self, a: int, b: int, c: int, d: int) -> None:
        x, y = self.factors(a, b)
        y = y.corner(x.shape[1], y.shape[1])
        self.add(tl.tanh(tl.dot(self.read(x), self.read(y))), 1.0)

    def do_dot_batch(self, a: int, b: int, c: int, d: int) -> None:
        """Two products at once, of one factor with both or of one and the same."""
        x, y = self.factors(a, b)
        left, right = self.read(x)[None], self.read(y)[None]
        if c % 2:
            left, right = tl.broadcast_to(left, (2, *x.shape)), tl.broadcast_to(right, (2, *y.shape))
        self.add(tl.max(tl.tanh(tl.dot(left, right)), axis=0), 1.0)

    def do_dot_acc(self, a: int, b: int, c: int, d: int) -> None:
        into = self.operand(c, (tl.float32,))
        x, y = self.factors(a, b)
        bound = into.base.bound + 8 * x.base.bound * y.base.bound
        if not self.may_write(into) or bound > LARGEST:
            return
        rows, cols = min(x.shape[0], into.shape[0]), min(y.shape[1], into.shape[1])
        x, y, into = x.corner(rows, x.shape[1]), y.corner(x.shape[1], cols), into.corner(rows, cols)
        tl.dot(self.read(x), self.read(y), acc=self.read(into))
        self.wrote(into, bound)

    def factors(self, a: int, b: int) -> tuple[Value, Value]:
        """Two values whose inner sizes can agree: the second has as many rows as the first has columns, or more."""
        x = self.operand(a)
        y = self.cast(self.operand(b), x.dtype)
        inner = min(x.shape[1], y.shape[0])
        return x.corner(x.shape[0], inner), y.corner(inner, y.shape[1])

    def do_composite(self, a: int, b: int, c: int, d: int) -> None:
        """A product whose operands are streamed, one of them or both, or lie in scratch, as they are or transposed."""
        dtype = (tl.float32, tl.float16)[b % 2]
        transposed = bool(d % 2)
        options: dict[str, Any]
        trans_a = bool(a % 2)
        if c % 4 == 3:
            bound, inner, rows = 1.0, size_of(a), size_of(b)
            left: Any = self.streamed(dtype, *((inner, rows) if trans_a else (rows, inner)), a)
        else:
            value = self.cast(self.operand(a), dtype)
            value = value.view(lambda item: item.T) if trans_a else value
            bound, (rows, inner) = value.base.bound, value.shape
            left = self.read(value)
        if c % 4 == 2:
            other = self.cast(self.operand(d), dtype)
            other = other.view(lambda item: item.T) if transposed else other
            inner = min(inner, other.shape[0])
            if isinstance(left, ks.TensorHandle):
                left = left[:, :inner]
            other = other.corner(inner, other.shape[1])
            bound *= other.base.bound
            cols = other.shape[1]
            right: Any = self.read(other.view(lambda item: item.T) if transposed else other)
        else:
            cols = size_of(c)
            right = self.streamed(dtype, *((cols, inner) if transposed else (inner, cols)), d)
        steps: list[Any] | None = (None, [("mul", 0.125), "tanh"], ["tanh"])[d % 3]
        if steps is None and 8 * bound > LARGEST:
            steps = ["tanh"]
        if trans_a and isinstance(left, ks.TensorHandle):
            left = left.T
        if steps and a % 3 == 0:  # with a tile of one element, repeated
            wide = self.cast(self.operand(b), tl.float32)
            wide = wide.corner(1, 1)
            steps = [("minimum", self.read(wide)), *steps]
        tile = (2 + a % 3, 2 + b % 3, 2 + c % 3)
        if c % 3 == 0:
            start = tl.full((rows, cols), 0.5, tl.float32)
            tanh = ["tanh"] if steps is None else steps
            options = {"trans_a": trans_a, "trans_b": transposed, "tile": tile, "epilogue": tanh, "acc": start}
            self.add(tl.composite("gemm", left, right, stages=1 + b % 3, **options), 1.0)
            return
        out_dtype = (tl.float32, tl.float16)[a % 2]
        options = {"stages": 1 + b % 3, "trans_b": transposed, "tile": tile, "out_dtype": out_dtype, "trans_a": trans_a}
        done = tl.composite("gemm", left, right, epilogue=steps, **options)
        self.add(done, 8 * bound if steps is None else 1.0)

    def streamed(self, dtype: Any, rows: int, cols: int, number: int) -> Any:
        """A matrix in HBM as a composite's operand: a region, or contiguous from a pointer."""
        if number % 3:
            return tl.ref(self.region(dtype, rows, cols, number))
        return tl.ref(self.sources[dtype] + (number + self.rank), (rows, cols))
