"""Elements that masked loads left undefined, followed through what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np

__all__ = ["Undefined"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Undefined:
    """The elements, ``(lanes or 1, *shape)``, and the stack rows of the loads that left them so."""

    mask: Array
    loads: tuple[int, ...]

    def changed(self, change: Callable[[Array], Array]) -> Undefined:
        """With another mask."""
        return attrs.evolve(self, mask=change(self.mask))

    @classmethod
    def of(cls, parts: Iterable[Undefined | None]) -> Undefined | None:
        """What is undefined where any of some is, whose masks broadcast; None where nothing is."""
        found = [part for part in parts if part is not None and part.mask.any()]
        if not found:
            return None
        mask = found[0].mask
        for part in found[1:]:
            mask = np.asarray(mask | part.mask)
        return cls(mask, tuple(dict.fromkeys(load for part in found for load in part.loads)))
