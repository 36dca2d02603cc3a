"""The Gantt chart of :mod:`kernscope.backends.timelines.gantt` as a PNG, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from ...ir.forms.text import quote
from ...ir.tables import IntArray
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from ..palette import ENGINE_COLOURS, engine_colour, engine_kind
from .gantt import MERGE_ABOVE
from .gantt_slices import merge_below, schedule_name, slices_of
from .png_fonts import fonts_for
from .time_axis import ticks

__all__ = ["gantt_png"]

_WIDTH, _DPI = 13.0, 120  # inches, pixels an inch
_PLOT = 0.85  # of the width
_ROW, _TITLE, _AXIS = 0.19, 0.42, 0.45  # inches
_CHARACTERS_NAMED = 8
_MOST_PIXELS = 30_000  # Agg draws no figure higher than 2 ** 16; viewers give up long before


def gantt_png(schedules: Sequence[Schedule]) -> tuple[bytes, tuple[str, ...]]:
    """The picture's bytes and what it leaves out: characters that no installed font has. Of many slices those narrower
    than a pixel that share one are drawn as one, as pale as the lane rests in it, which is what the eye would see of
    them.

    Engines are rows under their rank, a row for each lane, on one time axis; the critical chain has a line below its
    slices; the bound is dashed.
    """
    rows = [_rows(schedule) for schedule in schedules]
    heights = [_TITLE + _ROW * len(names) for names, _ in rows]
    total = sum(heights) + _AXIS
    figure = Figure(figsize=(_WIDTH, total), dpi=min(_DPI, _MOST_PIXELS / total))
    FigureCanvasAgg(figure)
    span = max(1, *(max(schedule.makespan_ps, schedule.bound_ps) for schedule in schedules))
    top = total
    for schedule, (names, row_of), height in zip(schedules, rows, heights, strict=True):
        top -= height
        inner = max(_ROW * len(names), _ROW)
        axes = figure.add_axes((0.13, (top + 0.02) / total, _PLOT, inner / total))
        _draw(axes, schedule, names, row_of, span)
        last = schedule is schedules[-1]
        axes.set_xticks([at for at, _ in ticks(span, 10)], [label if last else "" for _, label in ticks(span, 10)])
    missing = _set_fonts(figure)
    picture = io.BytesIO()
    # Without the program's version the same schedules give the same bytes.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)  # a note says so
        figure.savefig(picture, format="png", metadata={"Software": None})
    note = f"no font here has {missing}: they are drawn as boxes; a .svg is shown in its reader's fonts"
    return picture.getvalue(), (note,) if missing else ()


def _set_fonts(figure: Figure) -> str:
    """Fonts for all texts of a figure; the characters that none of them has."""
    written = [text for text in figure.findobj(Text) if text.get_text()]
    families, missing = fonts_for(text.get_text() for text in written)
    for text in written if len(families) > 1 else ():
        text.set(fontfamily=families, fontweight="normal")  # few fonts of other scripts have a bold one
    return ", ".join(missing[:_CHARACTERS_NAMED]) + (", ..." if len(missing) > _CHARACTERS_NAMED else "")


def _rows(schedule: Schedule) -> tuple[list[str], IntArray]:
    """The rows' titles from top to bottom, and by engine its first row (-1: it does nothing)."""
    busy = set(schedule.engine.tolist())
    several = schedule.graph.ranks > 1
    names: list[str] = []
    row_of = np.full(len(schedule.engines), -1, dtype=np.int64)
    for number, engine in enumerate(schedule.engines):
        if number not in busy:
            continue
        row_of[number] = len(names)
        name = f"rank {engine.rank} {quote(engine.name)}" if several else quote(engine.name)
        names += [name] + [f"lane {lane}" for lane in range(1, engine.channels)]
    return names, row_of


def _draw(axes: Any, schedule: Schedule, names: Sequence[str], row_of: IntArray, span: int) -> None:
    slices = slices_of(schedule)
    chain = np.zeros(len(schedule), dtype=np.bool_)
    chain[list(schedule.critical_chain().nodes)] = True
    on_chain = chain[slices.node]
    begin, end = slices.start_ps[on_chain], slices.end_ps[on_chain]
    at = row_of[slices.engine[on_chain]] + slices.lane[on_chain] + 0.87
    lines = np.stack((np.stack((begin, at), axis=1), np.stack((end, at), axis=1)), axis=1)
    if len(slices) > MERGE_ABOVE:
        slices = merge_below(slices, span / (_WIDTH * _DPI * _PLOT))
    row = row_of[slices.engine] + slices.lane
    kinds = np.array(
        [list(ENGINE_COLOURS).index(engine_kind(e.name, e.kind)) for e in schedule.engines], dtype=np.int64
    )
    for number, kind in enumerate(ENGINE_COLOURS):
        mine = np.flatnonzero(kinds[slices.engine] == number) if len(slices) else slices.engine
        boxes = _boxes(slices.start_ps[mine], slices.end_ps[mine], row[mine])
        colours = np.tile(to_rgba(engine_colour(kind).solid), (len(mine), 1))
        colours[:, 3] = slices.busy_ps[mine] / (slices.end_ps - slices.start_ps)[mine]
        edge = 0.25 if len(slices) <= MERGE_ABOVE else 0.0
        axes.add_collection(PolyCollection(list(boxes), facecolors=colours, edgecolors="white", linewidths=edge))
    axes.add_collection(LineCollection(list(lines), colors="#111111", linewidths=1.6, capstyle="butt"))
    axes.axvline(schedule.makespan_ps, color="#15181c", linewidth=0.8)
    axes.axvline(schedule.bound_ps, color="#616975", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_xlim(0, span)
    axes.set_ylim(max(len(names), 1), 0)
    axes.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=7, parse_math=False)
    axes.tick_params(length=0, labelsize=7)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#e1e4e9", linewidth=0.6)
    for side in axes.spines.values():
        side.set_visible(False)
    bound = f", {schedule.ratio:.3f} x the bound (dashed)" if schedule.bound_ps else ""
    what = f"{schedule_name(schedule)}, {schedule.policy}"
    title = f"{what}: {format_ps(schedule.makespan_ps)}{bound}; critical chain underlined"
    axes.set_title(title, fontsize=9, loc="left", fontweight="bold", parse_math=False)


def _boxes(start: IntArray, end: IntArray, row: IntArray) -> IntArray:
    """Corners of rectangles, shape ``(n, 4, 2)``."""
    low, high = row + 0.08, row + 0.92
    corners = ((start, low), (end, low), (end, high), (start, high))
    return np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
