"""Schedules as tables: what a notebook shows."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ...machine.units import format_ps
from .columns import ScheduleColumns

__all__ = ["html_table", "schedule_html"]


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; every text is escaped. The first column is text, the others are numbers."""
    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    body = []
    for row in rows:
        first, *others = (html.escape(text) for text in row)
        numbers = "".join(f'<td style="text-align:right">{text}</td>' for text in others)
        body.append(f'<tr><td style="text-align:left">{first}</td>{numbers}</tr>')
    return f"<table><caption>{html.escape(caption)}</caption><tr>{cells}</tr>{''.join(body)}</table>"


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
    return html_table(caption, ("engine", "at work"), use) + html_table(
        "critical chain", ("cause", "time", "share"), chain
    )
