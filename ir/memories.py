"""The memories of a target, as data: what they are called, how large they are, whose they are, and how sizes round.

One memory is *global*: tensors live there, whole, for all ranks. The others are each rank's own: scratch.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from .layout import Shape
from .tables import IntArray

__all__ = ["HBM", "MOST_PARTITIONS", "TCM", "Memory", "held_bytes"]

#: The names that the founding accelerator gives its two memories.
HBM, TCM = "hbm", "tcm"

#: A tile of one row takes as much as one of so many rows: what columns of int64 hold for tiles of any size.
MOST_PARTITIONS = 1 << 14

_Size = TypeVar("_Size", int, IntArray)


def held_bytes(nbytes: _Size, align: _Size, rows: _Size, partitions: _Size) -> _Size:
    """What a tile takes of a memory: rounded up to the alignment. Also of columns of each.

    Where the memory has ``partitions`` (1: it has none), the tile's ``rows`` (1 and more: the size of axis 0) lie in so
    many of them, one after the other, and what is taken of one is taken of all: a tile of one row takes as much as one
    of so many rows.
    """
    across = -(-rows // partitions) * partitions
    held: _Size = -(-(nbytes // rows * across) // align) * align
    return held


@attrs.frozen
class Memory:
    """A memory: ``bytes`` is the capacity that one rank has of it, ``align`` what sizes are rounded up to.
    ``partitions``: axis 0 of a tile lies across so many (0: there are none, ``MOST_PARTITIONS`` at the most), each with
    its part of the bytes.

    A global memory is shared by all ranks and takes whatever tensors there are: its capacity is 0, which stands for no
    limit, and nothing is allocated there.
    """

    name: str
    bytes: int = 0
    align: int = 1
    is_global: bool = False
    partitions: int = 0

    def held_bytes(self, nbytes: int, shape: Shape) -> int:
        """What an allocation of ``nbytes`` for a tile of a shape takes of the capacity."""
        return held_bytes(nbytes, self.align, max(shape[0], 1) if shape else 1, self.partitions or 1)
