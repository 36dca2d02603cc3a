"""A picture that a renderer laid out, made fit to stand inside a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from ...ir.tables import Reason
from ..graph_picture.dot import EDGE_STYLES, RECYCLED_COLOUR
from ..graph_picture.theme import RECYCLED_DARK, dark_rules
from ..palette import ENGINE_COLOURS

__all__ = ["PICTURE_CSS", "inline_svg"]

_SVG = "{http://www.w3.org/2000/svg}"
_BOX = re.compile(r"n\d+")
_EDGE = re.compile(r"n(\d+)(?::\w+)*->n(\d+)(?::\w+)*")
_LINK_TITLE = "{http://www.w3.org/1999/xlink}title"
#: What a drawing consists of; nothing else is taken over into a page.
_ELEMENTS = {_SVG + name for name in ("svg", "g", "title", "polygon", "path", "text", "ellipse", "polyline")}


def _plain_rules(*, dark: bool) -> str:
    """How boxes and edges look that are not critical. The drawing has the bold lines of one schedule written into it;
    the page marks those of the schedule shown."""
    engines = {f"engine-{name.replace('_', '-')}": (colour.solid, 1.1) for name, colour in ENGINE_COLOURS.items()}
    reasons = {
        f"reason-{reason.label}": (style.dark if dark else style.colour, 0.7 if reason >= Reason.WAR else 1.0)
        for reason, style in EDGE_STYLES.items()
    }
    recycled = {"recycled": (RECYCLED_DARK if dark else RECYCLED_COLOUR, 0.7)}
    rules = []
    for kind, (colour, width) in {**engines, **reasons, **recycled}.items():
        plain = f".drawing .{kind}:not(.critical)"
        rules.append(f"{plain} :is(path, polygon) {{ stroke: {colour}; stroke-width: {width}; }}")
        if kind not in engines:
            rules.append(f'{plain} polygon:not([fill="none"]) {{ fill: {colour}; }}')
    return "\n".join(rules)


PICTURE_CSS = f""".drawing text:not([fill]) {{ fill: var(--text); }}
{_plain_rules(dark=False)}
@media screen and (prefers-color-scheme: dark) {{
{dark_rules(".drawing ", ground="none")}
{_plain_rules(dark=True)}
}}"""


def inline_svg(data: bytes, label: str) -> str:
    """An SVG document of Graphviz as an element for a page.

    It is parsed and written anew, from the elements that a drawing consists of and without identifiers and links; what
    a link told when pointed at becomes the title of what it surrounded. ``label`` names the picture.
    """
    root = ElementTree.fromstring(data)
    copy = _copied(root)
    copy.set("class", "drawing")
    copy.set("role", "img")
    copy.set("aria-label", label)
    ElementTree.register_namespace("", _SVG.strip("{}"))
    return ElementTree.tostring(copy, encoding="unicode")


def _copied(root: ElementTree.Element) -> ElementTree.Element:
    """The tree without what has no place in a page. Drawings nest some five deep, scopes do not add to it."""
    copy = ElementTree.Element(root.tag, {k: v for k, v in root.attrib.items() if k != "id" and not k.startswith("{")})
    copy.text, copy.tail = root.text, root.tail
    for child in root:
        if child.tag == _SVG + "a":
            told = child.get(_LINK_TITLE, "")
            inside = ElementTree.SubElement(copy, _SVG + "g")
            ElementTree.SubElement(inside, _SVG + "title").text = told
            inside.extend(_copied(c) for c in child if c.tag in _ELEMENTS)
        elif child.tag in _ELEMENTS:
            copy.append(_copied(child))
    return _as_box(root, copy)


def _as_box(root: ElementTree.Element, copy: ElementTree.Element) -> ElementTree.Element:
    """A node of Graphviz is titled by its name in the DOT text: ``n12`` is box 12, which the page's script knows."""
    kind = (root.get("class") or "").split()
    title = root.find(_SVG + "title")
    name = (title.text or "") if title is not None else ""
    if "node" in kind and _BOX.fullmatch(name):
        copy.set("data-box", name[1:])
        copy.set("tabindex", "0")
        copy.set("role", "button")
    ends = _EDGE.fullmatch(name) if "edge" in kind else None
    if ends:
        copy.set("data-ends", f"{ends[1]} {ends[2]}")
    if title is not None and {"node", "edge", "graph", "cluster"} & set(kind):
        copy.remove(copy[0])  # our own name of it, which says nothing to a reader
    return copy
