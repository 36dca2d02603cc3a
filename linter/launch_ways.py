"""Findings that one launch of a kernel has and another has not: at which branch the other one went another way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import attrs

from ..ir.branches import Branch
from .findings import Diagnostic, LintReport

__all__ = ["with_other_ways"]


def with_other_ways(reports: Sequence[LintReport], kernels: Sequence[Hashable]) -> list[LintReport]:
    """The reports, each of one launch of the kernel beside it in ``kernels``, whose findings say in a note which launch
    of the kernel does not have them, and at which branch it went another way. Where the branches of a launch are not
    known, or do not differ, nothing is said."""
    told: list[LintReport] = []
    for report, kernel in zip(reports, kernels, strict=True):
        others = [r for r, k in zip(reports, kernels, strict=True) if k == kernel and r is not report]
        if len(report) and others:
            report = attrs.evolve(report, diagnostics=tuple(_told(d, report, others) for d in report))
        told.append(report)
    return told


def _told(diagnostic: Diagnostic, report: LintReport, others: Sequence[LintReport]) -> Diagnostic:
    if report.branches is None or diagnostic.location is None:
        return diagnostic
    here = (diagnostic.code, diagnostic.location)
    for other in others:
        if other.branches is None or here in {(d.code, d.location) for d in (*other, *other.suppressed)}:
            continue
        pairs = [pair for pair in report.branches.differences(other.branches) if pair[0].kind != "check"]
        if pairs:
            own, its = min(pairs, key=lambda pair: _distance(pair[0], diagnostic))
            launch = other.title.rpartition(":")[2]
            note = (
                f"launch {launch} does not have this; it goes another way at {own.place.short}: "
                f"`{own.text}`: {own.mark} here, {its.mark} there"
            )
            return attrs.evolve(diagnostic, notes=(*diagnostic.notes, note))
    return diagnostic


def _distance(branch: Branch, diagnostic: Diagnostic) -> tuple[bool, bool, int]:
    """Nearer is what stands above the finding, in its file."""
    place = diagnostic.location
    assert place is not None, "a finding with a place"
    lines = place.line - branch.place.line
    return branch.place.file != place.file, lines < 0, abs(lines)
