"""Counts, for a sentence."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str, many: str = "") -> str:
    """``1 node``, ``1,024 nodes``; ``many`` is a plural that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
