"""Which fixes go together, and what becomes of the files: the plan behind ``lint --fix``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernscope.linter import Diagnostic, LintReport
from kernscope.linter.edits import Edit, Fix
from kernscope.linter.fixes.applying import Plan, plan_fixes

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file, and give its path."""

    def make(text: str, name: str = "kernel.py", encoding: str = "utf-8") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return str(path)

    return make


def edit(file: str, line: int, text: str, last: int = 0) -> Edit:
    return Edit(file, line, last or line, text)


def report(*fixes: Fix | tuple[Edit, ...] | None, code: str = "KS201") -> LintReport:
    """A finding for each fix; None: one without."""
    made = [fix if isinstance(fix, Fix) else Fix("do it", fix) for fix in fixes if fix is not None]
    found = [Diagnostic(code, "a-rule", "warning", "is wrong", fixes=(fix,)) for fix in made]
    return LintReport(
        "kernel", (*found, *(Diagnostic(code, "a-rule", "warning", "is") for fix in fixes if fix is None))
    )


def plan(*reports: LintReport) -> Plan:
    return plan_fixes(reports, lambda file: True)


def test_fixes_of_several_findings_are_merged(write: Write) -> None:
    """Each line is that of the file as it was; codes are those of the findings that were answered."""
    file = write("a = 1\nb = 2\nc = 3\n")
    first, second = (edit(file, 1, "a = 10\na2 = 11\n"),), (edit(file, 3, ""),)
    made = plan(report(first, None), report(second, code="KS302"), report(None, code="KS401"))
    (change,) = made.changes
    assert change.texts == ("a = 1\nb = 2\nc = 3\n", "a = 10\na2 = 11\nb = 2\n")
    assert [fix.edits for fix in made.fixes] == [first, second]
    assert (made.codes, made.waiting, made.elsewhere) == ({"KS201", "KS302"}, 0, 0)


def test_the_first_fix_of_a_finding_is_taken(write: Write) -> None:
    """The others are other ways to do it."""
    file = write("a = 1\n")
    finding = Diagnostic(
        "KS201", "a-rule", "error", "is wrong", fixes=(Fix("so", (edit(file, 1, "a = 2\n"),)), Fix("or so", ()))
    )
    made = plan(LintReport("kernel", (finding,)))
    assert [fix.title for fix in made.fixes] == ["so"] and made.changes[0].after == b"a = 2\n"


def test_the_same_edits_are_made_once(write: Write) -> None:
    """Two launches of a kernel find the same, whatever their order and their words."""
    file = write("a = 1\nb = 2\n")
    edits = (edit(file, 1, "a = 3\n"), edit(file, 2, "b = 4\n"))
    made = plan(report(edits), report(Fix("in other words", edits[::-1])))
    assert [fix.title for fix in made.fixes] == ["do it"] and made.waiting == 0
    assert made.changes[0].after == b"a = 3\nb = 4\n"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "later", [lambda file, n: edit(file, 1, f"a = {n}\n", last=2), lambda file, n: edit(file, 3, f"({n}\n")]
)
def test_what_does_not_go_together_waits(write: Write, count: int, later: Callable[[str, int], Edit]) -> None:
    """Edits of a line that was edited; what would leave no Python. Those that are taken stay."""
    file = write("a = 1\nb = 2\nc = 3\n")
    made = plan(report((edit(file, 1, "a = 0\n"),)), *(report((later(file, n),), code="KS302") for n in range(count)))
    assert (len(made.fixes), made.codes, made.waiting) == (1, {"KS201"}, count)
    assert made.changes[0].after == b"a = 0\nb = 2\nc = 3\n"


def test_a_fix_of_two_files_is_made_as_a_whole_or_not_at_all(write: Write) -> None:
    """Also where the second one does not go."""
    one, two = write("a = 1\n"), write("b = 2\n", "helper.py")
    both = (edit(one, 1, "a = 3\n"), edit(two, 1, "b = 4\n"))
    assert [change.after for change in plan(report(both)).changes] == [b"a = 3\n", b"b = 4\n"]
    half = (edit(one, 1, "a = 3\n"), edit(two, 1, "b = (\n"))
    made = plan(report(half), report((edit(one, 1, "a = 5\n"),)))
    assert made.waiting == 1 and [change.after for change in made.changes] == [b"a = 5\n"]


@pytest.mark.parametrize("count", [1, 2])
def test_files_that_are_not_to_be_edited_are_left_alone(write: Write, count: int) -> None:
    """A fix that touches one of them is not made, and counted."""
    one, two = write("a = 1\n"), write("b = 2\n", "elsewhere.py")
    fixes = [(edit(two, 1, f"b = {n}\n"), edit(one, 1, f"a = {n}\n")) for n in range(count)]
    made = plan_fixes([report(*fixes)], lambda file: "elsewhere" not in file)
    assert (made.changes, made.fixes, made.codes, made.waiting, made.elsewhere) == ((), (), frozenset(), 0, count)


def test_what_changes_nothing_is_no_change(write: Write) -> None:
    """The fix counts as made."""
    file = write("a = 1\n")
    made = plan(report((edit(file, 1, "a = 1\n"),)))
    assert made.changes == () and len(made.fixes) == 1


@pytest.mark.parametrize(
    ("text", "encoding", "after"),
    [
        ("ü = 1\r\nb = 2\r\n", "utf-8", "ü = 1\r\nb = 3\r\n"),
        ("# coding: latin-1\nb = 'ü'\n", "latin-1", "# coding: latin-1\nb = 3\n"),
        ("ü = 1\nb = 2", "utf-8-sig", "ü = 1\nb = 3"),
    ],
)
def test_line_ends_and_encodings_stay(write: Write, text: str, encoding: str, after: str) -> None:
    """What is not edited has the same bytes."""
    made = plan(report((edit(write(text, encoding=encoding), 2, "b = 3\n"),)))
    (change,) = made.changes
    assert change.after == after.encode(encoding) and change.before == text.encode(encoding)
    assert change.texts == (text, after)


@pytest.mark.parametrize("bad", [None, "# coding: no-such\na = 1\n", b"\xff = 1\n"])
def test_what_is_no_text_any_more_is_not_edited(tmp_path: Path, bad: str | bytes | None) -> None:
    """Gone since it was linted, of an unknown encoding, or not of its own."""
    path = tmp_path / "kernel.py"
    if bad is not None:
        path.write_bytes(bad if isinstance(bad, bytes) else bad.encode())
    made = plan(report((edit(str(path), 1, "a = 2\n"),)))
    assert (made.changes, made.fixes, made.waiting) == ((), (), 1)
