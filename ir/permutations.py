"""Orders of nodes as permutations."""

from __future__ import annotations

import numpy as np

from .tables import IntArray

__all__ = ["inverse_permutation"]


def inverse_permutation(order: IntArray) -> IntArray:
    """By element of 0, ..., n - 1 its place in ``order``, which names each of them once."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
