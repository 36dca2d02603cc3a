"""Light and dark for a drawing: Graphviz writes its colours as attributes, a sheet replaces them on a dark screen."""

from __future__ import annotations

import re

from ..palette import ENGINE_COLOURS
from .dot import CRITICAL_COLOUR, EDGE_STYLES, RECYCLED_COLOUR

__all__ = ["RECYCLED_DARK", "dark_rules", "themed_svg"]

#: The colour of recycled bytes on a dark ground.
RECYCLED_DARK = "#e0a030"
_OPENING = re.compile(rb"<svg\b[^>]*[^/>]>")


def dark_rules(below: str, *, ground: str) -> str:
    """CSS rules that give each colour of a drawing its dark counterpart; ``below`` stands before every selector."""
    shapes = [
        *((colour.tint, colour.shade) for colour in ENGINE_COLOURS.values()),
        *((style.colour, style.dark) for style in EDGE_STYLES.values()),
        ("#15181c", "#f2f4f7"),
        ("#3a4048", "#c3c9d2"),
        ("#f7f8fa", "#191d22"),
        ("#c3c8d0", "#3a4048"),
        ("#9aa1ac", "#5b6470"),
        ("white", ground),
        (CRITICAL_COLOUR, "#ffffff"),
        (RECYCLED_COLOUR, RECYCLED_DARK),
    ]
    return "\n".join(
        f'  {below}[{what}="{light}"] {{ {what}: {dark}; }}'
        for light, dark in dict.fromkeys(shapes)
        for what in ("fill", "stroke")
    )


def themed_svg(data: bytes) -> bytes:
    """A drawing that follows the reader's theme and is no wider than the window. What is no drawing stays as it is."""
    found = _OPENING.search(data)
    if found is None:
        return data
    style = (
        "<style>svg { max-width: 100%; height: auto; }\n@media screen and (prefers-color-scheme: dark) {\n"
        f"  svg {{ background: #14171b; }}\n  text:not([fill]) {{ fill: #cfd5dc; }}\n"
        f"{dark_rules('', ground='#14171b')}\n}}</style>"
    )
    return data[: found.end()] + style.encode() + data[found.end() :]
