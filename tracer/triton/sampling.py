"""Samples of a launch's programs: what a launch of millions does at its ends and here and there, in seconds."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numpy as np

from ...ir.errors import OptionError, shown

__all__ = ["ProgramSample"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Numbers that an int64 holds.
_PART = re.compile(
    r"(?P<how>first|last|random)(?::(?P<count>[1-9][0-9]{0,17}))?|(?P<from>[0-9]{1,18})(?:-(?P<to>[0-9]{1,18}))?"
)
#: Which programs ``random`` takes is the same from run to run.
_SEED = 0


@attrs.frozen
class ProgramSample:
    """Which programs of a grid are run: ``text`` as it was given."""

    text: str
    _parts: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, text: str) -> ProgramSample:
        """Of words between commas: ``first``, ``last`` and ``random``, each of one program or of ``:N``; a program's
        number, or an interval of them as ``128-255``. Raises ``OptionError``."""
        parts = []
        for word in text.split(",") if isinstance(text, str) else [text]:
            found = _PART.fullmatch(word.strip()) if isinstance(word, str) else None
            if found is None or (found["to"] is not None and int(found["to"]) < int(found["from"])):
                raise OptionError(
                    f"programs={shown(text)}: {shown(word)} says no programs",
                    help="write, with commas between them: first, first:8, last:8, random:64, 731, 128-255",
                )
            if found["how"] is not None:
                parts.append((found["how"], int(found["count"] or 1), 0))
            else:
                parts.append(("numbers", int(found["from"]), int(found["to"] or found["from"])))
        return cls(text, tuple(parts))

    def chosen(self, count: int) -> Array:
        """The numbers of the programs out of ``count``, ascending. A number beyond the last program stands for it, so
        that every launch has some."""
        if count == 0:
            return np.zeros(0, np.int64)
        last = count - 1
        found = []
        for how, a, b in self._parts:
            match how:
                case "first":
                    found.append(np.arange(min(a, count)))
                case "last":
                    found.append(np.arange(max(count - a, 0), count))
                case "random":
                    numbers = np.random.default_rng(_SEED)
                    found.append(numbers.choice(count, min(a, count), replace=False, shuffle=False))
                case _:
                    found.append(np.arange(min(a, last), min(b, last) + 1))
        return np.unique(np.concatenate(found)).astype(np.int64)
