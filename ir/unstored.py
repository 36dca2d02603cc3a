"""Which elements of an HBM tensor no store reaches, whatever the order and the data: by boxes, not by element.

The bounds of all boxes cut the tensor into cells; how many boxes cover a cell is a sum of differences at their corners
(the summed-area table: Crow, "Summed-area tables for texture mapping", 1984). Where the boxes are so irregular that the
cells would be many more than they, the tensor is cut in two, and each part looked at by itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from .columns import GraphColumns
from .dependence.regions import boxes, flat_range_boxes
from .forms.text import quote
from .layout import Layout, Shape
from .source.location import Location
from .tables import AccessKind, AccessTable, IntArray, Mode

__all__ = ["Cells", "Unstored", "access_boxes", "cover_counts", "find_unstored", "uncovered"]

#: So many cells are looked at together in any case; more only where there are not many more than boxes.
_FEW_CELLS = 1 << 16
_BOXES_SHOWN = 3
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@attrs.frozen(eq=False)
class Cells:
    """A part of a box, cut by the bounds of others: along each axis the ``edges`` of its intervals; ``open`` marks the
    cells that no box covers."""

    edges: tuple[IntArray, ...]
    open: BoolArray

    @property
    def count(self) -> int:
        """How many elements are not covered."""
        sizes: IntArray = self.open.astype(np.int64)
        for edges in reversed(self.edges):
            sizes = sizes @ np.diff(edges)
        return int(sizes)

    def boxes(self) -> Iterator[tuple[Shape, Shape]]:
        """What is not covered as boxes ``(lower, upper)``: each as long as can be along the last axis, then along the
        one before it, and so on."""
        left = self.open.copy()
        while left.any():
            low = [int(at) for at in np.unravel_index(int(np.argmax(left)), left.shape)]
            high = [at + 1 for at in low]
            for axis in reversed(range(left.ndim)):
                while high[axis] < left.shape[axis]:
                    beyond = [slice(a, b) for a, b in zip(low, high, strict=True)]
                    beyond[axis] = slice(high[axis], high[axis] + 1)
                    if not left[tuple(beyond)].all():
                        break
                    high[axis] += 1
            left[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = False
            yield (
                tuple(int(e[at]) for e, at in zip(self.edges, low, strict=True)),
                tuple(int(e[at]) for e, at in zip(self.edges, high, strict=True)),
            )


@attrs.frozen(eq=False)
class Unstored:
    """A tensor (storage row) of this name and shape that is stored, but not all of it. ``stores`` are the nodes that
    store it, ``places`` their source lines, each once."""

    storage: int
    name: str
    shape: Shape
    stores: IntArray
    places: tuple[Location, ...]
    parts: tuple[Cells, ...]

    @property
    def count(self) -> int:
        """How many elements are never stored."""
        return sum(part.count for part in self.parts)

    @property
    def size(self) -> int:
        """How many elements the tensor has."""
        return math.prod(self.shape)

    def boxes(self) -> Iterator[tuple[Shape, Shape]]:
        """The elements that are never stored as boxes ``(lower, upper)``."""
        return (
            (lower[: len(self.shape)], upper[: len(self.shape)]) for part in self.parts for lower, upper in part.boxes()
        )

    def mask(self) -> BoolArray:
        """For each element of the tensor whether it is never stored."""
        marks = np.zeros(self.shape or (1,), dtype=np.bool_)
        for part in self.parts:
            inside = part.open
            for axis, edges in enumerate(part.edges):
                inside = np.repeat(inside, np.diff(edges), axis=axis)
            marks[tuple(slice(int(edges[0]), int(edges[-1])) for edges in part.edges)] = inside
        return marks.reshape(self.shape)

    def __str__(self) -> str:
        """``4 of the 8 elements of `o` are never stored: `o[4:8]```."""
        name = quote(self.name)
        shown = list(itertools.islice(self.boxes(), _BOXES_SHOWN + 1))
        text = [f"`{name}[{', '.join(f'{a}:{b}' for a, b in zip(*box, strict=True))}]`" for box in shown[:_BOXES_SHOWN]]
        more = " and more" if len(shown) > _BOXES_SHOWN else ""
        return f"{self.count:,} of the {self.size:,} elements of `{name}` are never stored: {', '.join(text)}{more}"


def find_unstored(graph: GraphColumns) -> list[Unstored]:
    """The HBM tensors that are stored to in some part, by any rank, but not in all; in argument order."""
    accesses, storages = graph.accesses, graph.storages
    stores = np.flatnonzero((accesses.mode == Mode.WRITE) & ~graph.in_scratch[accesses.storage])
    found = []
    for row in np.unique(accesses.storage[stores]).tolist():
        shape = graph.layouts[storages.layout[row]].shape
        mine = stores[accesses.storage[stores] == row]
        _, lower, upper = access_boxes(graph, mine)
        parts = tuple(uncovered((0,) * (len(shape) or 1), shape or (1,), lower, upper))
        if parts:
            nodes = accesses.node[mine].astype(np.int64)
            stacks, first = np.unique(graph.nodes.stack[nodes], return_index=True)
            places = [graph.location(int(stack)) for stack in stacks[np.argsort(first)]]
            lines = tuple(dict.fromkeys(place for place in places if place is not None))
            found.append(Unstored(row, graph.names[storages.name[row]], shape, nodes, lines, parts))
    return found


def access_boxes(graph: GraphColumns, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The boxes of some accesses (at least one) of one storage, in its own dimensions (one, where it has none): for
    each the access, its lower and its upper corner. An access that is no box has several: those of its range."""
    accesses = graph.accesses
    chosen = AccessTable.make(**{name: column[rows] for name, column in accesses.columns().items()})
    shape = graph.layouts[graph.storages.layout[accesses.storage[rows[0]]]].shape
    lower, extents, _ = boxes(chosen, graph.storages, graph.layouts)
    box = chosen.kind == AccessKind.BOX
    owner, low, high = [rows[box]], [lower[box]], [(lower + extents)[box]]
    for row in rows[~box].tolist():
        for start, stop in _flat_runs(graph, row):
            for corner, extent in flat_range_boxes(shape, start, stop):
                owner.append(np.array([row]))
                low.append(np.array(corner, dtype=np.int64)[None, :])
                high.append(low[-1] + np.array(extent, dtype=np.int64))
    return np.concatenate(owner), np.concatenate(low), np.concatenate(high)


def _flat_runs(graph: GraphColumns, row: int) -> list[tuple[int, int]]:
    """What an access that is no box covers, as runs of neighbouring elements of its storage: exactly what its view
    shows, or its index names."""
    accesses = graph.accesses
    start = int(accesses.offset[row])
    if not AccessKind(accesses.kind[row]).is_indexed:
        return _runs(graph.layouts[accesses.layout[row]], start)
    elements = graph.attributes[graph.nodes.attributes[accesses.node[row]]]["index"].accessed() + start
    return _joined(elements)


def _runs(layout: Layout, start: int) -> list[tuple[int, int]]:
    """The runs that a view shows."""
    if math.prod(n for n, stride in zip(layout.shape, layout.strides, strict=True) if stride) == layout.span:
        return [(start, start + layout.span)]
    elements = np.array([start], dtype=np.int64)
    for n, stride in zip(layout.shape, layout.strides, strict=True):
        if stride:
            elements = (elements[:, None] + np.arange(n) * stride).reshape(-1)
    return _joined(np.unique(elements))


def _joined(elements: IntArray) -> list[tuple[int, int]]:
    """Ascending numbers as runs."""
    breaks = np.flatnonzero(np.diff(elements) != 1) + 1
    begins, ends = np.append(0, breaks), np.append(breaks, len(elements)) - 1
    return list(zip(elements[begins].tolist(), (elements[ends] + 1).tolist(), strict=True))


def uncovered(low: Shape, high: Shape, lower: IntArray, upper: IntArray) -> Iterator[Cells]:
    """The parts of the box ``[low, high)`` in which there is something that none of the boxes ``[lower, upper)``
    covers (``(n, D)`` each)."""
    corners = np.unique(np.concatenate((lower, upper), axis=1), axis=0)
    pending = [(np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), *np.hsplit(corners, 2))]
    while pending:
        start, stop, lowers, uppers = pending.pop()
        lowers, uppers = np.maximum(lowers, start), np.minimum(uppers, stop)
        meets = np.all(lowers < uppers, axis=1)
        lowers, uppers = lowers[meets], uppers[meets]
        if np.any(np.all((lowers == start) & (uppers == stop), axis=1)):
            continue
        bounds = zip(start, stop, lowers.T, uppers.T, strict=True)
        edges = tuple(np.unique(np.concatenate(([a, b], c, d))) for a, b, c, d in bounds)
        if math.prod(len(e) - 1 for e in edges) <= max(_FEW_CELLS, 4 * len(lowers)):
            open_ = cover_counts(edges, lowers, uppers) == 0
            if open_.any():
                yield Cells(edges, open_)
            continue
        axis = max(range(len(edges)), key=lambda i: len(edges[i]))
        middle = edges[axis][len(edges[axis]) // 2]
        before, after = stop.copy(), start.copy()
        before[axis] = after[axis] = middle
        pending += [(after, stop, lowers, uppers), (start, before, lowers, uppers)]


def cover_counts(edges: tuple[IntArray, ...], lower: IntArray, upper: IntArray) -> IntArray:
    """How many of the boxes ``[lower, upper)``, which begin and end at ``edges``, cover each cell between these."""
    counts = np.zeros([len(e) for e in edges], dtype=np.int64)
    first = [np.searchsorted(e, lower[:, axis]) for axis, e in enumerate(edges)]
    last = [np.searchsorted(e, upper[:, axis]) for axis, e in enumerate(edges)]
    for corner in itertools.product((0, 1), repeat=len(edges)):
        at = tuple(last[axis] if end else first[axis] for axis, end in enumerate(corner))
        np.add.at(counts, at, -1 if sum(corner) % 2 else 1)
    for axis in range(len(edges)):
        counts = np.cumsum(counts, axis=axis)
    return counts[tuple(slice(0, len(e) - 1) for e in edges)]
