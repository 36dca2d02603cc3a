"""What a trace froze: the branches that a kernel took on values of Python, and which way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from .forms.printable import printable
from .source.location import Location

__all__ = ["Branch", "Branches", "Runs", "Way", "as_runs"]

#: Numbers of programs, ascending, as the first and the last of each stretch.
Runs = tuple[tuple[int, int], ...]


def as_runs(numbers: Iterable[int]) -> Runs:
    """Numbers as stretches."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return tuple(runs)


@attrs.frozen
class Way:
    """One way out of a branch: its ``label`` (``"true"``, ``"false"``, ``"ran"``, ``"did not run"``, ``"case 2"``,
    ``"no case"``, ``"caught"``), how many ``times`` it was taken, in which ``programs`` of the launch's grid (ranks,
    where there is no grid), and what the condition's names stood for the first time, as text."""

    label: str
    times: int
    programs: Runs
    values: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Branch:
    """A place where a kernel, or a function of its author's that it called, went one way and could have gone another.

    ``kind`` is ``"if"``, ``"check"`` (an ``if`` that does nothing but raise), ``"while"``, ``"for"``,
    ``"conditional"``, ``"and"``, ``"or"``, ``"match"`` or ``"except"``; of a condition that is put together with
    ``and``, ``or`` and ``not`` each part is a branch. ``text`` is what was
    asked, in one line. ``ways`` are those that were taken: none, for a part that was not evaluated. ``depends`` names
    the parameters of its function that decide (``"x.shape"``), and ``"the rank"`` and ``"the program"``. ``trips``:
    the least and the most iterations of a loop, of the times that it ran.
    """

    place: Location
    kind: str
    text: str
    ways: tuple[Way, ...]
    depends: tuple[str, ...] = ()
    trips: tuple[int, int] | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The ways that were taken."""
        return frozenset(way.label for way in self.ways)

    def is_at(self, other: Branch) -> bool:
        """Whether another trace's branch is the same place of the source."""
        return self.place == other.place and self.kind == other.kind

    @property
    def is_divided(self) -> bool:
        """Whether programs, or ranks, went different ways: some of them never went one that another one did."""
        return len({way.programs for way in self.ways}) > 1

    @property
    def mark(self) -> str:
        """Which way, in as few words as will do: ``true``, ``both ways``, ``16 times``."""
        if not self.ways:
            return "not evaluated"
        if self.trips is not None:
            return _span(self.trips) + (", or not once" if len(self.ways) > 1 else "")
        if self.labels == {"true", "false"}:
            return "both ways"
        return ", ".join(way.label for way in self.ways)

    @property
    def took(self) -> str:
        """Which way, in words: ``true, 8 times (tile=128)``."""
        if not self.ways:
            return "not evaluated"
        return "; ".join(self._took(way) for way in self.ways)

    def _took(self, way: Way) -> str:
        values = ", ".join(f"{name}={value}" for name, value in way.values)
        said = way.label
        if self.trips is not None and way.label == "ran":
            said = f"ran {_span(self.trips)}" + (f", entered {_times(way.times)}" if way.times > 1 else "")
        elif way.times > 1:
            said = f"{way.label}, {_times(way.times)}"
        if self.is_divided:
            said += f", on {_listed(way.programs)}"
        return f"{said} ({values})" if values else said

    def __str__(self) -> str:
        depends = f"; depends on {', '.join(self.depends)}" if self.depends else ""
        return printable(f"{self.place.short}: {self.kind} `{self.text}`: {self.took}{depends}")


def _times(number: int) -> str:
    return "once" if number == 1 else "twice" if number == 2 else f"{number:,} times"


def _span(trips: tuple[int, int]) -> str:
    least, most = trips
    return _times(most) if least == most else f"{least:,} to {most:,} times"


def _listed(runs: Runs) -> str:
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:4])
    return shown + (", ..." if len(runs) > 4 else "")


@attrs.frozen
class Branches:
    """The branches that one trace took, in the order of their files' first one, then of their lines. ``unseen`` names
    functions that it called and whose source could not be read: what they decided is not among them."""

    rows: tuple[Branch, ...]
    unseen: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return True

    def at(self, file: str, line: int) -> tuple[Branch, ...]:
        """Those that begin on a line of a file."""
        return tuple(row for row in self.rows if row.place.file == file and row.place.line == line)

    def differences(self, other: Branches) -> tuple[tuple[Branch, Branch], ...]:
        """The branches of both traces of which one took a way that the other did not: of this one, and of that. How
        often a loop ran makes no difference, whether it ran at all does."""
        theirs = {(row.place, row.kind): row for row in other.rows}
        pairs = ((row, theirs.get((row.place, row.kind))) for row in self.rows)
        return tuple((row, its) for row, its in pairs if its is not None and row.labels != its.labels)

    def __str__(self) -> str:
        lines = [str(row) for row in self.rows]
        lines += [f"not seen: {printable(name)}: its source could not be read" for name in self.unseen]
        return "\n".join(lines) or "no branches"
