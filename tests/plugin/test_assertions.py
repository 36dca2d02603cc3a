"""``kernscope.face.testing``: assertions that hold for good kernels and say what is wrong with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.face.testing import assert_fits, assert_no_findings

X: Any = ks.hbm((512, 256), "f32")  # half of the default budget


@ks.launch("half", x=X, copies=1)
@ks.launch("full", x=X, copies=2)
@ks.kernel
def fits(x: Any, copies: int) -> None:
    for _ in range(copies):
        tl.store(x[:, :], tl.load(x[:, :]))


@ks.launch("half", x=X, copies=1)
@ks.launch("over", x=X, copies=3)
@ks.kernel
def too_large(x: Any, copies: int) -> None:
    for _ in range(copies):
        tl.store(x[:, :], tl.load(x[:, :]))


@ks.launch("small", x=ks.hbm((16,), "f32"))
@ks.kernel
def stale(x: Any) -> None:
    with tl.scratch_scope():
        a = tl.load(x[:])
    tl.store(x[:], a)


@ks.launch("used", x=ks.hbm((16,), "f32"), late=True)
@ks.launch("unused", x=ks.hbm((16,), "f32"), late=False)
@ks.kernel
def one_launch_needs_the_comment(x: Any, late: bool) -> None:
    a = tl.load(x[:])
    with tl.scratch_scope():
        b = tl.load(x[:])
        tl.store(x[:], b)
    tl.store(x[:], b if late else a)  # kernscope: ignore[KS201]


@ks.kernel
def bare(x: Any) -> None:
    tl.store(x[:], tl.load(x[:]))


def test_what_fits_passes() -> None:
    """To the last byte; a launch, all launches of a kernel, a kernel with arguments, a graph."""
    assert_fits(fits)
    assert_fits(fits.launch("full"))
    assert_fits(too_large.launch("half"))
    assert_fits(bare, ks.hbm((16,), "f32"))
    assert_fits(bare, x=np.zeros(16, np.float32))
    assert_fits(ks.trace(fits.launch("full")))


def test_what_does_not_fit_is_told_with_its_lines() -> None:
    """As the linter does: needed, budget, largest allocations."""
    for subject in (too_large, too_large.launch("over")):
        with pytest.raises(AssertionError, match=r"KS101(.|\n)*test_assertions\.py"):
            assert_fits(subject)
    with pytest.raises(AssertionError, match="KS101"):
        assert_fits(ks.trace(too_large.launch("over"), on_overflow="record"))


def test_a_tighter_budget() -> None:
    """Both numbers, in bytes; the peak itself passes."""
    assert_fits(fits.launch("half"), budget_bytes=512 * 256 * 4)
    with pytest.raises(AssertionError, match=r"fits: the peak of its scratch is 524,288 B, 1 B above the 524,287 B"):
        assert_fits(fits.launch("half"), budget_bytes=512 * 256 * 4 - 1)


def test_without_launch_or_arguments_there_is_nothing_to_assert() -> None:
    """An error rather than a pass."""
    for assertion in (assert_fits, assert_no_findings):
        with pytest.raises(ks.LaunchError, match="bare has no launch"):
            assertion(bare)


def test_clean_kernels_have_no_findings() -> None:
    """With the arguments given, or the launches that there are."""
    assert_no_findings(fits.launch("half"))
    assert_no_findings(bare, ks.hbm((16,), "f32"))


def test_findings_are_shown_in_full() -> None:
    """Only those asked for; unless they are ignored."""
    for subject in (stale, stale.launch("small"), ks.trace(stale.launch("small"))):
        with pytest.raises(AssertionError, match=r"error\[KS201\](.|\n)*read here"):
            assert_no_findings(subject)
        assert_no_findings(subject, ignore=["KS201"])
        assert_no_findings(subject, ignore="KS2")
        assert_no_findings(subject, select=["KS1"])
    with pytest.raises(ks.RuleError):
        assert_no_findings(stale, ignore=["KS20I"])


def test_the_severity_asked_for() -> None:
    """An info is a finding, unless only warnings are asked for."""
    with pytest.raises(AssertionError, match=r"info\[KS102\]"):
        assert_no_findings(fits.launch("full"), select=["KS102"])
    assert_no_findings(fits.launch("full"), select=["KS102"], severity="warning")
    assert_no_findings(fits.launch("half"), select=["KS102"])
    with pytest.raises(AssertionError, match="KS102"):
        assert_no_findings(fits.launch("half"), select=["KS102"], options={"KS102": {"percent": 40}})


def test_a_comment_that_one_launch_needs_is_used() -> None:
    """Of a kernel all launches are judged together."""
    assert_no_findings(one_launch_needs_the_comment, select=["KS2", "KS001"])


def test_the_configuration_of_the_kernels_file_counts(tmp_path: Path) -> None:
    """As for ``kernscope lint``."""
    source = tmp_path / "k.py"
    source.write_text(
        "def stale(x):\n  with tl.scratch_scope():\n    a = tl.load(x[:])\n  tl.store(x[:], a)\n", encoding="utf-8"
    )
    names: dict[str, Any] = {"tl": tl}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    kernel = ks.kernel(names["stale"])
    with pytest.raises(AssertionError, match="KS201"):
        assert_no_findings(kernel, ks.hbm((16,), "f32"))
    (tmp_path / "pyproject.toml").write_text(
        'tool.kernscope.lint.per-file-ignores."k.py" = ["KS201"]', encoding="utf-8"
    )
    assert_no_findings(kernel, ks.hbm((16,), "f32"))
