"""What a launch is given besides arrays and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

__all__ = ["DescriptorArgument", "TensorArgument"]


@attrs.frozen(eq=False)
class TensorArgument:
    """An array under a name: the tensor's in the graph, its parameter's where it has none."""

    array: np.ndarray[Any, Any]
    name: str = ""


@attrs.frozen(eq=False)
class DescriptorArgument:
    """A tensor descriptor that the host made: ``shape`` and ``strides`` in elements, and the block that each load and
    store moves. ``padding`` is what lies outside: ``"zero"`` or ``"nan"``."""

    base: np.ndarray[Any, Any] | TensorArgument
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
