"""Columns of numbers inside a page: deltas, compressed, as text. The page's script unpacks them into typed arrays."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from ...ir.tables import IntArray

__all__ = ["pack"]

#: Types of a page's script, with the largest magnitude each holds.
_WIDTHS = {"i1": 127, "i2": 32_767, "i4": 2_147_483_647, "f8": 1 << 53}


def pack(column: IntArray, *, delta: bool = False) -> dict[str, Any]:
    """A column of integers below 2^53 as ``{"type", "size", "delta", "data"}``: little-endian numbers of the narrowest
    type, compressed (RFC 1950), in base64. With ``delta`` each number is the difference to the one before."""
    values = np.asarray(column, dtype=np.int64)
    stored = np.diff(values, prepend=0) if delta else values
    largest = int(np.abs(stored).max(initial=0))
    name = next(name for name, limit in _WIDTHS.items() if largest <= limit)
    raw = stored.astype(f"<{name}").tobytes()
    return {
        "type": name,
        "size": len(values),
        "delta": delta,
        "data": base64.b64encode(zlib.compress(raw, 9)).decode("ascii"),
    }
