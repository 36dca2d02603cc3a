"""Selecting rules and options; the report; its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import RULES, LintReport

from .rules.rulecases import codes

Lint = Callable[..., LintReport]

FAULTY = """
    @ks.kernel
    def faulty(x, o):
        with tl.scratch_scope():
            a = tl.load(x[:])
        tl.load(x[:], out=a)
        b = tl.empty((8,), tl.float32)
        tl.store(o[:], a + b)
"""


def tensors() -> tuple[Any, Any]:
    """Two tensors of 8 elements."""
    return ks.hbm((8,), "f32"), ks.hbm((8,), "f32")


def test_all_rules_run_unless_some_are_selected(lint: Lint) -> None:
    """Findings come in the order of their lines, then codes."""
    assert codes(lint(FAULTY, *tensors())) == ["KS202", "KS201", "KS204"]


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        (["KS201"], [], ["KS201"]),
        (["ks201"], [], ["KS201"]),
        (["use-after-scope"], [], ["KS201"]),
        (["KS2"], [], ["KS202", "KS201", "KS204"]),
        ("KS2", "KS201", ["KS202", "KS204"]),
        (["KS1"], [], []),
        ([], ["KS2"], []),
        (["KS2", "KS501"], ["read-before-write", "KS202"], ["KS201"]),
    ],
)
def test_rules_are_selected_and_ignored(lint: Lint, select: list[str], ignore: list[str], expected: list[str]) -> None:
    """By code, name or beginning of codes, in any case; what is ignored is so even if selected."""
    assert codes(lint(FAULTY, *tensors(), select=select, ignore=ignore)) == expected


@pytest.mark.parametrize("entry", ["KS999", "KS20I", "", "K", "use-after-scop"])
def test_an_unknown_rule_is_refused(lint: Lint, entry: str) -> None:
    """Never silently without effect."""
    for arguments in ({"select": [entry]}, {"ignore": [entry]}):
        with pytest.raises(ks.RuleError, match="no rule"):
            lint(FAULTY, *tensors(), **arguments)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"KS102": {"percnt": 80}}, "no option 'percnt'"),
        ({"KS201": {"percent": 80}}, "KS201 has no option"),
        ({"KS102": {"percent": "80"}}, "is '80', not int"),
        ({"KS102": {"percent": True}}, "is True, not int"),
        ({"KS102": {"percent": 101}}, "is 101"),
        ({"KS102": {"percent": -1}}, "is -1"),
    ],
)
def test_a_wrong_option_is_refused(lint: Lint, options: dict[str, dict[str, object]], error: str) -> None:
    """Unknown names, wrong types and values out of range, also of rules that are not selected."""
    with pytest.raises(ks.OptionError, match=error):
        lint(FAULTY, *tensors(), select=["KS501"], options=options)


def test_options_of_an_unknown_rule_are_refused(lint: Lint) -> None:
    """With the nearest rule."""
    with pytest.raises(ks.RuleError, match="did you mean 'KS"):
        lint(FAULTY, *tensors(), options={"KS120": {"percent": 80}})


def test_a_report_counts_and_judges(lint: Lint) -> None:
    """`ok` asks for errors only; a report is never false, however empty."""
    report = lint(FAULTY, *tensors())
    assert not report.ok
    assert report.counts == {"error": 3, "warning": 0, "info": 0}
    assert report.summary == "faulty: 3 errors"
    assert len(report.at_least("info")) == 3
    assert len(report.of("KS201")) == 1
    clean = lint(FAULTY, *tensors(), select=["KS1"])
    assert clean.ok and bool(clean) and len(clean) == 0
    assert str(clean) == "faulty: no findings"


def test_the_same_kernel_gives_the_same_report(lint: Lint) -> None:
    """Character by character."""
    assert str(lint(FAULTY, *tensors())) == str(lint(FAULTY, *tensors()))


def test_a_report_shows_itself_in_a_notebook(lint: Lint) -> None:
    """As a table, with everything escaped that a kernel's author can name."""
    kernel = """
        @ks.kernel
        def odd(x, o):
            with tl.scratch_scope():
                names = {}
                names["<b>&"] = tl.load(x[:])
            tl.store(o[:], names["<b>&"])
    """
    text = lint(kernel, *tensors())._repr_html_()
    assert text.startswith("<table>")
    assert "<b>" not in text
    assert "&lt;b&gt;&amp;" in text


def test_codes_are_grouped_by_family_and_names_are_unique() -> None:
    """`explain` and `select` take either."""
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    assert all(code[:2] == "KS" and code[2:].isdigit() and len(code) == 5 for code in RULES)
