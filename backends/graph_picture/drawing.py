"""Drawing a graph with Graphviz: fold it, write it as DOT, have it laid out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np

from ...ir.columns import expect_graph
from ...ir.errors import ArgumentError, OptionError, TargetMismatchError, did_you_mean, shown
from ...ir.graph import Graph
from ...ir.output import check_output, write_output
from ...ir.tables import IntArray, Reason
from ...scheduler.result.schedule import Schedule
from ..picture_format import choose_format
from .dot import caption, dot_text
from .drawn_part import Selection, select
from .folding import FOLDED_LIMIT, READABLE_LIMIT, Folded, Grade, fold_to_fit
from .folding import fold as fold_graph
from .implied_edges import reduce_data_edges
from .model_explorer import model_explorer_text
from .renderer import NO_RENDERER, Rendering, find_renderers, render
from .theme import themed_svg

__all__ = ["BOX_LIMIT", "FOLDS", "FORMATS", "LAYOUT_LIMIT_S", "UNFOLDED_LIMIT", "Drawing", "draw"]

#: Formats of a drawing: the extension decides.
FORMATS = ("svg", "png", "pdf", "dot", "json")
#: How a graph may be folded.
FOLDS = ("auto", "none", "scope")
#: No folded picture has more boxes: a layout's time grows steeply.
BOX_LIMIT = 800
#: Above so many boxes no layout is tried.
UNFOLDED_LIMIT = 5_000
#: Model Explorer folds by itself, and shows so many nodes at ease.
_JSON_LIMIT = 50_000
#: So many lines of war and waw edges a box, on average, are too many for a folded picture.
_CROWD = 1.5
#: Seconds a layout may take, all attempts together.
LAYOUT_LIMIT_S = 20.0
#: What to do where a renderer was found, and made no picture.
_PICTURE_FAILED = (
    "draw less (one rank, or the surroundings of one node), or have the DOT text laid out by a renderer of your own"
)


#: Every font for text has the letters up to here: Latin with its accents, Greek, Cyrillic.
_COMMON_UP_TO = 0x4FF
_MAY_LACK = "names have characters that the renderer's font may lack: a .svg is shown in its reader's fonts"


@attrs.frozen
class Drawing:
    """What :func:`draw` made.

    ``dot`` is the DOT text, ``data`` the picture in ``format`` (None where no renderer made one), ``renderer`` what
    laid it out (empty: nothing did), ``path`` the file written (None: none was asked for), ``folding`` how the graph
    was folded, ``notes`` a sentence for each thing that went wrong, ``box_of`` each node's box in the picture, shape
    ``(n,)``: box b is the DOT node ``nb`` (-1: none). In a notebook it shows itself as a picture.
    """

    dot: str = attrs.field(repr=False)
    format: str
    data: bytes | None = attrs.field(repr=False)
    renderer: str
    path: Path | None
    folding: str
    notes: tuple[str, ...]
    box_of: IntArray = attrs.field(repr=False, eq=False, factory=lambda: np.zeros(0, dtype=np.int64))

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
    fold: str = "auto",
    rank: int | None = None,
    around: int | None = None,
    hops: int = 2,
    reduce: bool = False,
    box_limit: int = BOX_LIMIT,
) -> Drawing:
    """Draw a graph: scopes as frames, engines as colours, reasons of edges as line styles, recycled edges marked; with
    a ``schedule`` of the graph its critical chain is bold.

    The extension of ``path`` decides the format (.svg .png .pdf .dot, or .json for Model Explorer); without a path
    ``format`` does (``"svg"``).

    - ``fold``: ``"auto"`` folds until the picture can be read (:mod:`kernscope.backends.graph_picture.folding`): what
      repeats is drawn once (``x 64``), then ranks that do the same, then scopes. ``"scope"`` draws every scope as one
      box, ``"none"`` every node. The picture says what was done, with exact counts.
    - ``rank``: that rank alone. ``around``: a node's id; what is at most ``hops`` edges away from it.
    - ``reduce``: leave out the data edges that other data edges imply.

    No picture has more than ``box_limit`` boxes, unless every node was asked for. It is laid out by ``dot`` on PATH,
    else by graphviz-pure (the extra ``draw``; no .pdf), within 20 seconds in all. Where no renderer makes the picture
    the DOT text is written beside it, as ``PATH.dot``, and the drawing's notes name the remedies.

    Raises ``OptionError`` for an unknown format or option, or for more boxes than could ever be laid out,
    ``OutputError`` where the file cannot be written, and ``TargetMismatchError`` for a schedule of another graph.
    """
    expect_graph(graph, "draw")
    chosen = choose_format(path, format, FORMATS)
    if path is not None:
        check_output(path)
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ArgumentError(f"draw takes a schedule, not {shown(schedule)}", help="pass what ks.schedule returns")
    if isinstance(box_limit, bool) or not isinstance(box_limit, int | np.integer):
        raise OptionError(f"box_limit={shown(box_limit)}", help="pass a whole number of boxes")
    if schedule is not None and schedule.graph is not graph and schedule.graph != graph:
        raise TargetMismatchError(
            f"the schedule is of another graph ({schedule.graph!r}) than the one drawn ({graph!r})",
            help="draw(schedule.graph, ..., schedule=schedule)",
        )
    nodes = () if schedule is None else schedule.critical_chain().nodes
    view = _View(select(graph, rank=rank, around=around, hops=hops), nodes, reduce)
    folded = _folded(graph, fold, view.selection, chosen, box_limit)
    if chosen == "json":
        return _finish(view.prepare(folded), path, chosen, lambda prepared: model_explorer_text(prepared.folded))
    if chosen == "dot":
        return _finish(view.prepare(folded), path, chosen, lambda prepared: prepared.text)
    prepared, rendering, problems = _lay_out(folded, view, chosen)
    said, boxes = prepared.said, prepared.folded.box_of
    if rendering.data is not None:
        data = themed_svg(rendering.data) if chosen == "svg" else rendering.data
        if chosen != "svg" and any(c.isalpha() and ord(c) > _COMMON_UP_TO for c in prepared.text):
            problems.append(_MAY_LACK)
        written = write_output(path, data) if path is not None else None
        return Drawing(prepared.text, chosen, data, rendering.renderer, written, said, tuple(problems), boxes)
    problems.append(f"help: {_PICTURE_FAILED if rendering.left else NO_RENDERER}")
    if path is None:
        return Drawing(prepared.text, chosen, None, "", None, said, tuple(problems), boxes)
    beside = Path(path).with_name(Path(path).name + ".dot")
    problems.insert(0, f"{path} was not made; the DOT text is in {beside}")
    written = write_output(beside, prepared.text.encode())
    return Drawing(prepared.text, chosen, None, "", written, said, tuple(problems), boxes)


@attrs.frozen(eq=False)
class _Prepared:
    """A folded graph as it will be drawn: the DOT text, and what it says of itself."""

    folded: Folded
    text: str
    said: str


@attrs.frozen(eq=False)
class _View:
    """What is shown of a graph at any grade: the nodes selected, the critical chain, and whether edges are reduced."""

    selection: Selection
    chain: Sequence[int]
    reduce: bool

    def prepare(self, folded: Folded) -> _Prepared:
        notes = list(self.selection.notes)
        shown = folded
        if self.reduce:
            shown, saved = reduce_data_edges(shown)
            notes.append(f"{saved:,} data edges that others imply are left out")
        if folded.grade is not Grade.NODES:
            shown, hidden = self._without_crowd(shown)
            if hidden:
                notes.append(f"{hidden:,} war and waw edges are not drawn: they would hide the others")
        text = dot_text(shown, chain=self.chain, focus=self.selection.focus, notes=notes)
        return _Prepared(shown, text, "; ".join([caption(folded)[1], *notes]))

    def _without_crowd(self, folded: Folded) -> tuple[Folded, int]:
        """Without the war and waw edges, where a folded picture would be black with them; and how many of the graph's
        edges that leaves out. Those along the critical chain stay."""
        edges = folded.edges
        weak = edges.reason >= Reason.WAR
        if np.count_nonzero(weak) <= _CROWD * len(folded.boxes):
            return folded, 0
        steps = folded.box_of[list(self.chain)]
        steps = steps[steps >= 0]
        boxes = len(folded.boxes)
        along = np.isin(edges.source * boxes + edges.target, steps[:-1] * boxes + steps[1:])
        keep = ~weak | along
        left = attrs.evolve(edges, **{f.name: getattr(edges, f.name)[keep] for f in attrs.fields(type(edges))})
        return attrs.evolve(folded, edges=left), int(edges.count[~keep].sum())


def _folded(graph: Graph, how: str, selection: Selection, format: str, box_limit: int) -> Folded:
    if not isinstance(how, str) or how not in FOLDS:
        raise OptionError(f"unknown folding {shown(how)}", help=did_you_mean(str(how), FOLDS, what="foldings"))
    keep = selection.keep
    if how == "scope":
        return fold_to_fit(graph, box_limit, finest=Grade.SCOPES, keep=keep)
    if how == "auto":
        # A viewer that folds by itself, and a neighbourhood, which is small: show the nodes themselves.
        aim = _JSON_LIMIT if format == "json" else FOLDED_LIMIT if selection.focus >= 0 else READABLE_LIMIT
        return fold_to_fit(graph, max(box_limit, aim) if format == "json" else box_limit, readable=aim, keep=keep)
    folded = fold_graph(graph, Grade.NODES, keep)
    if len(folded.boxes) > UNFOLDED_LIMIT and format not in ("dot", "json"):
        raise OptionError(
            f"{len(folded.boxes):,} boxes: no layout of more than {UNFOLDED_LIMIT:,} would end",
            help="leave the folding to kernscope (auto), draw one rank or the surroundings of one node, or write .dot",
        )
    return folded


def _finish(
    prepared: _Prepared, path: str | os.PathLike[str] | None, format: str, write: Callable[[_Prepared], str]
) -> Drawing:
    """A drawing that takes no layout."""
    data = write(prepared).encode()
    written = write_output(path, data) if path is not None else None
    return Drawing(prepared.text, format, data, "", written, prepared.said, (), prepared.folded.box_of)


def _lay_out(folded: Folded, view: _View, format: str) -> tuple[_Prepared, Rendering, list[str]]:
    """Lay out within the limit: where a renderer fails or half of the time that is left is over, the next coarser grade
    that has fewer boxes is tried. Returns what was taken, the rendering and what to say."""
    end = time.monotonic() + LAYOUT_LIMIT_S
    coarser = list(Grade)[list(Grade).index(folded.grade) + 1 :]
    renderers = find_renderers()
    problems: list[str] = []
    while True:
        prepared = view.prepare(folded)
        left = max(end - time.monotonic(), 0.1)
        rendering = render(prepared.text, format, renderers, limit_s=left / 2 if coarser else left)
        problems += rendering.problems
        renderers = rendering.left
        if rendering.data is not None or not rendering.left:
            return prepared, rendering, problems
        smaller = folded
        while coarser and len(smaller.boxes) >= len(folded.boxes):
            smaller = fold_graph(folded.graph, coarser.pop(0), view.selection.keep)
        if len(smaller.boxes) >= len(folded.boxes):
            return prepared, rendering, problems
        folded = smaller
        problems.append(f"so it was folded further, to {caption(folded)[1]}")
