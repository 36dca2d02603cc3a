"""Published times of kernels on seven machines beside ours: with documented numbers only, fitted, with the row's family
left out of the fit, and the ratios between versions of a kernel. What misses a goal is named."""

from __future__ import annotations

from collections.abc import Sequence

from measure import Row
from published_goals import Compared, goals, ratios, store
from published_timings import Published, fit_all, fitted_ns, known_machine, published, stored_fits, write_fits

__all__ = ["compared", "rows"]


def compared(which: Sequence[Published]) -> list[Compared]:
    """Every row with its predictions, by the stored fits."""
    fits, found = stored_fits(), []
    for row in which:
        documented = row.predicted_ns(known_machine(row.machine))
        values, without = fits.get((row.machine, "")), fits.get((row.machine, row.family))
        fitted = documented if values is None else fitted_ns(row, values)
        left = None if without is None else fitted_ns(row, without)
        found.append(Compared(row, documented, fitted, left))
        row.__dict__.pop("graph", None)  # the graphs of all rows together are large
    return found


def _percent(error: float) -> str:
    return f"{100 * error:+.0f} %"


def _row(one: Compared) -> Row:
    left = "-" if one.left_out_ns is None else _percent(one.error(one.left_out_ns))
    told = [_percent(one.error(one.documented_ns)), _percent(one.error(one.fitted_ns)), left]
    return Row(f"{one.row.id}: {one.row.machine}", f"{one.row.ns / 1000:,.1f} us", "  ".join(f"{t:>7}" for t in told))


def _ratio_rows(found: Sequence[Compared]) -> list[Row]:
    documented = ratios(found, lambda one: one.documented_ns)
    fitted = ratios(found, lambda one: one.fitted_ns)
    told = [Row("Ratios of versions", "published", "documented  fitted")]
    for first, second in zip(documented, fitted, strict=True):
        name = f"  {first.first} / {first.second}"
        told.append(Row(name, f"{first.published:.2f}", f"{first.predicted:>10.2f}{second.predicted:>8.2f}"))
    return told


def _goal_rows(found: Sequence[Compared]) -> list[Row]:
    told = [Row("Goals", "reached", "wanted")]
    for goal in goals(found):
        missed = f": not {', '.join(goal.missed)}" if goal.missed else ""
        verdict = "met" if goal.met else "MISSED"
        told.append(Row(f"  {goal.what}", f"{goal.reached}, {verdict}", f"{goal.wanted}{missed}"))
    return told


def rows(quick: bool, *, fit: Sequence[str] | None = None) -> list[Row]:
    """The table. ``quick``: the first row of each family only; ``fit``: the fits of these machines (none named: of all)
    are made anew and stored, and so is the table, which the documentation shows."""
    which = published()
    if quick:
        firsts = {(row.machine, row.family): row.id for row in reversed(which)}
        which = [row for row in which if firsts[row.machine, row.family] == row.id]
    if fit is not None:
        kept = {key: values for key, values in stored_fits().items() if fit and key[0] not in fit}
        write_fits(kept | fit_all(published(fit)))
    found = compared(which)
    if fit is not None:
        store(found)
    fitted = [
        Row(f"  {machine}: {parameter}", value, "")
        for (machine, left_out), values in sorted(stored_fits().items())
        for parameter, value in values.items()
        if not left_out
    ]
    head = Row("row, machine", "measured", "documented  fitted  family left out")
    return [head, *map(_row, found), *_ratio_rows(found), *_goal_rows(found), Row("Fitted", "", ""), *fitted]
