"""Whether it matters what a ragged load brings from outside its tensor."""

from __future__ import annotations

from ...ir.dependence.regions import box_of_view
from ...ir.graph import Access, Graph
from ...ir.tables import BoundsFault
from .readers import Readers

__all__ = ["reaches_nothing_stored"]

#: Corners of a box of a tile: lower, and upper (exclusive), by dimension.
_Box = tuple[tuple[int, ...], tuple[int, ...]]
#: So many nodes are looked at.
_MOST = 1_000


def reaches_nothing_stored(graph: Graph, fault: BoundsFault, readers: Readers) -> bool:
    """Whether the elements of a load that lie outside its tensor reach only elements that a store keeps outside its
    own: through operations of which each element depends on the same element alone, into stores that leave their tensor
    there (or clip it). Then any value may stand for them. False where that is not certain."""
    node = graph[fault.node]
    inside = _inside(graph, fault)
    if len(node.writes) != 1 or inside is None:
        return False
    shape = node.writes[0].layout.shape
    if len(shape) != len(inside[0]):
        return False  # a dimension was dropped
    faults = {each.node: each for each in graph.bounds_faults}
    pending, seen = [node.writes[0].storage.row], set[int]()
    looked_at = 0
    while pending:
        storage = pending.pop()
        if storage in seen:
            continue
        seen.add(storage)
        for reader in dict.fromkeys(readers.of(storage).tolist()):
            looked_at += 1
            if looked_at > _MOST:
                return False
            reads = [access for access in graph[reader].reads if access.storage.row == storage]
            boxes = [_box(access) for access in reads]
            if any(box is None for box in boxes):
                return False
            if all(_holds(inside, box) for box in boxes if box is not None):
                continue  # it takes none of them
            operation = graph[reader].operation
            if operation.name == "store":
                left = faults.get(reader)
                kept = None if left is None else _inside(graph, left)
                if kept is None or not _holds(inside, kept):
                    return False
            elif not operation.in_parts or not all(_is_whole(a, shape) for a in (*reads, *graph[reader].writes)):
                return False
            else:
                pending += [access.storage.row for access in graph[reader].writes]
    return True


def _inside(graph: Graph, fault: BoundsFault) -> _Box | None:
    """The part of what is asked for that lies in the tensor, counted from its corner; None for a pointer's."""
    shape = graph.layouts[graph.storages.layout[fault.storage]].shape
    if len(shape) != len(fault.lower):
        return None
    lower = tuple(max(0, -low) for low in fault.lower)
    upper = tuple(min(up, n) - low for low, up, n in zip(fault.lower, fault.upper, shape, strict=True))
    return lower, upper


def _box(access: Access) -> _Box | None:
    """Where an access lies in its allocation; None where that is no box."""
    layout = access.storage.layout
    extents, rest = box_of_view(layout, access.layout), access.offset
    corner = []
    for stride in layout.strides:
        at, rest = divmod(rest, stride) if stride else (0, rest)
        corner.append(at)
    if extents is None or any(at + n > of for at, n, of in zip(corner, extents, layout.shape, strict=True)):
        return None
    return tuple(corner), tuple(at + n for at, n in zip(corner, extents, strict=True))


def _holds(outer: _Box, inner: _Box) -> bool:
    return all(a <= b for a, b in zip(outer[0], inner[0], strict=True)) and all(
        a >= b for a, b in zip(outer[1], inner[1], strict=True)
    )


def _is_whole(access: Access, shape: tuple[int, ...]) -> bool:
    """Whether an access is of a whole allocation of a shape, element by element."""
    return access.layout.shape == shape == access.storage.layout.shape and access.offset == 0 and access.layout.is_dense
