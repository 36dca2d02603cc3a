"""Colours of the engines, told apart with any kind of colour vision, and how the engines of a graph's nodes are named.

The hues are those of Okabe and Ito, "Color Universal Design" (2008). A colour never stands alone: every picture also
names the engine in words (a row's title, a legend, a tooltip).
"""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.ops import OPERATIONS
from ..ir.tables import IntArray

__all__ = ["ENGINE_COLOURS", "EngineColour", "engine_colour", "engine_kind", "engines_of"]


@attrs.frozen
class EngineColour:
    """Four tones of one hue: ``solid`` for slices and bars with ``ink`` as the text on it, ``tint`` for the inside of a
    box on a light page, ``shade`` for it on a dark one. CSS hexadecimal colours."""

    solid: str
    ink: str
    tint: str
    shade: str


ENGINE_COLOURS: dict[str, EngineColour] = {
    "dma_read": EngineColour("#56b4e9", "#06141d", "#dff1fc", "#143546"),
    "dma_write": EngineColour("#0072b2", "#ffffff", "#b4d5ec", "#0a4068"),
    "dma": EngineColour("#2f8fcb", "#000000", "#cbe4f5", "#0f3b56"),
    "gemm": EngineColour("#d55e00", "#000000", "#fbe3d1", "#4a2608"),
    "math": EngineColour("#009e73", "#000000", "#d5f0e7", "#0c382c"),
    "link": EngineColour("#cc79a7", "#000000", "#f6e4ee", "#43263a"),
    "none": EngineColour("#8c929c", "#000000", "#eef0f2", "#2b3038"),
}


#: Engines with names of their own have the colours of their kind.
_OF_KIND = {"transfer": "dma", "matmul": "gemm", "elementwise": "math", "link": "link"}


def engine_kind(name: str, kind: str = "") -> str:
    """What an engine is drawn as: ``link`` for ``link:next``, else its name; for one with a name of its own what its
    ``kind`` is, ``none`` where that is not known."""
    known = name.partition(":")[0]
    return known if known in ENGINE_COLOURS else _OF_KIND.get(kind, "none")


def engine_colour(name: str) -> EngineColour:
    """The colours of an engine; both directions of a link have those of the link."""
    return ENGINE_COLOURS[engine_kind(name)]


def engines_of(graph: Graph) -> tuple[tuple[str, ...], IntArray]:
    """The engines' names (``"gemm"``, ``"link:next"``, ..., ``"none"``) and for each node the index of its engine in
    them, shape ``(n,)``. Links are those of the target's directions, whether used or not."""
    engines = [name for name in ENGINE_COLOURS if name not in ("link", "none")]
    links = [f"link:{direction}" for direction in graph.target.directions]
    names = (*engines, *links, "none")
    place = {name: index for index, name in enumerate(names)}
    by_code = np.array([place.get(op.engine, -1) for op in OPERATIONS.values()], dtype=np.int32)
    found: IntArray = by_code[graph.nodes.op]
    sends = np.flatnonzero(OPERATIONS.sends[graph.nodes.op])
    found[sends] = len(engines) + graph.channels.direction[graph.nodes.channel[sends]]
    return names, found
