"""Which accesses meet: memory cut into cells such that two accesses conflict exactly where they share one.

Only a write can make a conflict, so only the bounds of writes cut: within a cell every write covers all or nothing, and
a read that touches any part of it meets all of its writers. Within one storage cells are boxes of elements; between
allocations they are ranges of bytes, and an access covers the range from its first byte to its last.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.arrays.distinct import distinct
from ..ir.graph import Graph
from ..ir.layout import Layout, Shape
from ..ir.tables import IntArray, Mode

__all__ = ["Meetings", "between_allocations", "element_offsets", "is_solid", "within_storages"]

_Box = tuple[Shape, Shape]


@attrs.frozen(eq=False)
class Meetings:
    """Accesses by cell, in program order within a cell: ``cell`` (ascending) and ``access`` (a row of the table)."""

    cell: IntArray
    access: IntArray


def _sorted(cell: IntArray, access: IntArray) -> Meetings:
    """By cell, then by row. Small numbers are sorted by radix, which numpy does for 16 bits."""
    if len(cell) and int(cell.max()) < 1 << 16:
        cell = cell.astype(np.uint16)
    order = np.argsort(cell, kind="stable")
    return Meetings(cell[order].astype(np.int64), access[order])


def element_offsets(layout: Layout) -> IntArray:
    """The elements a view shows, as offsets from its first one: ascending, each once."""
    offsets = np.zeros(1, dtype=np.int64)
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        if stride:
            offsets = (offsets[:, None] + np.arange(size) * stride).ravel()
    return np.unique(offsets)


def is_solid(layout: Layout) -> bool:
    """Whether a view shows every element between its first and its last."""
    return _shown(layout) == layout.span


def _shown(layout: Layout) -> int:
    """How many different elements a view shows."""
    count = 1
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        count *= size if stride else 1
    return count


# --- within one storage -----------------------------------------------------------------------------------------------


def within_storages(graph: Graph) -> Meetings:
    """The accesses by cell of their own storage (an HBM tensor: as each rank sees it), where anything writes it."""
    accesses, storages, nodes = graph.accesses, graph.storages, graph.nodes
    hbm = storages.rank[accesses.storage] < 0
    rank_of_tensor = np.where(hbm, nodes.rank[accesses.node], 0).astype(np.int64)
    _, place = np.unique(accesses.storage + rank_of_tensor * len(storages), return_inverse=True)
    write = accesses.mode == Mode.WRITE
    count = int(place.max()) + 1 if len(place) else 0
    written = np.zeros(count, dtype=np.bool_)
    written[place[write]] = True
    # A view with as many elements as its storage is the whole of it. Where every write is, one cell will do.
    shown = np.array([_shown(layout) for layout in graph.layouts], dtype=np.int64)
    size = np.array([layout.size for layout in graph.layouts], dtype=np.int64)
    partial = write & (shown[accesses.layout] < size[storages.layout[accesses.storage]])
    cut = np.zeros(count, dtype=np.bool_)
    cut[place[partial]] = True
    whole = np.flatnonzero(written[place] & ~cut[place])
    pieces = np.flatnonzero(cut[place])
    cell, access = _cut(graph, pieces, place)
    return _sorted(np.concatenate([place[whole], cell + count]), np.concatenate([whole, access]))


def _cut(graph: Graph, rows: IntArray, place: IntArray) -> tuple[IntArray, IntArray]:
    """(cell, access) for the accesses of storages that are written in parts."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    access, lower, extents = _boxes(graph, rows)
    home, write = place[access], graph.accesses.mode[access] == Mode.WRITE
    cell = home.astype(np.int64)
    for axis in range(lower.shape[1]):
        low, high = lower[:, axis], lower[:, axis] + extents[:, axis]
        # Storages lie side by side on one line; each begins with a bound of its own.
        line = np.int64(int(high.max()) + 1)
        bounds = distinct(np.concatenate([home * line, (home * line + low)[write], (home * line + high)[write]]))
        first = np.searchsorted(bounds, home * line + low, side="right") - 1
        stop = np.searchsorted(bounds, home * line + high, side="left")
        counts = stop - first
        again = np.repeat(np.arange(len(counts)), counts)
        interval = first[again] + np.arange(len(again)) - np.repeat(np.cumsum(counts) - counts, counts)
        access, home, write, lower, extents = access[again], home[again], write[again], lower[again], extents[again]
        # Renumbered at each dimension, so that the product always fits.
        _, cell = np.unique(cell[again] * np.int64(len(bounds) + 1) + interval, return_inverse=True)
    return cell, access


def _boxes(graph: Graph, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The boxes that accesses cover in their storage's dimensions (leading ones added up to the most of any): access
    row, lower corner, extents. One that is no box covers the flat range from its first element to its last, in
    several boxes."""
    accesses, layouts = graph.accesses, graph.layouts
    base = graph.storages.layout[accesses.storage[rows]].astype(np.int64)
    kinds, which = np.unique(base * len(layouts) + accesses.layout[rows], return_inverse=True)
    width = max(layouts[int(kind) // len(layouts)].ndim for kind in kinds) or 1
    found_rows, lowers, sizes = [], [], []
    for number, kind in enumerate(kinds.tolist()):
        storage, view = layouts[kind // len(layouts)], layouts[kind % len(layouts)]
        shape = (1,) * (width - storage.ndim) + storage.shape
        mine = rows[which == number]
        offset = accesses.offset[mine].astype(np.int64)
        corner = np.stack(np.unravel_index(offset, shape), axis=1)
        box = _box_at_origin(shape, view)
        fits = np.zeros(len(mine), dtype=np.bool_)
        if box is not None:
            fits = np.all(corner + np.array(box) <= np.array(shape), axis=1)
            found_rows.append(mine[fits])
            lowers.append(corner[fits])
            sizes.append(np.broadcast_to(np.array(box, dtype=np.int64), (int(fits.sum()), width)))
        for row, start in zip(mine[~fits].tolist(), offset[~fits].tolist(), strict=True):
            for low, extent in _boxes_of_range(shape, start, start + view.span):
                found_rows.append(np.array([row]))
                lowers.append(np.array([low]))
                sizes.append(np.array([extent]))
    found = np.concatenate(found_rows)
    program_order = np.argsort(found, kind="stable")
    return found[program_order], np.concatenate(lowers)[program_order], np.concatenate(sizes)[program_order]


def _box_at_origin(shape: Shape, view: Layout) -> Shape | None:
    """The extents of the box that a view at the storage's first element covers; None where it covers none.

    By enumeration: the last element gives the only extents there can be; the view is that box when it has as many
    elements and each lies inside.
    """
    if view.span > int(np.prod(shape)):
        return None
    last = np.unravel_index(view.span - 1, shape)
    extents = tuple(int(at) + 1 for at in last)
    if int(np.prod(extents)) != _shown(view):
        return None
    inside = np.unravel_index(element_offsets(view), shape)
    return extents if all(int(at.max()) < extent for at, extent in zip(inside, extents, strict=True)) else None


def _boxes_of_range(shape: Shape, start: int, stop: int) -> list[_Box]:
    """Disjoint boxes that together are the elements [start, stop) of a row-major shape."""
    if len(shape) == 1:
        return [((start,), (stop - start,))]
    row = int(np.prod(shape[1:]))
    found: list[_Box] = []
    while start < stop:
        at, inner = divmod(start, row)
        full = (stop - start) // row if inner == 0 else 0
        if full:
            found.append(((at, *(0,) * (len(shape) - 1)), (full, *shape[1:])))
            start += full * row
            continue
        end = min(stop, (at + 1) * row)
        found += [((at, *low), (1, *size)) for low, size in _boxes_of_range(shape[1:], inner, inner + end - start)]
        start = end
    return found


# --- between allocations ----------------------------------------------------------------------------------------------


def between_allocations(graph: Graph, here: IntArray) -> Meetings:
    """Accesses to one memory of one rank (rows, ascending), by cell of its bytes."""
    accesses, storages = graph.accesses, graph.storages
    if not len(here):
        return Meetings(np.zeros(0, dtype=np.int64), here)
    itemsize = np.array([layout.dtype.itemsize for layout in graph.layouts], dtype=np.int64)
    span = np.array([layout.span for layout in graph.layouts], dtype=np.int64) * itemsize
    low = storages.address[accesses.storage[here]] + accesses.offset[here] * itemsize[accesses.layout[here]]
    high = low + span[accesses.layout[here]]
    write = accesses.mode[here] == Mode.WRITE
    bounds = distinct(np.concatenate([np.zeros(1, dtype=np.int64), low[write], high[write]]))
    first = np.searchsorted(bounds, low, side="right") - 1
    counts = np.searchsorted(bounds, high, side="left") - first
    again = np.repeat(np.arange(len(here)), counts)
    cell = first[again] + np.arange(len(again)) - np.repeat(np.cumsum(counts) - counts, counts)
    return _sorted(cell, here[again])
