"""GitHub annotations: one workflow command a finding, escaped as GitHub demands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernscope as ks
from kernscope.ir.source.location import Location
from kernscope.linter import Diagnostic, LintReport, Place
from kernscope.linter.findings import Failure
from kernscope.linter.formats.text import FORMATS

COMMAND = re.compile(r"::(error|warning|notice) ((?:[A-Za-z]+=[^:,\r\n]*)(?:,[A-Za-z]+=[^:,\r\n]*)*)::([^\r\n]*)")


def annotations(*reports: LintReport, failures: tuple[Failure, ...] = ()) -> list[tuple[str, dict[str, str], str]]:
    """The commands as GitHub's runner takes them apart."""
    found = []
    for line in FORMATS["github"](reports, failures).splitlines():
        match = COMMAND.fullmatch(line)
        assert match is not None, line
        pairs = dict(pair.split("=", 1) for pair in match[2].split(","))
        found.append((match[1], {k: unescaped(v) for k, v in pairs.items()}, unescaped(match[3])))
    return found


def unescaped(text: str) -> str:
    for escape, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escape, character)
    return text


def one(message: str, location: Location | None = None, severity: Any = "error") -> LintReport:
    places = () if location is None else (Place("read here", location),)
    return LintReport(
        "flash:2k", (Diagnostic("KS201", "use-after-scope", severity, message, places, (1,), "do: a, b"),)
    )


def test_a_finding_is_a_command(lint: Callable[..., LintReport]) -> None:
    """File, line and columns of the place at fault; the message with its help."""
    x: Any = ks.hbm((8,), "f32")
    report = lint(
        """
        @ks.kernel
        def stale(x, o):
            with tl.scratch_scope():
                a = tl.load(x[:])
            tl.store(o[:], a)
        """,
        x,
        x,
        select=["KS201"],
    )
    (found,) = report
    assert annotations(report) == [
        (
            "error",
            {
                "file": "kernel.py",
                "line": "8",
                "col": "5",
                "endColumn": "22",
                "title": "KS201 use-after-scope (stale)",
            },
            f"{found.message}\nhelp: {found.help}",
        )
    ]


@pytest.mark.parametrize(("severity", "command"), [("error", "error"), ("warning", "warning"), ("info", "notice")])
def test_severities(severity: str, command: str) -> None:
    """An info is a notice."""
    assert annotations(one("m", severity=severity))[0][0] == command


def test_what_ends_a_command_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Percent signs and line ends everywhere, colons and commas in properties: no text begins another command."""
    monkeypatch.chdir(tmp_path)
    report = one("90 % of it\n::error::a, b: c\r", Location("a,b:c%/k.py", 2))
    text = FORMATS["github"]([report], [])
    assert text.count("\n") == 1
    assert "file=a%2Cb%3Ac%25/k.py," in text
    (command,) = annotations(report)
    assert command[1]["file"] == "a,b:c%/k.py"
    assert command[2].startswith("90 % of it\\n::error::a, b: c\\r")


def test_of_several_lines_no_columns() -> None:
    """GitHub refuses them."""
    (command,) = annotations(one("m", Location("k.py", 2, "f", 4, 5, 9)))
    assert {k: v for k, v in command[1].items() if k != "title"} == {"file": "k.py", "line": "2", "endLine": "5"}


def test_without_a_place_there_is_no_file() -> None:
    """The title names the launch."""
    (command,) = annotations(one("m"))
    assert command[1] == {"title": "KS201 use-after-scope (flash:2k)"}


def test_one_line_of_several_launches_is_one_annotation() -> None:
    """GitHub shows ten of a kind for each step."""
    first = one("m", Location("k.py", 2))
    (command,) = annotations(first, LintReport("flash:4k", first.diagnostics))
    assert command[1]["title"] == "KS201 use-after-scope (flash:2k, flash:4k)"


def test_what_could_not_be_linted_is_an_error() -> None:
    """So that the step's page says why it failed."""
    failure = Failure.of("a.py::k (x)", ks.TimeLimitError("it hangs", help="mend it"))
    assert annotations(failures=(failure,)) == [
        ("error", {"title": "KE507 time-limit-error (a.py::k (x))"}, "it hangs\nhelp: mend it")
    ]


def test_any_name_can_be_written() -> None:
    """Lone surrogates of a file's name, too."""
    FORMATS["github"]([one("m", Location("x\udcff.py", 1))], []).encode("utf-8")
