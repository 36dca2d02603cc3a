"""The front of makespan against scratch as a picture, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import attrs
import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..ir.forms.text import quote
from ..machine.units import format_ps
from .sizes import byte_ticks, short_size
from .timelines.time_axis import ticks

__all__ = ["FrontPoint", "front_plot"]

_WIDTH, _HEIGHT, _DPI = 9.0, 5.4, 120  # inches, pixels an inch
#: More names than these would be no picture.
_NAMED = 24
_INK, _MUTE, _FRONT, _OTHER = "#12151a", "#59626e", "#0072b2", "#b9c0c9"


@attrs.frozen
class FrontPoint:
    """A point: its scratch peak and makespan, its name, and whether it is of the front."""

    peak_bytes: int
    makespan_ps: int
    name: str
    is_front: bool


def front_plot(points: Sequence[FrontPoint], title: str, note: str, suffix: str) -> bytes:
    """The picture's bytes: scratch to the right, makespan up, the front as steps, its points numbered and named below.
    ``suffix`` is ``.svg``, ``.png`` or ``.pdf``. The same points give the same bytes."""
    figure = Figure(figsize=(_WIDTH, _HEIGHT), dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    places = [(p.peak_bytes, p.makespan_ps) for p in points]
    front = sorted((p for p in points if p.is_front), key=lambda p: p.peak_bytes)
    others = [p for p in points if not p.is_front]
    axes.scatter(
        [p.peak_bytes for p in others],
        [p.makespan_ps for p in others],
        s=22,
        color=_OTHER,
        zorder=2,
        label="another point is as good in both and better in one",
    )
    axes.step([p.peak_bytes for p in front], [p.makespan_ps for p in front], where="post", color=_FRONT, linewidth=1.4)
    axes.scatter(
        [p.peak_bytes for p in front], [p.makespan_ps for p in front], s=34, color=_FRONT, zorder=3, label="the front"
    )
    if others:
        axes.legend(loc="upper right", fontsize=8, frameon=False, labelcolor=_MUTE)
    for number, point in enumerate(front[:_NAMED], start=1):
        at = (point.peak_bytes, point.makespan_ps)
        axes.annotate(str(number), at, xytext=(5, 5), textcoords="offset points", fontsize=8, color=_INK)
    _name_points(figure, front)
    axes.set_title(quote(title), loc="left", fontsize=11, color=_INK, parse_math=False)
    axes.set_title(quote(note), loc="right", fontsize=8, color=_MUTE, parse_math=False)
    axes.set_xlabel("peak of scratch a rank", fontsize=9, color=_MUTE)
    axes.set_ylabel("makespan", fontsize=9, color=_MUTE)
    right, top = (max(1, round(1.15 * max((p[i] for p in places), default=1))) for i in range(2))
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    axes.set_xticks(byte_ticks(right), [short_size(at) for at in byte_ticks(right)])
    axes.set_yticks([at for at, _ in ticks(top, 6)], [label for _, label in ticks(top, 6)])
    axes.grid(color="#e4e8ee", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=8, labelcolor=_MUTE)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#dde1e7")
    picture = io.BytesIO()
    # Without the program's version and the time the same points give the same bytes.
    metadata = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}, ".pdf": {"CreationDate": None}}
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "kernscope"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(picture, format=suffix[1:], metadata=metadata[suffix])
    return picture.getvalue()


def _name_points(figure: Figure, front: Sequence[FrontPoint]) -> None:
    """The numbers of the points and what they stand for, below the picture."""
    names = [
        f"{number}  {quote(p.name)}: {format_ps(p.makespan_ps)}, {p.peak_bytes:,} B"
        for number, p in enumerate(front[:_NAMED], start=1)
    ]
    names += [f"and {len(front) - _NAMED} more"] if len(front) > _NAMED else []
    handles = [Line2D([], [], linestyle="none") for _ in names]
    columns = 2 if len(names) > 6 else 1
    legend = figure.legend(
        handles, names, loc="outside lower left", ncols=columns, fontsize=8, frameon=False, handlelength=0
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
