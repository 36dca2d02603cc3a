"""The sections of a report page, each as HTML. Everything from a kernel goes through ``shown``."""

from __future__ import annotations

from html import escape

from ..ir.ops import OPERATIONS
from ..ir.text import quote
from ..linter.findings import Diagnostic
from ..scheduler.units import format_ps
from .drawing import Drawing
from .palette import ENGINE_COLOURS, engine_kind
from .report_charts import cause_style, chain_bar, scratch_chart, size_text
from .report_compare import comparison
from .report_costs import source_section
from .report_data import ReportData
from .report_embed import embedded_schedules
from .report_markup import plural, share, shown, table
from .report_picture import inline_svg
from .report_source import LineTable

__all__ = ["sections", "tiles"]

#: So many findings are shown in full.
FINDINGS_SHOWN = 100
_HOLDERS_SHOWN = 8


# --- the tiles --------------------------------------------------------------------------------------------------------


def tiles(data: ReportData) -> str:
    """The page's answer in five tiles: findings, scratch, time, numbers, size."""
    return (
        '<div class="tiles">'
        + "".join([_findings_tile(data), _scratch_tile(data), _time_tile(data), _numbers_tile(data), _size_tile(data)])
        + "</div>"
    )


def _tile(title: str, value: str, note: str, mood: str = "", below: str = "") -> str:
    return f'<div class="tile"><h2>{title}</h2><strong class="{mood}">{value}</strong><span>{note}</span>{below}</div>'


def _findings_tile(data: ReportData) -> str:
    counts = data.lint.counts
    said = ", ".join(plural(n, severity) for severity, n in counts.items() if n)
    mood = "bad" if counts["error"] else "warn" if counts["warning"] else "good"
    value = f"{len(data.lint):,}" if len(data.lint) else "none"
    return _tile("Findings", value, said or "the linter is silent", mood)


def _scratch_tile(data: ReportData) -> str:
    budget, peak = data.graph.target.scratch_bytes, data.liveness.peak_bytes
    over = peak > budget
    width = min(100 * peak / max(budget, 1), 100)
    meter = f'<div class="meter{" over" if over else ""}"><i style="width:{width:.2f}%"></i></div>'
    note = f"{peak:,} of {budget:,} B"
    return _tile("Scratch peak", share(peak, budget), note, "bad" if over else "", meter)


def _time_tile(data: ReportData) -> str:
    best = data.best
    if best is None:
        return _tile("Best schedule", "deadlock", "under every policy", "bad")
    note = f"{shown(best.policy)}, {best.ratio:.3f} x the best bound"
    return _tile("Best schedule", format_ps(best.makespan_ps), note)


def _numbers_tile(data: ReportData) -> str:
    if not data.numbers:
        return _tile("Numbers", "not compared", shown(data.numbers_note.partition(":")[0]))
    wrong = [row for row in data.numbers if not row.ok]
    if wrong:
        return _tile("Numbers", "differ", f"{len(wrong)} of {plural(len(data.numbers), 'tensor')}", "bad")
    worst = max(row.max_abs_error for row in data.numbers)
    return _tile("Numbers", "agree", f"largest error {worst:.3g}", "good")


def _size_tile(data: ReportData) -> str:
    graph = data.graph
    ranks = f" on {plural(graph.ranks, 'rank')}" if graph.ranks > 1 else ""
    return _tile("Graph", f"{len(graph):,}", f"nodes{ranks}, {len(graph.edges):,} edges")


# --- the sections -----------------------------------------------------------------------------------------------------


def findings(data: ReportData) -> str:
    """Every finding with its source excerpts."""
    if not len(data.lint):
        return '<p class="good">No findings.</p>'
    parts = [_finding(at, d) for at, d in enumerate(data.lint.diagnostics[:FINDINGS_SHOWN])]
    rest = len(data.lint) - len(parts)
    if rest > 0:
        parts.append(f'<p class="mute">{plural(rest, "more finding")}: <code>kernscope lint</code> prints all.</p>')
    return "".join(parts)


def _finding(number: int, diagnostic: Diagnostic) -> str:
    # The text form begins with severity, code and message, which the heading says, and ends with the help.
    detail = str(diagnostic).splitlines()[1 : -1 if diagnostic.help else None]
    body = f'<pre tabindex="0">{escape(chr(10).join(detail), quote=True)}</pre>' if detail else ""
    if diagnostic.help:
        body += f'<p class="help"><b>help:</b> {shown(diagnostic.help)}</p>'
    nodes = ""
    if diagnostic.nodes:
        said = plural(len(diagnostic.nodes), "node")
        nodes = f' <span class="mute">({said})</span> '
        nodes += f'<button type="button" data-select-finding="{number}" hidden>show {said}</button>'
    code, severity = shown(diagnostic.code), shown(diagnostic.severity)
    heading = f'<span class="code">{code} {severity}</span>{shown(diagnostic.message)}{nodes}'
    return f'<article class="finding {severity}" data-finding="{number}"><h3>{heading}</h3>{body}</article>'


def ladder(data: ReportData) -> str:
    """One bar a policy, divided by the causes of its critical chain, on one scale with the best bound."""
    slowest = max((row.schedule.makespan_ps for row in data.policies if row.schedule), default=0)
    longest = max(slowest, data.bound_ps)
    causes: dict[str, dict[str, int]] = {}
    rows = []
    for row in data.policies:
        if row.schedule is None:
            said = f'<pre tabindex="0">{escape(row.deadlock or "deadlock", quote=True)}</pre>'
            rows.append(f'<tr><th>{shown(row.policy)}</th><td colspan="4"><b class="bad">deadlock</b>{said}</td></tr>')
            continue
        causes[row.policy] = row.schedule.critical_chain().by_cause()
        bar = chain_bar(row.schedule, causes[row.policy], longest, data.bound_ps)
        best = ' class="best"' if row.schedule is data.best else ""
        gain = f"{slowest / row.schedule.makespan_ps:.2f} x" if row.schedule.makespan_ps else ""
        rows.append(
            f'<tr{best}><th>{shown(row.policy)}</th><td class="bar-cell">{bar}</td>'
            f'<td class="num">{format_ps(row.schedule.makespan_ps)}</td><td class="num">{row.schedule.ratio:.3f} x</td>'
            f'<td class="num">{gain}</td></tr>'
        )
    head = (
        '<thead><tr><th>policy</th><th>makespan, by cause along the critical chain</th><th class="num">makespan</th>'
        '<th class="num">of the bound</th><th class="num">speed-up</th></tr></thead>'
    )
    said = "There is no bound: the graph's own edges close a cycle."
    if data.bounds_ps:
        best_bound = max(data.bounds_ps, key=lambda name: data.bounds_ps[name])
        said = f"The dashed line is the best lower bound, {format_ps(data.bound_ps)} ({shown(best_bound)}): "
        said += "no policy can be faster."
    table = f'<div class="wide"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'
    return f'<p class="mute">{said}</p>{table}{_causes(causes)}{_bounds(data)}'


def _causes(causes: dict[str, dict[str, int]]) -> str:
    """The causes as a table, one column a policy."""
    if not causes:
        return ""
    total: dict[str, int] = {}
    for by_cause in causes.values():
        for cause, ps in by_cause.items():
            total[cause] = total.get(cause, 0) + ps
    rows = []
    for cause in sorted(total, key=lambda name: (-total[name], name)):
        kind, colour = cause_style(cause)
        key = f'<span class="key {kind}" style="background-color:{colour}"></span>{shown(cause)}'
        cells = [
            f"{format_ps(ps)} ({share(ps, sum(by_cause.values()))})" if (ps := by_cause.get(cause, 0)) else ""
            for by_cause in causes.values()
        ]
        rows.append([key, *cells])
    head = ["cause", *map(shown, causes)]
    return f"<h3>Critical chain by cause</h3>{table(head, rows, numbers=len(causes))}"


def _bounds(data: ReportData) -> str:
    if not data.bounds_ps:
        return ""
    rows = [
        [shown(name), format_ps(ps), share(ps, data.bound_ps)]
        for name, ps in sorted(data.bounds_ps.items(), key=lambda item: (-item[1], item[0]))
    ]
    bounds = table(["lower bound", "time", "of the best"], rows, numbers=2)
    return f"<details><summary>All lower bounds</summary>{bounds}</details>"


def scratch(data: ReportData) -> str:
    """Held and live bytes over program order, and what holds the most at the peak."""
    live, target = data.liveness, data.graph.target
    budget = target.scratch_bytes
    over = live.peak_bytes > budget
    part = f'<span class="{"bad" if over else ""}">{share(live.peak_bytes, budget)} of the budget</span>'
    said = (
        f"The peak is {size_text(live.peak_bytes)}, {part} of {size_text(budget)}. No placement needs less than "
        f"{size_text(live.peak_bound_bytes)}, the most that is live at one time."
    )
    keys = (
        '<p class="mute"><span class="key" style="background:var(--held);opacity:.55"></span>held: given out and not '
        'yet rewound &ensp; <span class="key" style="background:var(--live);opacity:.8"></span>live: will be accessed '
        "again</p>"
    )
    holders = live.peak_holders()
    rows = [
        [
            shown(holder.name or f"#{holder.allocation}"),
            shown(holder.location.short) if holder.location else "",
            f"{holder.held_bytes:,}",
            share(holder.held_bytes, live.peak_bytes),
        ]
        for holder in holders[:_HOLDERS_SHOWN]
    ]
    rest = holders[_HOLDERS_SHOWN:]
    if rest:
        held = sum(holder.held_bytes for holder in rest)
        rows.append([plural(len(rest), "smaller one"), "", f"{held:,}", share(held, live.peak_bytes)])
    held_by = table(["at the peak", "made at", "bytes", "share"], rows, numbers=2) if rows else ""
    growth = "".join(f'<p class="warn">{shown(str(g))}</p>' for g in live.growth())
    return f"<p>{said}</p>{growth}{scratch_chart(live, budget)}{keys}{_ranks(data)}{held_by}"


def _ranks(data: ReportData) -> str:
    peaks = data.liveness.peak_bytes_by_rank
    if len(peaks) == 1:
        return ""
    if len(set(peaks)) == 1:
        return f'<p class="mute">All {len(peaks)} ranks have this peak.</p>'
    listed = ", ".join(f"rank {rank}: {peak:,} B" for rank, peak in enumerate(peaks))
    return f'<p class="mute">{listed}</p>'


def numbers(data: ReportData) -> str:
    """Outputs beside their reference."""
    note = f'<p class="mute">{shown(data.numbers_note)}</p>' if data.numbers_note else ""
    if not data.numbers:
        return note or '<p class="mute">Nothing was compared.</p>'
    rows = [
        [
            shown(row.tensor),
            '<span class="good">within</span>' if row.ok else '<span class="bad">outside</span>',
            f"{row.max_abs_error:.3g}",
            f"{row.max_rel_error:.3g}",
            f"{row.tolerance:.3g}",
        ]
        for row in data.numbers
    ]
    head = ["tensor", "tolerance kept", "largest absolute error", "largest relative error", "tolerance"]
    return note + table(head, rows, numbers=3)


def picture(data: ReportData, drawing: Drawing) -> str:
    """The graph, laid out by Graphviz; or a sentence on what is missing."""
    notes = "".join(f'<p class="mute">{shown(note)}</p>' for note in drawing.notes)
    if drawing.data is None:
        return f'<div class="notice"><p>There is no picture of the graph here.</p>{notes}</div>'
    bold = f" The critical chain of {shown(data.best.policy)} is bold." if data.best else ""
    svg = inline_svg(drawing.data, f"Dataflow graph of {quote(data.title)}")
    said = f'<p class="mute">Laid out by {shown(drawing.renderer)}.{bold} Point at a box or an edge to see more.</p>'
    region = '<div class="picture panel" tabindex="0" role="region" aria-label="Picture of the graph, scrollable">'
    return f"{said}{notes}{region}{svg}</div>"


def timelines(data: ReportData) -> str:
    """The canvas of the timeline, and what chooses the policy."""
    embedded = embedded_schedules(data)
    if not embedded:
        return '<p class="mute">No policy has a schedule: deadlock.</p>'
    options = "".join(
        f'<option value="{at}">{shown(s.policy)}: {format_ps(s.makespan_ps)}</option>' for at, s in enumerate(embedded)
    )
    said = "The critical chain is underlined; the solid line is the makespan, the dashed one the bound."
    scheduled = [row.policy for row in data.policies if row.schedule is not None]
    left = [policy for policy in scheduled if policy not in {s.policy for s in embedded}]
    if left:
        said += f" To keep the page small, {shown(', '.join(left))} are summed up above only."
    missing = [row.policy for row in data.policies if row.schedule is None]
    if missing:
        said += f" No timeline of {shown(', '.join(missing))}: deadlock."
    keys = "".join(
        f'<span><span class="key" style="background-color:{ENGINE_COLOURS[kind].solid}"></span>{shown(kind)}</span>'
        for kind in dict.fromkeys(engine_kind(e.name) for e in embedded[0].engines)
    )
    return (
        f'<p class="mute">{said}</p><div class="tools"><label>policy <select id="timeline-policy">{options}</select>'
        f'</label>{_zoom_buttons("timeline")}<span class="mute" id="timeline-shown"></span></div>'
        f'<p class="keys">{keys}</p>{_canvas("timeline", "Timeline of the schedule")}'
    )


_CANVAS_HELP = (
    "Drag or arrow keys move, Ctrl and wheel, plus and minus, or a double click zoom, 0 shows all; a click selects."
)


def _canvas(name: str, label: str) -> str:
    return (
        f'<div class="canvas"><canvas id="{name}-canvas" tabindex="0" role="img" aria-label="{label}. {_CANVAS_HELP}">'
        f'</canvas></div><p class="mute small">{_CANVAS_HELP}</p>'
    )


def _zoom_buttons(of: str) -> str:
    buttons = (
        ("in", "+", "zoom in"),
        ("out", "-", "zoom out"),
        ("left", "&#8592;", "earlier"),
        ("right", "&#8594;", "later"),
        ("fit", "all", "show all"),
    )
    return "".join(
        f'<button type="button" data-zoom="{of} {act}" aria-label="{words}" title="{words}">{text}</button>'
        for act, text, words in buttons
    )


def scratch_map(data: ReportData) -> str:
    """The canvas of the scratch map, and what chooses the rank and the axis."""
    if not data.liveness.peak_bytes:
        return ""
    ranks = "".join(
        f'<option value="{rank}">{rank}: peak {peak:,} B</option>'
        for rank, peak in enumerate(data.liveness.peak_bytes_by_rank)
    )
    axes = '<option value="time">time of the policy shown above</option>' if data.best is not None else ""
    axes += '<option value="program">program order</option>'
    return (
        '<h3>Scratch map</h3><p class="mute">Address by time: a rectangle is an allocation, coloured as the engine '
        "that fills it, from its first access to its last; in program order also, pale, what is held before and after. "
        'Dashed frames are scopes, the upright line is the peak in program order.</p><div class="tools">'
        f'<label>rank <select id="scratch-rank">{ranks}</select></label>'
        f'<label>across <select id="scratch-axis">{axes}</select></label>{_zoom_buttons("scratch")}</div>'
        f"{_canvas('scratch', 'Scratch map: address by time')}"
    )


def operations(data: ReportData) -> str:
    """How many nodes each operation has, with bars in its engine's colour."""
    counts = data.graph.summary()
    most = max(counts.values(), default=1)
    rows = []
    for name, count in counts.items():
        engine = OPERATIONS[name].engine.value
        bar = (
            f'<div class="track"><div class="bar" style="width:{100 * count / most:.2f}%">'
            f'<i style="width:100%;background-color:{ENGINE_COLOURS[engine].solid}"></i></div></div>'
        )
        rows.append(
            f"<tr><th>{shown(name)}</th><td>{'no engine' if engine == 'none' else engine}</td>"
            f'<td class="bar-cell">{bar}</td><td class="num">{count:,}</td></tr>'
        )
    head = '<thead><tr><th>operation</th><th>engine</th><th></th><th class="num">nodes</th></tr></thead>'
    return f'<div class="wide"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'


def sections(data: ReportData, drawing: Drawing, lines: LineTable) -> list[tuple[str, str, str]]:
    """The sections in their order: anchor, heading, content."""
    compared = [("against", "What changed", comparison(data, data.against))] if data.against is not None else []
    return [
        *compared,
        ("findings", "Findings", findings(data)),
        ("ladder", "Policies against the bound", ladder(data)),
        ("timeline", "Timeline", timelines(data)),
        ("scratch", "Scratch", scratch(data) + scratch_map(data)),
        ("graph", "Graph", picture(data, drawing)),
        ("source", "Source", source_section(data, lines)),
        ("numbers", "Numbers against the reference", numbers(data)),
        ("operations", "Operations", operations(data)),
    ]
