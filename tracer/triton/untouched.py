"""Tensors of sizes that no laptop holds: memory that is there once something is written to it."""

from __future__ import annotations

import math
import mmap
import sys
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.errors import ShapeError, shown
from .values.types import Type

__all__ = ["empty"]

#: MAP_NORESERVE: pages are not counted against the machine's memory before they are written. Python has names for few
#: of Linux's flags.
_NOT_COUNTED = getattr(mmap, "MAP_NORESERVE", 0x4000)


def empty(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of zeros whose pages take no memory until something is written to them: kernels may read it all, and
    write here and there.

    ``dtype`` is numpy's, kernscope's (``"bf16"``) or Triton's. Raises ``ShapeError`` for a shape that is none, or that
    no address space holds.
    """
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in sizes):
        raise ShapeError(f"shape={shown(shape)}", help="it is a number of elements, or a tuple of them")
    numpy = dtype.numpy if isinstance(dtype, Type) else dtypes.of(dtype).numpy
    count = math.prod(map(int, sizes))
    try:
        if not count or sys.platform != "linux":
            return np.zeros(tuple(sizes), numpy)
        memory = mmap.mmap(-1, count * numpy.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NOT_COUNTED)
    except (OSError, OverflowError, ValueError, MemoryError) as error:
        raise ShapeError(
            f"{count * numpy.itemsize:,} B are more than the system has addresses for: {error}",
            help="take a smaller shape, or a smaller dtype",
        ) from error
    return np.frombuffer(memory, numpy, count).reshape(tuple(sizes))
