"""What a sweep found: rows, the front of makespan against scratch, and its table."""

from __future__ import annotations

import csv
import io
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ...ir.errors import KernscopeError
from ...ir.forms.counts import plural
from ...ir.forms.text import quote
from ...machine.units import format_ps
from ...scheduler.result.tables import number_table
from ..examining import Examined
from .plot import write_plot

__all__ = ["MEASURES", "Sweep", "SweepRow", "failed_row", "row_of"]

#: The columns beside the axes, in files.
MEASURES = ("verdict", "makespan_ps", "bound_ps", "peak_bytes", "pareto", "reason")


@attrs.frozen
class SweepRow:
    """One point: ``point`` has a value for each axis. ``verdict`` as in :class:`kernscope.FitRow`, or ``"failed"``:
    nothing could be found out. ``reason`` says why it does not fit."""

    point: Mapping[str, Any]
    verdict: str
    reason: str = ""
    peak_bytes: int | None = None
    makespan_ps: int | None = None
    bound_ps: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the kernel can be used like that, and its time is known."""
        return self.verdict == "fits"


def row_of(point: Mapping[str, Any], found: Examined) -> SweepRow:
    """The row of a point; the place of what stops it becomes part of the reason."""
    reason = found.reason + (f", at {found.location.short}" if found.location else "")
    return SweepRow(dict(point), found.verdict, reason, found.peak_bytes, found.makespan_ps, found.bound_ps)


def failed_row(point: Mapping[str, Any], error: KernscopeError | str) -> SweepRow:
    """The row of a point that could not be examined."""
    reason = error if isinstance(error, str) else error.message.splitlines()[0]
    return SweepRow(dict(point), "failed", reason)


@attrs.frozen(repr=False)
class Sweep:
    """The rows of a sweep, in the order of its axes, the last of which varies fastest.

    ``title`` names the kernel and the launch, ``axes`` their names. ``str()`` is the table; ``to_csv()`` and
    ``columns()`` are for other programs.
    """

    title: str
    axes: tuple[str, ...]
    rows: tuple[SweepRow, ...]

    def __repr__(self) -> str:
        return f"<Sweep {self._caption}>"

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> SweepRow | None:
        """The fastest row that fits; of equally fast ones that with less scratch, then the first. None: none fits."""
        fitting = [row for row in self.rows if row.fits]
        return min(fitting, key=_costs, default=None)

    @property
    def pareto(self) -> tuple[SweepRow, ...]:
        """The front of makespan against scratch, fastest first: no other row is as good in both and better in one. Of
        equal rows the first."""
        front: list[SweepRow] = []
        for row in sorted((row for row in self.rows if row.fits), key=_costs):
            if not front or _costs(row)[1] < _costs(front[-1])[1]:
                front.append(row)
        return tuple(front)

    def columns(self) -> dict[str, list[Any]]:
        """By name a column for each axis, then ``verdict``, ``makespan_ps``, ``bound_ps``, ``peak_bytes``, ``pareto``
        and ``reason``; None where nothing is known."""
        front = {id(row) for row in self.pareto}
        table: dict[str, list[Any]] = {axis: [row.point[axis] for row in self.rows] for axis in self.axes}
        table |= {name: [getattr(row, name) for row in self.rows] for name in MEASURES if name != "pareto"}
        table["pareto"] = [id(row) in front for row in self.rows]
        return {name: table[name] for name in (*self.axes, *MEASURES)}

    def to_csv(self) -> str:
        """The columns as CSV with a head; nothing in the place of None."""
        table = self.columns()
        written = io.StringIO()
        lines = csv.writer(written, lineterminator="\n")
        lines.writerow(table)
        lines.writerows(zip(*table.values(), strict=True))
        return written.getvalue()

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw makespan against scratch, the front as a line with its points named, as ``.svg``, ``.png`` or ``.pdf``.
        Raises ``OptionError`` for other formats, ``OutputError``, and ``MissingExtraError`` without matplotlib (the
        extra ``plot``)."""
        front = {id(row) for row in self.pareto}
        fitting = [(row, *_costs(row)) for row in self.rows if row.fits]
        points = [(peak, makespan, _name(row), id(row) in front) for row, makespan, peak in fitting]
        left_out = len(self.rows) - len(points)
        note = f"{len(points):,} of {plural(len(self.rows), 'point')}" + (", the others do not fit" if left_out else "")
        write_plot(path, points, self.title, note)

    def __str__(self) -> str:
        cells = [self._head, *self._cells()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
        lines = [
            "  " + "  ".join([*(c.rjust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in cells
        ]
        return "\n".join([self._caption, *lines, *self._conclusion()])

    def _repr_html_(self) -> str:
        return number_table("; ".join([self._caption, *self._conclusion()]), self._head, self._cells())

    @property
    def _caption(self) -> str:
        return f"{quote(self.title)}: {plural(len(self.rows), 'point')} of {', '.join(map(quote, self.axes))}"

    @property
    def _head(self) -> tuple[str, ...]:
        return (*map(quote, self.axes), "makespan", "of the bound", "peak scratch", "")

    def _cells(self) -> list[tuple[str, ...]]:
        front = {id(row) for row in self.pareto}
        return [self._row(row, id(row) in front) for row in self.rows]

    def _row(self, row: SweepRow, is_in_front: bool) -> tuple[str, ...]:
        values = [quote(str(row.point[axis])) for axis in self.axes]
        peak = "-" if row.peak_bytes is None else f"{row.peak_bytes:,} B"
        if row.makespan_ps is None or row.bound_ps is None:
            return (*values, "-", "-", peak, f"{row.verdict}: {quote(row.reason)}")
        ratio = row.makespan_ps / row.bound_ps if row.bound_ps else 1.0
        return (*values, format_ps(row.makespan_ps), f"x {ratio:.3f}", peak, "front" if is_in_front else "")

    def _conclusion(self) -> Iterator[str]:
        best = self.best
        if best is None:
            yield "no point fits"
            return
        assert best.makespan_ps is not None, "it fits"
        yield f"fastest: {_name(best)}: {format_ps(best.makespan_ps)}, {best.peak_bytes:,} B of scratch"
        counts = {verdict: len(list(rows)) for verdict, rows in itertools.groupby(sorted(r.verdict for r in self.rows))}
        lost = [f"{count:,} {verdict}" for verdict, count in counts.items() if verdict != "fits"]
        if lost:
            yield f"not usable: {', '.join(lost)}"


def _name(row: SweepRow) -> str:
    return ", ".join(f"{quote(axis)}={quote(str(value))}" for axis, value in row.point.items())


def _costs(row: SweepRow) -> tuple[int, int]:
    assert row.makespan_ps is not None and row.peak_bytes is not None, "rows that fit have both"
    return (row.makespan_ps, row.peak_bytes)
