"""One trace: a kernel runs for some of a launch's programs at once, its lanes; memory changes, and the tape grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import dtypes
from ....ir.errors import KernscopeError, ShapeError, TritonCompileError
from ....ir.launch_facts import FactKind
from ....ir.layout import Layout, broadcast_shapes, broadcast_to
from ....ir.ops.atomics import combine_at, combined
from ....ir.source.location import Location
from ...recording.plans import plain_scalar
from ...recording.sites import SiteTable
from ..values.accesses import Access
from ..values.arithmetic import cast, cast_numbers, elementwise, evaluate, is_float, roots_of
from ..values.boxes import boxes_of, writable_boxes_of
from ..values.storage import Storages
from ..values.undefined import Undefined
from ..values.undefined_through import undefined_through
from ..values.value import Array, MadeBy, Split, Value, lift, under_rank
from .facts import AccessFact, Fact
from .tape import Handle, Loop, PerLane, Tape

__all__ = ["Tracing"]

#: A program that asks a lock so often waits for one that has not run.
_MOST_SWAPS = 10_000
#: How many values may be recorded within one another.
_DEEP = 50


class Tracing:
    """The trace that is running. ``programs`` are the numbers of its lanes, ``ids (lanes, 3)`` what ``program_id``
    gives. ``undo`` takes back what was stored, if the lanes have to be divided."""

    def __init__(
        self, sites: SiteTable, storages: Storages, programs: Array, ids: Array, grid: tuple[int, int, int], budget: int
    ) -> None:
        self.sites, self.storages, self.programs, self.ids, self.grid = sites, storages, programs, ids, grid
        self.lanes, self.budget = len(programs), budget
        self.tape = Tape()
        self.accesses: list[AccessFact] = []
        self.facts: list[Fact] = []
        self.undo: list[tuple[Array, Any, Array]] = []
        self.undo_bytes = 0
        self.largest = 1
        self.decided: dict[int, Value] = {}  # by identity; kept, so that no other value can have it
        self.may_be_ordered = False
        self._swaps = 0
        self._depth = 0

    # --- places and errors --------------------------------------------------------------------------------------------

    def here(self) -> int:
        """The stack row of the kernel's line."""
        return self.sites.here()

    def location(self) -> Location | None:
        """The kernel's line."""
        return self.sites.location(self.sites.here())

    def refused(self, what: str, help: str) -> KernscopeError:
        """The error of something that Triton's compiler, or kernscope, refuses, at the kernel's line."""
        error = TritonCompileError(what, help=help).at(self.location())
        error.__cause__ = ValueError(what)  # where scripts look for the reason of a compilation error of Triton's
        return error

    def broadcast(self, *shapes: tuple[int, ...]) -> tuple[int, ...]:
        """The common shape. Raises ``TritonCompileError``."""
        if len(set(shapes)) == 1:
            return shapes[0]
        try:
            return broadcast_shapes(*shapes)
        except ShapeError as error:
            raise self.refused(error.message, "sizes must be equal or 1, counted from the last dimension") from None

    def note(self, kind: str, stack: int, what: str, lanes: Array, elements: Array) -> None:
        """Note a fact of some lanes."""
        order = np.argsort(self.programs[lanes], kind="stable")
        numbers = np.broadcast_to(np.asarray(elements), lanes.shape)
        self.facts.append(Fact(kind, stack, what, self.programs[lanes][order], numbers[order]))

    # --- the tape -----------------------------------------------------------------------------------------------------

    def handle(self, value: Value) -> Handle:
        """The handle of a value. What had none is recorded now, at the line that made it."""
        if value.handle is None:
            self._depth += 1
            if self._depth == _DEEP:
                self._record_first(value)
            value.handle = self._made(value)
            self._depth -= 1
        found: Handle = value.handle
        return found

    def _record_first(self, value: Value) -> None:
        """Record what a value is made of, the innermost first: loops make chains longer than Python calls may nest."""
        waiting = [(value, False)]
        while waiting:
            found, is_ready = waiting.pop()
            if is_ready:
                self.handle(found)
            elif found.handle is None and found.made_by is not None and not (found.is_known and found.is_splat):
                if found is not value:
                    waiting.append((found, True))
                operands = [x for x in found.made_by.operands if isinstance(x, Value)]
                waiting += [(x, False) for x in reversed(operands) if not (x.is_known and x.is_splat)]

    def _made(self, value: Value) -> Handle:
        if value.storage is not None:
            return self.handle(self.address_of(value))
        dtype = dtypes.of_numpy(value.numpy)
        if value.is_known and value.is_splat:
            return self._filled(value.shape, value, value.stack)
        how = value.made_by
        if how is None:
            raise self.refused("a value that no operation makes", "this is a fault of kernscope's: please report it")
        if how.view is not None:
            made: Handle = how.view(self.handle(how.operands[0]))
            return made
        if how.operation in ("arange",):
            return self.step(how.operation, (), how.static, value.stack, Layout.dense(value.shape, dtype))
        if how.operation == "cast":
            source = self.handle(how.operands[0])
            return self.step("cast", (source,), how.static, value.stack, Layout.dense(source.layout.shape, dtype)).view(
                broadcast_to, value.shape
            )
        if how.common is None:
            handles = tuple(self.handle(x) for x in how.operands)
            return self.step(how.operation, handles, how.static, value.stack, Layout.dense(value.shape, dtype))
        return self._elementwise(how, value, dtype)

    def _filled(self, shape: tuple[int, ...], value: Value, stack: int) -> Handle:
        numbers = PerLane(value.array.reshape(len(value.array), -1)[:, 0])
        dtype = dtypes.of_numpy(value.numpy)
        static = (("shape", shape), ("value", numbers), ("dtype", dtype))
        return self.step("fill", (), static, stack, Layout.dense(shape, dtype))

    def _elementwise(self, how: MadeBy, value: Value, dtype: dtypes.DType) -> Handle:
        """An operation of the table, its operands brought to one dtype. One number for all elements is an operand as it
        is, as long as another operand has the result's shape."""
        assert how.common is not None
        name, common = how.operation, np.dtype(how.common)
        operands: list[Any] = []
        for place, given in enumerate(how.operands):
            x = given if isinstance(given, Value) else lift(given)
            wanted = x.numpy if name == "where" and place == 0 else common
            splat = x.is_known and x.is_splat and not (name == "where" and place == 0)
            if splat and self._is_passed_as_number(wanted):
                column = cast_numbers(x.array.reshape(len(x.array), -1)[:, 0], wanted)
                operands.append(PerLane(column) if len(column) > 1 else plain_scalar(column[0]))
                continue
            operands.append(self._as(self.handle(x), wanted, value.stack))
        shapes = [o.layout.shape for o in operands if isinstance(o, Handle)]
        if not shapes or broadcast_shapes(*shapes) != value.shape:
            # Of all but the first one number suffices; the first brings the shape.
            place = 1 if name == "where" else 0
            number = next(i for i in range(place, len(operands)) if not isinstance(operands[i], Handle))
            given = how.operands[number]
            x = given if isinstance(given, Value) else lift(given)
            column = cast_numbers(x.array.reshape(len(x.array), -1)[:, 0], common)
            numbers = Value([column.reshape(-1, *(1,) * len(value.shape))], value.shape)
            operands[number] = self._filled(value.shape, numbers, value.stack)
        ready = tuple(operands)
        result = dtypes.of_numpy(np.dtype(np.bool_)) if dtype.kind == "bool" else dtypes.of_numpy(common)
        made = self.step(name, ready, (), value.stack, Layout.dense(value.shape, result))
        return self._as(made, value.numpy, value.stack)

    @staticmethod
    def _is_passed_as_number(dtype: np.dtype[Any]) -> bool:
        return dtype.kind != "b"

    def _as(self, handle: Handle, dtype: np.dtype[Any], stack: int) -> Handle:
        wanted = dtypes.of_numpy(dtype)
        if handle.layout.dtype is wanted:
            return handle
        return self.step("cast", (handle,), (("dtype", wanted),), stack, Layout.dense(handle.layout.shape, wanted))

    def step(
        self, name: str, operands: tuple[Any, ...], static: tuple[tuple[str, Any], ...], stack: int, result: Layout
    ) -> Handle:
        """Add a step; the handle of its result."""
        return Handle(self.tape.add(name, operands, static, stack, result), result)

    def dense(self, handle: Handle, stack: int) -> Handle:
        """The elements of a view in fresh bytes, row-major, where they are not."""
        layout = handle.layout
        whole = Layout.dense(layout.shape, layout.dtype)
        if layout.is_dense:
            return Handle(handle.step, whole, handle.offset)
        return self.step("cast", (handle,), (("dtype", layout.dtype),), stack, whole)

    def computed(
        self,
        name: str,
        operands: Sequence[Value],
        result: np.dtype[Any],
        shape: Sequence[int],
        static: tuple[tuple[str, Any], ...],
        lanes_static: dict[str, Any],
        arrays: Sequence[Array] | None = None,
    ) -> Value:
        """A value that an operation of the table makes of whole values: evaluated with the axis of lanes in front (by
        ``lanes_static``), lazy where its operands are integers and known, else recorded."""
        stack = self.here()
        given = [np.ascontiguousarray(v.array) for v in operands] if arrays is None else arrays
        lanes = max(len(a) for a in given)
        given = [
            a if len(a) == lanes else np.ascontiguousarray(np.broadcast_to(a, (lanes, *a.shape[1:]))) for a in given
        ]
        found = evaluate(name, given, result, **lanes_static)
        made = Value(
            [found],
            shape,
            made_by=MadeBy(name, tuple(operands), static),
            roots=roots_of(operands),
            undefined=undefined_through(name, operands, given, lanes_static, found.shape),
            stack=stack,
        )
        if made.roots:
            self.handle(made)
        return made

    # --- control ------------------------------------------------------------------------------------------------------

    def decide(self, value: Value) -> None:
        """The CPU waits for what a branch or a trip count was computed from."""
        self.use([value], "a branch", self.here())
        roots = [root for root in value.dependencies if id(root) not in self.decided]
        self.decided.update((id(root), root) for root in roots)
        if roots:
            handles = tuple(self.handle(root) for root in roots)
            self.tape.add("decide", handles, (), self.here(), None)

    def loop(self, copies: int | None) -> Loop:
        """A loop begins."""
        self.tape.loops.append(Loop(copies))
        return self.tape.loops[-1]

    def turn(self, loop: Loop) -> None:
        """A loop's next turn begins, or its end."""
        loop.turns.append(len(self.tape.steps))

    # --- what is undefined --------------------------------------------------------------------------------------------

    def use(self, values: Sequence[Value], by: str, stack: int, within: Array | None = None) -> None:
        """Note undefined elements that are used: stored, or part of an address or a branch; of a tile those ``within``
        a mask ``(lanes or 1, *shape)``. Each with the loads that left them undefined."""
        for value in values:
            for load, mask in () if value.undefined is None else value.undefined.by_load.items():
                bad = under_rank(mask, max(mask.ndim, 0 if within is None else within.ndim) - 1)
                if within is not None:
                    bad = bad & under_rank(within, bad.ndim - 1)
                if bad.any():
                    lanes = np.flatnonzero(bad.reshape(len(bad), -1).any(1)) if len(bad) > 1 else np.arange(self.lanes)
                    self.note(FactKind.UNDEFINED, stack, by, lanes, np.full(len(lanes), load))

    # --- memory -------------------------------------------------------------------------------------------------------

    def address_of(self, pointer: Value) -> Value:
        """A pointer as an int64."""
        storage = pointer.storage
        assert storage is not None
        size = storage.memory.itemsize
        parts = [np.asarray(p.astype(np.int64) * size) for p in pointer.parts]
        parts.append(np.full((1,) * (len(pointer.shape) + 1), storage.address, np.int64))
        return Value(parts, pointer.shape, roots=pointer.roots, stack=self.here())

    def _access(
        self, pointer: Value, mask: Value | None, mode: str, what: str, how: str = ""
    ) -> tuple[Access, bool, int]:
        """The access, whether it leaves its storage in some lane, and its stack row. Facts of its address are noted."""
        stack = self.here()
        if pointer.storage is None:
            raise self.refused(
                f"{what} at an address that comes from no pointer", "an address is a pointer argument plus offsets"
            )
        if pointer.is_const and mode != "read":
            raise self.refused(
                "Cannot store to a constant pointer", "take tl.const off the parameter, or write to another one"
            )
        shape = pointer.shape if mask is None else self.broadcast(pointer.shape, mask.shape)
        if shape != pointer.shape and mode != "read":
            shape = self.broadcast(shape, pointer.shape)
        access = Access(pointer, mask, shape, self.lanes)
        low, high = access.extent()
        outside = (low < 0) | (high >= len(access.storage.memory))
        name = access.storage.name
        if outside.any():
            lanes = np.flatnonzero(outside)
            self.note(FactKind.OUTSIDE, stack, name, lanes, np.where(low < 0, low, high)[lanes])
        if pointer.wrapped is not None:
            made, wraps = pointer.wrapped
            lanes = np.flatnonzero(wraps & (access.counts() > 0))
            if len(lanes):
                self.note(FactKind.WRAPPED, stack, name, lanes, np.full(len(lanes), made))
        self.use([pointer], f"the address of {name}", stack, None if mask is None else mask.array)
        if mask is not None:
            self.use([mask], f"the mask of {name}", stack)
        self.accesses.append(AccessFact(mode, access, stack, how, self.may_be_ordered))
        self.largest = max(self.largest, math.prod(shape))
        return access, bool(outside.any()), stack

    def _addresses(self, pointer: Value, mask: Value | None) -> tuple[Handle, ...]:
        given = [pointer] if mask is None else [pointer, mask]
        return tuple(self.handle(root) for root in roots_of(given))

    def load(self, pointer: Value, mask: Value | None, other: Any) -> Value:
        """``tl.load``."""
        access, leaves, stack = self._access(pointer, mask, "read", "a load")
        dtype = access.storage.memory.dtype
        fill = None if other is None else cast(lift(other), dtype)
        splat = fill is None or fill.is_splat
        number = np.zeros((1,) * (len(access.shape) + 1), dtype)
        if fill is not None and splat:
            number = under_rank(fill.array, len(access.shape))
        data, inside = self._read(access, leaves, number)
        undefined = None
        if inside is not None and fill is None and mask is not None:
            # What lies outside of the tensor is another fault.
            masked = access.inside() if leaves else inside
            undefined = None if masked is None else Undefined({stack: ~masked})
        pad: Any = plain_scalar(dtype.type(0))
        if fill is not None and fill.is_splat and fill.is_known:
            column = fill.array.reshape(len(fill.array), -1)[:, 0]
            pad = PerLane(column) if len(column) > 1 else plain_scalar(column[0])
        found = Value([np.ascontiguousarray(data)], access.shape, undefined=undefined, stack=stack)
        layout = Layout.dense(access.shape, access.storage.layout.dtype)
        static = (("pad", pad),)
        step = self.tape.add("load", (), static, stack, layout, access, self._addresses(pointer, mask))
        found.handle = Handle(step, layout)
        if fill is not None and not (fill.is_splat and fill.is_known) and mask is not None:
            return elementwise("where", mask, found, fill)
        return found

    def _read(self, access: Access, leaves: bool, number: Array) -> tuple[Array, Array | None]:
        """What lies there, ``(lanes, *shape)``, a number by lane where nothing is accessed; and which of it is accessed
        (None: all)."""
        shape = (self.lanes, *access.shape)
        memory = access.storage.memory
        boxes = None if leaves else boxes_of(access)
        if boxes is not None:
            if bool((access.counts() == math.prod(access.shape)).all()) and len(boxes) == 1:
                return np.array(np.broadcast_to(boxes[0].read(), shape)), None
            data = np.array(np.broadcast_to(number, shape))
            for box in boxes:
                data[(box.lanes, *box.tile)] = box.read()
            return data, access.inside()
        index, mask = access.elements()
        access.forget()
        if leaves:
            there = (index >= 0) & (index < len(memory))
            mask = there if mask is None else mask & there
        data = memory.take(index, mode="clip") if len(memory) else np.zeros(index.shape, memory.dtype)
        if mask is None or mask.all():
            return np.ascontiguousarray(np.broadcast_to(data, shape)), None
        return np.where(mask, np.broadcast_to(data, shape), number), np.broadcast_to(mask, (len(mask), *access.shape))

    def store(self, pointer: Value, value: Any, mask: Value | None) -> None:
        """``tl.store``."""
        value = lift(value)
        access, leaves, stack = self._access(pointer, mask, "write", "a store")
        storage = access.storage
        if value.undefined is not None:
            self.use([value], f"the store to {storage.name}", stack, _met(access, leaves))
        value = cast(value, storage.memory.dtype) if value.storage is None else self.address_of(value)
        value = cast(value, storage.memory.dtype)
        if value.shape != access.shape:
            self.broadcast(value.shape, access.shape)
        handle = self.handle(value)
        if handle.layout.shape != access.shape:
            handle = handle.view(broadcast_to, access.shape)
        self.tape.add("store", (handle,), (), stack, None, access, self._addresses(pointer, mask))
        data = under_rank(value.array, len(access.shape))
        boxes = None if leaves else writable_boxes_of(access)
        if boxes is not None:
            for box in boxes:
                memory, where = box.place()
                self._keep(memory, where, memory[where].copy() if where is ... else memory[where])
                memory[where] = box.of(data)
            return
        lanes = (self.lanes, *access.shape)
        index, inside = access.elements()
        access.forget()
        index, data = np.broadcast_to(index, lanes), np.broadcast_to(data, lanes)
        keep = np.broadcast_to(np.True_ if inside is None else inside, lanes)
        if leaves:
            keep = keep & (index >= 0) & (index < len(storage.memory))
        index, data = index[keep], data[keep]
        self._keep(storage.memory, index, storage.memory[index])
        storage.memory[index] = data

    def _keep(self, memory: Array, where: Any, old: Array) -> None:
        self.undo.append((memory, where, old))
        self.undo_bytes += old.nbytes * 3
        if self.undo_bytes > self.budget and self.lanes > 1:
            # Half as many lanes at once need half of the log.
            raise Split(np.arange(self.lanes) * 2 // self.lanes)

    def atomic(
        self, how: str, pointer: Value, value: Any, mask: Value | None, *, is_used: bool, expected: Any = None
    ) -> Value:
        """An atomic on all lanes, in the order of programs; what each element found. ``expected`` is for ``"cas"``."""
        value = lift(value)
        access, leaves, stack = self._access(pointer, mask, "atomic", "an atomic", how)
        storage, dtype = access.storage, access.storage.memory.dtype
        if dtype.itemsize < (2 if is_float(dtype) else 4):
            raise self.refused(
                f"atomic_{how} of {pointer.dtype.element_ty}", "atomics take 32 and 64 bits, and floats of 16 bits"
            )
        if value.undefined is not None:
            self.use([value], f"the atomic on {storage.name}", stack, _met(access, leaves))
        operands = [cast(lift(x), dtype) for x in ((value,) if expected is None else (value, expected))]
        handles = tuple(self._shaped(x, access.shape) for x in operands)
        static, addresses = (("how", how),), self._addresses(pointer, mask)
        layout = Layout.dense(access.shape, storage.layout.dtype)
        found = Value([self._combine(how, access, operands, leaves, is_used)], access.shape, stack=stack)
        if is_used:
            # What it found can tell that other programs have done their part: what comes now may be in order with it.
            self.may_be_ordered = True
            found.handle = Handle(self.tape.add("fetch", handles, static, stack, layout, access, addresses), layout)
        self.tape.add("atomic", handles, static, stack, None, access, addresses)
        return found

    def _shaped(self, value: Value, shape: tuple[int, ...]) -> Handle:
        handle = self.handle(value)
        return handle if handle.layout.shape == shape else handle.view(broadcast_to, shape)

    def _combine(self, how: str, access: Access, values: Sequence[Value], leaves: bool, is_used: bool) -> Array:
        storage = access.storage
        memory, lanes = storage.memory, (self.lanes, *access.shape)
        index, inside = access.elements()
        access.forget()
        index = np.broadcast_to(index, lanes)
        keep = np.broadcast_to(np.True_ if inside is None else inside, lanes)
        if leaves:
            keep = keep & (index >= 0) & (index < len(memory))
        found = np.zeros(lanes, memory.dtype)
        touched = index[keep]
        given, *expected = (np.broadcast_to(under_rank(v.array, len(access.shape)), lanes)[keep] for v in values)
        self._keep(memory, touched, memory[touched])
        if not is_used and combine_at(how, memory, touched, given):
            return found
        if len(np.unique(touched)) == len(touched):
            found[keep] = memory[touched]
            memory[touched] = combined(how, memory[touched], given, *expected)
            return found
        before = np.empty(len(touched), memory.dtype)
        order = np.argsort(touched, kind="stable")
        rank = _rank_within(touched[order])
        # One round for each element of a place: first all that come first there, then all that come second, ...
        for turn in range(int(rank.max()) + 1):
            mine = order[rank == turn]
            before[mine] = memory[touched[mine]]
            memory[touched[mine]] = combined(how, memory[touched[mine]], given[mine], *(e[mine] for e in expected))
        found[keep] = before
        return found

    def swap(self, pointer: Value, expected: Any, value: Any) -> Value:
        """``tl.atomic_cas``: programs run one by one, since they may wait for each other."""
        if self.lanes > 1:
            raise Split(np.arange(self.lanes))
        self._swaps += 1
        if self._swaps > _MOST_SWAPS:
            raise self.refused(
                "a program waits for one that has not run yet", "programs run one after the other: none can wait"
            )
        return self.atomic("cas", pointer, value, None, is_used=True, expected=expected)

    def rollback(self) -> None:
        """Take back what was stored."""
        for memory, where, old in reversed(self.undo):
            memory[where] = old
        self.undo = []


def _met(access: Access, leaves: bool) -> Array | None:
    """Which elements of the tile an access meets inside its storage: what it does outside is another fault."""
    index, mask = access.elements()
    if not leaves:
        return mask
    there: Array = (index >= 0) & (index < len(access.storage.memory))
    return there if mask is None else there & mask


def _rank_within(ascending: Array) -> Array:
    """0, 1, 2, ... within each run of equal numbers."""
    starts = np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
    lengths = np.diff(np.append(starts, len(ascending)))
    rank: Array = np.arange(len(ascending)) - np.repeat(starts, lengths)
    return rank
