"""What an access covers, for every lane at once: a base a lane, an axis a dimension, and a mask that clips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .storage import Storage
from .value import Array, Value, support, under_rank

__all__ = ["Access"]

_FAR = 1 << 62


class Access:
    """An access of ``lanes`` lanes to a storage, as columns:

    * ``base (lanes or 1,)``: the element at the origin of the tile;
    * ``axes[d] (lanes or 1, n)``: offsets along a dimension, from 0 on (None: all 0); ``strides[d]`` where they are
      equal steps in all lanes, else None;
    * ``rest (lanes or 1, *shape)``: what of the address is not separable, else None;
    * ``low, high (lanes or 1, D)``: the box that the mask leaves, ``alive (lanes or 1,)`` whether it leaves anything by
      what does not depend on the tile; ``axis_masks[d] (lanes or 1, n)``; ``bits (lanes or 1, *shape)`` where the mask
      is no box, else None.
    """

    def __init__(self, pointer: Value, mask: Value | None, shape: tuple[int, ...], lanes: int) -> None:
        assert pointer.storage is not None
        self.storage: Storage = pointer.storage
        self.shape, self.lanes = shape, lanes
        rank = len(shape)
        self.base, self.axes, self.rest = _separated(pointer.parts, rank, shape)
        self.strides = [0 if axis is None else _step(axis) for axis in self.axes]
        self.low = np.zeros((1, rank), np.int64)
        self.high = np.array(shape, np.int64).reshape(1, rank)
        self.alive: Array = np.ones(1, np.bool_)
        self.axis_masks: list[Array | None] = [None] * rank
        self.bits: Array | None = None
        self._elements: tuple[Array, Array | None] | None = None
        if mask is not None:
            self._clip(mask, rank)

    def _clip(self, mask: Value, rank: int) -> None:
        parts = mask.parts if mask.how == "and" else [mask.array]
        self.alive, self.axis_masks, self.bits = _separated_mask(parts, rank)
        low, high, holes = [], [], False
        for n, m in zip(self.shape, self.axis_masks, strict=True):
            if m is None:
                low.append(np.zeros(1, np.int64))
                high.append(np.full(1, n))
                continue
            if m.shape[1] == 1 < n:
                m = np.broadcast_to(m, (len(m), n))
            count, first = m.sum(1), m.argmax(1)
            stop = np.where(count > 0, n - m[:, ::-1].argmax(1), first)
            low.append(first)
            high.append(stop)
            holes = holes or bool((stop - first != count).any())
        if rank:
            self.low = np.stack(np.broadcast_arrays(*low), 1).astype(np.int64)
            self.high = np.stack(np.broadcast_arrays(*high), 1).astype(np.int64)
        if holes or self.bits is not None:
            whole = under_rank(mask.array, rank)
            self.bits = np.broadcast_to(whole, (len(whole), *self.shape))

    # --- by lane ------------------------------------------------------------------------------------------------------

    @property
    def is_box(self) -> bool:
        """Whether it is a box in every lane: equal steps along each dimension, and a mask that leaves an interval of
        each."""
        return self.rest is None and self.bits is None and None not in self.strides

    def counts(self) -> Array:
        """The elements accessed, ``(lanes,)``."""
        if self.bits is not None:
            found = self.bits.reshape(len(self.bits), -1).sum(1)
        else:
            found = np.maximum(self.high - self.low, 0).prod(1)
        return np.broadcast_to(found * self.alive, (self.lanes,))

    def extent(self) -> tuple[Array, Array]:
        """The lowest and the highest element accessed, ``(lanes,)`` each; 0 and -1 where nothing is."""
        if self.rest is None and self.bits is None:
            low = high = self.base
            for d, axis in enumerate(self.axes):
                if axis is None:
                    continue
                step, mask = self.strides[d], self.axis_masks[d]
                if step is not None:
                    ends = (self.low[:, d] * step, (self.high[:, d] - 1) * step)
                    low, high = low + np.minimum(*ends), high + np.maximum(*ends)
                else:
                    low = low + (axis if mask is None else np.where(mask, axis, _FAR)).min(1)
                    high = high + (axis if mask is None else np.where(mask, axis, -_FAR)).max(1)
        else:
            index, mask = self.elements()
            flat = index.reshape(len(index), -1)
            inside = np.ones((1, 1), np.bool_) if mask is None else mask.reshape(len(mask), -1)
            low, high = np.where(inside, flat, _FAR).min(1), np.where(inside, flat, -_FAR).max(1)
        some = self.counts() > 0
        return np.where(some, low, 0), np.where(some, high, -1)

    def elements(self) -> tuple[Array, Array | None]:
        """The element of each element of the tile, ``(lanes or 1, *shape)``, and the mask (None: all)."""
        if self._elements is None:
            rank = len(self.shape)
            index = self.base.reshape((-1,) + (1,) * rank)
            for d, axis in enumerate(self.axes):
                if axis is not None:
                    index = index + _along(axis, d, rank)
            if self.rest is not None:
                index = index + self.rest
            index = np.broadcast_to(index, (len(index), *self.shape))
            self._elements = index, self.inside()
        return self._elements

    def inside(self) -> Array | None:
        """The mask, ``(lanes or 1, *shape)`` (None: all)."""
        rank = len(self.shape)
        mask: Array | None = self.bits
        if mask is None:
            for d, m in enumerate(self.axis_masks):
                if m is not None:
                    mask = _along(m, d, rank) if mask is None else mask & _along(m, d, rank)
        if not self.alive.all():
            living = self.alive.reshape((-1,) + (1,) * rank)
            mask = living if mask is None else mask & living
        return None if mask is None else np.broadcast_to(mask, (len(mask), *self.shape))

    def take(self, rows: Sequence[int] | Array) -> Access:
        """The same access of some of the lanes."""

        def cut(column: Any) -> Any:
            return column if column is None or len(column) == 1 else column[rows]

        made: Access = object.__new__(Access)
        made.storage, made.shape, made.lanes = self.storage, self.shape, len(rows)
        made.strides = list(self.strides)
        made.base, made.rest, made.bits, made.alive = map(cut, (self.base, self.rest, self.bits, self.alive))
        made.low, made.high = cut(self.low), cut(self.high)
        made.axes, made.axis_masks = [cut(a) for a in self.axes], [cut(m) for m in self.axis_masks]
        made._elements = None
        return made

    def of_lane(self, lane: int) -> Access:
        """The access of one lane; what is no box in all of them may be one in it."""
        made = self.take([lane])
        made.strides = [0 if axis is None else _step(axis) for axis in made.axes]
        return made

    def forget(self) -> None:
        """Keep the columns, not the elements."""
        self._elements = None

    # --- as steps --------------------------------------------------------------------------------------------------

    def lane_step(self) -> int | None:
        """The elements from one lane's base to the next one's, where that is one number."""
        if len(self.base) == 1:
            return 0
        steps = np.diff(self.base)
        return int(steps[0]) if (steps == steps[0]).all() else None

    def is_disjoint(self) -> bool:
        """Whether, of a strided access, no element of memory is met twice, in one lane or in several."""
        step = self.lane_step()
        dims = [(abs(s or 0), n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1]
        if self.lanes > 1:
            dims.append((abs(step or 0), self.lanes))
        reach = 0
        for stride, n in sorted(dims):
            if stride <= reach:
                return False
            reach += stride * (n - 1)
        return True


def _along(line: Array, d: int, rank: int) -> Array:
    return line.reshape(line.shape[:1] + (1,) * d + line.shape[1:] + (1,) * (rank - d - 1))


def _step(axis: Array) -> int | None:
    if axis.shape[1] == 1:
        return 0
    step = int(axis[0, 1])
    return step if (axis == step * np.arange(axis.shape[1])).all() else None


def _separated(
    parts: Sequence[Array], rank: int, shape: tuple[int, ...]
) -> tuple[Array, list[Array | None], Array | None]:
    base, axes, rest = np.zeros(1, np.int64), [None] * rank, None
    lines: list[Any] = axes
    for given in parts:
        part = under_rank(given, rank).astype(np.int64, copy=False)
        on = support(part)
        pieces = [part]
        if len(on) > 1:
            origin = part[(slice(None), *[slice(0, 1)] * rank)]
            only = [part[tuple(slice(None) if k in (0, d) else slice(0, 1) for k in range(rank + 1))] for d in on]
            if not (part == origin + sum(line - origin for line in only)).all():
                rest = part if rest is None else rest + part
                continue
            pieces = [origin, *(line - origin for line in only)]
        for piece in pieces:
            where = support(piece)
            if not where:
                base = base + piece.reshape(len(piece))
                continue
            line = piece.reshape(len(piece), -1)
            base = base + line[:, 0]
            line = line - line[:, :1]
            d = where[0] - 1
            lines[d] = line if lines[d] is None else lines[d] + line
    if rest is not None:
        rest = np.broadcast_to(rest, (len(rest), *shape))
    return base, lines, rest


def _separated_mask(parts: Sequence[Array], rank: int) -> tuple[Array, list[Array | None], Array | None]:
    alive: Array = np.ones(1, np.bool_)
    axes: list[Array | None] = [None] * rank
    bits: Array | None = None
    for given in parts:
        part = under_rank(given, rank).astype(np.bool_, copy=False)
        on = support(part)
        if not on:
            alive = alive & part.reshape(len(part))
            continue
        lines: list[Array] = [part]
        if len(on) > 1:
            lines = [np.asarray(part.any(tuple(k for k in range(1, rank + 1) if k != d), keepdims=True)) for d in on]
            if not (part == math.prod(lines[1:], start=lines[0])).all():
                bits = part if bits is None else bits & part
                continue
        for d, line in zip(on, lines, strict=True):
            m = line.reshape(len(line), -1)
            known = axes[d - 1]
            axes[d - 1] = m if known is None else known & m
    return alive, axes, bits
