"""Counting within groups that lie one after the other."""

from __future__ import annotations

import numpy as np

from ..tables import IntArray

__all__ = ["ramp"]


def ramp(counts: IntArray) -> IntArray:
    """0, 1, .. count - 1 for each count in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    steps: IntArray = np.arange(total) - np.repeat(ends - counts, counts)
    return steps
