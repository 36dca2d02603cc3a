"""Schedules as tables: what a notebook shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...ir.forms.html_table import html_table
from ...machine.units import format_ps
from .columns import ScheduleColumns

__all__ = ["number_table", "schedule_html"]


def number_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of which the first column is text and the others are numbers."""
    return html_table(caption, rows, head=head, align=("left", *("right" for _ in head[1:])))


def schedule_html(schedule: ScheduleColumns) -> str:
    """Makespan and bound, utilisation by engine, and the critical chain by cause."""
    total = max(schedule.makespan_ps, 1)
    caption = (
        f"{schedule.graph.kernel} on {schedule.machine.name}, {schedule.policy}: {format_ps(schedule.makespan_ps)}, "
        f"{schedule.ratio:.3f} x the bound of {format_ps(schedule.bound_ps)} ({schedule.bounds.best})"
    )
    use = [(engine, f"{100 * share:.1f} %") for engine, share in schedule.utilisation().items()]
    chain = [
        (cause, format_ps(ps), f"{100 * ps / total:.1f} %")
        for cause, ps in schedule.critical_chain().by_cause().items()
    ]
    return number_table(caption, ("engine", "at work"), use) + number_table(
        "critical chain", ("cause", "time", "share"), chain
    )
