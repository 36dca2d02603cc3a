"""A folded graph as DOT text: scopes as frames, engines as colours, reasons of edges as line styles.

Names of a kernel go through :func:`label_text`; every identifier in the text is our own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

import attrs
import graphviz

from ...ir.forms.ranks import ranks_text
from ...ir.forms.text import quote
from ...ir.graph import Graph, Node
from ...ir.tables import Reason
from ..palette import ENGINE_COLOURS, engine_colour, engine_kind
from .folding import Box, Folded, Frame, Grade

__all__ = [
    "CRITICAL_COLOUR",
    "EDGE_STYLES",
    "RECYCLED_COLOUR",
    "EdgeStyle",
    "caption",
    "dot_text",
    "frame_title",
    "label_text",
    "node_label",
    "tooltip_text",
]

RECYCLED_COLOUR = "#b06f00"
CRITICAL_COLOUR = "#111111"
_FONT = "Helvetica"
_LONGEST_NAME = 36
_OPERATIONS_IN_A_BOX = 7
#: Above so many boxes the layout is made quick rather than fine, and war and waw edges move no box.
_BOXES_WITH_CURVES = 300


@attrs.frozen
class EdgeStyle:
    """How the edges of a reason are drawn: a line style of DOT, its colour (and the one for a dark page), and what they
    mean."""

    style: str
    colour: str
    dark: str
    meaning: str


EDGE_STYLES: dict[Reason, EdgeStyle] = {
    Reason.DATA: EdgeStyle("solid", "#4a5058", "#aab2bd", "data: read after write"),
    Reason.MESSAGE: EdgeStyle("solid", "#a8447f", "#e08cbd", "message: send to its recv"),
    Reason.CREDIT: EdgeStyle("dashed", "#a8447f", "#e08cbd", "credit: recv to the send that needs its slot"),
    Reason.FIFO: EdgeStyle("dotted", "#a8447f", "#e08cbd", "fifo: order of a channel"),
    Reason.CONTROL: EdgeStyle("dashed", "#4a5058", "#aab2bd", "control: what a branch read to what it decides"),
    Reason.WAR: EdgeStyle("dashed", "#8b919b", "#7d8692", "war: write after read"),
    Reason.WAW: EdgeStyle("dotted", "#8b919b", "#7d8692", "waw: write after write"),
    Reason.ORDER: EdgeStyle("dotted", "#a8447f", "#e08cbd", "order: HBM on one side of a signal between ranks"),
}


def label_text(text: str) -> str:
    """A name from outside as one line of a DOT label that shows it as it is: neither an escape sequence of DOT nor an
    HTML entity (which DOT resolves, too) keeps a meaning; what is not printable is shown escaped."""
    escaped: str = graphviz.escape(quote(text).replace("&", "&amp;"))
    return escaped


def tooltip_text(text: str) -> str:
    """The same for a tooltip, in which Graphviz resolves escape sequences twice (2.43 and 16.1 alike)."""
    escaped: str = graphviz.nohtml(label_text(text).replace("\\", "\\\\"))
    return escaped


def _short(text: str) -> str:
    shown = quote(text)
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


def _label(lines: Iterable[str], end: str = "\\n") -> str:
    """Lines as a DOT label; ``end`` is ``\\n`` (centred) or ``\\l`` (to the left)."""
    text = "".join(label_text(line) + end for line in lines)
    # A type of its own, not str: it keeps what begins with < and ends with > from being taken for an HTML-like label.
    label: str = graphviz.nohtml(text.removesuffix("\\n"))
    return label


def dot_text(folded: Folded, *, chain: Iterable[int] = (), focus: int = -1, notes: Iterable[str] = ()) -> str:
    """The DOT text of a folded graph. ``chain`` are the ids of the critical chain's nodes, in order: their boxes, and
    the edges along them, are drawn bold. ``focus`` is a node whose box is marked; ``notes`` stand below the caption."""
    steps = [int(box) for box in folded.box_of[list(chain)] if box >= 0]
    critical = set(steps)
    along = set(itertools.pairwise(steps))
    picture = graphviz.Digraph(
        "kernscope", graph_attr=_graph_attributes(folded, notes), node_attr=_NODE, edge_attr=_EDGE
    )
    _add_frames(picture, folded, _Marks(frozenset(critical), int(folded.box_of[focus]) if focus >= 0 else -1))
    _add_edges(picture, folded, along)
    _add_legend(picture, folded, chain=bool(steps))
    return str(picture.source)


_NODE = {"shape": "box", "style": "filled,rounded", "fontname": _FONT, "fontsize": "11", "margin": "0.12,0.06"}
_EDGE = {"fontname": _FONT, "fontsize": "9", "arrowsize": "0.7"}


#: For many boxes: straight edges, and fewer iterations of dot's network simplex and crossing reduction.
_QUICK = {"splines": "line", "nslimit": "1", "mclimit": "0.3"}


def _graph_attributes(folded: Folded, notes: Iterable[str]) -> dict[str, str]:
    return {
        "label": _label([*caption(folded), *notes], "\\l"),
        "labelloc": "t",
        "labeljust": "l",
        "fontname": _FONT,
        "fontsize": "13",
        "bgcolor": "white",
        "nodesep": "0.22",
        "ranksep": "0.38",
        "newrank": "true",
        **(_QUICK if len(folded.boxes) > _BOXES_WITH_CURVES else {}),
    }


def caption(folded: Folded) -> list[str]:
    """What the picture shows, in two lines: the graph's size, and how it was folded."""
    graph = folded.graph
    ranks = f", {graph.ranks} ranks" if graph.ranks > 1 else ""
    lines = [f"{_short(graph.kernel)}: {len(graph):,} nodes, {len(graph.edges):,} edges{ranks}"]
    boxes = f"{len(folded.boxes):,} box{'' if len(folded.boxes) == 1 else 'es'}"
    several = any(len(frame.ranks) > 1 for frame in folded.frames)
    over = ", over all ranks" if several else ""
    said = {
        Grade.NODES: "one box a node",
        Grade.ITERATIONS: f"{boxes}: what repeats is drawn once",
        Grade.ALIKE: f"{boxes}: what repeats is drawn once, and ranks that do the same are",
        Grade.LINES: f"{boxes}: all nodes of one operation and one line are one{over}",
        Grade.SCOPES: f"{boxes}: one a scope, what repeats once",
        Grade.PLACES: f"{boxes}: all scopes opened at one place of the source are one",
        Grade.RANKS: f"{boxes}: all scopes opened at one place of the source are one{over}",
    }[folded.grade]
    if folded.kept < len(graph) - folded.markers:
        said += f"; {folded.kept:,} nodes are shown"
    elif folded.markers:
        said += f" ({folded.markers:,} scope markers are drawn as frames)"
    return [*lines, said]


# --- frames and boxes -------------------------------------------------------------------------------------------------


@attrs.frozen
class _Marks:
    """Boxes that are drawn apart: those on the critical chain, and the one in focus (-1: none)."""

    critical: frozenset[int]
    focus: int


def _add_frames(picture: graphviz.Digraph, folded: Folded, marks: _Marks) -> None:
    """The boxes inside their frames, in program order. Frames are filled from the innermost outward, so that no depth
    of nesting is a depth of recursion."""
    inside: list[list[tuple[int, graphviz.Digraph | int]]] = [[] for _ in range(len(folded.frames) + 1)]
    for index, box in enumerate(folded.boxes):
        inside[box.frame].append((box.node, index))
    for index in range(len(folded.frames) - 1, -1, -1):
        frame = folded.frames[index]
        bare = frame.parent < 0 and folded.graph.ranks == 1
        if bare:
            inside[-1] += inside[index]
        elif inside[index]:
            content = sorted(inside[index], key=lambda item: item[0])
            inner = graphviz.Digraph(f"cluster_{index}", graph_attr=_frame_attributes(folded, frame))
            _add_content(inner, folded, content, marks)
            inside[frame.parent].append((content[0][0], inner))
    _add_content(picture, folded, sorted(inside[-1], key=lambda item: item[0]), marks)


def _add_content(
    picture: graphviz.Digraph,
    folded: Folded,
    content: list[tuple[int, graphviz.Digraph | int]],
    marks: _Marks,
) -> None:
    for _, item in content:
        if isinstance(item, int):
            picture.node(f"n{item}", **_box_attributes(folded, item, marks))
        else:
            picture.subgraph(item)


def _frame_attributes(folded: Folded, frame: Frame) -> dict[str, str]:
    outermost = frame.parent < 0
    return {
        "label": _label([frame_title(folded, frame)]),
        "labeljust": "l",
        "fontname": _FONT,
        "fontsize": "12" if outermost else "10",
        "style": "rounded,filled" if outermost else "rounded",
        "fillcolor": "#f7f8fa",
        "bgcolor": "transparent",
        "color": "#c3c8d0" if outermost else "#9aa1ac",
        "fontcolor": "#3a4048",
        "class": "rank" if outermost else "scope",
        "tooltip": tooltip_text(frame_title(folded, frame, short=False)),
    }


def frame_title(folded: Folded, frame: Frame, *, short: bool = True) -> str:
    """A frame's title: the scope's name or place, and how many scopes it stands for (``x 64``)."""
    graph = folded.graph
    if frame.parent < 0:
        return ranks_text(frame.ranks)
    name = graph.describe_scope(frame.scope)
    title = _short(name) if short else name
    if frame.scopes == 1:
        return title
    if folded.grade in (Grade.LINES, Grade.PLACES, Grade.RANKS):
        return f"{title}  {frame.scopes:,} scopes"
    around = folded.frames[frame.parent].scopes
    each = f"{title}  x {frame.scopes // around:,}" if frame.scopes > around else title
    return each if around == 1 else f"{each}  ({frame.scopes:,} in all)"


def _box_attributes(folded: Folded, index: int, marks: _Marks) -> dict[str, str]:
    box = folded.boxes[index]
    bold, focus = index in marks.critical, index == marks.focus
    node = folded.graph[box.node]
    single = folded.grade.single
    engine = node.engine if single else "none"
    colour = engine_colour(engine)
    classes = [
        f"engine-{engine_kind(engine).replace('_', '-')}",
        *(["critical"] if bold else []),
        *(["focus"] if focus else []),
    ]
    return {
        "label": _label(_node_lines(folded, index)) if single else _label(_scope_lines(folded, box), "\\l"),
        "fillcolor": colour.tint,
        "color": CRITICAL_COLOUR if bold else colour.solid,
        "fontcolor": "#15181c",
        "penwidth": "2.6" if bold else "1.1",
        **({"peripheries": "2", "style": "filled"} if focus else {}),
        "class": " ".join(classes),
        "tooltip": tooltip_text(_tooltip(folded.graph, box)),
    }


def node_lines(node: Node) -> list[str]:
    """A node in up to three short lines: the operation, what it writes, the line of the source."""
    name = f"{node.op} {node.engine.partition(':')[2]}" if node.op == "send" else node.op
    shown = [_short(f"{a.storage.name} {a.layout!r}".strip()) for a in (node.writes or node.reads)[:1]]
    place = node.location
    return [name, *shown, *([_short(place.short)] if place else [])]


def _node_lines(folded: Folded, index: int) -> list[str]:
    """The same for a box, with the tensor in memory that it loads, and how often its scope repeats it."""
    box = folded.boxes[index]
    lines = node_lines(folded.graph[box.node])
    loaded = folded.loads[index]
    if loaded:
        lines[0] += f" {_short(loaded)}"
    around = folded.frames[box.frame].scopes if box.frame >= 0 else 1
    if folded.grade is Grade.LINES and box.count > 1:
        lines[0] += f"  x {box.count:,}"
    elif folded.grade is not Grade.NODES and box.count > around:
        lines[0] += f"  x {box.count // around:,}" if box.count % around == 0 else f"  {box.count:,} in all"
    return lines


def node_label(folded: Folded, index: int) -> str:
    """A box in one line: its operation and what it writes, or how many nodes it stands for."""
    if folded.grade.single:
        return " ".join(_node_lines(folded, index)[:2])
    return _scope_lines(folded, folded.boxes[index])[0]


def _scope_lines(folded: Folded, box: Box) -> list[str]:
    frame = folded.frames[box.frame] if box.frame >= 0 else None
    bare = frame is None or (frame.parent < 0 and folded.graph.ranks == 1)
    shown = [f"{name}  {count:,}" for name, count in box.operations[:_OPERATIONS_IN_A_BOX]]
    rest = box.operations[_OPERATIONS_IN_A_BOX:]
    if rest:
        shown.append(f"{len(rest)} other operations  {sum(count for _, count in rest):,}")
    head = "kernel" if bare else "this scope"
    return [f"{head}: {box.count:,} nodes", *shown]


def _tooltip(graph: Graph, box: Box) -> str:
    return str(graph[box.node]) if box.count == 1 else f"{box.count:,} nodes, the first: {graph[box.node]}"


# --- edges and the legend ---------------------------------------------------------------------------------------------


def _add_edges(picture: graphviz.Digraph, folded: Folded, along: set[tuple[int, int]]) -> None:
    e = folded.edges
    columns: Mapping[str, list[int]] = {
        "source": e.source.tolist(),
        "target": e.target.tolist(),
        "reason": e.reason.tolist(),
        "recycled": e.recycled.tolist(),
        "count": e.count.tolist(),
    }
    for source, target, code, recycled, count in zip(*columns.values(), strict=True):
        reason = Reason(code)
        style = EDGE_STYLES[reason]
        bold = (source, target) in along
        attributes = {
            "style": style.style,
            "color": CRITICAL_COLOUR if bold else RECYCLED_COLOUR if recycled else style.colour,
            "penwidth": "2.4" if bold else "0.7" if reason >= Reason.WAR else "1.0",
            "class": " ".join(
                ["reason-" + reason.label, *(["recycled"] if recycled else []), *(["critical"] if bold else [])]
            ),
            "tooltip": f"{reason.label}{', recycled bytes' if recycled else ''}: {count:,}",
        }
        if recycled:
            attributes["arrowhead"] = "odiamond"
        if reason >= Reason.WAR:
            attributes["weight"] = "0"
        # An edge to an earlier node of the next iteration must not turn the picture upside down.
        if source >= target or (reason >= Reason.WAR and len(folded.boxes) > _BOXES_WITH_CURVES):
            attributes["constraint"] = "false"
        picture.edge(f"n{source}", f"n{target}", **attributes)


def _add_legend(picture: graphviz.Digraph, folded: Folded, *, chain: bool) -> None:
    """A table of the colours and line styles that this picture uses. It is HTML-like, and holds words of ours only."""
    single = folded.grade.single
    used = {engine_kind(folded.graph[box.node].engine) for box in folded.boxes} if single else set()
    rows = [
        f'<tr><td bgcolor="{colour.tint}" color="{colour.solid}" border="1" width="34"></td>'
        f'<td border="0" align="left">{_ENGINE_WORDS.get(name, name)}</td></tr>'
        for name, colour in ENGINE_COLOURS.items()
        if name in used
    ]
    reasons = {Reason(code) for code in folded.edges.reason.tolist()}
    rows += [_line_row(s.style, s.colour, s.meaning) for reason, s in EDGE_STYLES.items() if reason in reasons]
    if folded.edges.recycled.any():
        rows.append(_line_row("solid", RECYCLED_COLOUR, "this colour, open tip: recycled bytes"))
    if chain:
        rows.append(_line_row("bold", CRITICAL_COLOUR, "critical chain"))
    if rows:
        table = f'<<table border="0" cellborder="0" cellspacing="3" cellpadding="2">{"".join(rows)}</table>>'
        # Wider than its words are in the font that is asked for: a browser may show them in a wider one.
        picture.node(
            "legend",
            label=table,
            shape="box",
            style="rounded",
            color="#c3c8d0",
            fontsize="10",
            margin="0.3,0.06",
            **{"class": "legend"},
        )


_ENGINE_WORDS = {"none": "no engine"}


def _line_row(style: str, colour: str, words: str) -> str:
    width = "3" if style == "bold" else "1"
    shown = style if style in ("dashed", "dotted") else "solid"
    line = f'<td sides="b" border="{width}" style="{shown}" color="{colour}" width="34" height="3"></td>'
    return f'<tr>{line}<td border="0" align="left">{words}</td></tr>'
