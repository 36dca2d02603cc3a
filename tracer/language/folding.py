"""Scans and reductions along an axis by a function of the author's, who writes it with the operations of ``tl``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import layout as layouts
from ...ir.errors import ArgumentError, DTypeError, ShapeError, shown
from ...ir.layout import Layout
from ..recording.current import current
from ..values.handles import TensorHandle
from .calls import as_handle
from .transfers import copy_to

__all__ = ["associative_scan", "reduce"]

#: Of tiles, an operand of the author's function for each.
Combine = Callable[..., Any]


def associative_scan(
    x: TensorHandle | Sequence[TensorHandle], axis: int, combine_fn: Combine, reverse: bool
) -> TensorHandle | tuple[TensorHandle, ...]:
    """Every element with all before it, in steps that double (Hillis and Steele, "Data parallel algorithms", 1986):
    ceil(log2 n) calls of the function on tiles."""
    values, several = _tiles("associative_scan", x)
    axis = layouts.resolve_axis(axis, values[0].ndim)
    size, step = values[0].shape[axis], 1
    if size == 1:
        values = [_copied(value) for value in values]
    while step < size:
        before, after = _cut(axis, 0, size - step), _cut(axis, step, size)
        earlier, later = (after, before) if reverse else (before, after)
        kept = _cut(axis, size - step, size) if reverse else _cut(axis, 0, step)
        combined = _combined("associative_scan", combine_fn, values, earlier, later)
        made = [_fresh(value) for value in values]
        for old, new, there in zip(values, combined, made, strict=True):
            copy_to(current(), there[kept], old[kept])
            copy_to(current(), there[later], new)
        values, step = made, step * 2
    return tuple(values) if several else values[0]


def reduce(
    x: TensorHandle | Sequence[TensorHandle], axis: int, combine_fn: Combine, keep_dims: bool
) -> TensorHandle | tuple[TensorHandle, ...]:
    """All elements along an axis made one, by halves: floor(log2 n) calls of the function on tiles, and one more for
    each odd element that is left over."""
    values, several = _tiles("reduce", x)
    axis = layouts.resolve_axis(axis, values[0].ndim)
    size, left = values[0].shape[axis], []
    if size == 1:
        values = [_copied(value) for value in values]
    while size > 1:
        half = size // 2
        if size % 2:
            left.append([value[_cut(axis, size - 1, size)] for value in values])
        values = _combined("reduce", combine_fn, values, _cut(axis, 0, half), _cut(axis, half, 2 * half))
        size = half
    for rest in reversed(left):
        values = _results("reduce", combine_fn(*values, *rest), values, values[0].shape)
    if not keep_dims:
        values = [value[(*_cut(axis, 0, 1)[:-1], 0)] for value in values]
    return tuple(values) if several else values[0]


def _tiles(name: str, x: Any) -> tuple[list[TensorHandle], bool]:
    several = isinstance(x, tuple | list)
    values = [as_handle(name, value) for value in (x if several else (x,))]
    if not values:
        raise ArgumentError(f"{name} of no tiles", help="give a tile, or a tuple of tiles of one shape")
    if len({value.shape for value in values}) > 1:
        shapes = ", ".join(str(value.shape) for value in values)
        raise ShapeError(f"{name} of tiles of shapes {shapes}", help="all need one shape")
    for value in values:
        current().check_handle(value)
    return values, several


def _cut(axis: int, begin: int, end: int) -> tuple[slice, ...]:
    """An index of the elements from ``begin`` to before ``end`` along an axis."""
    return (*(slice(None) for _ in range(axis)), slice(begin, end))


def _combined(
    name: str, combine_fn: Combine, values: Sequence[TensorHandle], earlier: Any, later: Any
) -> list[TensorHandle]:
    """What the function makes of two parts of the tiles, the earlier elements first."""
    first, second = [value[earlier] for value in values], [value[later] for value in values]
    return _results(name, combine_fn(*first, *second), values, first[0].shape)


def _results(name: str, found: Any, values: Sequence[TensorHandle], shape: layouts.Shape) -> list[TensorHandle]:
    made = list(found) if isinstance(found, tuple | list) else [found]
    if len(made) != len(values):
        raise ArgumentError(
            f"{name}: combine_fn gives {len(made)} of {len(values)} tiles",
            help="it takes the tiles of two parts, the earlier one first, and returns as many as one part has",
        )
    for result, value in zip(made, values, strict=True):
        handle = as_handle(f"{name}: combine_fn", result)
        if handle.shape != shape:
            raise ShapeError(
                f"{name}: combine_fn makes {shown(handle)} of shape {handle.shape} of tiles of shape {shape}",
                help="it works element by element, on tiles of any shape",
            )
        if handle.dtype is not value.dtype:
            raise DTypeError(
                f"{name}: combine_fn makes {handle.dtype} of {value.dtype}",
                help=f"convert: h.to(tl.{value.dtype.name})",
            )
    return made


def _fresh(like: TensorHandle) -> TensorHandle:
    return current().allocate(Layout.dense(like.shape, like.dtype))


def _copied(value: TensorHandle) -> TensorHandle:
    made = _fresh(value)
    copy_to(current(), made, value)
    return made
