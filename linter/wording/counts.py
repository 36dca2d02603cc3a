"""How often a fault occurs, and on how many ranks."""

from __future__ import annotations

__all__ = ["on_ranks", "times"]


def times(count: int) -> str:
    """``, 3 times``: how often a fault occurs, where it is more than once."""
    return "" if count <= 1 else f", {count:,} times"


def on_ranks(ranks: list[int], of: int) -> str:
    """`` on 2 of 4 ranks, the first is 1``: which of ``of`` ranks; nothing where there is one."""
    if of == 1:
        return ""
    if len(ranks) == of:
        return f" on all {of} ranks"
    return f" on rank {ranks[0]}" if len(ranks) == 1 else f" on {len(ranks)} of {of} ranks, the first is {ranks[0]}"
