"""Timelines of schedules: for Perfetto, as Chrome trace events, or as a Gantt chart."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import attrs
import numpy as np

from ...ir.errors import MissingExtraError, OptionError
from ...ir.forms.text import quote
from ...ir.output import check_output, open_output
from ...scheduler.result.ladder import Ladder
from ...scheduler.result.schedule import Schedule
from ..picture_format import choose_format
from .chrome_trace import chrome_trace
from .gantt import gantt_svg
from .perfetto import perfetto_trace
from .tracks import shown_nodes

__all__ = ["FORMATS", "Timeline", "timeline"]

#: Formats of a timeline: the extension decides. ``pftrace`` is another name that Perfetto's tools use.
FORMATS = ("svg", "png", "json", "perfetto-trace", "pftrace")

#: What a notebook shows, and is kept.
_PICTURES = ("svg", "png")

_MAGNIFIED = "one nanosecond in Perfetto is one picosecond of the schedule"


@attrs.frozen
class Timeline:
    """What :func:`timeline` made: its ``format``, the path written (None: none was asked for), how many ``slices``
    (nodes that take time), ``instants`` (other nodes but scope markers) and ``edges`` the schedules have together, and
    a ``notes`` sentence for each thing a reader should know. In a notebook a picture shows itself."""

    format: str
    path: Path | None
    slices: int
    instants: int
    edges: int
    notes: tuple[str, ...]
    _data: bytes | None = attrs.field(repr=False, alias="data")

    @property
    def data(self) -> bytes:
        """The bytes of the timeline. Those of a trace that was written to a file are read from there: they may be
        larger than the schedule."""
        if self._data is None:
            assert self.path is not None
            return self.path.read_bytes()
        return self._data

    def __str__(self) -> str:
        where = str(self.path or f"timeline ({self.format})")
        counts = f"{self.slices:,} slices, {self.instants:,} instants, {self.edges:,} edges"
        return "\n".join([f"{where}: {counts}", *self.notes])

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        if self.format == "svg":
            return {"image/svg+xml": self.data.decode(), "text/plain": str(self)}
        if self.format == "png":
            return {"image/png": self.data, "text/plain": str(self)}
        return {"text/plain": str(self)}


def timeline(
    schedule: Schedule | Ladder | Iterable[Schedule],
    path: str | os.PathLike[str] | None = None,
    *,
    format: str | None = None,
) -> Timeline:
    """Write the timeline of a schedule, or of several one under the other: a list of them, or a ladder.

    The extension of ``path`` decides the format; without a path ``format`` does (``"svg"``).

    - ``.perfetto-trace``: for ui.perfetto.dev. Engines are tracks under their rank, edges are flows, with counters of
      scratch and of messages in flight (:mod:`kernscope.backends.timelines.perfetto`). One nanosecond of the trace is
      one picosecond of the schedule.
    - ``.json``: the same as Chrome trace events (:mod:`kernscope.backends.timelines.chrome_trace`), in true units.
    - ``.svg``, ``.png``: a Gantt chart. ``.png`` takes matplotlib, the extra ``plot``.

    A ladder's policies that deadlock are left out, and the notes say so. Raises ``OptionError`` for an unknown format
    or where there is no schedule, ``MissingExtraError``, and ``OutputError`` where the file cannot be written.
    """
    chosen = choose_format(path, format, FORMATS)
    if path is not None:
        check_output(path)
    several, notes = _schedules(schedule)
    pieces, more = _WRITERS[chosen](several)
    data = b"".join(pieces) if path is None or chosen in _PICTURES else None
    if path is not None:
        with open_output(path) as file:
            file.writelines(pieces if data is None else (data,))
    shown = [(shown_nodes(one), one.free_ps > one.start_ps) for one in several]
    return Timeline(
        format=chosen,
        data=data,
        path=Path(path) if path is not None else None,
        slices=sum(int(np.count_nonzero(mask & long)) for mask, long in shown),
        instants=sum(int(np.count_nonzero(mask & ~long)) for mask, long in shown),
        edges=sum(len(one.graph.edges) for one in several),
        notes=(*notes, *more),
    )


def _schedules(given: Schedule | Ladder | Iterable[Schedule]) -> tuple[list[Schedule], list[str]]:
    """The schedules, and a note for each policy of a ladder that has none."""
    if isinstance(given, Schedule):
        return [given], []
    if isinstance(given, Ladder):
        several = [row.schedule for row in given if row.schedule is not None]
        notes = [f"{row.policy}: left out, it ends in a deadlock" for row in given if row.schedule is None]
        if not several:
            raise OptionError(
                f"no schedule of {quote(given.graph.kernel)} to show: {'; '.join(notes) or 'no policies'}",
                help="kernscope schedule shows the cycle of waits",
            )
        return several, notes
    several = list(given) if isinstance(given, Iterable) else [given]
    if not several:
        raise OptionError("no schedule to show", help="pass the result of ks.schedule, or several of them")
    for one in several:
        if not isinstance(one, Schedule):
            raise OptionError(
                f"a timeline shows schedules, not {type(one).__name__}",
                help="pass the result of ks.schedule or ks.compare",
            )
    return several, []


#: The file in pieces, made as they are asked for, and the notes.
_Made = tuple[Iterable[bytes], tuple[str, ...]]


def _svg(schedules: Sequence[Schedule]) -> _Made:
    text, notes = gantt_svg(schedules)
    return (text.encode(),), notes


def _png(schedules: Sequence[Schedule]) -> _Made:
    # By name: matplotlib takes half a second, and need not be installed.
    try:
        drawing = importlib.import_module(".gantt_png", __package__)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(
            "a .png timeline takes matplotlib, which is not installed",
            help="pip install 'kernscope[plot]', or write .svg, which takes nothing",
        ) from missing
    picture, notes = cast(tuple[bytes, tuple[str, ...]], drawing.gantt_png(schedules))
    return (picture,), notes


def _json(schedules: Sequence[Schedule]) -> _Made:
    return (piece.encode() for piece in chrome_trace(schedules)), ()


def _perfetto(schedules: Sequence[Schedule]) -> _Made:
    return (perfetto_trace(schedules),), (_MAGNIFIED,)


_WRITERS: dict[str, Callable[[Sequence[Schedule]], _Made]] = {
    "svg": _svg,
    "png": _png,
    "json": _json,
    "perfetto-trace": _perfetto,
    "pftrace": _perfetto,
}
