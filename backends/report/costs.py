"""The source beside what each line costs: the pane of a report page that says which line to change."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import attrs
import numpy as np

from ...ir.forms.printable import printable
from ...ir.ops import OPERATIONS, Kind
from ...ir.tables import IntArray
from ...linter.findings import Diagnostic
from ...machine.units import format_ps
from ..sizes import short_size
from .branches import marks
from .charts import chain_times
from .data import ReportData
from .markup import shown
from .paths import PagePaths
from .source import LineTable, SourceText

__all__ = ["hottest_lines", "source_section"]

_HOTTEST = 3
_HEADS = (
    ("g-crit", "critical", "share of the critical chain"),
    ("g-busy", "busy", "engines busy, over all ranks"),
    ("g-moved", "moved", "bytes moved, over all ranks"),
    ("g-peak", "at peak", "bytes held at the peak of the fullest rank"),
    ("g-nodes", "nodes", "nodes, over all ranks"),
)


def source_section(data: ReportData, lines: LineTable, paths: PagePaths) -> str:
    """The functions line by line, with what each line costs in the gutter, as HTML."""
    if not len(lines):
        return '<p class="mute">The source is not at hand.</p>'
    graph, best = data.graph, data.best
    drawn = ~OPERATIONS.markers[graph.nodes.op]
    counts = lines.sums(graph.nodes.stack, drawn.astype(np.int64))
    moving = OPERATIONS.mask(lambda op: op.kind in (Kind.TRANSFER, Kind.LINK))
    moved = lines.sums(graph.nodes.stack, np.where(moving[graph.nodes.op], graph.nodes.work0, 0))
    held = lines.sums(graph.storages.stack, _held_at_peak(data))
    busy = [0] * len(lines) if best is None else lines.sums(graph.nodes.stack, best.free_ps - best.start_ps)
    chain = [0] * len(lines) if best is None else lines.sums(*chain_times(best))
    makespan = best.makespan_ps if best is not None else 0
    costs = _Costs(counts, busy, chain, moved, held, makespan, _findings_by_line(data), marks(data), paths)
    rows: list[str] = []
    at = 0
    above = ""
    for text in lines.texts:
        named = shown(paths.name(text.file)) if text.file != above else ""  # between functions of one file: a gap
        rows.append(f'<tr class="file{"" if named else " gap"}"><th colspan="7">{named}</th></tr>')
        above = text.file
        for offset, line in enumerate(text.lines):
            rows.append(costs.row(at, text, text.first + offset, line))
            at += 1
    head = "".join(f'<th class="num {kind}" title="{words}"><span>{name}</span></th>' for kind, name, words in _HEADS)
    return (
        '<div class="panel source" tabindex="0" role="region" aria-label="Source, scrollable"><table><thead><tr>'
        f'<th class="num" title="line">#</th>{head}<th class="g-code">source</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def hottest_lines(data: ReportData, lines: LineTable) -> list[tuple[int, int]]:
    """The lines with the most of the best schedule's critical chain: (number in the table, picoseconds)."""
    if data.best is None or not len(lines):
        return []
    chain = lines.sums(*chain_times(data.best))
    counted = sorted(((ps, -at) for at, ps in enumerate(chain) if ps), reverse=True)
    return [(-at, ps) for ps, at in counted[:_HOTTEST]]


def _held_at_peak(data: ReportData) -> IntArray:
    """By storage the bytes it holds at the peak of the fullest rank."""
    held: IntArray = np.zeros(len(data.graph.storages), dtype=np.int64)
    rows = data.liveness.held_at_peak()
    held[rows] = data.liveness.held_bytes[rows]
    return held


def _findings_by_line(data: ReportData) -> dict[tuple[str, int], list[Diagnostic]]:
    found: dict[tuple[str, int], list[Diagnostic]] = {}
    for diagnostic in data.lint:
        if diagnostic.location is not None:
            found.setdefault((diagnostic.location.file, diagnostic.location.line), []).append(diagnostic)
    return found


@attrs.frozen
class _Costs:
    """What the lines cost, by line."""

    counts: list[int]
    busy: list[int]
    chain: list[int]
    moved: list[int]
    held: list[int]
    makespan: int
    findings: dict[tuple[str, int], list[Diagnostic]]
    marks: dict[tuple[str, int], str]
    paths: PagePaths

    def row(self, at: int, text: SourceText, number: int, line: str) -> str:
        cells = [
            ("g-crit", self._bar(self.chain, at, self._share)),
            ("g-busy", self._bar(self.busy, at, format_ps)),
            ("g-moved", self._bar(self.moved, at, short_size)),
            ("g-peak", self._bar(self.held, at, short_size)),
            ("g-nodes", f"{self.counts[at]:,}" if self.counts[at] else ""),
        ]
        badges = "".join(self._badge(d) for d in self.findings.get((text.file, number), ()))
        badges += self.marks.get((text.file, number), "")
        active = f' data-line="{at}" tabindex="0" role="button"' if self.counts[at] else ""
        code = escape(printable(line.expandtabs(4)), quote=True) or "&#8203;"
        numbers = "".join(f'<td class="num {kind}">{cell}</td>' for kind, cell in cells)
        return (
            f'<tr{active}><td class="num mute">{number}</td>{numbers}'
            f'<td class="code"><span>{code}</span>{badges}</td></tr>'
        )

    def _badge(self, diagnostic: Diagnostic) -> str:
        message = shown(self.paths.in_text(diagnostic.message))
        return f'<span class="badge {shown(diagnostic.severity)}" title="{message}">{shown(diagnostic.code)}</span>'

    def _share(self, ps: int) -> str:
        percent = 100 * ps / max(self.makespan, 1)
        return f"{percent:.0f} %" if percent >= 1 else "&lt;1 %"

    @staticmethod
    def _bar(values: list[int], at: int, say: Callable[[int], str]) -> str:
        if not values[at]:
            return ""
        share = 100 * values[at] / max(values)
        return f'<span class="cost" style="--share:{share:.1f}%">{say(values[at])}</span>'
