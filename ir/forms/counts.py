"""Counts, for a sentence."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str) -> str:
    """``1 node``, ``1,024 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
