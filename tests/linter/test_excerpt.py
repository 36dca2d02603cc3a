"""Places as text: what is underlined, and that nothing in a source or a name can break the output."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernscope.ir.source.location import Location
from kernscope.linter import Diagnostic, Place
from kernscope.linter.excerpt import excerpts, pointer
from kernscope.linter.fixes.syntax import enclosing_loop


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are shown relative to the current folder."""
    monkeypatch.chdir(tmp_path)


def at(file: str, line: int, column: int, end_column: int, *, end_line: int | None = None) -> Location:
    """A place within one line, or over several."""
    return Location(file, line, "f", column, line if end_line is None else end_line, end_column)


def write(text: str, name: str = "k.py") -> str:
    """A source file in the current folder."""
    Path(name).write_text(text, encoding="utf-8")
    return str(Path(name).absolute())


def test_a_place_is_underlined_from_its_first_to_its_last_character() -> None:
    """Line number, source, marks, role."""
    file = write("a = 1\nb = load(x)\n")
    assert excerpts([("read here", at(file, 2, 4, 11))]) == [
        " --> k.py:2:5",
        "  |",
        "2 | b = load(x)",
        "  |     ^^^^^^^ read here",
        "  |",
    ]


def test_places_are_in_line_order_with_gaps_shown() -> None:
    """The one at fault has other marks, wherever it stands; line numbers are as wide as the widest."""
    file = write("\n".join(f"line{n}" for n in range(1, 13)))
    places = [("at fault", at(file, 11, 0, 6)), ("made", at(file, 2, 0, 5)), ("closed", at(file, 3, 0, 5))]
    assert excerpts(places) == [
        "  --> k.py:11:1",
        "   |",
        " 2 | line2",
        "   | ----- made",
        " 3 | line3",
        "   | ----- closed",
        "...",
        "11 | line11",
        "   | ^^^^^^ at fault",
        "   |",
    ]


def test_two_places_of_one_line_have_a_row_each() -> None:
    """The line itself is shown once."""
    file = write("a = f(b)\n")
    assert excerpts([("outer", at(file, 1, 4, 8)), ("inner", at(file, 1, 6, 7))])[2:5] == [
        "1 | a = f(b)",
        "  |     ^^^^ outer",
        "  |       - inner",
    ]


def test_other_files_follow_with_their_own_heading() -> None:
    """The file at fault comes first."""
    one, two = write("a\n", "one.py"), write("b\n", "two.py")
    text = excerpts([("here", at(one, 1, 0, 1)), ("there", at(two, 1, 0, 1))])
    assert [line for line in text if "py" in line] == [" --> one.py:1:1", " ::: two.py:1:1"]


def test_a_place_of_several_lines_is_underlined_on_its_first() -> None:
    """To that line's end, without the comment's or the line's trailing blanks."""
    file = write("    store(a,   \n          b)\n")
    assert excerpts([("here", at(file, 1, 4, 12, end_line=2))])[3] == "  |     ^^^^^^^^ here"


def test_an_unknown_column_underlines_the_whole_line() -> None:
    """And the heading names the line only."""
    file = write("    a = 1\n")
    assert excerpts([("here", Location(file, 1))]) == [
        " --> k.py:1",
        "  |",
        "1 |     a = 1",
        "  |     ^^^^^ here",
        "  |",
    ]


@pytest.mark.parametrize(
    ("line", "column", "end_column", "marks"),
    [
        ("\ta = f(x)", 5, 9, "        ^^^^"),
        ("größe = f(x)", 10, 14, "        ^^^^"),  # two characters of two bytes each
        ("名 = f(x)", 6, 10, "     ^^^^"),  # one character of three bytes, two columns wide
        ("a = f('\u200b')", 4, 12, "    ^^^^^^^^^^^"),  # an invisible character shows as its escape
    ],
)
def test_marks_stand_below_what_they_mean(line: str, column: int, end_column: int, marks: str) -> None:
    """Locations count UTF-8 bytes; a terminal counts columns."""
    file = write(line + "\n")
    assert excerpts([("here", at(file, 1, column, end_column))])[3] == f"  | {marks} here"


def test_control_characters_are_escaped() -> None:
    """Of a source line, of a role, of a file's name, of a message: none reaches the terminal."""
    file = write("a = '\x1b[31m'\n")
    finding = Diagnostic(
        "KS201",
        "use-after-scope",
        "error",
        "`\x1b[0m\n` is read",
        (Place("made by \x07", at(file, 1, 0, 5)), Place("gone", at("/nowhere/\x1b]8.py", 3, 0, 1))),
        help="use `\r`",
    )
    text = str(finding)
    assert all(c.isprintable() for c in text.replace("\n", ""))
    assert text.splitlines()[0] == "error[KS201]: `\\x1b[0m\\n` is read"


@pytest.mark.parametrize("file", ["/nowhere/k.py", "<string>", "", "/dev/zero", "\x00", "."])
def test_a_source_that_cannot_be_read_leaves_the_place(file: str) -> None:
    """No line, no error, and nothing that never ends: a saved graph can name any path."""
    text = excerpts([("read here", at(file, 7, 4, 9))])
    assert text[0].endswith(":7:5")
    assert text[1:] == ["  |", "7 |", "  | ^ read here", "  |"]


def test_a_line_beyond_the_files_end_leaves_the_place() -> None:
    """The file has changed since."""
    file = write("a\n")
    assert excerpts([("here", at(file, 9, 4, 9))])[1:4] == ["  |", "9 |", "  | ^ here"]


def test_a_file_outside_the_current_folder_keeps_its_whole_path() -> None:
    """No ladder of dots."""
    assert pointer(at("/nowhere/else/k.py", 3, 0, 1)) == "/nowhere/else/k.py:3:1"


def test_long_lines_are_not_wrapped() -> None:
    """Whatever the terminal's width: findings are for programs too."""
    file = write("x" * 500 + "\n")
    assert f"1 | {'x' * 500}" in excerpts([("here", at(file, 1, 0, 500))])


@pytest.mark.parametrize(
    ("line", "expected"),
    [(1, None), (4, (3, 4, 6)), (6, (5, 6, 6)), (8, (7, 8, 8)), (9, None)],
)
def test_the_innermost_loop_around_a_line_is_found(line: int, expected: tuple[int, int, int] | None) -> None:
    """`for` and `while`; a loop's own line, and what comes after it, is outside."""
    file = write("a\nif a:\n    for i in a:\n        b\n        while b:\n            c\nfor j in a:\n    d\ne\n")
    loop = enclosing_loop(Location(file, line))
    assert (None if loop is None else (loop.line, loop.first, loop.last)) == expected


def test_a_helpers_line_lies_in_the_loop_that_calls_it() -> None:
    """Unless it has a loop of its own."""
    file = write("def f():\n    a\nfor i in b:\n    f()\n")
    loop = enclosing_loop(Location(file, 2, stack=(Location(file, 4),)))
    assert loop is not None and loop.line == 3


def test_a_source_that_does_not_parse_has_no_loops() -> None:
    """Not Python, or changed in the middle of an edit."""
    assert enclosing_loop(Location(write("for (\n"), 1)) is None
