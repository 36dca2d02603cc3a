"""Which loop is to blame for an overflow."""

from __future__ import annotations

from ...memory.growth import Growth

__all__ = ["growth_to_blame"]


def growth_to_blame(growths: tuple[Growth, ...]) -> Growth | None:
    """The loop in which the overflow happens, else the one that takes the most."""
    total = {growth.allocation: growth.bytes_per_iteration * growth.iterations for growth in growths}
    ordered = sorted(
        growths, key=lambda growth: (growth.overflow_iteration is None, -total[growth.allocation], growth.allocation)
    )
    return ordered[0] if ordered else None
