"""Distinct values and distinct rows of columns, found by sorting.

From numpy 2.3 on ``np.unique`` finds distinct integers by hashing: some 350 ns each for a million of them where sorting
takes 8, as most columns here are nearly sorted. Rows (``axis=0``) it compares as strings of bytes, one pair at a time.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..tables import IntArray

__all__ = ["DistinctRows", "distinct", "distinct_rows"]


def distinct(values: IntArray) -> IntArray:
    """The distinct values, ascending; as ``np.unique(values)``."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    found: IntArray = ordered[first]
    return found


@attrs.frozen(eq=False)
class DistinctRows:
    """The distinct rows of some columns, in lexicographic order: ``first`` is by distinct row where it is met first,
    ``which`` by given row the number of its distinct row."""

    first: IntArray
    which: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def members(self) -> list[IntArray]:
        """By distinct row the given rows that are equal to it, ascending."""
        by_row = np.argsort(self.which, kind="stable")
        return np.split(by_row, np.cumsum(np.bincount(self.which, minlength=len(self)))[:-1]) if len(self) else []

    def in_order_met(self) -> list[IntArray]:
        """The same, the distinct row that is met first before the others."""
        members = self.members()
        return [members[number] for number in np.argsort(self.first, kind="stable").tolist()]


def distinct_rows(*columns: IntArray) -> DistinctRows:
    """The distinct rows of columns of one length; as ``np.unique`` of them side by side, with ``axis=0``."""
    order = np.lexsort(columns[::-1])  # stable: of equal rows the first comes first
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return DistinctRows(first=order[new], which=which)
