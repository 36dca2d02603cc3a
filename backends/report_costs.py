"""The section of a report page that shows the source: what each line costs, beside the line."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import attrs
import numpy as np

from ..ir.ops import OPERATIONS, Engine, Family
from ..ir.tables import IntArray
from ..linter.findings import Diagnostic
from ..linter.source import printable
from ..scheduler.schedule import Schedule
from ..scheduler.units import format_ps
from .report_charts import short_size
from .report_data import ReportData
from .report_markup import shown
from .report_source import LineTable, SourceText

__all__ = ["source_section"]


def source_section(data: ReportData, lines: LineTable) -> str:
    """The functions line by line, with what each line costs, as HTML."""
    if not len(lines):
        return '<p class="mute">The source is not at hand.</p>'
    graph, best = data.graph, data.best
    drawn = ~OPERATIONS.mask(lambda op: op.family is Family.MARKER)[graph.nodes.op]
    counts = lines.sums(graph.nodes.stack, drawn.astype(np.int64))
    moving = OPERATIONS.mask(lambda op: op.engine in (Engine.DMA_READ, Engine.DMA_WRITE, Engine.LINK))
    moved = lines.sums(graph.nodes.stack, np.where(moving[graph.nodes.op], graph.nodes.work0, 0))
    held = lines.sums(graph.storages.stack, _held_at_peak(data))
    busy = [0] * len(lines) if best is None else lines.sums(graph.nodes.stack, best.end_ps - best.start_ps)
    chain = [0] * len(lines) if best is None else lines.sums(*_chain_times(best))
    costs = _Costs(counts, busy, chain, moved, held, _findings_by_line(data))
    rows: list[str] = []
    at = 0
    for text in lines.texts:
        rows.append(f'<tr class="file"><th colspan="7">{shown(text.file)}</th></tr>')
        for offset, line in enumerate(text.lines):
            rows.append(costs.row(at, text, text.first + offset, line))
            at += 1
    policy = f" under {shown(best.policy)}" if best is not None else ""
    said = (
        f'<p class="mute">What each line costs{policy}, summed over all ranks and iterations; a call counts what it '
        "calls. A click on a line selects its nodes.</p>"
    )
    head = "".join(
        f'<th class="num">{words}</th>' for words in ("nodes", "engines busy", "critical", "moved", "at peak")
    )
    return (
        f'{said}<div class="panel source" tabindex="0" role="region" aria-label="Source, scrollable"><table><thead><tr>'
        f'<th class="num">line</th>{head}<th>source</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _chain_times(schedule: Schedule) -> tuple[IntArray, IntArray]:
    """The call stacks of the critical chain's parts, and their picoseconds."""
    parts = [part for part in schedule.critical_chain().parts if part.node is not None]
    nodes = np.array([part.node for part in parts], dtype=np.int64)
    return schedule.graph.nodes.stack[nodes], np.array([part.duration_ps for part in parts], dtype=np.int64)


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
    findings: dict[tuple[str, int], list[Diagnostic]]

    def row(self, at: int, text: SourceText, number: int, line: str) -> str:
        cells = [
            f"{self.counts[at]:,}" if self.counts[at] else "",
            self._bar(self.busy, at, format_ps),
            self._bar(self.chain, at, format_ps),
            self._bar(self.moved, at, short_size),
            self._bar(self.held, at, short_size),
        ]
        badges = "".join(
            f'<span class="badge {shown(d.severity)}" title="{shown(d.message)}">{shown(d.code)}</span>'
            for d in self.findings.get((text.file, number), ())
        )
        active = f' data-line="{at}" tabindex="0" role="button"' if self.counts[at] else ""
        code = escape(printable(line.expandtabs(4)), quote=True) or "&#8203;"
        numbers = "".join(f'<td class="num">{cell}</td>' for cell in cells)
        return f'<tr{active}><td class="num mute">{number}</td>{numbers}<td class="code">{code}{badges}</td></tr>'

    @staticmethod
    def _bar(values: list[int], at: int, say: Callable[[int], str]) -> str:
        if not values[at]:
            return ""
        share = 100 * values[at] / max(values)
        return f'<span class="cost" style="--share:{share:.1f}%">{say(values[at])}</span>'
