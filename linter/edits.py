"""Edits of source text as data: what a help proposes where it is concrete, for ``--fix`` and for editors."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

__all__ = ["Edit", "Fix", "apply_edits"]


@attrs.frozen
class Edit:
    """Lines ``first`` to ``last`` of a file, counted from 1 and both inclusive, become ``text``: whole lines, each with
    its line end. An empty text deletes them."""

    file: str
    first: int
    last: int
    text: str


@attrs.frozen
class Fix:
    """One change that answers a finding: ``title`` says it in words (the finding's help says the same), ``edits`` do
    it. They do not overlap, and belong together."""

    title: str
    edits: tuple[Edit, ...]


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """A file's text after its edits. Raises ``ValueError`` where two of them overlap or one lies outside the file."""
    lines = text.split("\n")
    ordered = sorted(edits, key=lambda edit: edit.first)
    below = len(lines) + 1
    for edit in reversed(ordered):
        if not 1 <= edit.first <= edit.last < below:
            raise ValueError(f"lines {edit.first}-{edit.last} are not there, or edited twice")
        lines[edit.first - 1 : edit.last] = edit.text.removesuffix("\n").split("\n") if edit.text else []
        below = edit.first
    return "\n".join(lines)
