"""Comments that silence a rule on a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport
from kernscope.linter.suppressions import settle_unused

from .rulecases import codes

Lint = Callable[..., LintReport]
X: Any = ks.hbm((8,), "f32")


def stale(store: str, load: str = "a = tl.load(x[:])") -> str:
    """A kernel with one stale read, in its store."""
    return f"@ks.kernel\ndef stale(x, o):\n    with tl.scratch_scope():\n        {load}\n    {store}\n"


@pytest.mark.parametrize(
    "store",
    [
        "tl.store(o[:], a)  # kernscope: ignore[KS201]",
        "tl.store(o[:], a)  #kernscope:ignore[ ks201 ]",
        "tl.store(o[:], a)  # nobody took its bytes yet  # kernscope: ignore[KS201]",
        "tl.store(\n        o[:],\n        a,\n    )  # kernscope: ignore[KS201]",
        "tl.store(  # kernscope: ignore[KS201]\n        o[:], a)",
    ],
)
def test_a_comment_silences_its_rule_on_its_statement(lint: Lint, store: str) -> None:
    """On any line of it; the finding is kept apart, and the report is clean."""
    report = lint(stale(store), X, X)
    assert str(report) == "stale: no findings"
    assert report.ok
    assert [d.code for d in report.suppressed] == ["KS201"]


@pytest.mark.parametrize(
    "store",
    [
        'tl.store(o[:], a); "# kernscope: ignore[KS201]"',
        "# kernscope: ignore[KS201]\n    tl.store(o[:], a)",
        "tl.store(o[:], a)\n    # kernscope: ignore[KS201]",
    ],
)
def test_what_is_no_comment_on_the_statement_silences_nothing(lint: Lint, store: str) -> None:
    """A string, another line."""
    assert codes(lint(stale(store), X, X)) == ["KS201"]


def test_a_comment_that_silences_nothing_is_reported(lint: Lint) -> None:
    """The place of the comment, and the code that is not needed there."""
    report = lint(stale("tl.store(o[:], a)  # kernscope: ignore[KS201, KS204]"), X, X)
    assert (
        str(report)
        == """\
warning[KS001]: KS204 is suppressed here, but this statement has no such finding
 --> kernel.py:8:24
  |
8 |     tl.store(o[:], a)  # kernscope: ignore[KS201, KS204]
  |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ suppressed here
  |
  = help: take KS204 out of the brackets; the comment goes at the end of the line that is at fault

stale: 1 warning"""
    )


def test_a_code_that_is_no_rule_is_reported(lint: Lint) -> None:
    """Misspelt, most likely: and the fault stays."""
    assert codes(lint(stale("tl.store(o[:], a)  # kernscope: ignore[KS20I]"), X, X)) == ["KS201", "KS001"]


@pytest.mark.parametrize(
    ("comment", "help"),
    [
        ("ignore[KS2O1]", "no rule 'KS2O1'; did you mean 'KS201'?"),
        (
            "ignore[use-after-scope]",
            "write the code of that rule, KS201, if this statement has such a finding; else take it out",
        ),
        (
            "ignore",
            "name the code of the finding to silence, such as `# kernscope: ignore[KS302]`, or delete the comment",
        ),
        (
            "ignore[]",
            "name the code of the finding to silence, such as `# kernscope: ignore[KS302]`, or delete the comment",
        ),
        (
            "ignore[KS201",
            "name the code of the finding to silence, such as `# kernscope: ignore[KS302]`, or delete the comment",
        ),
    ],
)
def test_a_comment_that_can_silence_nothing_says_what_to_write(lint: Lint, comment: str, help: str) -> None:
    """A misspelt code, a rule's name, no code at all, a bracket that does not close: the fault stays, too."""
    report = lint(stale(f"tl.store(o[:], a)  # kernscope: {comment}"), X, X)
    assert codes(report) == ["KS201", "KS001"]
    assert list(report)[1].help == help


def test_rules_that_did_not_run_are_not_judged(lint: Lint) -> None:
    """Whether their comments are needed is not known."""
    kernel = stale("tl.store(o[:], a)  # kernscope: ignore[KS201]")
    assert codes(lint(kernel, X, X, select=["KS204", "KS001"])) == []
    assert codes(lint(kernel, X, X, ignore=["KS201"])) == []


def test_statements_that_the_trace_did_not_come_by_are_not_judged(lint: Lint) -> None:
    """Another launch may need the comment."""
    kernel = """
        @ks.kernel
        def branches(x, late):
            with tl.scratch_scope():
                a = tl.load(x[:])
                if not late:
                    tl.store(x[:], a)
            if late:
                tl.store(x[:], a)  # kernscope: ignore[KS201]
    """
    assert codes(lint(kernel, X, False)) == []
    assert codes(lint(kernel, X, True)) == []


def test_a_comment_that_one_of_several_launches_needs_is_used(load_kernel: Callable[[str], ks.Kernel]) -> None:
    """Judged over all of them together; one that none needs stays reported."""
    kernel = load_kernel(
        """
import kernscope as ks
from kernscope import tl

@ks.kernel
def maybe(x, late):
    a = tl.load(x[:])
    with tl.scratch_scope():
        b = tl.load(x[:])
    tl.exp(b if late else a)  # kernscope: ignore[KS201, KS202]
"""
    )
    needs, does_not = (ks.lint(kernel, X, late, select=["KS0", "KS2"]) for late in (True, False))
    assert (len(needs), len(does_not)) == (1, 2)
    settled = settle_unused([needs, does_not])
    assert [[d.message[:5] for d in report] for report in settled] == [["KS202"], ["KS202"]]


def test_the_judge_can_be_silenced_itself(lint: Lint) -> None:
    """By option, as any rule."""
    kernel = stale("tl.store(o[:], a)  # kernscope: ignore[KS201, KS204]")
    assert codes(lint(kernel, X, X, ignore=["KS001"])) == []


TWO = """
    @ks.kernel
    def two(x, o):
        with tl.scratch_scope():
            a, b = tl.load(x[0:4]), tl.load(x[4:8])
        tl.store(o[0:4], a){first}
        tl.store(o[4:8], b){second}
"""
IGNORE = "  # kernscope: ignore[KS201]"


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_comment_silences_no_other_statement(lint: Lint, which: str) -> None:
    """Of two findings of one code in one file, the one on another line stays, be it before the comment or after."""
    report = lint(TWO.format(**{"first": "", "second": "", which: IGNORE}), X, X)
    (kept,), (silenced,) = list(report), report.suppressed
    assert kept.code == silenced.code == "KS201"
    assert kept.location is not None and silenced.location is not None
    assert kept.location.line - silenced.location.line == (1 if which == "first" else -1)


def test_two_findings_of_a_code_on_one_statement_share_a_comment(lint: Lint) -> None:
    """Both are silenced, by one comment, which is used."""
    kernel = """
        @ks.kernel
        def both(x, o):
            with tl.scratch_scope():
                a, b = tl.load(x[0:4]), tl.load(x[4:8])
            tl.store(o[0:4], a + b)  # kernscope: ignore[KS201]
    """
    report = lint(kernel, X, X, select=["KS2", "KS001"])
    assert codes(report) == []
    assert {d.code for d in report.suppressed} == {"KS201"}
    assert len(report.suppressed) == len(lint(kernel.replace("# kernscope", "#"), X, X, select=["KS2"]).diagnostics)


def test_each_of_two_comments_is_judged_by_its_own_statement(lint: Lint) -> None:
    """Two comments, one needed: the other is reported, at its own line; nothing is left of the finding."""
    kernel = """
        @ks.kernel
        def one(x, o):
            a = tl.load(x[4:8])
            with tl.scratch_scope():
                b = tl.load(x[0:4])
            tl.store(o[4:8], a)  # kernscope: ignore[KS201]
            tl.store(o[0:4], b)  # kernscope: ignore[KS201]
    """
    report = lint(kernel, X, X)
    assert codes(report) == ["KS001"]
    (silenced,) = report.suppressed
    unused = report.diagnostics[0].location
    assert unused is not None and silenced.location is not None
    assert unused.line == silenced.location.line - 1
