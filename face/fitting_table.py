"""What a search for a fit found, and its table: text for a terminal, HTML for a notebook. Runs of values that fare
alike are one line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TypeVar

import attrs

from ..ir.forms.counts import plural
from ..ir.forms.text import quote
from ..ir.source.location import Location
from ..machine.units import format_ps
from ..scheduler.result.tables import number_table
from .examining import Verdict

__all__ = ["Fit", "FitRow"]

_N = TypeVar("_N", int, float)

#: Runs of more rows than this are one line.
_RUN = 4


@attrs.frozen
class FitRow:
    """One value that was tried.

    ``verdict`` is ``"fits"``; ``"overflow"`` (the scratch budget); ``"refused"`` (the kernel raised); ``"finding"`` (an
    error of the linter); or ``"deadlock"`` (goal ``"time"``). ``reason`` says why it does not fit, ``location`` where.
    ``peak_bytes`` is the scratch that the fullest rank takes, also past the budget (None: refused). ``makespan_ps`` and
    ``bound_ps`` are those of the policy ``list``, for the goal ``"time"`` where it fits.
    """

    value: int | float
    verdict: Verdict
    reason: str = ""
    location: Location | None = None
    peak_bytes: int | None = None
    makespan_ps: int | None = None
    bound_ps: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the kernel can be used with this value."""
        return self.verdict == "fits"

    @property
    def ratio(self) -> float | None:
        """Makespan over bound, 1.0 at best; None where there is no schedule."""
        if self.makespan_ps is None or self.bound_ps is None:
            return None
        return self.makespan_ps / self.bound_ps if self.bound_ps else 1.0


@attrs.frozen(repr=False)
class Fit:
    """The values that were tried, in ascending order, and what was found.

    ``title`` is the kernel's name with the launch's, ``machine`` the machine's name, ``budget_bytes`` its scratch per
    rank. ``str()`` is the table, with what stops the next value.
    """

    title: str
    parameter: str
    goal: str
    machine: str
    budget_bytes: int
    rows: tuple[FitRow, ...]

    def __repr__(self) -> str:
        best = "no value" if self.best is None else self.best.value
        return f"<Fit {quote(self.title)}: {self.parameter} = {best} of {plural(len(self.rows), 'value')}>"

    @property
    def best(self) -> FitRow | None:
        """For the goal ``"memory"`` the largest value that fits; for ``"time"`` the fastest one that does, of equally
        fast ones the smallest. None where no value fits."""
        fitting = [row for row in self.rows if row.fits]
        if not fitting:
            return None
        if self.goal == "memory":
            return fitting[-1]
        return min(fitting, key=lambda row: (row.makespan_ps or 0, row.value))

    @property
    def next(self) -> FitRow | None:
        """The row after the best one, which says what stops it; the first row where no value fits; None where the best
        is the last."""
        if self.best is None:
            return self.rows[0]
        after = self.rows.index(self.best) + 1
        return self.rows[after] if after < len(self.rows) else None

    def __iter__(self) -> Iterator[FitRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, value: float) -> FitRow:
        """The row of a value. Raises ``KeyError`` for one that was not tried."""
        for row in self.rows:
            if row.value == value:
                return row
        raise KeyError(value)

    def __str__(self) -> str:
        return fit_text(self)

    def _repr_html_(self) -> str:
        return fit_html(self)


def fit_text(fit: Fit) -> str:
    """What was found, what stops the next value, and the table."""
    cells = [_head(fit), *_rows(fit)]
    # The reason is the last column and runs free; all others are aligned.
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)]
    lines = [
        "  "
        + "  ".join(
            [
                cell.ljust(width) if column == 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=False))
            ]
            + [row[-1]]
        ).rstrip()
        for row in cells
    ]
    return "\n".join([_caption(fit), *lines, *_conclusion(fit)])


def fit_html(fit: Fit) -> str:
    """The same as an HTML table."""
    caption = "; ".join([_caption(fit), *_conclusion(fit)])
    return number_table(caption, _head(fit), _rows(fit))


def _caption(fit: Fit) -> str:
    wanted = "the largest" if fit.goal == "memory" else "the fastest"
    where = f"{quote(fit.title)} on {fit.machine}"
    count = f"{plural(len(fit.rows), 'value')} tried"
    return f"{where}: {wanted} value of {fit.parameter} that fits in {fit.budget_bytes:,} B of scratch, {count}"


def _head(fit: Fit) -> tuple[str, ...]:
    timed = ("makespan", "of the bound") if fit.goal == "time" else ()
    return (fit.parameter, "", "peak scratch", *timed, "why not")


def _runs(fit: Fit) -> Iterator[Sequence[FitRow]]:
    """Neighbours that fare alike at the same line; the best row and the one after it stand alone."""

    singled_out = [row.value for row in (fit.best, fit.next) if row is not None]

    def alike(row: FitRow) -> tuple[object, ...]:
        return row.verdict, row.location, row.value if row.value in singled_out else None

    for _, group in itertools.groupby(fit.rows, alike):
        rows = tuple(group)
        yield from [rows] if len(rows) > _RUN else [(row,) for row in rows]


def _rows(fit: Fit) -> list[tuple[str, ...]]:
    best = fit.best
    return [_cells(fit, run, best) for run in _runs(fit)]


def _cells(fit: Fit, run: Sequence[FitRow], best: FitRow | None) -> tuple[str, ...]:
    first = run[0]
    value = f"{first.value}" if len(run) == 1 else f"{first.value} to {run[-1].value}"
    peaks = [row.peak_bytes for row in run if row.peak_bytes is not None]
    cells = [value, first.verdict + (" <--" if first is best else ""), _range([f"{p:,} B" for p in _ends(peaks)])]
    if fit.goal == "time":
        times = [row.makespan_ps for row in run if row.makespan_ps is not None]
        ratios = [row.ratio for row in run if row.ratio is not None]
        cells += [_range([format_ps(t) for t in _ends(times)]), _range([f"x {r:.3f}" for r in _ends(ratios)])]
    return (*cells, _why(first) + (f"; and {len(run) - 1:,} more like it" if first.reason and len(run) > 1 else ""))


def _ends(numbers: Sequence[_N]) -> list[_N]:
    return sorted({min(numbers), max(numbers)}) if numbers else []


def _range(texts: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys(texts))


def _why(row: FitRow) -> str:
    return quote(row.reason) + (f", at {quote(row.location.short)}" if row.location else "")


def _conclusion(fit: Fit) -> Iterator[str]:
    best, after, name = fit.best, fit.next, fit.parameter
    if best is None:
        yield f"no value fits; {name} = {fit.rows[0].value}, the smallest: {_outcome(fit.rows[0])}"
        return
    share = f"{best.peak_bytes:,} B of scratch"
    if best.makespan_ps is not None:
        yield f"{name} = {best.value} is the fastest that fits: {format_ps(best.makespan_ps)}, {share}"
    else:
        yield f"{name} = {best.value} is the largest that fits: {share}"
    if after is None:
        yield f"{name} = {best.value} is the last that was tried: nothing is known of larger ones"
    else:
        yield f"{name} = {after.value}, the next one: {_outcome(after)}"
        if after.verdict == "refused":
            taken = next((row for row in fit.rows if row.value > best.value and row.verdict != "refused"), None)
            if taken is not None:
                yield f"{name} = {taken.value}, the next one that the kernel takes: {_outcome(taken)}"


def _outcome(row: FitRow) -> str:
    if row.makespan_ps is not None:
        return f"fits, {format_ps(row.makespan_ps)}"
    needed = f"; {row.peak_bytes:,} B are needed in all" if row.verdict == "overflow" else ""
    return f"{row.verdict}, {_why(row)}{needed}"
