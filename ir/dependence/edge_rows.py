"""Edges on their way to a table: rows of columns, gathered from everything that orders nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tables import IntArray, Reason

__all__ = ["EdgeRows", "edge_rows"]

#: Columns (source, target, reason, recycled), once for each rule that found edges.
EdgeRows = list[tuple[IntArray, IntArray, IntArray, IntArray]]


def edge_rows(source: IntArray, target: IntArray, reason: Reason, recycled: bool = False) -> tuple[Any, Any, Any, Any]:
    """The columns of edges of one reason; a node does not wait for itself."""
    keep = source != target
    source, target = source[keep], target[keep]
    return source, target, np.full(len(source), reason), np.full(len(source), recycled)
