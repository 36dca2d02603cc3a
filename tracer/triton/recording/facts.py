"""Facts that a launch finds out while it runs, and that rules speak of. Columns, not judgements."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..values.accesses import Access

__all__ = ["AccessFact", "Fact", "FactKind"]

Array = np.ndarray[Any, np.dtype[Any]]


class FactKind:
    """What a fact is of."""

    OUTSIDE = "outside"
    """An access leaves its storage. ``what``: the storage; ``elements``: by program the first element outside."""
    WRAPPED = "wrapped"
    """An int32 wrapped around on its way to an address. ``what``: the storage; ``elements``: the operation's stack row
    in each entry."""
    UNDEFINED = "undefined"
    """What a masked load without ``other=`` left undefined is used. ``what``: by whom."""
    NOT_POWER_OF_TWO = "not a power of two"
    """A size that Triton's compiler refuses. ``elements``: the size in each entry."""
    HINT = "hint"
    """A hint that the data contradicts. ``what``: the hint; ``elements``: by program the value that does."""
    ASSERTION = "assertion"
    """A ``device_assert`` that does not hold. ``what``: its message."""


@attrs.frozen(eq=False)
class Fact:
    """``kind`` is one of :class:`FactKind`, ``stack`` a row of the launch's sites (``Launch.location``), ``what`` a
    name; ``programs`` the numbers of the programs concerned, ascending, ``elements`` a number for each of them."""

    kind: str
    stack: int
    what: str
    programs: Array
    elements: Array


@attrs.frozen(eq=False)
class AccessFact:
    """An access of a chunk: ``mode`` is ``"read"``, ``"write"`` or ``"atomic"``; ``access`` has its columns by lane
    (``access.counts()``, ``extent()``, ``elements()``); ``stack`` is where."""

    mode: str
    access: Access
    stack: int
