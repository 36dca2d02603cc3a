"""Changes at places of a text as edits of whole lines."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from kernscope.linter.edits import apply_edits
from kernscope.linter.fixes.rewriting import Rewriting
from kernscope.linter.fixes.syntax import Syntax

Place = tuple[int, int]


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, list[tuple[Place, Place, str]]]:
    """A text, and changes of it that do not overlap, in any order: between two places of a line or of several, at one
    place, whole lines, each with one line or several in its place."""
    lines = draw(st.lists(st.text("abü ", min_size=0, max_size=5), min_size=1, max_size=8))
    # The place behind the last line is none: there is no line to edit.
    places = [(n, at) for n, line in enumerate(lines, 1) for at in range(len(line) + 1)]
    chosen = sorted(draw(st.lists(st.sampled_from(places), max_size=8)))
    changes: list[tuple[Place, Place, str]] = []
    for start, stop in zip(chosen[::2], chosen[1::2], strict=False):
        whole = start[1] == stop[1] == 0
        if stop[1] == 0 < start[1] and start[0] < stop[0]:
            continue  # half a line and its end: no fix does that
        new = draw(st.sampled_from(["", "whole\n"] if whole else ["", "new", "one\n  two", "whole\n"]))
        if not changes or changes[-1][1] < start or changes[-1][0] < changes[-1][1] == start:
            changes.append((start, stop, new))
    return "\n".join(lines), draw(st.permutations(changes))


def replaced(text: str, changes: list[tuple[Place, Place, str]]) -> str:
    """The same by offsets in the text."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for start, stop, new in sorted(changes, reverse=True):
        first, last = (starts[line - 1] + column for line, column in (start, stop))
        text = text[:first] + new + text[last:]
    return text


@given(changed())
def test_edits_of_whole_lines_do_what_the_changes_say(case: tuple[str, list[tuple[Place, Place, str]]]) -> None:
    """However many share a line, and however many lines one takes; no two edits touch the same line."""
    text, changes = case
    rewriting = Rewriting(Syntax("f", tuple(text.split("\n")), ast.Module([], []), {}))
    for change in changes:
        rewriting.replace(*change)
    assert apply_edits(text, rewriting.edits()) == replaced(text, changes)
