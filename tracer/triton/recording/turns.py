"""Traces that differ in nothing but how often their loops turn: some of them tell of all.

Where every program has another trip count (causal attention, ragged rows), a launch has as many traces as programs.
They consist of the same kinds of steps, and how often each occurs is linear in the number of turns: the smallest and
the two largest of them are looked at, and times are taken to be linear between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

__all__ = ["Alike", "grouped_by_turns"]

#: So many traces of a kind are all looked at.
_FEW = 4
_LARGEST = 2


@attrs.frozen
class Alike:
    """Traces that are alike, by their numbers, smallest first; ``steps`` how long each is; ``examined`` places of those
    that stand for all, ascending: the first and the last are among them."""

    members: tuple[int, ...]
    steps: tuple[int, ...]
    examined: tuple[int, ...]

    def times(self, measured: Sequence[int]) -> list[int]:
        """The times of all members from those of the examined ones: linear between."""
        known = [self.steps[place] for place in self.examined]
        if len(set(known)) < len(known):
            return list(measured)
        found = np.interp(self.steps, known, measured).round().astype(np.int64)
        found[list(self.examined)] = measured
        return [int(time) for time in found]


def grouped_by_turns(kinds: Sequence[Counter[Any]]) -> list[Alike]:
    """Traces in groups, given how often each kind of step occurs in each. A trace that is on no line with others is a
    group of its own."""
    by_kinds: dict[frozenset[Any], list[int]] = {}
    for number, counter in enumerate(kinds):
        by_kinds.setdefault(frozenset(counter), []).append(number)
    groups: list[Alike] = []
    for numbers in by_kinds.values():
        lengths = {number: kinds[number].total() for number in numbers}
        ordered = sorted(numbers, key=lambda number: (lengths[number], number))
        on_line = ordered if len(ordered) <= _FEW else _on_a_line(ordered, kinds)
        if len(on_line) > _FEW:
            last = len(on_line)
            examined = (0, *range(last - _LARGEST, last))
            groups.append(Alike(tuple(on_line), tuple(lengths[n] for n in on_line), examined))
            numbers = sorted(set(numbers).difference(on_line))
        groups += [Alike((number,), (lengths[number],), (0,)) for number in numbers]
    return sorted(groups, key=lambda group: min(group.members))


def _on_a_line(ordered: Sequence[int], kinds: Sequence[Counter[Any]]) -> list[int]:
    """Those whose counts lie on the line from the smallest to the largest, one of each length."""
    names = list(kinds[ordered[0]])
    counts = np.array([[kinds[number][name] for name in names] for number in ordered], np.int64)
    lengths = counts.sum(1)
    from_first, whole = lengths - lengths[0], int(lengths[-1] - lengths[0])
    is_on = ((counts - counts[0]) * whole == from_first[:, None] * (counts[-1] - counts[0])).all(1)
    is_first = np.append(True, lengths[1:] != lengths[:-1])
    return [number for number, on, first in zip(ordered, is_on, is_first, strict=True) if on and first]
