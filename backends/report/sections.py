"""The sections of a report page below its panes, each as HTML. Everything from a kernel goes through ``shown``."""

from __future__ import annotations

from html import escape

from ...ir.forms.counts import plural
from ...ir.forms.ranks import fold_ranks
from ...ir.forms.text import quote
from ...ir.ops import OPERATIONS
from ...linter.findings import Diagnostic
from ...machine.units import format_ps
from ..graph_picture.drawing import Drawing
from ..palette import ENGINE_COLOURS
from ..sizes import size_text
from .branches import branches_section
from .charts import cause_style, chain_bar, scratch_chart
from .comparison import comparison
from .data import NumbersRow, ReportData
from .markup import share, shown, table
from .paths import PagePaths
from .picture import inline_svg

__all__ = ["details"]

#: So many findings are shown in full.
FINDINGS_SHOWN = 100
_HOLDERS_SHOWN = 8


def details(data: ReportData, drawing: Drawing, paths: PagePaths) -> list[tuple[str, str, str]]:
    """What stands in the dock, one tab each: anchor, heading, content."""
    found: list[tuple[str, str, str]] = [("graph", "Graph", _picture(data, drawing, paths))]
    if data.against is not None:
        found.append(("against", "What changed", comparison(data, data.against, paths)))
    count = f" <b>{len(data.lint):,}</b>" if len(data.lint) else ""
    return [
        *found,
        ("findings", f"Findings{count}", _findings(data, paths)),
        ("ladder", "Critical chain", _ladder(data, paths)),
        ("scratch", "Peak", _scratch(data)),
        ("numbers", "Numbers", _numbers(data, paths)),
        ("operations", "Operations", _operations(data)),
        ("branches", "Branches", branches_section(data, paths)),
    ]


def _findings(data: ReportData, paths: PagePaths) -> str:
    """Every finding with its source excerpts."""
    if not len(data.lint):
        return '<p class="good">No findings.</p>'
    parts = [_finding(at, d, paths) for at, d in enumerate(data.lint.diagnostics[:FINDINGS_SHOWN])]
    rest = len(data.lint) - len(parts)
    if rest > 0:
        parts.append(f'<p class="mute">{plural(rest, "more finding")}: <code>kernscope lint</code> prints all.</p>')
    return "".join(parts)


def _finding(number: int, diagnostic: Diagnostic, paths: PagePaths) -> str:
    # The text form begins with severity, code and message, which the heading says, and ends with the help.
    detail = paths.in_text(str(diagnostic)).splitlines()[1 : -1 if diagnostic.help else None]
    body = f'<pre tabindex="0">{escape(chr(10).join(detail), quote=True)}</pre>' if detail else ""
    if diagnostic.help:
        body += f'<p class="help"><b>help:</b> {shown(paths.in_text(diagnostic.help))}</p>'
    nodes = ""
    if diagnostic.nodes:
        said = plural(len(diagnostic.nodes), "node")
        nodes = f' <span class="mute">({said})</span> '
        nodes += f'<button type="button" data-select-finding="{number}" hidden>show {said}</button>'
    code, severity = shown(diagnostic.code), shown(diagnostic.severity)
    heading = f'<span class="code">{code} {severity}</span>{shown(paths.in_text(diagnostic.message))}{nodes}'
    return f'<article class="finding {severity}" data-finding="{number}"><h3>{heading}</h3>{body}</article>'


def _ladder(data: ReportData, paths: PagePaths) -> str:
    """One bar a policy, divided by the causes of its critical chain, on one scale with the best bound."""
    slowest = max((row.schedule.makespan_ps for row in data.policies if row.schedule), default=0)
    longest = max(slowest, data.bound_ps)
    causes: dict[str, dict[str, int]] = {}
    rows = []
    for row in data.policies:
        if row.schedule is None:
            said = f'<pre tabindex="0">{escape(paths.in_text(row.deadlock) or row.verdict, quote=True)}</pre>'
            verdict = f'<b class="bad">{shown(row.verdict)}</b>'
            rows.append(f'<tr><th>{shown(row.policy)}</th><td colspan="4">{verdict}{said}</td></tr>')
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
    folded = [(f"{ranks} {thing}".strip(), ps) for thing, ranks, ps in fold_ranks(data.bounds_ps)]
    rows = [
        [shown(name), format_ps(ps), share(ps, data.bound_ps)]
        for name, ps in sorted(folded, key=lambda item: (-item[1], item[0]))
    ]
    bounds = table(["lower bound", "time", "of the best"], rows, numbers=2)
    return f"<details><summary>All lower bounds</summary>{bounds}</details>"


def _scratch(data: ReportData) -> str:
    """Held and live bytes over program order, and what holds the most at the peak."""
    live = data.liveness
    budget = live.budget_bytes
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
    by_rank = {f"rank {rank}": peak for rank, peak in enumerate(peaks)}
    listed = "; ".join(f"{ranks}: {peak:,} B" for _, ranks, peak in fold_ranks(by_rank))
    return f'<p class="mute">{listed}</p>'


def _verdict(row: NumbersRow) -> str:
    if row.unstored:
        return f'<span class="bad">no: {shown(row.unstored)}</span>'
    return '<span class="good">within</span>' if row.ok else '<span class="bad">outside</span>'


def _numbers(data: ReportData, paths: PagePaths) -> str:
    """Outputs beside their reference."""
    note = f'<p class="mute">{shown(paths.in_note(data.numbers_note))}</p>' if data.numbers_note else ""
    if not data.numbers:
        return note or '<p class="mute">Nothing was compared.</p>'
    rows = [
        [
            shown(row.tensor),
            _verdict(row),
            f"{row.max_abs_error:.3g}",
            f"{row.max_rel_error:.3g}",
            f"{row.max_error:.3g}",
            f"{row.tolerance:.3g}",
        ]
        for row in data.numbers
    ]
    head = ["tensor", "tolerance kept", "largest absolute error", "largest relative error", "as judged", "tolerance"]
    return note + table(head, rows, numbers=4)


def _picture(data: ReportData, drawing: Drawing, paths: PagePaths) -> str:
    """The graph, laid out by Graphviz, in a view of its own; or a sentence on what is missing."""
    notes = "".join(f'<p class="mute">{shown(paths.in_note(note))}</p>' for note in drawing.notes)
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
        f'<div class="float"><span class="group">{buttons}</span><span id="chain-of">{bold}</span></div>'
    )


def _operations(data: ReportData) -> str:
    """How many nodes each operation has, with bars in its engine's colour."""
    counts = data.graph.summary()
    most = max(counts.values(), default=1)
    rows = []
    for name, count in counts.items():
        engine = OPERATIONS[name].engine
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
