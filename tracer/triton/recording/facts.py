"""Facts that a launch finds out while it runs, and that rules speak of. Columns, not judgements."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ..values.accesses import Access

__all__ = ["AccessFact", "Fact"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class Fact:
    """``kind`` is one of :class:`~kernscope.ir.launch_facts.FactKind`, ``stack`` a row of the launch's sites
    (``Launch.location``), ``what`` a name; ``programs`` the numbers of the programs concerned, ascending, ``elements``
    a number for each of them (of a wrapped int32 the row of the operation that made it, of undefined elements that of
    the load)."""

    kind: str
    stack: int
    what: str
    programs: Array
    elements: Array


@attrs.frozen(eq=False)
class AccessFact:
    """An access of a chunk: ``mode`` is ``"read"``, ``"write"`` or ``"atomic"``; ``access`` has its columns by lane
    (``access.counts()``, ``extent()``, ``elements()``); ``stack`` is where,
    ``how`` which atomic it is; ``may_be_ordered``: its program
    has learnt before what an atomic found, such as a lock."""

    mode: str
    access: Access
    stack: int
    how: str = ""
    may_be_ordered: bool = False
