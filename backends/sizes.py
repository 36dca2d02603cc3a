"""How pictures and pages write sizes in bytes."""

from __future__ import annotations

__all__ = ["byte_ticks", "short_size", "size_text"]


def size_text(nbytes: int) -> str:
    """Bytes, exactly, and in a larger unit where that reads better: ``98,304 B (96 KiB)``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes:,} B ({nbytes / size:.4g} {unit})"
    return f"{nbytes:,} B"


def short_size(nbytes: int) -> str:
    """Bytes in the unit that reads best, rounded to four digits: ``96 KiB``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.4g} {unit}"
    return f"{nbytes} B"


def byte_ticks(top: int) -> list[int]:
    """Up to about six round sizes from 0 to ``top``."""
    step = 1
    while top // step > 5:
        step *= 2
    return list(range(0, top + 1, step))
