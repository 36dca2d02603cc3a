"""Tensors from nothing, and other views of the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir import layout as layouts
from ....ir.layout import Layout
from ..constexpr import bare
from ..recording.tape import Handle
from ..values.arithmetic import cast as cast_value
from ..values.arithmetic import elementwise, view
from ..values.types import TYPES, BlockType, MissingType, PointerType, Type
from ..values.value import Array, MadeBy, Running, Split, Value, along_lanes, lift, under_rank

__all__ = [
    "arange", "bitcast", "bits_as",
    "broadcast", "broadcast_to", "cast", "cat", "expand_dims", "flip", "full", "getitem",
    "interleave", "join", "part_of", "permute", "ravel", "reshape", "shape_of", "split", "squeeze", "trans",
    "unsqueeze", "view_as", "zeros", "zeros_like",
]  # fmt: skip


def shape_of(args: Any) -> tuple[int, ...]:
    """A shape, given as one tuple or as numbers."""
    if len(args) == 1 and isinstance(bare(args[0]), tuple | list):
        args = bare(args[0])
    return tuple(int(bare(a)) for a in args)


def _power_of_two(n: int, what: str) -> None:
    if n < 1 or n & (n - 1):
        raise Running.tracing.refused(
            f"{what}: {n} is no power of two", "round it up with triton.next_power_of_2, and mask what is too much"
        )


def _made_for(shape: tuple[int, ...], what: str) -> None:
    for n in shape:
        _power_of_two(n, f"{what} of shape {shape}")


def arange(start: Any, end: Any) -> Value:
    """``tl.arange``."""
    start, end = int(bare(start)), int(bare(end))
    if end <= start:
        raise Running.tracing.refused(f"arange({start}, {end}) has no elements", "the end must be above the start")
    _power_of_two(end - start, f"arange({start}, {end})")
    array = np.arange(start, end, dtype=np.int32)[None]
    made_by = MadeBy("arange", (), (("start", start), ("end", end)))
    return Value([array], (end - start,), made_by=made_by, stack=Running.tracing.here())


def full(shape: Any, value: Any, dtype: Any = TYPES["float32"]) -> Value:
    """``tl.full``."""
    sizes = shape_of((shape if isinstance(bare(shape), tuple | list) else (shape,),))
    _made_for(sizes, "a tensor")
    value = cast(lift(value), dtype)
    if not value.is_known or value.shape != ():
        return broadcast_to(value, sizes)
    column = value.array.reshape(len(value.array), *(1,) * len(sizes))
    return Value([column], sizes, stack=Running.tracing.here())


def zeros(shape: Any, dtype: Any = TYPES["float32"]) -> Value:
    """``tl.zeros``."""
    return full(shape, 0, dtype)


def zeros_like(input: Any) -> Value:
    """``tl.zeros_like``."""
    x = lift(input)
    return full(x.shape, 0, x.dtype)


# --- types ------------------------------------------------------------------------------------------------------------


def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, **_: Any) -> Value:
    """``tl.cast`` and ``x.to``."""
    x, dtype = lift(input), bare(dtype)
    if isinstance(dtype, BlockType):
        dtype = dtype.element_ty
    if isinstance(dtype, str):
        dtype = TYPES.get(dtype, dtype)
    if isinstance(dtype, PointerType):
        return _as_pointer(x, dtype)
    if isinstance(dtype, MissingType):
        dtype.refuse()
    if not isinstance(dtype, Type):
        raise Running.tracing.refused(f"a cast to {dtype!r}", "name a type of tl's: tl.float32")
    if x.storage is not None:
        return cast_value(Running.tracing.address_of(x), dtype.numpy)
    if bitcast:
        return _bits(x, dtype)
    if fp_downcast_rounding not in (None, "rtne"):
        raise Running.tracing.refused(f"a cast that rounds {fp_downcast_rounding!r}", 'kernscope rounds "rtne" only')
    return cast_value(x, dtype.numpy)


def bitcast(x: Value, dtype: Any) -> Value:
    """The same bits as another type."""
    return cast(x, dtype, bitcast=True)


def bits_as(name: str) -> Callable[[Any], Value]:
    """The function that takes a number's bits as another type's."""

    def call(x: Any) -> Value:
        return cast(x, TYPES[name], bitcast=True)

    return call


def _bits(x: Value, dtype: Type) -> Value:
    if x.numpy.itemsize != dtype.numpy.itemsize:
        raise Running.tracing.refused(
            f"the bits of {x.dtype} as {dtype}", "both types need one width: convert by value, or in two steps"
        )
    if x.numpy == dtype.numpy:
        return x
    if "b" in (x.numpy.kind, dtype.numpy.kind):
        return cast_value(x, dtype.numpy)
    static = (("dtype", dtype.dtype),)
    return Running.tracing.computed("bitcast", [x], dtype.numpy, x.shape, static, {"dtype": dtype.dtype})  # type: ignore[no-any-return]  # the running trace


def _as_pointer(x: Value, dtype: PointerType) -> Value:
    tracing = Running.tracing
    element = dtype.element_ty.numpy
    if x.storage is not None:
        size = x.storage.memory.itemsize
        storage = tracing.storages.viewed(x.storage, element)
        parts = [p if size == element.itemsize else p * size // element.itemsize for p in x.parts]
    else:
        column = np.unique(x.array)
        storage = tracing.storages.at_address(int(column[0]))
        found = [tracing.storages.at_address(int(address)) for address in column]
        if storage is None or any(each is None for each in found):
            raise tracing.refused(
                "an address that is in no tensor", "take it from tensor.data_ptr() of a tensor that is alive"
            )
        if any(each is not storage for each in found):
            flat = along_lanes(x.array, tracing.lanes).reshape(tracing.lanes, -1)[:, 0]
            numbers = [tracing.storages.at_address(int(address)).number for address in flat]
            if len(set(numbers)) == 1:
                raise tracing.refused("a tile of pointers into several tensors", "load one pointer at a time")
            raise Split(np.array(numbers))
        if x.dependencies:
            tracing.decide(x)
        storage = tracing.storages.viewed(storage, element)
        parts = [(x.array - storage.address) // element.itemsize]
    return Value(
        parts, x.shape, storage=storage, roots=x.roots, undefined=x.undefined, wrapped=x.wrapped, stack=x.stack
    )


# --- views ------------------------------------------------------------------------------------------------------------


def expand_dims(input: Any, axis: Any) -> Value:
    """``tl.expand_dims``."""
    x, axis = lift(input), bare(axis)
    axes = axis if isinstance(axis, tuple | list) else [axis]
    rank = len(x.shape) + len(axes)
    given = [int(bare(a)) for a in axes]
    wrong = next((a for a in given if not -rank <= a < rank), None)
    if wrong is not None:
        raise Running.tracing.refused(
            f"invalid axis {wrong}: expand_dims of shape {x.shape} at {given}", f"use 0 to {rank - 1}, each once"
        )
    if len({a % rank for a in given}) < len(given):
        raise Running.tracing.refused(
            f"duplicate axes, normalized axes = {sorted(a % rank for a in given)}: expand_dims of shape {x.shape}",
            f"use 0 to {rank - 1}, each once",
        )
    for a in sorted(int(bare(a)) % rank for a in axes):
        shape = (*x.shape[:a], 1, *x.shape[a:])

        def of_part(part: Array, a: int = a, rank: int = len(x.shape)) -> Array:
            return np.expand_dims(under_rank(part, rank), a + 1)

        def of_handle(handle: Handle, a: int = a) -> Handle:
            return handle.view(layouts.expand_dims, a)

        x = view(x, shape, of_part, of_handle)
    return x


unsqueeze = expand_dims


def item(x: Any) -> Value:
    """The one element of a tensor that has one."""
    x = lift(x)
    if x.numel != 1:
        raise Running.tracing.refused(f"the only element of a tensor of shape {x.shape}", "it has several: reduce it")
    return reshape(x, ())


def squeeze(x: Any, dim: Any) -> Value:
    """Without a dimension of size 1."""
    x = lift(x)
    d = int(bare(dim)) % len(x.shape)
    return reshape(x, (*x.shape[:d], *x.shape[d + 1 :]))


def getitem(x: Value, items: Any) -> Value:
    """``x[:, None]``."""
    items = bare(items)
    items = items if isinstance(items, tuple) else (items,)
    for axis, item in enumerate(map(bare, items)):
        if item is None:
            x = expand_dims(x, axis)
        elif not isinstance(item, slice) or item != slice(None):
            raise Running.tracing.refused(f"an index {item!r} of a tensor", "Triton's indices are `:` and `None`")
    return x


def part_of(x: Value, axis: int, begin: int, end: int) -> Value:
    """The elements ``begin`` up to ``end`` along a dimension."""
    shape = (*x.shape[:axis], end - begin, *x.shape[axis + 1 :])

    def of_part(part: Array) -> Array:
        part = under_rank(part, len(x.shape))
        where = (slice(None),) * (axis + 1)
        return part if part.shape[axis + 1] == 1 < x.shape[axis] else part[(*where, slice(begin, end))]

    def of_handle(handle: Handle) -> Handle:
        items = (slice(None),) * axis
        offset, layout = layouts.index(handle.layout, (*items, slice(begin, end)))
        return handle.at(offset, layout)

    return view(x, shape, of_part, of_handle)


def broadcast_to(input: Any, *shape: Any) -> Value:
    """``tl.broadcast_to``."""
    x, sizes = lift(input), shape_of(shape)
    if x.shape == sizes:
        return x
    if Running.tracing.broadcast(x.shape, sizes) != sizes:
        raise Running.tracing.refused(f"shape {x.shape} does not broadcast to {sizes}", "only sizes of 1 are widened")
    rank = len(sizes)
    return view(x, sizes, lambda p: under_rank(p, rank), lambda h: h.view(layouts.broadcast_to, sizes))


def broadcast(input: Any, other: Any) -> tuple[Value, Value]:
    """``tl.broadcast``."""
    a, b = lift(input), lift(other)
    shape = Running.tracing.broadcast(a.shape, b.shape)
    return broadcast_to(a, shape), broadcast_to(b, shape)


def permute(input: Any, *dims: Any) -> Value:
    """``tl.permute``."""
    x, order = lift(input), shape_of(dims)
    rank = len(x.shape)
    order = tuple(d % rank for d in order)
    if sorted(order) != list(range(rank)):
        raise Running.tracing.refused(f"dimensions {order} of a tensor of shape {x.shape}", "name each of them once")
    shape = tuple(x.shape[d] for d in order)

    def of_part(part: Array) -> Array:
        return np.transpose(under_rank(part, rank), (0, *[d + 1 for d in order]))

    return view(x, shape, of_part, lambda h: h.view(layouts.transpose, order))


def trans(input: Any, *dims: Any) -> Value:
    """``tl.trans``: the last two dimensions swapped, or the order given."""
    x = lift(input)
    rank = len(x.shape)
    if dims:
        return permute(x, *dims)
    if rank < 2:
        raise Running.tracing.refused(f"tl.trans of shape {x.shape}", "x[:, None] makes a column of a row")
    return permute(x, *range(rank - 2), rank - 1, rank - 2)


def reshape(input: Any, *shape: Any, can_reorder: Any = False) -> Value:
    """``tl.reshape``."""
    x, sizes = lift(input), shape_of(shape)
    if -1 in sizes:
        rest = int(np.prod([n for n in sizes if n != -1]))
        sizes = tuple(x.numel // max(rest, 1) if n == -1 else n for n in sizes)
    if int(np.prod(sizes)) != x.numel:
        raise Running.tracing.refused(f"shape {x.shape} as {sizes}", "both need the same number of elements")
    if sizes == x.shape:
        return x

    def of_handle(handle: Handle) -> Handle:
        found = Running.tracing.dense(handle, x.stack)
        return Handle(found.step, Layout.dense(sizes, found.layout.dtype), found.offset)

    return view(x, sizes, lambda p: np.ascontiguousarray(p).reshape((len(p), *sizes)), of_handle, collapse=True)


view_as = reshape


def ravel(x: Any, can_reorder: Any = False) -> Value:
    """``tl.ravel``."""
    x = lift(x)
    return reshape(x, (x.numel,))


# --- tensors of tensors -----------------------------------------------------------------------------------------------


def join(a: Any, b: Any) -> Value:
    """``tl.join``: along a new last dimension of two."""
    a, b = broadcast(a, b)
    if a.shape == ():
        a, b = expand_dims(a, 0), expand_dims(b, 0)
        return reshape(join(a, b), (2,))
    first = elementwise("eq", _pair(len(a.shape)), 0)
    return elementwise("where", first, expand_dims(a, -1), expand_dims(b, -1))


def _pair(rank: int) -> Value:
    x = arange(0, 2)
    for _ in range(rank):
        x = expand_dims(x, 0)
    return x


def split(a: Any) -> tuple[Value, Value]:
    """``tl.split``: the two halves along the last dimension, which is two."""
    x = lift(a)
    rank = len(x.shape)
    if not rank or x.shape[-1] != 2:
        raise Running.tracing.refused(f"tl.split of shape {x.shape}", "its last dimension must be 2")
    halves = [part_of(x, rank - 1, k, k + 1) for k in range(2)]
    first, second = (reshape(half, x.shape[:-1]) for half in halves)
    return first, second


def interleave(a: Any, b: Any) -> Value:
    """``tl.interleave``: along the last dimension, in turns."""
    joined = join(a, b)
    if len(joined.shape) == 1:
        return joined
    return reshape(joined, (*joined.shape[:-2], 2 * joined.shape[-2]))


def cat(input: Any, other: Any, can_reorder: Any = False, dim: Any = 0) -> Value:
    """``tl.cat``: one behind the other."""
    joined = join(input, other)
    rank = len(joined.shape) - 1
    d = int(bare(dim)) % rank
    order = [*range(d), rank, *range(d, rank)]
    moved = permute(joined, *order)
    return reshape(moved, (*moved.shape[:d], 2 * moved.shape[d + 1], *moved.shape[d + 2 :]))


def flip(x: Any, dim: Any = None) -> Value:
    """``tl.flip``."""
    x = lift(x)
    axis = len(x.shape) - 1 if bare(dim) is None else int(bare(dim)) % len(x.shape)
    return Running.tracing.computed("flip", [x], x.numpy, x.shape, (("axis", axis),), {"axis": axis + 1})  # type: ignore[no-any-return]  # the running trace
