"""Exact times, and the ticks of a time axis."""

from __future__ import annotations

__all__ = ["exact_time", "ticks"]

_UNITS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3), ("ps", 1))


def exact_time(ps: int) -> str:
    """A time with nothing rounded away, in the largest unit up to us that needs no more than three decimals:
    ``1,040 ns``, ``2.08 us``, ``0.5 ns``."""
    for unit, size in _UNITS[2:4]:
        if abs(ps) >= size and ps * 1000 % size == 0:
            return f"{_decimal(ps, size)} {unit}"
    return f"{_decimal(ps, 1000)} ns"


def ticks(span_ps: int, most: int) -> list[tuple[int, str]]:
    """Up to about ``most`` round instants from 0 to ``span_ps``, each with its label; all labels in one unit."""
    step = 1
    while span_ps // step > most:
        for factor in (2, 5, 10):
            if span_ps // (step * factor) <= most:
                step *= factor
                break
        else:
            step *= 10
    unit, size = next(((u, s) for u, s in _UNITS[:-1] if span_ps >= s), _UNITS[-2])
    return [(at, f"{_decimal(at, size)} {unit}" if at else "0") for at in range(0, span_ps + 1, step)]


def _decimal(ps: int, size: int) -> str:
    """``ps / size`` exactly; ``size`` is a power of ten."""
    whole, rest = divmod(abs(ps), size)
    digits = str(rest).zfill(len(str(size)) - 1).rstrip("0") if size > 1 else ""
    return f"{'-' if ps < 0 else ''}{whole:,}" + (f".{digits}" if digits else "")
