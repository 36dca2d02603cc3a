"""Counts, for a sentence."""

from __future__ import annotations

__all__ = ["plural"]


def plural(count: int, noun: str, nouns: str = "") -> str:
    """``1 node``, ``1,024 nodes``; ``nouns`` where they do not end in s alone."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
