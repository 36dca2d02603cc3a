"""The documentation lists every name of Triton's language as it is."""

from pathlib import Path

from kernscope.tracer.triton.language.names_page import names_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "triton.md"


def test_the_page_has_the_table() -> None:
    """What the table says now stands on the page, to its end."""
    assert PAGE.read_text(encoding="utf-8").endswith("names_page -->\n" + names_table())
