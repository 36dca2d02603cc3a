"""Ranks in words, and what is the same on several ranks said once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["fold_ranks", "ranks_text"]

#: Of scattered ranks so many are listed.
_LISTED = 6
_ON_A_RANK = re.compile(r"rank (\d+)(?: (.*))?")

Value = TypeVar("Value", bound=Hashable)


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0 to 7``, ``ranks 0, 2, 5`` of ascending ranks, or their number where they are many and
    scattered."""
    if not ranks:
        return "no rank"
    first, last = ranks[0], ranks[-1]
    if len(ranks) == 1:
        return f"rank {first}"
    if last - first == len(ranks) - 1:
        return f"ranks {first} to {last}"
    if len(ranks) <= _LISTED:
        return f"ranks {', '.join(map(str, ranks))}"
    return f"{len(ranks):,} of the ranks {first} to {last}"


def fold_ranks(values: Mapping[str, Value]) -> list[tuple[str, str, Value]]:
    """Values by a name such as ``rank 3 gemm``, those of one thing that are equal on several ranks as one: the thing
    (``gemm``), its ranks in words, and the value. Things stand in the order of their first names. What is on no rank
    has no ranks."""
    found: dict[str, dict[Value, list[int]]] = {}
    for name, value in values.items():
        on = _ON_A_RANK.fullmatch(name)
        ranks = found.setdefault((on[2] or "") if on else name, {}).setdefault(value, [])
        if on:
            ranks.append(int(on[1]))
    return [
        (thing, ranks_text(sorted(ranks)) if ranks else "", value)
        for thing, by_value in found.items()
        for value, ranks in by_value.items()
    ]
