"""A folded graph as JSON for Model Explorer, which lays out and folds by itself: scopes are its namespaces.

The format is that of its "JSON adapter": graphs of nodes with ``namespace``, ``attrs`` and ``incomingEdges``
(https://github.com/google-ai-edge/model-explorer/wiki).
"""

from __future__ import annotations

import json
from typing import Any

from ...ir.forms.text import quote
from ...ir.tables import Reason
from ..palette import engine_colour
from .dot import frame_title, node_label
from .folding import Box, Folded

__all__ = ["model_explorer_document", "model_explorer_text"]


def model_explorer_text(folded: Folded) -> str:
    """The document as JSON text, in ASCII."""
    return json.dumps(model_explorer_document(folded), separators=(",", ":"))


def model_explorer_document(folded: Folded) -> dict[str, Any]:
    """``{"label", "graphs": [{"id", "nodes": [{"id", "label", "namespace", "attrs", "incomingEdges", "style"}]}]}``: a
    node for each box, ``id`` its number as text; the namespace is the path of its frames, each with its number so that
    no two share a path."""
    name = quote(folded.graph.kernel)
    spaces = _namespaces(folded)
    edges = folded.edges
    incoming: list[list[dict[str, Any]]] = [[] for _ in folded.boxes]
    columns = (edges.source, edges.target, edges.reason, edges.recycled, edges.count)
    for source, target, code, recycled, count in zip(*(column.tolist() for column in columns), strict=True):
        told = {"reason": Reason(code).label, "recycled": str(recycled).lower(), "edges": str(count)}
        incoming[target].append(
            {
                "sourceNodeId": str(source),
                "sourceNodeOutputId": "0",
                "targetNodeInputId": str(len(incoming[target])),
                "metadata": _pairs(told),
            }
        )
    nodes = [
        {
            "id": str(index),
            "label": node_label(folded, index),
            "namespace": spaces[box.frame] if box.frame >= 0 else "",
            "attrs": _pairs(_attributes(folded, box)),
            "incomingEdges": incoming[index],
            "style": _style(folded, box),
        }
        for index, box in enumerate(folded.boxes)
    ]
    return {"label": name, "graphs": [{"id": name, "nodes": nodes}]}


def _namespaces(folded: Folded) -> list[str]:
    """The path of each frame. A parent stands before its children."""
    spaces: list[str] = []
    for index, frame in enumerate(folded.frames):
        if frame.parent < 0 and folded.graph.ranks == 1:
            spaces.append("")
            continue
        # A slash would be a step of the path.
        title = frame_title(folded, frame).replace("/", "\N{FRACTION SLASH}")
        around = spaces[frame.parent] if frame.parent >= 0 else ""
        own = title if frame.parent < 0 else f"{title} #{index}"
        spaces.append(f"{around}/{own}" if around else own)
    return spaces


def _attributes(folded: Folded, box: Box) -> dict[str, str]:
    node = folded.graph[box.node]
    known = {"nodes": f"{box.count:,}"}
    if folded.grade.single:
        place = node.location
        known |= {"engine": node.engine, "node": str(node)}
        if place is not None:
            known["source"] = quote(place.short)
    else:
        known |= {name: f"{count:,}" for name, count in box.operations}
    return known


def _style(folded: Folded, box: Box) -> dict[str, str]:
    colour = engine_colour(folded.graph[box.node].engine if folded.grade.single else "none")
    return {"backgroundColor": colour.tint, "borderColor": colour.solid, "textColor": "#15181c"}


def _pairs(known: dict[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in known.items()]
