"""Names of other scripts in PNG charts: in a font that has them, or a note; and never a warning of matplotlib's."""

from __future__ import annotations

from pathlib import Path

import attrs
import picturekernels as pk
import pytest

import kernscope as ks

font_manager = pytest.importorskip("matplotlib.font_manager")
ft2font = pytest.importorskip("matplotlib.ft2font")
fonts_for = pytest.importorskip("kernscope.backends.timelines.png_fonts").fonts_for


def characters(path: str) -> set[str]:
    return {chr(code) for code in ft2font.FT2Font(path).get_charmap()}


def test_a_font_that_has_the_characters_is_found() -> None:
    """The usual one comes first, and alone where it is enough."""
    usual = font_manager.findfont(font_manager.FontProperties())
    assert fonts_for(["rank 0: gemm", "\u00fcber \u0394\u044f"]) == ([ft2font.FT2Font(usual).family_name], "")
    other = font_manager.findfont("STIXGeneral")
    only = sorted(c for c in characters(other) - characters(usual) if c.isprintable() and not c.isspace())
    families, missing = fonts_for([f"a{only[0]}b"])
    assert missing == "" and len(families) == 2


def test_a_character_that_no_font_has_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the timeline's own words, once; warnings are errors here."""
    listed = [font for font in font_manager.fontManager.ttflist if font.name.startswith("DejaVu Sans")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", listed)
    graph = attrs.evolve(pk.messages(), kernel="\u6838\u6838\u5fc3")
    timeline = ks.timeline(ks.schedule(graph), tmp_path / "t.png")
    assert [note for note in timeline.notes if "font" in note] == [
        "no font here has \u5fc3, \u6838: they are drawn as boxes; a .svg is shown in its reader's fonts"
    ]
    assert (tmp_path / "t.png").stat().st_size > 1000
    assert "no font" not in str(ks.timeline(ks.schedule(pk.messages()), tmp_path / "t.png"))


def test_a_drawing_of_other_letters_says_that_svg_shows_them(tmp_path: Path) -> None:
    """As PNG only."""
    graph = attrs.evolve(pk.messages(), kernel="\u6838\u5fc3")
    for format, told in (("png", True), ("svg", False)):
        made = ks.draw(graph, tmp_path / f"g.{format}")
        if made.rendered:
            assert ("may lack" in str(made)) is told
    assert "may lack" not in str(ks.draw(pk.messages(), tmp_path / "g.png"))
