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
