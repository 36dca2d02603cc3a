"""The one generator of random kernels that all property tests draw from.

A :class:`Program` is a list of instructions: a name and a few small numbers. :class:`_Interpreter` carries it out
against ``tl``: it picks operands by number among what is alive, and brings shapes and dtypes together with views and
casts, so that *any* list of instructions is a legal kernel, and stays one when some are taken away: examples shrink
to a few lines.

What a program is made to hold: scopes that nest; views (slices, transposes, reshapes, broadcasts) of handles of outer
scopes; copies, also between overlapping views; loads with and without ``out=``, from regions, pointers and ragged
edges; reads and writes of one HBM tensor; dot with and without ``acc=``; composites; reductions; ``empty`` buffers
written in parts; narrow dtypes and sizes that are no multiple of the alignment; and messages between ranks. Addresses
stay below a few KB and are reused all the time. Every value ends in an HBM region of its own, so that each of them
matters, and all values are finite.

With ``faults`` a program also reads and writes handles of closed scopes and reads bytes that nothing wrote. With
``deadlocks`` the ranks' sends and receives may wait for each other for ever.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl

__all__ = ["Instruction", "Program", "examples", "programs", "random_kernel"]

Array = np.ndarray[Any, np.dtype[Any]]
#: A name of :data:`OPERATIONS`, ..., and four numbers that it makes its choices with.
Instruction = tuple[str, int, int, int, int]

SIZES = (1, 2, 3, 4, 6, 8)
COLS = 8  # of every HBM tensor that is stored to
LARGEST = 1e4  # no value grows past this (f16 ends at 65,504)
MAX_DEPTH = 4
STORES_EACH = 5  # an instruction and the values it makes are stored no more often than this, on one rank
STORES_OF = {"shift_async": 10, "tangle": 8}  # but for these
DTYPES = (tl.float32, tl.float16, tl.bfloat16, tl.int32)
SLOTS = 2  # of a channel, in the default machine

COMPUTE = (
    *("load", "load", "load", "load_out", "load_out", "pointer", "ragged", "fill", "arange", "empty", "empty"),
    *("unary", "unary", "binary", "binary", "binary", "where", "fma", "cast", "integers"),
    *("reduce", "reduce", "scan", "dot", "dot", "dot_acc", "dot_acc", "composite"),
    *("slice", "slice", "trans", "reshape", "broadcast"),
    *("copy_to", "copy_to", "copy_to", "shift_within", "store", "store", "spill", "unspill"),
)
SCOPES = ("open", "open", "open", "close", "close")
FAULTS = ("stale_read", "stale_read", "stale_write", "stale_write", "stale_load", "unwritten_read", "unwritten_read")
MESSAGES = ("shift", "shift", "shift_async", "shift_async", "shift_into", "chain", "pair", "uneven")
DEADLOCKS = ("tangle", "tangle", "tangle")


@attrs.frozen
class Program:
    """A random kernel. ``repr`` is the source that makes it again.

    ``topology`` is ``"ring"`` or ``"mesh2d"`` (the ranks in one row, its ends joined).
    """

    instructions: tuple[Instruction, ...]
    ranks: int = 1
    topology: str = "ring"

    @property
    def machine(self) -> ks.Machine:
        """The default machine, with the program's topology."""
        machine = ks.load_machine("ahbm-pe")
        if self.topology == "ring":
            return machine
        return attrs.evolve(machine, topology=attrs.evolve(machine.topology, kind=self.topology, wraps=True))

    def trace(self, **options: Any) -> ks.Graph:
        """Its graph."""
        rows = self._rows
        outputs = {f"out_{dtype.short}": ks.hbm((self.ranks * rows, COLS), dtype) for dtype in DTYPES}
        return ks.trace(
            generated,
            self,
            x=ks.hbm((24, 12), "f32"),
            h=ks.hbm((24, 12), "f16"),
            work=ks.hbm((self.ranks * 16, COLS), "f32"),
            clipped=ks.hbm((self.ranks * rows, COLS - 3), "f32"),
            **outputs,
            ranks=self.ranks,
            **{"machine": self.machine, **options},
        )

    def inputs(self, seed: int = 0) -> dict[str, Array]:
        """Its inputs, between -1 and 1: every tensor that is loaded."""
        rng = np.random.default_rng(seed)
        return {
            "x": rng.uniform(-1, 1, (24, 12)).astype(np.float32),
            "h": rng.uniform(-1, 1, (24, 12)).astype(np.float16),
            "work": rng.uniform(-1, 1, (self.ranks * 16, COLS)).astype(np.float32),
        }

    @property
    def _rows(self) -> int:
        """The rows of each output that a rank may fill."""
        return max(SIZES) * sum(STORES_OF.get(name, STORES_EACH) for name, *_ in self.instructions)


@ks.kernel
def generated(
    program: Program,
    *,
    x: ks.HbmTensor,
    h: ks.HbmTensor,
    work: ks.HbmTensor,
    clipped: ks.HbmTensor,
    **out: ks.HbmTensor,
) -> None:
    """Carries a program out."""
    _Interpreter(program, x, h, work, clipped, out).run()


# --- making programs ------------------------------------------------------------------------------------------------

#: How many examples each property test runs; 0: its own small number, always the same ones.
EXAMPLES = int(os.environ.get("KERNSCOPE_EXAMPLES", "0"))


def examples(count: int) -> settings:
    """The settings of a property test: ``count`` examples, the same in every run, unless the environment variable
    ``KERNSCOPE_EXAMPLES`` asks for another number; those are drawn anew."""
    return settings(
        max_examples=EXAMPLES or count,
        derandomize=not EXAMPLES,
        deadline=None,
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_NUMBER = st.integers(0, 63)


def programs(
    *, ranks: int = 1, faults: bool = False, deadlocks: bool = False, max_size: int = 40, topology: str = "ring"
) -> st.SearchStrategy[Program]:
    """Random programs of at most ``max_size`` instructions."""
    instruction = st.tuples(st.sampled_from(_names(ranks, faults, deadlocks)), _NUMBER, _NUMBER, _NUMBER, _NUMBER)
    return st.lists(instruction, min_size=1, max_size=max_size).map(lambda all_: Program(tuple(all_), ranks, topology))


def random_kernel(
    seed: int,
    *,
    ranks: int = 1,
    faults: bool = False,
    deadlocks: bool = False,
    size: int = 40,
    topology: str = "ring",
) -> Program:
    """The random program of a seed, with ``size`` instructions: for runs too large for hypothesis."""
    rng = random.Random(seed)
    names = _names(ranks, faults, deadlocks)
    made = [(rng.choice(names), *(rng.randrange(64) for _ in range(4))) for _ in range(size)]
    return Program(tuple((name, a, b, c, d) for name, a, b, c, d in made), ranks, topology)


def _names(ranks: int, faults: bool, deadlocks: bool) -> tuple[str, ...]:
    names = COMPUTE + SCOPES * 2
    if faults:
        names += FAULTS * 2
    if ranks > 1:
        names += MESSAGES * 2
    if deadlocks:
        names += DEADLOCKS * 3
    return names


# --- carrying them out ----------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class _Base:
    """What is known of an allocation: which elements are written, whether anything read them since, and how large they
    can be."""

    handle: ks.TensorHandle
    written: Array
    bound: float
    unread: bool


@attrs.frozen(eq=False)
class _Value:
    """A handle or a view: ``cells`` are the numbers of its elements in the allocation."""

    handle: ks.TensorHandle
    base: _Base
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

    def view(self, change: Callable[[Any], Any]) -> _Value:
        """The view that indexing (of handles and of arrays alike) gives."""
        return _Value(change(self.handle), self.base, change(self.cells))

    def corner(self, rows: int, cols: int) -> _Value:
        """Its first rows and columns; itself where that is all of it."""
        if (rows, cols) == self.shape:
            return self
        return self.view(lambda item: item[:rows, :cols])


@attrs.define(eq=False)
class _Frame:
    """What belongs to one open scope."""

    values: list[_Value] = attrs.Factory(list)
    bases: list[_Base] = attrs.Factory(list)


class _Interpreter:
    """Carries out a program on one rank. All ranks of a program make the same shapes, whatever they do to get them."""

    def __init__(
        self,
        program: Program,
        x: ks.HbmTensor,
        h: ks.HbmTensor,
        work: ks.HbmTensor,
        clipped: ks.HbmTensor,
        out: dict[str, ks.HbmTensor],
    ) -> None:
        self.program = program
        self.pending: Iterator[Instruction] = iter(program.instructions)
        self.sources = {tl.float32: x, tl.float16: h}
        self.work, self.clipped, self.out = work, clipped, out
        axis = 0 if program.topology == "ring" else 1
        self.rank, self.ranks = tl.program_id(axis), tl.num_programs(axis)
        self.onward, self.backward = ("next", "prev") if program.topology == "ring" else ("east", "west")
        self.frames = [_Frame()]
        self.dead: list[_Value] = []
        self.stored = 0

    def run(self) -> None:
        """All instructions, then what is left unread at the end."""
        self.block(0)
        self.keep_unread()

    def block(self, depth: int) -> None:
        """Instructions up to the end of the scope."""
        for name, a, b, c, d in self.pending:
            if name == "close":
                if depth:
                    return
            elif name == "open":
                if depth < MAX_DEPTH:
                    with tl.scratch_scope("drawn" if a % 2 else None):
                        self.frames.append(_Frame())
                        self.block(depth + 1)
                        self.keep_unread()
                    self.dead += self.frames.pop().values
            else:
                getattr(self, f"do_{name}")(a, b, c, d)

    def keep_unread(self) -> None:
        """Store what was written in the innermost scope's allocations and never read."""
        for base in self.frames[-1].bases:
            if base.unread and base.written.all():
                self.keep(_matrix(_Value(base.handle, base, _cells(base.handle))))

    # --- values -----------------------------------------------------------------------------------------------------

    def add(self, handle: ks.TensorHandle, bound: float) -> _Value:
        """A fresh result, of two dimensions at most."""
        base = _Base(handle, np.ones(handle.layout.size, dtype=bool), bound, unread=True)
        self.frames[-1].bases.append(base)
        return self.show(_Value(handle, base, _cells(handle)))

    def show(self, value: _Value) -> _Value:
        """Make a value, brought to two dimensions, an operand of later instructions while its allocation lives."""
        value = _matrix(value)
        for frame in self.frames:
            if value.base in frame.bases:
                frame.values.append(value)
        return value

    def read(self, value: _Value) -> ks.TensorHandle:
        value.base.unread = False
        return value.handle

    def wrote(self, value: _Value, bound: float) -> None:
        value.base.written[value.cells] = True
        value.base.unread = True
        value.base.bound = max(value.base.bound, bound)

    def living(self, accept: Callable[[_Value], bool]) -> list[_Value]:
        return [value for frame in self.frames for value in frame.values if accept(value)]

    def operand(self, number: int, dtypes: Iterable[Any] = DTYPES[:3]) -> _Value:
        """A readable value of one of these dtypes; where there is none, one is loaded."""
        known = self.living(lambda value: value.readable and value.dtype in dtypes)
        if known:
            return known[-1 - number % len(known)]
        return self.load(tl.float32, 4, 4, number)

    def target(self, number: int, dtypes: Iterable[Any]) -> _Value:
        """A value to write to; where there is none, an ``empty`` one."""
        known = self.living(lambda value: value.writable and value.dtype in dtypes)
        if known:
            return known[-1 - number % len(known)]
        return self.empty((4, 4), next(iter(dtypes)))

    def empty(self, shape: tuple[int, int], dtype: Any) -> _Value:
        handle = tl.empty(shape, dtype)
        base = _Base(handle, np.zeros(handle.layout.size, dtype=bool), 0.0, unread=False)
        self.frames[-1].bases.append(base)
        return self.show(_Value(handle, base, _cells(handle)))

    def load(self, dtype: Any, rows: int, cols: int, number: int) -> _Value:
        return self.add(tl.load(self.region(dtype, rows, cols, number)), 1.0)

    def region(self, dtype: Any, rows: int, cols: int, number: int) -> ks.HbmRegion:
        """A box of an input; the ranks take different ones."""
        row, col = (number + 5 * self.rank) % (24 - rows + 1), number % (12 - cols + 1)
        return self.sources[dtype][row : row + rows, col : col + cols]

    def cast(self, value: _Value, dtype: Any) -> _Value:
        if value.dtype is dtype:
            return value
        return self.add(self.read(value).to(dtype), value.base.bound)

    def keep(self, value: _Value, clip: bool = False) -> None:
        """Store a value to rows of an output that nothing else touches."""
        rows, cols = value.shape
        first = self.rank * self.program._rows + self.stored * max(SIZES)
        self.stored += 1
        assert self.stored * max(SIZES) <= self.program._rows, "the outputs are too small"
        if clip:
            value = self.cast(value, tl.float32)
            tl.store(self.clipped[first : first + rows, :cols], self.read(value), clip=True)
        else:
            tl.store(self.out[f"out_{value.dtype.short}"][first : first + rows, :cols], self.read(value))

    # --- memory -----------------------------------------------------------------------------------------------------

    def do_load(self, a: int, b: int, c: int, d: int) -> None:
        self.load((tl.float32, tl.float16)[a % 2], _size(b), _size(c), d)

    def do_load_out(self, a: int, b: int, c: int, d: int) -> None:
        into = self.target(a, (tl.float32, tl.float16))
        tl.load(self.region(into.dtype, *into.shape, b), out=into.handle)
        self.wrote(into, 1.0)

    def do_pointer(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.load(self.sources[tl.float32] + (d + self.rank), (_size(b), _size(c))), 1.0)

    def do_ragged(self, a: int, b: int, c: int, d: int) -> None:
        rows, cols = _size(b), _size(c)
        row, col = (a % 10 - 4, d % 6 - 3) if a % 2 else (20 + a % 6, 8 + d % 6)
        region = self.sources[tl.float16][row : row + rows, col : col + cols]
        self.add(tl.load(region, pad=(0.0, -1.0, 0.5)[d % 3]), 1.0)

    def do_store(self, a: int, b: int, c: int, d: int) -> None:
        self.keep(self.operand(a, DTYPES), clip=b % 4 == 0)

    def do_spill(self, a: int, b: int, c: int, d: int) -> None:
        value = self.cast(self.operand(a), tl.float32)
        tl.store(self.place(value.shape, b, c), self.read(value))

    def do_unspill(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.load(self.place((_size(a), _size(b)), c, d)), LARGEST)

    def place(self, shape: tuple[int, int], row: int, col: int) -> ks.HbmRegion:
        """A box of the rank's part of ``work``, which overlaps others."""
        rows, cols = shape
        top, left = 16 * self.rank + row % (16 - rows + 1), col % (COLS - cols + 1)
        return self.work[top : top + rows, left : left + cols]

    def do_copy_to(self, a: int, b: int, c: int, d: int) -> None:
        source = self.operand(a, DTYPES)
        into = self.target(b, (source.dtype,))
        rows, cols = (min(pair) for pair in zip(source.shape, into.shape, strict=True))
        self.copy(into.corner(rows, cols), source.corner(rows, cols))

    def do_shift_within(self, a: int, b: int, c: int, d: int) -> None:
        """A copy between two overlapping parts of one value."""
        value = self.operand(a)
        rows, _ = value.shape
        if rows > 1 and value.writable:
            low, high = value.view(lambda item: item[: rows - 1, :]), value.view(lambda item: item[1:, :])
            self.copy(high, low) if b % 2 else self.copy(low, high)

    def copy(self, into: _Value, source: _Value) -> None:
        tl.copy_to(into.handle, self.read(source))
        self.wrote(into, source.base.bound)

    # --- creation ---------------------------------------------------------------------------------------------------

    def do_fill(self, a: int, b: int, c: int, d: int) -> None:
        if d % 2:
            self.add(tl.zeros((_size(a), _size(b)), DTYPES[c % 4]), 0.0)
        else:
            self.add(tl.full((_size(a), _size(b)), c % 5 - 2, DTYPES[c % 4]), 2.0)

    def do_arange(self, a: int, b: int, c: int, d: int) -> None:
        self.add(tl.arange(a % 8, a % 8 + _size(b)), 16.0)

    def do_empty(self, a: int, b: int, c: int, d: int) -> None:
        self.empty((_size(a), _size(b)), DTYPES[c % 3])

    # --- math -------------------------------------------------------------------------------------------------------

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
        x, y = _broadcastable(x, y)
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

    def do_where(self, a: int, b: int, c: int, d: int) -> None:
        x, y = _broadcastable(self.operand(a), self.operand(b))
        left, right = self.read(x), self.read(y)
        chosen = tl.where(left > right if c % 2 else left <= right, right, 0.25 if d % 2 else left)
        self.add(chosen, max(x.base.bound, y.base.bound, 1.0))

    def do_fma(self, a: int, b: int, c: int, d: int) -> None:
        x = self.operand(a)
        self.add(tl.fma(self.read(x), 0.5, self.read(x)[:1, :1]), min(2 * x.base.bound, 2 * LARGEST))

    def do_cast(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a, DTYPES)
        self.add(self.read(value).to(DTYPES[b % 4]), value.base.bound)

    def do_integers(self, a: int, b: int, c: int, d: int) -> None:
        x, y = _broadcastable(self.operand(a, (tl.int32,)), self.operand(b, (tl.int32,)))
        x, y = self.cast(x, tl.int32), self.cast(y, tl.int32)
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
        axis, keep = (0, 1, None)[b % 3], bool(c % 2)
        function = (tl.sum, tl.max, tl.min, tl.argmax)[d % 4]
        if function is tl.argmax:
            self.add(tl.argmax(handle, axis=axis, keep_dims=keep), 64.0)
            return
        if function is tl.sum and bound * 64 > LARGEST:
            function = tl.max
        self.add(function(handle, axis=axis, keep_dims=keep), bound * 64 if function is tl.sum else bound)

    def do_scan(self, a: int, b: int, c: int, d: int) -> None:
        value = self.operand(a)
        self.add(tl.cumsum(tl.tanh(self.read(value)), axis=b % 2), 8.0)

    def do_dot(self, a: int, b: int, c: int, d: int) -> None:
        x, y = self.factors(a, b)
        y = y.corner(x.shape[1], y.shape[1])
        self.add(tl.tanh(tl.dot(self.read(x), self.read(y))), 1.0)

    def do_dot_acc(self, a: int, b: int, c: int, d: int) -> None:
        into = self.operand(c, (tl.float32,))
        x, y = self.factors(a, b)
        bound = into.base.bound + 8 * x.base.bound * y.base.bound
        if not into.writable or bound > LARGEST:
            return
        rows, cols = min(x.shape[0], into.shape[0]), min(y.shape[1], into.shape[1])
        x, y, into = x.corner(rows, x.shape[1]), y.corner(x.shape[1], cols), into.corner(rows, cols)
        tl.dot(self.read(x), self.read(y), acc=self.read(into))
        self.wrote(into, bound)

    def factors(self, a: int, b: int) -> tuple[_Value, _Value]:
        """Two values whose inner sizes can agree: the second has as many rows as the first has columns, or more."""
        x = self.operand(a)
        y = self.cast(self.operand(b), x.dtype)
        inner = min(x.shape[1], y.shape[0])
        return x.corner(x.shape[0], inner), y.corner(inner, y.shape[1])

    def do_composite(self, a: int, b: int, c: int, d: int) -> None:
        x = self.operand(a)
        x = self.cast(x, (tl.float32, tl.float16)[b % 2])
        inner, cols = x.shape[1], _size(c)
        transposed = bool(d % 2)
        streamed = tl.ref(self.region(x.dtype, *((cols, inner) if transposed else (inner, cols)), d))
        steps = (None, [("mul", 0.125), "tanh"], ["tanh"])[d % 3]
        tile = (2 + a % 3, 2 + b % 3, 2 + c % 3)
        out_dtype = (tl.float32, tl.float16)[a % 2]
        if steps is None and 8 * x.base.bound > LARGEST:
            steps = ["tanh"]
        done = tl.composite(
            "gemm", self.read(x), streamed, trans_b=transposed, tile=tile, out_dtype=out_dtype, epilogue=steps
        )
        self.add(done, 8 * x.base.bound if steps is None else 1.0)

    # --- views ------------------------------------------------------------------------------------------------------

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
            self.show(_Value(tl.reshape(value.handle, shape), value.base, value.cells.reshape(shape)))

    def do_broadcast(self, a: int, b: int, c: int, d: int) -> None:
        value = self.any_value(a)
        rows, cols = value.shape
        shape = (rows, _size(b)) if cols == 1 else (_size(b), cols) if rows == 1 else (rows, cols)
        if shape != value.shape:
            cells = np.broadcast_to(value.cells, shape)
            self.show(_Value(tl.broadcast_to(value.handle, shape), value.base, cells))

    def any_value(self, number: int) -> _Value:
        known = self.living(lambda value: True)
        return known[-1 - number % len(known)] if known else self.operand(number)

    # --- faults -----------------------------------------------------------------------------------------------------

    def do_stale_read(self, a: int, b: int, c: int, d: int) -> None:
        """Reads a handle, or a view, of a closed scope: by math, a copy, a store or a dot."""
        stale = self.stale(a, DTYPES[:3])
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
        value = known[-1 - a % len(known)] if known else self.empty((_size(b), _size(c)), DTYPES[d % 3])
        self.add(-value.handle, LARGEST)

    def stale(self, number: int, dtypes: Iterable[Any]) -> _Value | None:
        known = [value for value in self.dead if value.dtype in dtypes]
        return known[-1 - number % len(known)] if known else None

    # --- messages ---------------------------------------------------------------------------------------------------

    def ways(self, number: int) -> tuple[str, str]:
        """A direction to send in, and the one where what the neighbour sends that way arrives."""
        return (self.onward, self.backward) if number % 2 else (self.backward, self.onward)

    def do_shift(self, a: int, b: int, c: int, d: int) -> None:
        """Each rank passes a value on, or as many as a channel holds."""
        out, into = self.ways(a)
        values = [self.operand(b), self.operand(c)][: 1 + d % SLOTS]
        for value in values:
            tl.send(out, self.read(value))
        for value in values:
            self.add(tl.recv(into, value.shape, value.dtype), value.base.bound)

    def do_shift_async(self, a: int, b: int, c: int, d: int) -> None:
        """Receives posted first, then sends, perhaps both ways; math in between; then the waits, in any order."""
        out, into = self.ways(a)
        ways = [(out, into), (into, out)][: 1 + c % 2]
        value = self.operand(b)
        futures = [tl.recv_async(arrival, value.shape, value.dtype) for _, arrival in ways for _ in range(1 + d % 3)]
        for direction, _ in ways:
            for _ in range(1 + d % 3):
                tl.send(direction, self.read(value))
        if a % 3:
            self.do_unary(a, c, d, b)
        for future in futures if b % 2 else reversed(futures):
            self.add(tl.wait(future), value.base.bound)

    def do_shift_into(self, a: int, b: int, c: int, d: int) -> None:
        """What arrives fills a buffer that is there already; perhaps the one it was sent from."""
        out, into = self.ways(a)
        value = self.operand(b)
        buffer = value if d % 3 == 0 and value.writable else self.target(c, (value.dtype,))
        rows, cols = (min(pair) for pair in zip(value.shape, buffer.shape, strict=True))
        value, buffer = value.corner(rows, cols), buffer.corner(rows, cols)
        tl.send(out, self.read(value))
        if d % 2:
            tl.recv(into, (rows, cols), value.dtype, out=buffer.handle)
        else:
            tl.wait(tl.recv_async(into, (rows, cols), value.dtype, out=buffer.handle))
            buffer.base.unread = False
        self.wrote(buffer, value.base.bound)

    def do_chain(self, a: int, b: int, c: int, d: int) -> None:
        """From the first rank to the last one, each adds its own."""
        value = self.operand(b)
        total = value
        if self.rank > 0:
            got = self.add(tl.recv(self.backward, value.shape, value.dtype), value.base.bound)
            total = self.add(tl.maximum(self.read(got), self.read(value)), value.base.bound)
        else:
            total = self.add(tl.abs(self.read(value)), value.base.bound)
            self.add(tl.zeros(value.shape, value.dtype), value.base.bound)
        if self.rank < self.ranks - 1:
            tl.send(self.onward, self.read(total))

    def do_pair(self, a: int, b: int, c: int, d: int) -> None:
        """One rank sends to its neighbour; the others have nothing to do."""
        value = self.operand(b)
        sender = a % (self.ranks - 1)
        if self.rank == sender:
            tl.send(self.onward, self.read(value))
        if self.rank == sender + 1:
            self.add(tl.recv(self.backward, value.shape, value.dtype), value.base.bound)
        else:
            self.add(tl.zeros(value.shape, value.dtype), value.base.bound)

    def do_uneven(self, a: int, b: int, c: int, d: int) -> None:
        """Some ranks have more work than others."""
        value = self.operand(b)  # which may load one: on every rank, or the ranks' values would differ from here on
        for _ in range(3 if (self.rank + a) % 2 else 0):
            self.keep(_Value(*self.scratch(tl.tanh(self.read(value)))))

    def scratch(self, handle: ks.TensorHandle) -> tuple[ks.TensorHandle, _Base, Array]:
        """A result that is stored at once and that no other instruction sees: the ranks' values stay the same ones."""
        return handle, _Base(handle, np.ones(handle.layout.size, dtype=bool), 1.0, unread=False), _cells(handle)

    def do_tangle(self, a: int, b: int, c: int, d: int) -> None:
        """Up to three messages each way, each rank in an order of its own, perhaps passing on what it got: they may
        deadlock."""
        value = self.operand(b)
        counts = {self.onward: a % 4, self.backward: c % 4}
        todo = [("send", way) for way, count in counts.items() for _ in range(count)]
        todo += [("recv", {self.onward: self.backward, self.backward: self.onward}[way]) for _, way in todo]
        rng = random.Random(f"{a} {b} {c} {d} {self.rank}")
        rng.shuffle(todo)
        posted: list[Any] = []
        got: list[ks.TensorHandle] = []
        for kind, way in todo:
            if kind == "send":
                tl.send(way, got[-1] if got and rng.random() < 0.5 else self.read(value))
            elif rng.random() < 0.5:
                got.append(tl.recv(way, value.shape, value.dtype))
            else:
                posted.append(tl.recv_async(way, value.shape, value.dtype))
            if posted and rng.random() < 0.3:
                got.append(tl.wait(posted.pop(rng.randrange(len(posted)))))
        got += [tl.wait(future) for future in posted]
        for handle in got:
            self.add(handle, value.base.bound)


def _size(number: int) -> int:
    return SIZES[number % len(SIZES)]


def _cells(handle: ks.TensorHandle) -> Array:
    return np.arange(handle.layout.size).reshape(handle.shape)


def _matrix(value: _Value) -> _Value:
    """The value as a view of two dimensions."""
    while value.handle.ndim < 2:
        value = value.view(lambda item: item[..., None])
    return value


def _broadcastable(x: _Value, y: _Value) -> tuple[_Value, _Value]:
    """Corners of both that broadcast together."""
    sizes = [(m, n) if 1 in (m, n) else (min(m, n), min(m, n)) for m, n in zip(x.shape, y.shape, strict=True)]
    (xr, yr), (xc, yc) = sizes
    return x.corner(xr, xc), y.corner(yr, yc)
