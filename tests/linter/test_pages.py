"""Every rule has a page, and what the page shows is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.linter import RULES, LintReport, explain
from kernscope.linter.pages import rule_pages, write_pages

LintPage = Callable[[str], LintReport]
PAGES = Path(__file__).resolve().parents[2] / "docs" / "rules"


@pytest.mark.parametrize("code", RULES)
def test_the_example_has_the_fault_and_no_other(code: str, lint_page: LintPage) -> None:
    """What a page shows as wrong is what its rule reports, at its severity; hints at other things may stand beside."""
    report = lint_page(RULES[code].example)
    assert {d.code for d in report if d.severity != "info" or d.code == code} == {code}
    assert {d.severity for d in report.of(code)} == {RULES[code].severity}


@pytest.mark.parametrize("code", RULES)
def test_the_fix_has_no_fault_at_all(code: str, lint_page: LintPage) -> None:
    """What a page shows as right is clean under all rules; other rules' hints may stand."""
    report = lint_page(RULES[code].fix)
    assert [str(d) for d in report if d.severity != "info" or d.code == code] == []


@pytest.mark.parametrize("code", RULES)
def test_a_page_has_the_fixed_headings(code: str) -> None:
    """In this order, and none of them empty."""
    page = explain(code)
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings == [
        f"# {code} {RULES[code].name}",
        "## What it does",
        "## Why it is bad",
        "## Example",
        "## Fix",
        "## Options",
    ]
    assert all(section.strip() for section in page.split("## ")[1:])


def test_the_pages_in_the_documentation_are_those_of_the_rules() -> None:
    """`python -m kernscope.linter.pages docs/rules` writes them anew."""
    assert {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")} == rule_pages()


def test_a_page_is_found_by_code_or_name_in_any_case() -> None:
    """And an unknown one is refused with the nearest."""
    assert explain("ks201") == explain("KS201") == explain("use-after-scope")
    with pytest.raises(ks.RuleError, match="did you mean 'KS20"):
        explain("KS20I")


@pytest.mark.parametrize("code", ["zzzzzz", "", "q" * 5000, 5, "KX"])
def test_a_code_like_none_is_refused_in_a_short_line(code: object) -> None:
    """It says where the codes are listed, and lists none."""
    with pytest.raises(ks.RuleError) as caught:
        explain(code)
    assert caught.value.message.startswith("no rule or error ")
    assert caught.value.help == "`kernscope explain` lists all codes with their names"
    assert len(str(caught.value)) < 200


def test_pages_are_written_anew_into_any_folder(tmp_path: Path) -> None:
    """One that is not there is made; what is there is replaced."""
    folder = tmp_path / "docs" / "rules"
    for _ in range(2):
        write_pages(folder)
        assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == rule_pages()
        (folder / "index.md").write_text("old")
