"""Tables of a notebook."""

import pytest

from kernscope.ir.forms.html_table import html_table

ROWS = [("a", "1 < 2"), ("<b>", "3")]
LEFT, RIGHT = ' style="text-align:left"', ' style="text-align:right"'


@pytest.mark.parametrize(
    ("options", "table"),
    [
        ({}, "<tr><td>a</td><td>1 &lt; 2</td></tr><tr><td>&lt;b&gt;</td><td>3</td></tr>"),
        ({"row_heads": True}, "<tr><th>a</th><td>1 &lt; 2</td></tr><tr><th>&lt;b&gt;</th><td>3</td></tr>"),
        (
            {"head": ("x", "&"), "align": ("left", "right")},
            "<tr><th>x</th><th>&amp;</th></tr>"
            f"<tr><td{LEFT}>a</td><td{RIGHT}>1 &lt; 2</td></tr><tr><td{LEFT}>&lt;b&gt;</td><td{RIGHT}>3</td></tr>",
        ),
        (
            {"align": ("left", "right"), "row_heads": True},
            f"<tr><th{LEFT}>a</th><td{RIGHT}>1 &lt; 2</td></tr><tr><th{LEFT}>&lt;b&gt;</th><td{RIGHT}>3</td></tr>",
        ),
    ],
)
def test_a_table_holds_its_cells_escaped(options: dict[str, object], table: str) -> None:
    """With heads of rows and columns, and sides, as asked for."""
    assert html_table("a > b", ROWS, **options) == f"<table><caption>a &gt; b</caption>{table}</table>"  # type: ignore[arg-type]
