"""The memories of a target, as data: what they are called, how large they are, whose they are, and how sizes round.

One memory is *global*: tensors live there, whole, for all ranks. The others are each rank's own: scratch.
"""

from __future__ import annotations

from typing import TypeVar

import attrs

from .tables import IntArray

__all__ = ["HBM", "TCM", "Memory", "held_bytes"]

#: The names that the founding accelerator gives its two memories.
HBM, TCM = "hbm", "tcm"

_Size = TypeVar("_Size", int, IntArray)


def held_bytes(nbytes: _Size, align: _Size) -> _Size:
    """What a size takes of a memory: rounded up to the alignment. Also of columns of sizes and alignments."""
    return -(-nbytes // align) * align


@attrs.frozen
class Memory:
    """A memory: ``bytes`` is the capacity that one rank has of it, ``align`` what sizes are rounded up to.

    A global memory is shared by all ranks and takes whatever tensors there are: its capacity is 0, which stands for no
    limit, and nothing is allocated there.
    """

    name: str
    bytes: int = 0
    align: int = 1
    is_global: bool = False

    def held_bytes(self, nbytes: int) -> int:
        """What an allocation of ``nbytes`` takes of the capacity."""
        return held_bytes(nbytes, self.align)
