"""Indices: which elements an access names that no box can express."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property
from typing import Any

import numpy as np

from .layout import Shape

__all__ = ["LEFT_OUT", "Index"]

#: The offset of what an index leaves out: such an element of the tile is neither read nor written.
LEFT_OUT = -1

_Offsets = np.ndarray[Any, np.dtype[np.int64]]


class Index:
    """Which elements of memory the elements of a tile are, as offsets (in elements) into the range that the access
    covers: from the first that is accessed to the last.

    ``shape`` is the tile's. ``offsets`` (int64) has its dimensions, with size 1 in those along which memory is walked
    in equal steps, ``steps[d]``; along the others a step is 0. ``LEFT_OUT`` stands for rows (or elements) that are not
    accessed. At least one is; the lowest element that is has offset 0. Immutable; equal by value.
    """

    __slots__ = ("__dict__", "_key", "offsets", "shape", "steps")

    def __init__(self, shape: Shape, offsets: _Offsets, steps: Shape) -> None:
        self.shape, self.steps = shape, steps
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.offsets.flags.writeable = False
        digest = hashlib.blake2b(self.offsets.tobytes(), digest_size=16).hexdigest()
        self._key = (shape, self.offsets.shape, steps, digest)

    @staticmethod
    def of(elements: _Offsets, steps: Shape | None = None, shape: Shape | None = None) -> tuple[int, Index]:
        """The index of elements of a storage (``LEFT_OUT`` where there is none), and the first that it accesses: where
        its range begins. ``elements`` and ``steps`` as ``offsets`` and ``steps`` of :class:`Index`."""
        shape = elements.shape if shape is None else shape
        steps = (0,) * elements.ndim if steps is None else steps
        first = int(elements[elements >= 0].min())
        return first, Index(shape, np.where(elements >= 0, elements - first, LEFT_OUT), steps)

    @property
    def is_rows(self) -> bool:
        """Whether one dimension alone is indexed: whole rows (or columns) are accessed."""
        return len(self.shape) > 1 and sum(n > 1 for n in self.offsets.shape) <= 1

    @cached_property
    def count(self) -> int:
        """How many elements of the tile are accessed."""
        walked = math.prod(n for n, own in zip(self.shape, self.offsets.shape, strict=True) if own < n)
        return int(np.count_nonzero(self.offsets >= 0)) * walked

    @cached_property
    def span(self) -> int:
        """How many elements lie between the first that is accessed and the last, inclusive."""
        walked = sum((n - 1) * step for n, step in zip(self.shape, self.steps, strict=True))
        return int(self.offsets.max(initial=0)) + walked + 1

    def elements(self) -> _Offsets:
        """The offset of each element of the tile, ``LEFT_OUT`` where there is none."""
        found = self.offsets
        for axis, (size, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            if step and size > 1:
                along = [1] * len(self.shape)
                along[axis] = size
                found = found + (np.arange(size, dtype=np.int64) * step).reshape(along)
        found = np.where(np.broadcast_to(self.offsets >= 0, found.shape), found, LEFT_OUT)
        return np.broadcast_to(found, self.shape)

    def accessed(self) -> _Offsets:
        """The offsets that are accessed, ascending, each once."""
        elements = self.elements()
        return np.unique(elements[elements >= 0])

    @property
    def is_sound(self) -> bool:
        """Whether it is what its docstring says: to be asked of one that was read from a file."""
        dimensions = len(self.shape) == len(self.steps) == self.offsets.ndim
        if not dimensions or min((*self.shape, 1)) < 1 or min((*self.steps, 0)) < 0:
            return False
        sizes = zip(self.shape, self.offsets.shape, self.steps, strict=True)
        if not all(own == n or (own == 1 and (step > 0)) for n, own, step in sizes):
            return False
        if any(step and own > 1 for own, step in zip(self.offsets.shape, self.steps, strict=True)):
            return False
        used = self.offsets[self.offsets >= 0]
        return bool(self.offsets.size and self.offsets.min() >= LEFT_OUT and used.size and used.min() == 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        unit = "rows" if self.is_rows else "elements"
        return f"<{np.count_nonzero(self.offsets >= 0)} {unit}, {self._key[3][:8]}>"
