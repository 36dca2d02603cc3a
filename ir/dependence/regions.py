"""Which elements of a storage an access covers: a box where one can say it, else a flat range.

All functions work on columns. A box is given by its lower corner and its extent in each dimension of the *storage*;
storages of fewer dimensions than the widest are padded with leading dimensions of size 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..layout import Layout, Shape
from ..tables import AccessTable, IntArray, StorageTable, layout_columns

__all__ = ["box_of_view", "boxes", "byte_ranges", "flat_range_boxes"]


def box_of_view(storage: Layout, view: Layout) -> Shape | None:
    """The extents, in the storage's dimensions, of the box that a view covers, whatever its offset; None where no box
    can express it. A broadcast dimension covers one element.

    The view's dimensions are placed from the innermost stride outward: one that walks a storage dimension (or goes on
    where an earlier one filled it) extends the box there, and may run on into the next dimension when it fills one.
    """
    if view is storage:
        return storage.shape
    extents = [1] * storage.ndim
    walked = sorted((s, n) for n, s in zip(view.shape, view.strides, strict=True) if n > 1 and s > 0)
    for stride, size in walked:
        axis = _axis_at(storage, extents, stride)
        while axis is not None and size > 1:
            room = storage.shape[axis] // extents[axis]
            if size <= room:
                extents[axis] *= size
                size = 1
            elif extents[axis] * room == storage.shape[axis] and size % room == 0:
                extents[axis] = storage.shape[axis]
                size //= room
                axis = _axis_at(storage, extents, storage.strides[axis] * storage.shape[axis])
            else:
                return None
        if size > 1:
            return None
    return tuple(extents)


def _axis_at(storage: Layout, extents: list[int], stride: int) -> int | None:
    """The dimension in which a step of ``stride`` elements extends the box: the outermost that fits."""
    for axis in range(storage.ndim):
        if (
            storage.shape[axis] > 1
            and storage.strides[axis] * extents[axis] == stride
            and extents[axis] < storage.shape[axis]
        ):
            return axis
    return None


def boxes(
    accesses: AccessTable, storages: StorageTable, layouts: Sequence[Layout]
) -> tuple[IntArray, IntArray, IntArray]:
    """For all accesses: lower corners ``(n, D)``, extents ``(n, D)``, and whether the box is exact ``(n,)``.

    D is the largest number of dimensions of an accessed storage. Where it is not exact the row is meaningless: use
    :func:`flat_range_boxes`.
    """
    count = len(accesses)
    storage_layout = storages.layout[accesses.storage].astype(np.int64)
    pairs, which = np.unique(storage_layout * len(layouts) + accesses.layout, return_inverse=True)
    width = max((layouts[int(pair) // len(layouts)].ndim for pair in pairs), default=1) or 1
    shape = np.ones((len(pairs), width), dtype=np.int64)
    stride = np.ones((len(pairs), width), dtype=np.int64)
    extent = np.ones((len(pairs), width), dtype=np.int64)
    exact = np.ones(len(pairs), dtype=np.bool_)
    for row, pair in enumerate(pairs):
        storage, view = layouts[int(pair) // len(layouts)], layouts[int(pair) % len(layouts)]
        pad = width - storage.ndim
        shape[row, pad:] = storage.shape
        stride[row, pad:] = storage.strides
        stride[row, :pad] = max(storage.size, 1)
        box = box_of_view(storage, view)
        if box is None:
            exact[row] = False
        else:
            extent[row, pad:] = box
    lower = np.empty((count, width), dtype=np.int64)
    rest = accesses.offset.astype(np.int64)
    for axis in range(width):
        lower[:, axis], rest = np.divmod(rest, stride[which, axis])
    extents = extent[which]
    inside = np.all(lower + extents <= shape[which], axis=1)
    return lower, extents, exact[which] & inside


def flat_range_boxes(shape: Shape, start: int, stop: int) -> list[tuple[Shape, Shape]]:
    """The flat range of elements [start, stop) of a row-major shape as disjoint boxes ``(lower, extents)``: at most
    ``2 * len(shape) - 1`` of them."""
    if not shape:
        return [((), ())]
    if len(shape) == 1:
        return [((start,), (stop - start,))]
    inner = shape[1:]
    row = int(np.prod(inner))
    first, head = divmod(start, row)
    last, tail = divmod(stop, row)
    if first == last:
        return [((first, *lo), (1, *ext)) for lo, ext in flat_range_boxes(inner, head, tail)]
    pieces: list[tuple[Shape, Shape]] = []
    if head:
        pieces += [((first, *lo), (1, *ext)) for lo, ext in flat_range_boxes(inner, head, row)]
        first += 1
    if first < last:
        pieces.append(((first, *(0,) * len(inner)), (last - first, *inner)))
    if tail:
        pieces += [((last, *lo), (1, *ext)) for lo, ext in flat_range_boxes(inner, 0, tail)]
    return pieces


def byte_ranges(
    accesses: AccessTable, storages: StorageTable, layouts: Sequence[Layout]
) -> tuple[IntArray, IntArray, IntArray]:
    """For all accesses: first and one past the last byte of the covering range, in the rank's scratch (of an HBM
    access: in its tensor), and whether every byte in between is accessed."""
    span, itemsize, _ = layout_columns(tuple(layouts))
    size = np.array([_distinct(layout) for layout in layouts], dtype=np.int64)
    start = storages.address[accesses.storage] + accesses.offset * itemsize[accesses.layout]
    stop = start + span[accesses.layout] * itemsize[accesses.layout]
    return start, stop, (size == span)[accesses.layout]


def _distinct(layout: Layout) -> int:
    """How many different elements a view shows (a broadcast dimension repeats them)."""
    count = 1
    for n, s in zip(layout.shape, layout.strides, strict=True):
        count *= n if s else 1
    return count
