"""What is proposed is right however a kernel is written.

An edit is judged on the source, and there are many ways to write the same. Every kernel with a fix is written in ways
that compute the same and that an edit could stumble on: what is proposed then is followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

import kernscope as ks

from .fixcases import CASES, Case
from .rewrites import REWRITES
from .test_fixes import Load, applied, arguments, source

#: These are more to lint for the same mistake: what is read on, or by a list, is no operation.
MORE_UNUSED = {"names read on": {"KS302"}}


def judge(load_kernel: Load, case: Case, rewrite: str) -> None:
    """Follow the first finding's fixes of a case, written in another way."""
    text = REWRITES[rewrite](source(case.text))
    given = arguments(case)
    report = ks.lint(load_kernel(text), *given)
    findings = [d for d in report.of(case.code) if d.fixes]
    for fix in findings[0].fixes if findings else ():
        changed = applied(fix, text)
        assert fix.title in findings[0].help
        after = ks.lint(load_kernel(changed), *given)
        # An info speaks of shares of a time that is less now.
        codes, more = (
            Counter(d.code for d in r if d.severity != "info" or d.code == case.code) for r in (report, after)
        )
        assert more[case.code] < codes[case.code], changed
        assert not set(more - codes) - set(case.others) - MORE_UNUSED.get(rewrite, set()), f"{changed}\n{after}"
        if after.ok:
            (got,) = ks.run(ks.trace(load_kernel(changed), *given), poison=True).values()
            meant = case.meant(given[0].astype(np.float32))
            np.testing.assert_allclose(got.astype(np.float32), meant, rtol=1e-5, err_msg=changed)


#: Other ways to give a name its value; to give it another one; to load within an expression; to name it elsewhere.
ASSIGNED = {"with an annotation", "to two names", "to a tuple", "as an expression"}
GIVEN = {"given before", "given behind", "given again", "deleted never"}
FUNCTIONS = {"by a lambda", "by a comprehension", "by a generator"}
WITHIN = {*FUNCTIONS, "by a conditional", "by a walrus", "by a subscript", "by and"}
NAMED = {"names read by a closure", "names of the module"}
BLOCKS = {"under a condition", "in a try", "in a handler", "in a match", "in an else"}
#: By code and case, the ways in which it is written so that no edit is sure to be right, and none is proposed.
UNSURE = {
    ("KS001", "a comment without a code"): set(REWRITES),  # the syntax tree knows no comments
    ("KS101", "a carried sum"): ASSIGNED | FUNCTIONS | {"by a walrus"},
    ("KS103", "read by the next iteration above the line that makes it"): ASSIGNED | WITHIN,
    ("KS103", "the last iteration's result"): ASSIGNED | FUNCTIONS | {"in a function"},
    ("KS104", "two steps"): set(),
    ("KS201", "augmented"): {"by a walrus"},
    ("KS201", "under another name"): ASSIGNED | {"by a walrus"},
    ("KS201", "a load that is read after its scope"): ASSIGNED | WITHIN - {"by a lambda"},
    ("KS201", "in each iteration"): ASSIGNED | {"by a walrus", "in a function"},
    ("KS201", "an empty handle"): ASSIGNED | GIVEN | {"in a match"},
    ("KS202", "loaded into"): ASSIGNED | WITHIN - {"by a lambda"},
    ("KS203", "a copy that is lost"): ASSIGNED | NAMED | {"given again"},
    ("KS204", "a product's accumulator"): set(),
    ("KS206", "a scope that is never entered"): set(),
    ("KS301", "a load that nobody reads"): ASSIGNED | WITHIN | NAMED | {"given again", "names read on"},
    ("KS302", "a result within a loop"): ASSIGNED | NAMED | {"given again", "names read on"},
    ("KS303", "a load that could come before"): BLOCKS
    | WITHIN - {"by a walrus", "by a subscript"}
    | {"in a loop of one", "with an annotation", "with more keywords"},
    ("KS501", "a store that leaves its tensor"): {"with more keywords"},
    ("KS503", "a load that repeats another, with a name"): ASSIGNED | GIVEN | WITHIN | {"with more keywords"},
    ("KS503", "a load that is the same in each iteration"): BLOCKS
    | GIVEN
    | WITHIN - {"by a walrus", "by a subscript"}
    | {"with an annotation", "with more keywords"},
    ("KS601", "in a nested loop, used twice"): ASSIGNED
    | GIVEN
    | {"with more keywords", "names read on", "names read by a closure"},
}


def named(code: str, name: str) -> Case:
    return next(case for case in CASES if (case.code, case.name) == (code, name))


def test_every_code_has_a_case_written_in_all_ways() -> None:
    """What of it is sure is said for every rule that proposes edits."""
    assert {code for code, _ in UNSURE} == {case.code for case in CASES}


@pytest.mark.parametrize(("code", "name"), UNSURE, ids=lambda value: str(value))
def test_an_edit_is_proposed_where_it_is_sure_to_be_right(load_kernel: Load, code: str, name: str) -> None:
    """In which ways of writing a kernel its finding has a fix, and in which its help is advice."""
    case, without = named(code, name), set()
    for rewrite, change in REWRITES.items():
        report = ks.lint(load_kernel(change(source(case.text))), *arguments(case), select=[code])
        if not any(d.fixes for d in report.of(code)):
            without.add(rewrite)
    assert without == UNSURE[code, name]


def one_of_each_code(number: int) -> Iterable[Case]:
    """A case of every code, another one for every number."""
    by_code: dict[str, list[Case]] = {}
    for case in CASES:
        if "@" not in case.text:
            by_code.setdefault(case.code, []).append(case)
    return [cases[number % len(cases)] for cases in by_code.values()]


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_fix_is_right_however_the_kernel_is_written(load_kernel: Load, rewrite: str) -> None:
    """A case of every code: the finding is gone, no other has come, and the numbers are what the author meant."""
    for case in one_of_each_code(list(REWRITES).index(rewrite)):
        judge(load_kernel, case, rewrite)


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}: {case.name}")
def test_every_fix_is_right_however_the_kernel_is_written(load_kernel: Load, case: Case, rewrite: str) -> None:
    """The same of every case."""
    judge(load_kernel, case, rewrite)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_rewrite_computes_the_same(load_kernel: Load, rewrite: str) -> None:
    """As far as a kernel without a fault tells."""
    case = next(case for case in CASES if case.name == "a load that could come before")
    texts = source(case.text), REWRITES[rewrite](source(case.text))
    graphs = [ks.trace(load_kernel(text), *arguments(case)) for text in texts]
    first, second = (next(iter(ks.run(graph).values())) for graph in graphs)
    np.testing.assert_array_equal(first, second)
