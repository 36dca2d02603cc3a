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
from .report_costs import hottest_lines, source_section
from .report_data import ReportData
from .report_embed import embedded_schedules
from .report_markup import plural, share, shown, table
from .report_picture import inline_svg
from .report_source import LineTable

__all__ = ["details", "hot_chips", "panes", "size_line", "strip"]

#: So many findings are shown in full.
FINDINGS_SHOWN = 100
_HOLDERS_SHOWN = 8
_CAUSES_SHOWN = 4


# --- the strip --------------------------------------------------------------------------------------------------------


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
    budget, peak = data.graph.target.scratch_bytes, data.liveness.peak_bytes
    over = peak > budget
    width = min(100 * peak / max(budget, 1), 100)
    meter = f'<div class="meter{" over" if over else ""}"><i style="width:{width:.2f}%"></i></div>'
    note = f"{peak:,} of {budget:,} B"
    return _figure(_opens("scratch", "Scratch peak"), share(peak, budget), note, "bad" if over else "", meter, "f-fit")


def _time_figure(data: ReportData) -> str:
    best = data.best
    if best is None:
        return _figure(_opens("ladder", "Makespan"), "deadlock", "under every policy", "bad", kind="f-time")
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
    worst = max(row.max_abs_error for row in data.numbers)
    return _figure(title, "agree", f"largest error {worst:.3g}", "good", kind="f-right", after=lint)


def _ladder_figure(data: ReportData) -> str:
    """The policies as small bars on one scale, the bound as a line through them; each chooses what the panes show."""
    longest = max(max((row.schedule.makespan_ps for row in data.policies if row.schedule), default=0), data.bound_ps)
    at = {s.policy: index for index, s in enumerate(embedded_schedules(data))}
    rows = []
    for row in data.policies:
        if row.schedule is None:
            rows.append(f'<li class="bad"><span>{shown(row.policy)}</span><span>deadlock</span></li>')
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
    """The graph, laid out by Graphviz, in a view of its own; or a sentence on what is missing."""
    notes = "".join(f'<p class="mute">{shown(note)}</p>' for note in drawing.notes)
    if drawing.data is None:
        return f'<div class="notice"><p>There is no picture of the graph here.</p>{notes}</div>'
    svg = inline_svg(drawing.data, f"Dataflow graph of {quote(data.title)}")
    bold = f"bold: critical chain of {shown(data.best.policy)}" if data.best else ""
    buttons = "".join(
        f'<button type="button" data-graph="{act}" aria-label="{words}" title="{words}">{text}</button>'
        for act, text, words in (("in", "+", "zoom in"), ("out", "&#8722;", "zoom out"), ("fit", "fit", "show all (f)"))
    )
    region = (
        '<div class="picture" id="graph-view" tabindex="0" role="region" '
        'aria-label="Picture of the graph: drag moves, Ctrl and wheel zoom">'
    )
    return (
        f'{notes}{region}{svg}</div><canvas id="graph-map" width="1" height="1" aria-hidden="true"></canvas>'
        f'<div class="float"><span class="group">{buttons}</span><span>{bold}</span></div>'
    )


def timelines(data: ReportData) -> tuple[str, str]:
    """What chooses the policy and the part shown, and the canvases of the timeline."""
    embedded = embedded_schedules(data)
    if not embedded:
        return "", '<p class="notice">No policy has a schedule: deadlock.</p>'
    options = "".join(
        f'<option value="{at}">{shown(s.policy)}: {format_ps(s.makespan_ps)}</option>' for at, s in enumerate(embedded)
    )
    said = []
    scheduled = [row.policy for row in data.policies if row.schedule is not None]
    left = [policy for policy in scheduled if policy not in {s.policy for s in embedded}]
    if left:
        said.append(f"To keep the page small, {shown(', '.join(left))} are summed up above only.")
    missing = [row.policy for row in data.policies if row.schedule is None]
    if missing:
        said.append(f"No timeline of {shown(', '.join(missing))}: deadlock.")
    notes = "".join(f'<p class="mute note">{one}</p>' for one in said)
    tools = (
        f'<label class="narrow">policy <select id="timeline-policy">{options}</select></label>'
        f'<span class="shown" id="timeline-shown"></span>{_zoom_buttons("timeline")}'
    )
    body = (
        f'{notes}<div class="canvas axis"><canvas id="axis-canvas" aria-hidden="true"></canvas></div>'
        f"{_canvas('timeline', 'Timeline of the schedule')}"
    )
    return tools, body


_CANVAS_HELP = (
    "Drag or arrow keys move, Ctrl and wheel, plus and minus, or a double click zoom, 0 shows all; a click selects."
)


def _canvas(name: str, label: str) -> str:
    return (
        f'<div class="canvas rows"><canvas id="{name}-canvas" tabindex="0" role="img" '
        f'aria-label="{label}. {_CANVAS_HELP}"></canvas></div>'
    )


def _zoom_buttons(of: str) -> str:
    buttons = (
        ("in", "+", "zoom in (w)"),
        ("out", "&#8722;", "zoom out (s)"),
        ("left", "&#8592;", "earlier (a)"),
        ("right", "&#8594;", "later (d)"),
        ("fit", "all", "show all (0)"),
    )
    return (
        '<span class="group">'
        + "".join(
            f'<button type="button" data-zoom="{of} {act}" aria-label="{words}" title="{words}">{text}</button>'
            for act, text, words in buttons
        )
        + "</span>"
    )


def scratch_map(data: ReportData) -> tuple[str, str]:
    """What chooses the rank and the axis of the scratch map, and its canvas; empty where nothing is in scratch."""
    if not data.liveness.peak_bytes:
        return "", ""
    ranks = "".join(
        f'<option value="{rank}">{rank}: peak {peak:,} B</option>'
        for rank, peak in enumerate(data.liveness.peak_bytes_by_rank)
    )
    axes = '<option value="time">time</option>' if data.best is not None else ""
    axes += '<option value="program">program order</option>'
    one = " hidden" if data.graph.ranks == 1 else ""
    tools = (
        f'<span class="shown">address &#215; time, coloured by who fills it</span>'
        f'<label{one}>rank <select id="scratch-rank">{ranks}</select></label>'
        f'<label>across <select id="scratch-axis">{axes}</select></label>'
    )
    return tools, _canvas("scratch", "Scratch map: address by time")


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


def engine_keys(data: ReportData) -> str:
    """The colours of the engines, named; what else the pictures mean."""
    embedded = embedded_schedules(data)
    kinds = dict.fromkeys(engine_kind(e.name) for e in embedded[0].engines) if embedded else {}
    keys = "".join(
        f'<span><span class="key" style="background-color:{ENGINE_COLOURS[kind].solid}"></span>{shown(kind)}</span>'
        for kind in kinds
    )
    critical = '<span><span class="key line"></span>critical</span>' if keys else ""
    return f'<span class="keys">{keys}{critical}</span>'


def hot_chips(data: ReportData, lines: LineTable) -> str:
    """The hottest lines, to jump to."""
    numbers = [text.first + offset for text in lines.texts for offset in range(len(text.lines))]
    best = data.best
    if best is None:
        return ""
    chips = "".join(
        f'<button type="button" class="chip" data-hot="{at}">:{numbers[at]} '
        f"<b>{100 * ps / max(best.makespan_ps, 1):.0f} %</b></button>"
        for at, ps in hottest_lines(data, lines)
    )
    return f'<span class="hot" title="lines with the most of the critical chain (h)">{chips}</span>' if chips else ""


def _pane(anchor: str, heading: str, tools: str, body: str) -> str:
    return (
        f'<section class="pane" id="{anchor}" aria-labelledby="{anchor}-title"><header class="head">'
        f'<h2 id="{anchor}-title">{heading}</h2>{tools}</header><div class="body">{body}</div></section>'
    )


def panes(data: ReportData, lines: LineTable) -> tuple[str, str]:
    """The source, and the timeline above the scratch map."""
    tools, body = timelines(data)
    tracks = _pane("timeline", "Timeline", engine_keys(data) + tools, body)
    tools, body = scratch_map(data)
    if body:
        tracks += _pane("map", "Scratch", tools, body)
    source = _pane("source", "Source", hot_chips(data, lines), source_section(data, lines))
    return source, f'<div id="tracks">{tracks}<div id="cursor" hidden><span></span></div></div>'


def details(data: ReportData, drawing: Drawing) -> list[tuple[str, str, str]]:
    """What stands in the dock, one tab each: anchor, heading, content."""
    found: list[tuple[str, str, str]] = [("graph", "Graph", picture(data, drawing))]
    if data.against is not None:
        found.append(("against", "What changed", comparison(data, data.against)))
    count = f" <b>{len(data.lint):,}</b>" if len(data.lint) else ""
    return [
        *found,
        ("findings", f"Findings{count}", findings(data)),
        ("ladder", "Critical chain", ladder(data)),
        ("scratch", "Peak", scratch(data)),
        ("numbers", "Numbers", numbers(data)),
        ("operations", "Operations", operations(data)),
    ]
