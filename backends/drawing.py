"""Drawing a graph with Graphviz: fold it, write it as DOT, have it laid out."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from ..ir.errors import TargetMismatchError
from ..ir.graph import Graph
from ..scheduler.schedule import Schedule
from .dot import caption, dot_text
from .folding import Folded, Grade, fold, fold_to_fit
from .output import check_folder, choose_format, write_output
from .renderer import REMEDIES, Rendering, render

__all__ = ["BOX_LIMIT", "FORMATS", "LAYOUT_LIMIT_S", "Drawing", "draw"]

#: Formats of a drawing: the extension decides.
FORMATS = ("svg", "png", "pdf", "dot")
#: Above so many boxes a graph is folded: a layout's time grows steeply.
BOX_LIMIT = 800
#: Seconds a layout may take, all attempts together.
LAYOUT_LIMIT_S = 20.0


@attrs.frozen
class Drawing:
    """What :func:`draw` made.

    ``dot`` is the DOT text, ``data`` the picture in ``format`` (None where no renderer made one), ``renderer`` what
    laid it out (empty: nothing did), ``path`` the file written (None: none was asked for), ``folding`` how the graph
    was folded, ``notes`` a sentence for each thing that went wrong. In a notebook it shows itself as a picture.
    """

    dot: str = attrs.field(repr=False)
    format: str
    data: bytes | None = attrs.field(repr=False)
    renderer: str
    path: Path | None
    folding: str
    notes: tuple[str, ...]

    @property
    def rendered(self) -> bool:
        """Whether there is a picture, not only DOT text."""
        return self.data is not None

    def __str__(self) -> str:
        where = f"{self.path}" if self.path else f"drawing ({self.format})"
        by = f", laid out by {self.renderer}" if self.renderer else ""
        return "\n".join([f"{where}{by}", self.folding, *self.notes])

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        """The picture for a notebook, or the DOT text with the reason why there is none."""
        if self.format == "svg" and self.data is not None:
            return {"image/svg+xml": self.data.decode("utf-8"), "text/plain": str(self)}
        if self.format == "png" and self.data is not None:
            return {"image/png": self.data, "text/plain": str(self)}
        return {"text/plain": f"{self}\n\n{self.dot}"}


def draw(
    graph: Graph,
    path: str | os.PathLike[str] | None = None,
    *,
    schedule: Schedule | None = None,
    format: str | None = None,
    box_limit: int = BOX_LIMIT,
    unfolded_limit: int | None = None,
) -> Drawing:
    """Draw a graph: scopes as frames, engines as colours, reasons of edges as line styles, recycled edges marked; with
    a ``schedule`` of the graph its critical chain is bold.

    The extension of ``path`` decides the format (.svg .png .pdf .dot); without a path ``format`` does (``"svg"``).
    Above ``box_limit`` boxes (above ``unfolded_limit`` nodes, if given) the graph is folded first, as
    :mod:`kernscope.backends.folding` describes, and the picture says so with exact counts. It is laid out by ``dot`` on
    PATH, else by graphviz-pure (the extra ``draw``; no .pdf), within 20 seconds in all. Where no renderer makes the
    picture the DOT text is written beside it, as ``PATH.dot``, and the drawing's notes name the remedies.

    Raises ``OptionError`` for an unknown format, ``OutputError`` where the file cannot be written, and
    ``TargetMismatchError`` for a schedule of another graph.
    """
    chosen = choose_format(path, format, FORMATS)
    if path is not None:
        check_folder(path)
    if schedule is not None and schedule.graph is not graph and schedule.graph != graph:
        raise TargetMismatchError(
            f"the schedule is of another graph ({schedule.graph!r}) than the one drawn ({graph!r})",
            help="draw(schedule.graph, ..., schedule=schedule)",
        )
    nodes = () if schedule is None else schedule.critical_chain().nodes
    folded = fold_to_fit(graph, box_limit, unfolded_limit)
    text = dot_text(folded, chain=nodes)
    if chosen == "dot":
        written = write_output(path, text.encode()) if path is not None else None
        return Drawing(text, chosen, text.encode(), "", written, caption(folded)[1], ())
    folded, text, rendering, problems = _lay_out(folded, text, nodes, chosen)
    said = caption(folded)[1]
    if rendering.data is not None:
        written = write_output(path, rendering.data) if path is not None else None
        return Drawing(text, chosen, rendering.data, rendering.renderer, written, said, tuple(problems))
    problems.append(f"help: {REMEDIES}")
    if path is None:
        return Drawing(text, chosen, None, "", None, said, tuple(problems))
    beside = Path(path).with_name(Path(path).name + ".dot")
    problems.insert(0, f"{path} was not made; the DOT text is in {beside}")
    return Drawing(text, chosen, None, "", write_output(beside, text.encode()), said, tuple(problems))


def _lay_out(
    folded: Folded, text: str, chain: Sequence[int], format: str
) -> tuple[Folded, str, Rendering, list[str]]:
    """Lay out within the limit: where a renderer fails or half of the time that is left is over, the next coarser grade
    that has fewer boxes is tried. Returns the folding and DOT text that were taken, the rendering and what to say."""
    end = time.monotonic() + LAYOUT_LIMIT_S
    coarser = list(Grade)[list(Grade).index(folded.grade) + 1 :]
    problems: list[str] = []
    while True:
        left = max(end - time.monotonic(), 0.1)
        rendering = render(text, format, limit_s=left / 2 if coarser else left)
        problems += rendering.problems
        if rendering.data is not None or not rendering.asked:
            return folded, text, rendering, problems
        smaller = folded
        while coarser and len(smaller.boxes) >= len(folded.boxes):
            smaller = fold(folded.graph, coarser.pop(0))
        if len(smaller.boxes) >= len(folded.boxes):
            return folded, text, rendering, problems
        folded = smaller
        text = dot_text(folded, chain=chain)
        problems.append(f"so it was folded further, to {caption(folded)[1]}")
