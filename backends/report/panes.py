"""The panes of a report page that its script draws on: the source, and the timeline above the scratch map."""

from __future__ import annotations

from ...machine.units import format_ps
from ..palette import ENGINE_COLOURS, engine_kind
from .costs import hottest_lines, source_section
from .data import ReportData
from .embedding import embedded_schedules
from .markup import shown
from .paths import PagePaths
from .source import LineTable

__all__ = ["panes"]

_CANVAS_HELP = (
    "Drag or arrow keys move, Ctrl and wheel, plus and minus, or a double click zoom, 0 shows all; a click selects."
)


def panes(data: ReportData, lines: LineTable, paths: PagePaths) -> tuple[str, str]:
    """The source, and the timeline above the scratch map."""
    tools, body = _timelines(data)
    tracks = _pane("timeline", "Timeline", _engine_keys(data) + tools, body)
    tools, body = _scratch_map(data)
    if body:
        tracks += _pane("map", "Scratch", tools, body)
    source = _pane("source", "Source", _hot_chips(data, lines), source_section(data, lines, paths))
    return source, f'<div id="tracks">{tracks}<div id="cursor" hidden><span></span></div></div>'


def _timelines(data: ReportData) -> tuple[str, str]:
    """What chooses the policy and the part shown, and the canvases of the timeline."""
    embedded = embedded_schedules(data)
    if not embedded:
        return "", f'<p class="notice">No policy has a schedule: {shown(data.verdict)}.</p>'
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
        said.append(f"No timeline of {shown(', '.join(missing))}: {shown(data.verdict)}.")
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


def _scratch_map(data: ReportData) -> tuple[str, str]:
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
        f'<span class="shown">by address, coloured by who fills it</span>'
        f'<label{one}>rank <select id="scratch-rank">{ranks}</select></label>'
        f'<label>across <select id="scratch-axis">{axes}</select></label>'
    )
    return tools, _canvas("scratch", "Scratch map: address by time")


def _engine_keys(data: ReportData) -> str:
    """The colours of the engines, named; what else the pictures mean."""
    embedded = embedded_schedules(data)
    kinds = dict.fromkeys(engine_kind(e.name, e.kind) for e in embedded[0].engines) if embedded else {}
    keys = "".join(
        f'<span><span class="key" style="background-color:{ENGINE_COLOURS[kind].solid}"></span>{shown(kind)}</span>'
        for kind in kinds
    )
    critical = '<span><span class="key line"></span>critical</span>' if keys else ""
    return f'<span class="keys">{keys}{critical}</span>'


def _hot_chips(data: ReportData, lines: LineTable) -> str:
    """The hottest lines, to jump to."""
    numbers = [text.first + offset for text in lines.texts for offset in range(len(text.lines))]
    best = data.best
    if best is None:
        return ""
    chips = "".join(
        f'<span class="chip">:{numbers[at]} <b>{100 * ps / max(best.makespan_ps, 1):.0f} %</b></span>'
        for at, ps in hottest_lines(data, lines)
    )
    return f'<span class="hot" title="lines with the most of the critical chain (h)">{chips}</span>' if chips else ""


def _pane(anchor: str, heading: str, tools: str, body: str) -> str:
    return (
        f'<section class="pane" id="{anchor}" aria-labelledby="{anchor}-title"><header class="head">'
        f'<h2 id="{anchor}-title">{heading}</h2>{tools}</header><div class="body">{body}</div></section>'
    )
