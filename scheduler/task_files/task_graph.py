"""A task graph that was read from a file, and how a file's numbers are taken one after another."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from ...ir.errors import TaskFileError
from ...ir.tables import IntArray

__all__ = ["LARGEST_NUMBER", "MOST_TASKS", "Numbers", "TaskGraph"]

#: No file has more tasks, and no number in it is larger: what adds up then fits int64.
MOST_TASKS = 1_000_000
LARGEST_NUMBER = 1 << 40


@attrs.frozen(eq=False)
class TaskGraph:
    """``what``: the format in words, and the sizes. Arrays as :func:`kernscope.solve_dag` takes them: ``durations``
    ``(n,)``, ``engine`` ``(n,)``, ``channels`` ``(E,)``, ``edges`` ``(m, 2)``. Of a project: ``demand`` ``(n, k)`` and
    ``capacity`` ``(k,)`` of its resources, in the place of engines."""

    what: str
    durations: IntArray
    engine: IntArray
    channels: IntArray
    edges: IntArray
    demand: IntArray | None = None
    capacity: IntArray | None = None

    def __len__(self) -> int:
        return len(self.durations)


class Numbers:
    """The whole numbers of some lines, taken one after another; each knows its line."""

    def __init__(self, file: str, lines: Sequence[tuple[int, str]]) -> None:
        self._file = file
        self._words = [(number, word) for number, line in lines for word in line.split()]
        self._at = 0

    @property
    def left(self) -> int:
        """How many are left."""
        return len(self._words) - self._at

    def take(self, what: str, low: int = 0, high: int = LARGEST_NUMBER) -> int:
        """The next number, ``what`` it should be, within a range. Raises ``TaskFileError``."""
        if not self.left:
            raise self.wrong(f"the file ends where {what} should be")
        number, word = self._words[self._at]
        self._at += 1
        if not word.removeprefix("-").isdecimal() or not word.isascii():
            raise self.wrong(f"line {number}: {word!r} where {what} should be")
        value = int(word) if len(word) < 20 else high + 1
        if not low <= value <= high:
            raise self.wrong(f"line {number}: {what} is {word}, not from {low} to {high}")
        return value

    def end(self) -> None:
        """Raises ``TaskFileError`` where there is a number more."""
        if self.left:
            number, word = self._words[self._at]
            raise self.wrong(f"line {number}: {word!r} after all that the file has announced")

    def wrong(self, what: str) -> TaskFileError:
        """The error of this file."""
        return TaskFileError(f"{self._file}: {what}")


def pairs(edges: list[tuple[int, int]]) -> IntArray:
    """Edges as an array ``(m, 2)``, also of none."""
    return np.array(edges, dtype=np.int64).reshape(-1, 2)
