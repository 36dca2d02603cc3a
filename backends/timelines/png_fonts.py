"""Which of the installed fonts can write a picture's names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

__all__ = ["fonts_for"]


#: A font that has a box for everything: no better than none.
_BOXES_ONLY = "Last Resort"


def fonts_for(texts: Iterable[str]) -> tuple[list[str], str]:
    """Families for these texts, the usual one first and others only for characters that those before them lack; and the
    characters that no installed font has."""
    usual = font_manager.findfont(font_manager.FontProperties())
    families = [FT2Font(usual).family_name]
    missing = {c for text in texts for c in text if not c.isspace()} - _characters(usual)
    if not missing:
        return families, ""
    for font in sorted(font_manager.fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        if not missing:
            break
        if font.style != "normal" or font.name in families or font.name.startswith(_BOXES_ONLY):
            continue
        known = _characters(font.fname)
        if missing & known:
            families.append(font.name)
            missing -= known
    return families, "".join(sorted(missing))


def _characters(path: str) -> set[str]:
    """What a font's file has a glyph for; nothing where it cannot be read (one of several fonts in a file, say)."""
    with contextlib.suppress(OSError, RuntimeError):
        return {chr(code) for code in FT2Font(path).get_charmap()}
    return set()
