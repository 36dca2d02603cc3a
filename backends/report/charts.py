"""The small charts of a report page: scratch over program order, and bars of a schedule's critical chain."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from ...ir.tables import IntArray
from ...machine.units import format_ps
from ...memory.liveness import Liveness
from ...scheduler.result.schedule import Schedule
from ..palette import ENGINE_COLOURS, engine_kind
from ..sizes import byte_ticks, short_size

__all__ = ["cause_style", "chain_bar", "chain_times", "scratch_chart"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1180.0, 250.0, 84.0, 12.0, 18.0, 34.0
_COLUMNS = 900


def scratch_chart(liveness: Liveness, budget: int) -> str:
    """Held and live bytes of the fullest rank over program order, with the budget where it is near enough to be seen.

    Of more nodes than the chart has columns each column shows the largest value.
    """
    rank = liveness.fullest_rank
    nodes = np.flatnonzero(liveness.graph.nodes.rank == rank)
    peak = liveness.peak_bytes_by_rank[rank]
    if not len(nodes) or not peak:
        return ""
    first = np.unique(np.linspace(0, len(nodes), min(len(nodes), _COLUMNS), endpoint=False).astype(np.int64))
    held = np.maximum.reduceat(liveness.cursor[nodes], first)
    live = np.maximum.reduceat(liveness.live_bytes[nodes], first)
    top = budget * 1.06 if budget <= peak * 4 else peak * 1.25
    top = max(top, peak * 1.06)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    across, up = (right - _LEFT) / len(nodes), (bottom - _TOP) / top

    def area(values: IntArray) -> str:
        steps = [f"M{_LEFT:g} {bottom:g}"]
        ends = np.append(first[1:], len(nodes))
        for begin, end, value in zip(first.tolist(), ends.tolist(), values.tolist(), strict=True):
            y = bottom - value * up
            steps.append(f"L{_LEFT + begin * across:.1f} {y:.1f}H{_LEFT + end * across:.1f}")
        return "".join(steps) + f"V{bottom:g}Z"

    lines = []
    for value in byte_ticks(int(top)):
        y = bottom - value * up
        lines.append(f'<line class="grid" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{short_size(value)}</text>')
    lines.append(f'<path class="held" d="{area(held)}"><title>held: given out and not yet rewound</title></path>')
    lines.append(f'<path class="live" d="{area(live)}"><title>live: will be accessed again</title></path>')
    y = bottom - peak * up
    lines.append(f'<line class="peak" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
    lines.append(f'<text class="strong" x="{_LEFT + 6:g}" y="{y - 5:.1f}">peak {peak:,} B</text>')
    if budget <= top:
        y = bottom - budget * up
        lines.append(f'<line class="budget" x1="{_LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(
            f'<text class="strong" x="{right - 4:g}" y="{y - 5:.1f}" text-anchor="end">budget {budget:,} B</text>'
        )
    else:
        lines.append(
            f'<text x="{right - 4:g}" y="{_TOP - 4:g}" text-anchor="end">'
            f"the budget, {budget:,} B, lies above this chart</text>"
        )
    on = f" of rank {rank}" if liveness.graph.ranks > 1 else ""
    lines.append(f'<text x="{_LEFT:g}" y="{_HEIGHT - 14:g}">node {nodes[0]:,}</text>')
    lines.append(f'<text x="{right:g}" y="{_HEIGHT - 14:g}" text-anchor="end">node {nodes[-1]:,}</text>')
    middle = (_LEFT + right) / 2
    lines.append(f'<text x="{middle:g}" y="{_HEIGHT - 14:g}" text-anchor="middle">program order{on}</text>')
    label = f"Scratch{on} over program order: peak {peak:,} of {budget:,} bytes"
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}">\n'
        + "\n".join(lines)
        + "\n</svg>"
    )


def cause_style(cause: str) -> tuple[str, str]:
    """The class and colour of a cause of the critical chain: an engine's hue (hatched for latency), or its own."""
    named = {"waiting for reused scratch": "var(--wait)", "issue": "var(--cpu)", "idle": "var(--idle)"}
    if cause in named:
        return "", named[cause]
    engine, _, what = cause.rpartition(" ")
    return ("latency" if what == "latency" else ""), ENGINE_COLOURS[engine_kind(engine)].solid


def chain_times(schedule: Schedule) -> tuple[IntArray, IntArray]:
    """The call stacks of the critical chain's parts, and their picoseconds."""
    parts = [part for part in schedule.critical_chain().parts if part.node is not None]
    nodes = np.array([part.node for part in parts], dtype=np.int64)
    return schedule.graph.nodes.stack[nodes], np.array([part.duration_ps for part in parts], dtype=np.int64)


def chain_bar(schedule: Schedule, causes: Mapping[str, int], longest_ps: int, bound_ps: int) -> str:
    """A bar as long as the makespan, divided by the causes of its critical chain, with the bound as a dashed line."""
    longest = max(longest_ps, 1)
    total = max(sum(causes.values()), 1)
    pieces = []
    for cause, ps in causes.items():
        kind, colour = cause_style(cause)
        pieces.append(
            f'<i class="{kind}" style="width:{100 * ps / total:.3f}%;background-color:{colour}" '
            f'title="{escape(cause, quote=True)}: {format_ps(ps)} ({100 * ps / total:.1f} %)"></i>'
        )
    bound = f'<span class="bound" style="left:{100 * bound_ps / longest:.3f}%"></span>' if bound_ps else ""
    label = escape(f"{schedule.policy}: {format_ps(schedule.makespan_ps)}", quote=True)
    bar = f'<div class="bar" style="width:{100 * schedule.makespan_ps / longest:.3f}%">{"".join(pieces)}</div>'
    return f'<div class="track" role="img" aria-label="{label}">{bar}{bound}</div>'
