"""A Gantt chart as SVG: engines as rows under their rank, lanes within an engine, one time axis for all schedules.

Written by hand: the text is small, needs no library, and every slice carries the schedule's own picoseconds
(``data-start-ps``, ``data-end-ps``) for programs that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from ...ir.forms.text import format_node, quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from ..palette import ENGINE_COLOURS, engine_kind
from .gantt_slices import Slices, merge_below, schedule_name, slices_of
from .time_axis import exact_time, ticks

__all__ = ["GANTT_CSS", "MERGE_ABOVE", "gantt_svg"]

#: Above so many slices in one picture those narrower than a pixel are merged.
MERGE_ABOVE = 20_000
#: Up to so many slices of a schedule tell all operands of their nodes when pointed at.
DETAILS_BELOW = 3_000

_WIDTH, _LEFT, _RIGHT = 1200.0, 128.0, 20.0
_PLOT = _WIDTH - _LEFT - _RIGHT
_LANE, _GAP, _RANK_HEAD, _TITLE, _AXIS, _BETWEEN = 18.0, 5.0, 22.0, 30.0, 26.0, 18.0
_CHARACTER = 6.2  # width of a character in a slice, in pixels
_BORDERED = 3.0  # narrower slices would vanish behind the border between neighbours
_OUTLINED = 6.0  # narrower slices would vanish behind an outline: the critical chain underlines them

#: The chart's colours, light and dark; everything is below ``.gantt``, so that a page may hold several.
GANTT_CSS = """
.gantt { max-width: 100%; height: auto; }
.gantt { background: #ffffff; font: 11px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.gantt text { fill: #3a4048; }
.gantt .head { font-size: 13px; font-weight: 600; fill: #15181c; }
.gantt .note, .gantt .tick { fill: #616975; font-variant-numeric: tabular-nums; }
.gantt .row { fill: #f3f4f6; }
.gantt .grid { stroke: #e1e4e9; stroke-width: 1; }
.gantt .mark { stroke: #15181c; stroke-width: 1; }
.gantt .bound { stroke: #616975; stroke-width: 1; stroke-dasharray: 4 3; }
.gantt .slice { stroke: #ffffff; stroke-width: 0.5; }
.gantt .slice.thin { stroke: none; }
.gantt .slice.critical { stroke: #111111; stroke-width: 1.4; }
.gantt .strip { fill: #111111; pointer-events: none; }
.gantt .name { font-size: 10px; pointer-events: none; }
@media screen and (prefers-color-scheme: dark) {
  .gantt { background: #14171b; }
  .gantt text { fill: #c3c9d2; }
  .gantt .head { fill: #f2f4f7; }
  .gantt .note, .gantt .tick { fill: #99a1ad; }
  .gantt .row { fill: #1d2126; }
  .gantt .grid { stroke: #2b3138; }
  .gantt .mark { stroke: #f2f4f7; }
  .gantt .bound { stroke: #99a1ad; }
  .gantt .slice { stroke: #14171b; }
  .gantt .slice.critical { stroke: #ffffff; }
  .gantt .strip { fill: #ffffff; }
}
""" + "".join(
    f".gantt .slice.{kind.replace('_', '-')} {{ fill: {colour.solid}; }}\n"
    f".gantt text.name.{kind.replace('_', '-')} {{ fill: {colour.ink}; }}\n"
    for kind, colour in ENGINE_COLOURS.items()
)


def gantt_svg(
    schedules: Sequence[Schedule],
    *,
    standalone: bool = True,
    merge_above: int = MERGE_ABOVE,
    span_ps: int = 0,
    pixels: float = 1.0,
) -> tuple[str, tuple[str, ...]]:
    """The SVG text of a chart, and what it leaves out. Not ``standalone``: without the XML head and the style, for a
    page that holds :data:`GANTT_CSS` itself. The axis reaches to ``span_ps`` at least. With more than
    ``merge_above`` slices those narrower than ``pixels`` are merged."""
    span = max(span_ps, *(max(s.makespan_ps, s.bound_ps) for s in schedules))
    scale = _PLOT / max(span, 1)
    all_slices = [slices_of(schedule) for schedule in schedules]
    total = sum(map(len, all_slices))
    notes: tuple[str, ...] = ()
    if total > merge_above:
        merged = [merge_below(slices, pixels / scale) for slices in all_slices]
        drawn = sum(map(len, merged))
        single = sum(int((slices.count == 1).sum()) for slices in merged)
        if drawn < total:
            notes = (
                f"{total - single:,} of {total:,} slices are narrower than {pixels:g} px: "
                f"neighbours among them are drawn as {drawn - single:,} merged ones, paler where the lane rests",
            )
        all_slices = merged
    body: list[str] = []
    top = _AXIS
    for schedule, slices in zip(schedules, all_slices, strict=True):
        block, top = _block(schedule, slices, top, scale, named=standalone)
        body += block
        top += _BETWEEN
    body += [f'<text class="note" x="{_LEFT:g}" y="{top + 2:.1f}">{escape(note)}</text>' for note in notes]
    height = top + 8 + 14 * len(notes)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n' if standalone else ""
    style = f"<style>{GANTT_CSS}</style>" if standalone else ""
    names = ", ".join(schedule.policy for schedule in schedules)
    label = escape(f"Gantt chart of {quote(schedules[0].graph.kernel)}: {names}", quote=True)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" role="img" aria-label="{label}" '
        f'viewBox="0 0 {_WIDTH:g} {height:.1f}" width="{_WIDTH:g}" height="{height:.1f}">'
    )
    return "\n".join([f"{head}{opening}{style}", *_axis(span, scale, top - _BETWEEN), *body, "</svg>\n"]), notes


def _teller(graph: Graph, *, detailed: bool) -> Callable[[int], str]:
    """What a slice tells of its node: all of it, or its operation and line (made once for each line)."""
    if detailed:
        return lambda node: format_node(graph, node)
    names, op, stack = OPERATIONS.names, graph.nodes.op, graph.nodes.stack
    places: dict[int, str] = {}

    def tell(node: int) -> str:
        row = int(stack[node])
        if row not in places:
            place = graph.location(row)
            places[row] = f"  # {quote(place.short)}" if place else ""
        return f"%{node} = {names[op[node]]}{places[row]}"

    return tell


def _axis(span: int, scale: float, bottom: float) -> Iterator[str]:
    for at, label in ticks(span, 10):
        x = _LEFT + at * scale
        anchor = "start" if at == 0 else "end" if x > _WIDTH - 40 else "middle"
        yield f'<line class="grid" x1="{x:.2f}" x2="{x:.2f}" y1="{_AXIS - 6:g}" y2="{bottom:.1f}"/>'
        yield f'<text class="tick" x="{x:.2f}" y="14" text-anchor="{anchor}">{label}</text>'


def _block(schedule: Schedule, slices: Slices, top: float, scale: float, *, named: bool) -> tuple[list[str], float]:
    """One schedule's rows, from ``top`` downward; returns its elements and where it ends."""
    lines = [f'<text class="head" x="{_LEFT:g}" y="{top + 18:.1f}">{escape(_title(schedule, named))}</text>']
    top += _TITLE
    began = top
    busy = set(slices.engine.tolist())
    rows: dict[tuple[int, int], float] = {}
    last_rank = -1
    for index, engine in enumerate(schedule.engines):
        if index not in busy:
            continue
        if engine.rank != last_rank and schedule.graph.ranks > 1:
            lines.append(f'<text class="head" x="8" y="{top + 15:.1f}">rank {engine.rank}</text>')
            top += _RANK_HEAD
        last_rank = engine.rank
        middle = top + _LANE * engine.channels / 2 + 4
        lines.append(f'<text x="{_LEFT - 8:g}" y="{middle:.1f}" text-anchor="end">{escape(quote(engine.name))}</text>')
        for lane in range(engine.channels):
            rows[index, lane] = top
            lines.append(f'<rect class="row" x="{_LEFT:g}" y="{top:.1f}" width="{_PLOT:.2f}" height="{_LANE - 1:g}"/>')
            top += _LANE
        top += _GAP
    lines += _slices(schedule, slices, rows, scale)
    for name, at in (("bound", schedule.bound_ps), ("mark", schedule.makespan_ps)):
        x = _LEFT + at * scale
        lines.append(f'<line class="{name}" x1="{x:.2f}" x2="{x:.2f}" y1="{began - 4:.1f}" y2="{top:.1f}"/>')
    return lines, top


def _title(schedule: Schedule, named: bool) -> str:
    makespan, bound = schedule.makespan_ps, schedule.bound_ps
    # A page names the kernel elsewhere; a picture of its own has to.
    what = f"{schedule_name(schedule)}, " if named else ""
    ratio = f", {makespan / bound:.3f} x the bound (dashed)" if bound else ""
    return f"{what}{schedule.policy}: {format_ps(makespan)}{ratio}; critical chain outlined, where narrow underlined"


def _name(graph: Graph, node: int, operation: str, room: float) -> str:
    """What is written on a slice: ``load k`` if there is room for so many characters, else the tensor in memory that
    is moved, else the operation; nothing where none of them fits."""
    storages = graph.accesses.storage[graph.access_start[node] : graph.access_start[node + 1]]
    tensor = next((graph.names[graph.storages.name[s]] for s in storages if not graph.in_scratch[s]), "")
    wanted = [f"{operation} {quote(tensor)}", quote(tensor)] if tensor else []
    return next((words for words in [*wanted, operation] if len(words) <= room), "")


def _slices(schedule: Schedule, slices: Slices, rows: dict[tuple[int, int], float], scale: float) -> Iterator[str]:
    graph = schedule.graph
    tell = _teller(graph, detailed=len(slices) <= DETAILS_BELOW)
    chain = set(schedule.critical_chain().nodes)
    names, codes = OPERATIONS.names, graph.nodes.op
    kinds = [engine_kind(engine.name, engine.kind).replace("_", "-") for engine in schedule.engines]
    columns = (slices.node, slices.engine, slices.lane, slices.start_ps, slices.end_ps, slices.count, slices.busy_ps)
    late: list[str] = []  # outlined slices last, so that no neighbour covers an outline
    for node, engine, lane, start, end, count, busy in zip(*(c.tolist() for c in columns), strict=True):
        x, width, y = _LEFT + start * scale, (end - start) * scale, rows[engine, lane]
        kind = kinds[engine]
        times = f"{exact_time(end - start)}, from {exact_time(start)} to {exact_time(end)}"
        merged = count > 1
        critical = not merged and node in chain
        if merged:
            words = f"{count:,} nodes, the first: {tell(node)}\n{times}, busy {busy / (end - start):.0%}"
        else:
            words = f"{tell(node)}\n{times}" + ("\non the critical chain" if critical else "")
        pale = f' fill-opacity="{0.35 + 0.65 * busy / (end - start):.2f}"' if merged and busy < end - start else ""
        outlined = critical and width >= _OUTLINED
        look = " critical" if outlined else " thin" if width < _BORDERED else ""
        shape = (
            f'<rect class="slice {kind}{look}" x="{x:.3f}" y="{y + 1:.1f}" '
            f'width="{max(width, 0.2):.3f}" height="{_LANE - 3:g}"{pale} data-node="{node}" data-count="{count}" '
            f'data-start-ps="{start}" data-end-ps="{end}"><title>{escape(words)}</title></rect>'
        )
        if critical and not outlined:
            under = f'y="{y + _LANE - 3.5:.1f}" width="{max(width, 0.4):.3f}" height="3"'
            shape += f'<rect class="strip" x="{x:.3f}" {under}/>'
        room = (width - 5) / _CHARACTER
        name = "" if merged or room < 1 else _name(graph, node, names[codes[node]], room)
        if name:
            shape += f'<text class="name {kind}" x="{x + 4:.2f}" y="{y + 12.5:.1f}">{escape(name)}</text>'
        if critical:
            late.append(shape)
        else:
            yield shape
    yield from late
