"""Reports as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import Diagnostic, LintReport
from kernscope.linter.findings import SEVERITIES, Failure
from kernscope.linter.formats.text import FORMATS, format_concise, format_full, format_json

Lint = Callable[..., LintReport]

TWO_FAULTS = """
    def keep(o, value):
        tl.store(o[:], value)


    @ks.kernel
    def faulty(x, o):
        with tl.scratch_scope():
            größe = tl.load(x[:]); a = tl.exp(größe)
        keep(o, a)
        tl.store(o[:], größe)
"""


@pytest.fixture
def report(lint: Lint) -> LintReport:
    """Two findings, one of them in a helper."""
    x: Any = ks.hbm((8,), "f32")
    return lint(TWO_FAULTS, x, x)


def test_concise_is_one_line_a_finding(report: LintReport) -> None:
    """File, line, column in characters from 1, severity, code, message."""
    assert format_concise([report, report]).splitlines() == 2 * [
        "kernel.py:5:5: error[KS201]: `a` is read by store after the exit of its scope",
        "kernel.py:13:5: error[KS201]: `größe` is read by store after the exit of its scope",
    ]


def test_full_is_what_str_gives_of_each_report(report: LintReport) -> None:
    """Findings apart by empty lines, a line of counts at the end."""
    assert format_full([report, report]) == f"{report}\n\n{report}\n"
    assert str(report) == "\n\n".join([*map(str, report), "faulty: 2 errors"])


def test_json_says_all_that_a_finding_holds(report: LintReport) -> None:
    """Counts over all reports; every place with its role, and the calls that led there."""
    document = json.loads(format_json([report]))
    assert (document["version"], document["counts"]) == (1, {"error": 2, "warning": 0, "info": 0})
    (told,) = document["reports"]
    assert told["title"] == "faulty"
    first = told["findings"][0]
    assert {key: first[key] for key in ("code", "name", "severity", "message", "nodes", "help")} == {
        "code": "KS201",
        "name": "use-after-scope",
        "severity": "error",
        "message": report.diagnostics[0].message,
        "nodes": [4],
        "help": report.diagnostics[0].help,
    }
    places = [(p["role"], p["line"], p["column"], p["function"]) for p in first["locations"]]
    assert places == [
        ("read here", 5, 5, "keep"),
        ("made here", 11, 36, "faulty"),
        ("scope closed here", 10, 5, "faulty"),
    ]
    assert [(c["line"], c["function"]) for c in first["locations"][0]["callers"]] == [(12, "faulty")]
    assert first["locations"][0]["file"].endswith("kernel.py")


def test_json_holds_any_name() -> None:
    """Quotes, line ends, lone surrogates: what is read back is what was written."""
    message = 'a "q" \\ \n </script> \udcff'
    text = format_json([LintReport("t", (Diagnostic("KS201", "n", "error", message),))])
    assert json.loads(text)["reports"][0]["findings"][0]["message"] == message
    text.encode("ascii")


def test_a_finding_without_a_place_is_named_by_its_report() -> None:
    """Rather than by no file at all."""
    report = LintReport("sweep:2k", (Diagnostic("KS501", "hbm-out-of-bounds", "error", "it leaves"),))
    assert format_concise([report]) == "sweep:2k: error[KS501]: it leaves\n"
    assert str(report) == "error[KS501]: it leaves\n\nsweep:2k: 1 error"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_no_reports_and_empty_ones(name: str) -> None:
    """Nothing linted, nothing found."""
    assert "error[" not in FORMATS[name]([])
    assert "error[" not in FORMATS[name]([LintReport("a", ())])


def test_json_says_what_could_not_be_linted() -> None:
    """A program that reads it alone must not take a kernel that crashed for a clean one."""
    failure = Failure.of("k.py::k (small)", ks.KernelProcessError("it ended its process", help="run it alone"))
    document = json.loads(FORMATS["json"]([LintReport("a", ())], [failure]))
    ((title, (finding,)),) = [(r["title"], r["findings"]) for r in document["not_linted"]]
    assert title == failure.title and document["counts"]["error"] == 1
    assert (finding["code"], finding["message"], finding["help"]) == ("KE509", "it ended its process", "run it alone")
    assert json.loads(FORMATS["json"]([LintReport("a", ())], []))["not_linted"] == []


def test_errors_come_before_infos_in_every_text_form(lint: Lint) -> None:
    """However their lines lie, within a report and where formats have no reports; the lines of one severity are in
    order."""
    report = lint(
        """
        @ks.kernel
        def mixed(x, o):
            tl.exp(tl.load(x[:, :]))
            with tl.scratch_scope():
                t = tl.load(x[:, :])
            tl.store(o[:, :], t + 1)
        """,
        ks.hbm((4, 4), "f32"),
        ks.hbm((4, 4), "f32"),
    )
    assert {d.severity for d in report} >= {"error", "info"}
    for name in ("full", "concise", "github"):
        text = FORMATS[name]([report, report], [])
        marks = {"error": "::error", "warning": "::warning", "info": "::notice"} if name == "github" else {}
        told = [severity for line in text.splitlines() for severity in SEVERITIES if _says(line, severity, marks)]
        halves = [told[: len(told) // 2], told[len(told) // 2 :]] if name == "full" else [told]
        assert all(half == sorted(half, key=SEVERITIES.index) for half in halves) and told, text


def _says(line: str, severity: str, marks: dict[str, str]) -> bool:
    return line.startswith(marks[severity]) if marks else f"{severity}[KS" in line
