"""A renderer's picture inside a page: its boxes and edges are known by number, and nothing else of it is taken over."""

import re
from xml.etree import ElementTree

import pytest

from kernscope.backends.graph_picture.dot import EDGE_STYLES, RECYCLED_COLOUR
from kernscope.backends.graph_picture.theme import RECYCLED_DARK
from kernscope.backends.palette import ENGINE_COLOURS
from kernscope.backends.report.picture import PICTURE_CSS, inline_svg
from kernscope.ir.tables import Reason

SVG = b"""<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="8pt" id="all"><g id="graph0" class="graph"><title>kernscope</title><script>no()</script>
<g id="node1" class="node engine-gemm"><title>n12</title><g id="a1"><a xlink:href="x" xlink:title="told">
<polygon points="1,2"/><image href="y"/><text id="t">dot</text></a></g></g>
<g class="edge reason-data"><title>n3:s-&gt;n12:n</title><path d="M1"/></g>
<g class="node"><title>legend</title><text>key</text></g>
<g class="cluster rank"><title>cluster_0</title><text>rank 0</text></g>
<g class="other"><title>stays</title></g><g class="edge"><title>n3 to n4</title></g></g></svg>"""


def test_a_picture_s_boxes_and_edges_are_known_by_number() -> None:
    """A box can be chosen, an edge has its two ends; the names that the DOT text gave them are no titles; what was told
    when pointed at is one; nothing has an identifier, a link, or is no part of a drawing."""
    text = inline_svg(SVG, 'a "label"')
    root = ElementTree.fromstring(text)
    assert (root.get("class"), root.get("role"), root.get("aria-label"), root.get("width")) == (
        "drawing",
        "img",
        'a "label"',
        "8pt",
    )
    every = list(root.iter())
    tags = [each.tag.partition("}")[2] for each in every]
    assert sorted(tags) == sorted(
        [
            "svg",
            "g",
            "g",
            "g",
            "g",
            "title",
            "polygon",
            "text",
            "g",
            "path",
            "g",
            "text",
            "g",
            "text",
            "g",
            "title",
            "g",
        ]
    )
    assert [each.text for each in every if each.tag.endswith("title")] == ["told", "stays"]
    assert not [each for each in every for name in each.attrib if name == "id" or "href" in name]
    boxes = [each for each in every if each.get("data-box")]
    assert [(b.get("data-box"), b.get("tabindex"), b.get("role")) for b in boxes] == [("12", "0", "button")]
    assert [each.get("data-ends") for each in every if each.get("data-ends")] == ["3 12"]
    assert [each.get("tabindex") for each in every if each.get("tabindex")] == ["0"]


@pytest.mark.parametrize("dark", [False, True])
def test_what_is_not_critical_has_the_lines_of_its_kind(dark: bool) -> None:
    """Boxes the colour of their engine; edges that of their reason, thin where they only keep an order; those of reused
    scratch its own; only edges' heads are filled."""
    half = PICTURE_CSS.partition("@media")[2 * dark]
    drawn = dict(re.findall(r"\.drawing \.([\w-]+):not\(\.critical\) :is\(path, polygon\) \{ stroke: (.*?); \}", half))
    thin = {reason for reason in Reason if reason >= Reason.WAR}
    assert thin and thin != set(Reason)
    colours = {reason: style.dark if dark else style.colour for reason, style in EDGE_STYLES.items()}
    assert drawn == {
        **{f"engine-{name.replace('_', '-')}": f"{c.solid}; stroke-width: 1.1" for name, c in ENGINE_COLOURS.items()},
        **{
            f"reason-{reason.label}": f"{colour}; stroke-width: {0.7 if reason in thin else 1.0}"
            for reason, colour in colours.items()
        },
        "recycled": f"{RECYCLED_DARK if dark else RECYCLED_COLOUR}; stroke-width: 0.7",
    }
    filled = re.findall(
        r'\.drawing \.([\w-]+):not\(\.critical\) polygon:not\(\[fill="none"\]\) \{ fill: (.*?); \}', half
    )
    assert dict(filled) == {kind: line.partition(";")[0] for kind, line in drawn.items() if "engine" not in kind}
