"""What a kernel is launched with, whoever the host is: memory with a place in it, and descriptors of tiles of it."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

__all__ = ["DescriptorArgument", "TensorArgument"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class TensorArgument:
    """A tensor of the host. ``memory (elements,)`` are all elements of the allocation that it lies in, as its dtype;
    the kernel writes there. It begins at element ``offset`` and has ``shape`` and ``strides``, in elements.

    ``address`` is where the allocation begins: tensors of one address share their memory, also with different dtypes.
    ``is_const``: the kernel promises to write nothing through it.
    """

    memory: Array
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    is_const: bool = False


@attrs.frozen(eq=False)
class DescriptorArgument:
    """A descriptor that the host made: blocks of ``block_shape`` of a tensor of ``shape`` and ``strides`` (elements)
    that begins where ``base`` does. ``padding`` is what is read outside: ``"zero"`` or ``"nan"``."""

    base: TensorArgument
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str = "zero"
