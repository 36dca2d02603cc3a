"""Accesses as views of the memory: lanes that keep the same box of their tile are moved at once, without an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from .accesses import Access
from .value import Array

__all__ = ["LaneBox", "boxes_of", "writable_boxes_of"]

#: Different boxes of one access that are looked at apart; a mask that clips has one, and another at each edge.
_MOST_BOXES = 8


@attrs.frozen(eq=False)
class LaneBox:
    """Some ``lanes`` whose masks leave the box ``tile`` of their tiles: it begins at ``base (lanes or 1,)`` in
    ``memory``, and has ``sizes`` and ``strides`` there."""

    lanes: slice | Array
    tile: tuple[slice, ...]
    memory: Array
    base: Array
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def step(self) -> int | None:
        """The elements from one lane's box to the next one's, where that is one number."""
        jumps = np.diff(self.base)
        if not len(jumps):
            return 0
        return int(jumps[0]) if (jumps == jumps[0]).all() else None

    def read(self) -> Array:
        """What lies there, ``(lanes or 1, *sizes)``."""
        if self.step is not None:
            return self._in_steps(self.step)
        view, begins = self._anywhere()
        return view[begins]

    def place(self) -> tuple[Array, Any]:
        """A view of the memory, and what picks the lanes' boxes from it to be written: in the order of lanes where they
        meet."""
        step = self.step
        if step is not None and _are_apart([(step, len(self.base)), *zip(self.strides, self.sizes, strict=True)]):
            return self._in_steps(step), ...
        return self._anywhere()

    def of(self, tiles: Array) -> Array:
        """The elements of tiles ``(lanes or 1, *shape)`` that come to stand in the box."""
        if len(tiles) > 1:
            tiles = tiles[self.lanes]
            tiles = tiles[-1:] if len(self.base) == 1 else tiles
        # A size of 1 stands for the whole axis: it does not vary there.
        cut = (part if size > 1 else slice(None) for part, size in zip(self.tile, tiles.shape[1:], strict=True))
        found: Array = tiles[(slice(None), *cut)]
        return found

    def _in_steps(self, step: int) -> Array:
        return self._view(len(self.base), int(self.base[0]), step)

    def _anywhere(self) -> tuple[Array, Array]:
        """The box at every place where it fits, and the lanes' places among them."""
        reaches = [s * (n - 1) for s, n in zip(self.strides, self.sizes, strict=True)]
        before, after = -sum(min(0, r) for r in reaches), sum(max(0, r) for r in reaches)
        return self._view(len(self.memory) - before - after, before, 1), self.base - before

    def _view(self, count: int, first: int, step: int) -> Array:
        size = self.memory.itemsize
        # Through bytes: numpy's own way to such views does not know the floats of `ml_dtypes`.
        octets, steps = self.memory.view(np.uint8), (step * size, *(s * size for s in self.strides))
        return np.ndarray((count, *self.sizes), self.memory.dtype, octets, first * size, steps)


def boxes_of(access: Access) -> list[LaneBox] | None:
    """The boxes of an access that stays inside its storage; None where it is none, or too many. Lanes that access
    nothing are in no box."""
    if not access.is_box:
        return None
    rows = np.concatenate([access.low, np.maximum(access.high, access.low)], 1)
    if len(rows) == 1 and len(access.alive) == 1:
        kinds, which = rows * access.alive[:, None], np.zeros(access.lanes, np.int64)
    else:
        kinds, which = _distinct(np.broadcast_to(rows, (access.lanes, rows.shape[1])) * _alive(access)[:, None])
    if len(kinds) > _MOST_BOXES:
        return None
    found = []
    rank = len(access.shape)
    for number, row in enumerate(kinds):
        low, high = row[:rank], row[rank:]
        if (rank and (high <= low).any()) or (not rank and not access.alive.any()):
            continue
        members: slice | Array = slice(None)
        if len(kinds) > 1 or not rank:
            members = _as_slice(np.flatnonzero(which == number if rank else _alive(access)))
        found.append(_box(access, members, low, high))
    return found


def _alive(access: Access) -> Array:
    return np.broadcast_to(access.alive, (access.lanes,))


def _distinct(rows: Array) -> tuple[Array, Array]:
    """The different rows, and which of them each one is."""
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(1)) + 1
    if len(changes) <= 4 * _MOST_BOXES:  # as a rule one or two of the last lanes differ
        firsts = np.append(0, changes)
        kinds, place = np.unique(rows[firsts], axis=0, return_inverse=True)
        return kinds, np.repeat(place.reshape(-1), np.diff(np.append(firsts, len(rows))))
    kinds, place = np.unique(rows, axis=0, return_inverse=True)
    return kinds, place.reshape(-1)


def _as_slice(lanes: Array) -> slice | Array:
    first, last = int(lanes[0]), int(lanes[-1])
    return slice(first, last + 1) if last - first + 1 == len(lanes) else lanes


def _box(access: Access, lanes: slice | Array, low: Array, high: Array) -> LaneBox:
    """The box of lanes whose masks leave the same one."""
    strides = tuple(int(s or 0) for s in access.strides)
    base = access.base if len(access.base) == 1 else access.base[lanes]
    sizes = tuple(int(stop - start) for start, stop in zip(low, high, strict=True))
    tile = tuple(slice(int(start), int(stop)) for start, stop in zip(low, high, strict=True))
    origin = sum(int(start) * stride for start, stride in zip(low, strides, strict=True))
    return LaneBox(lanes, tile, access.storage.memory, base + origin, sizes, strides)


def writable_boxes_of(access: Access) -> list[LaneBox] | None:
    """As :func:`boxes_of`, in an order in which they can be written one after the other so that, where lanes meet, the
    later one's number stays; None where that cannot be told."""
    boxes = boxes_of(access)
    if boxes is None or not all(_are_apart(list(zip(box.strides, box.sizes, strict=True))) for box in boxes):
        return None
    if len(boxes) < 2:
        return boxes
    runs = [box.lanes for box in boxes if isinstance(box.lanes, slice)]
    if len(runs) < len(boxes):
        return boxes if access.is_disjoint() else None
    order = sorted(range(len(boxes)), key=lambda number: int(runs[number].start))
    return [boxes[number] for number in order]


def _are_apart(dims: Sequence[tuple[int, int]]) -> bool:
    """Whether steps, so often each, meet no element twice."""
    reach = 0
    for stride, count in sorted((abs(stride), count) for stride, count in dims if count > 1):
        if stride <= reach:
            return False
        reach += stride * (count - 1)
    return True
