"""Orders as permutations, and where the groups of a sorted column start."""

from __future__ import annotations

import numpy as np

from ..tables import IntArray

__all__ = ["group_starts", "inverse_permutation"]


def inverse_permutation(order: IntArray) -> IntArray:
    """By element of 0, ..., n - 1 its place in ``order``, which names each of them once."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def group_starts(group: IntArray, groups: int) -> IntArray:
    """``(groups + 1,)``, of an ascending column of numbers below ``groups``: the rows of group g are ``starts[g]`` up
    to ``starts[g + 1]``."""
    return np.searchsorted(group, np.arange(groups + 1))
