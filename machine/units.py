"""Picoseconds for a reader."""

from __future__ import annotations

__all__ = ["format_ps"]

_UNITS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3))


def format_ps(ps: int) -> str:
    """A time in its largest fitting unit, with up to three decimals: ``612 ns``, ``1.224 us``, ``7 ps``."""
    for unit, size in _UNITS:
        if abs(ps) >= size:
            return f"{ps / size:.3f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{ps} ps"
