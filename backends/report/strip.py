"""The strip at the top of a report page: its answers in one line, each as HTML."""

from __future__ import annotations

from ...ir.forms.counts import plural
from ...machine.units import format_ps
from .charts import cause_style, chain_bar
from .data import ReportData
from .embedding import embedded_schedules
from .markup import share, shown

__all__ = ["size_line", "strip"]

_CAUSES_SHOWN = 4


def strip(data: ReportData) -> str:
    """The page's answers in one line: does it fit, is it right, how far from the bound, where does the time go."""
    figures = [_time_figure(data), _scratch_figure(data), _right_figure(data)]
    return f'<div class="strip">{"".join(figures)}{_ladder_figure(data)}{_causes_figure(data)}</div>'


def size_line(data: ReportData) -> str:
    """The graph's size in words."""
    graph = data.graph
    ranks = f" on {plural(graph.ranks, 'rank')}" if graph.ranks > 1 else ""
    return f"{len(graph):,} nodes{ranks}, {len(graph.edges):,} edges"


def _opens(tab: str, words: str) -> str:
    return f'<a href="#{tab}" data-open="{tab}">{words}</a>'


def _figure(title: str, value: str, note: str, mood: str = "", below: str = "", kind: str = "", after: str = "") -> str:
    return (
        f'<div class="figure {kind}"><h2>{title}</h2><strong class="{mood}">{value}</strong>{below}'
        f"<span>{note}</span>{after}</div>"
    )


def _scratch_figure(data: ReportData) -> str:
    budget, peak = data.liveness.budget_bytes, data.liveness.peak_bytes
    over = peak > budget
    width = min(100 * peak / max(budget, 1), 100)
    meter = f'<div class="meter{" over" if over else ""}"><i style="width:{width:.2f}%"></i></div>'
    note = f"{peak:,} of {budget:,} B"
    return _figure(_opens("scratch", "Scratch peak"), share(peak, budget), note, "bad" if over else "", meter, "f-fit")


def _time_figure(data: ReportData) -> str:
    best = data.best
    if best is None:
        return _figure(_opens("ladder", "Makespan"), data.verdict, "under every policy", "bad", kind="f-time")
    note = f"{shown(best.policy)}, {best.ratio:.3f} x the best bound"
    name = max(data.bounds_ps, key=lambda one: data.bounds_ps[one]) if data.bounds_ps else ""
    after = f"<span>bound {format_ps(data.bound_ps)} ({shown(name)})</span>" if name else "<span>no bound</span>"
    return _figure(_opens("ladder", "Makespan"), format_ps(best.makespan_ps), note, kind="f-time", after=after)


def _right_figure(data: ReportData) -> str:
    """Is it right: the outputs beside their reference, and the linter."""
    counts = data.lint.counts
    said = ", ".join(plural(n, severity) for severity, n in counts.items() if n) or "no findings"
    mood = "bad" if counts["error"] else "warn" if counts["warning"] else "mute"
    lint = f'<span class="{mood}">{_opens("findings", said) if len(data.lint) else said}</span>'
    title = f"{_opens('numbers', 'Numbers')}, findings"
    if not data.numbers:
        note = shown(data.numbers_note.partition(":")[0]) or "no reference"
        return _figure(title, "not compared", note, "mute", kind="f-right", after=lint)
    wrong = [row for row in data.numbers if not row.ok]
    if wrong:
        note = f"{len(wrong)} of {plural(len(data.numbers), 'tensor')}"
        return _figure(title, "differ", note, "bad", kind="f-right", after=lint)
    worst = max(row.max_error for row in data.numbers)
    return _figure(title, "agree", f"largest error {worst:.3g}", "good", kind="f-right", after=lint)


def _ladder_figure(data: ReportData) -> str:
    """The policies as small bars on one scale, the bound as a line through them; each chooses what the panes show."""
    longest = max(max((row.schedule.makespan_ps for row in data.policies if row.schedule), default=0), data.bound_ps)
    at = {s.policy: index for index, s in enumerate(embedded_schedules(data))}
    rows = []
    for row in data.policies:
        if row.schedule is None:
            rows.append(f'<li class="bad"><span>{shown(row.policy)}</span><span>{shown(row.verdict)}</span></li>')
            continue
        bar = chain_bar(row.schedule, row.schedule.critical_chain().by_cause(), longest, data.bound_ps)
        chooses = f' data-policy="{at[row.policy]}"' if row.policy in at else " disabled"
        rows.append(
            f'<li><button type="button"{chooses}><span>{shown(row.policy)}</span>{bar}'
            f"<span>{format_ps(row.schedule.makespan_ps)}</span><span>{row.schedule.ratio:.2f} x</span></button></li>"
        )
    said = "dashed line: no policy can be faster" if data.bounds_ps else "no bound: the edges close a cycle"
    return (
        f'<div class="figure f-ladder"><h2>Policies<small>{said}</small></h2><ul class="rungs">{"".join(rows)}</ul>'
        "</div>"
    )


def _causes_figure(data: ReportData) -> str:
    """Where the time of the policy shown goes: the critical chain by cause."""
    if data.best is None:
        return ""
    causes = data.best.critical_chain().by_cause()
    total = max(sum(causes.values()), 1)
    rows = []
    for cause, ps in list(causes.items())[:_CAUSES_SHOWN]:
        kind, colour = cause_style(cause)
        rows.append(
            f'<li><span>{shown(cause)}</span><span class="mini"><i class="{kind}" style="background-color:{colour};'
            f'width:{100 * ps / total:.2f}%"></i></span><b>{100 * ps / total:.1f} %</b>'
            f"<span>{format_ps(ps)}</span></li>"
        )
    return (
        f'<div class="figure f-causes"><h2>{_opens("ladder", "Critical chain")} <small id="causes-of">of '
        f'{shown(data.best.policy)}</small></h2><ul id="causes">{"".join(rows)}</ul></div>'
    )
