"""Elements that masked loads left undefined, followed through what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

__all__ = ["Array", "Undefined"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Undefined:
    """By stack row of the load that left them so: the elements, ``(lanes or 1, *shape)``. Some are for each."""

    by_load: Mapping[int, Array]

    def changed(self, change: Callable[[Array], Array]) -> Undefined:
        """With other masks."""
        return Undefined({load: change(mask) for load, mask in self.by_load.items()})

    @classmethod
    def of(cls, parts: Iterable[Undefined | None]) -> Undefined | None:
        """What is undefined where any of some is, whose masks broadcast; None where nothing is."""
        found: dict[int, Array] = {}
        for part in parts:
            for load, mask in () if part is None else part.by_load.items():
                if mask.any():
                    found[load] = np.asarray(found[load] | mask) if load in found else mask
        return cls(found) if found else None
