"""What a report page is made of."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...ir.branches import Branches
from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...linter.findings import LintReport
from ...machine.units import format_ps
from ...memory.liveness import Liveness
from ...scheduler.result.ladder import best_of
from ...scheduler.result.schedule import Schedule
from .source import SourceText

__all__ = ["NumbersRow", "PolicyResult", "ReportData"]


@attrs.frozen
class PolicyResult:
    """What came of one policy: its ``schedule``, or None with the ``verdict`` (``"deadlock"``, ``"unmatched"``) and
    what there is to say about it (``deadlock``)."""

    policy: str
    schedule: Schedule | None
    deadlock: str = ""
    verdict: str = "deadlock"


@attrs.frozen
class NumbersRow:
    """One output tensor against its reference: the largest absolute and relative errors over its elements, the
    largest of what the tolerance is held against (absolute below magnitude 1, relative above), the tolerance, and
    whether it is met; ``unstored`` says what of it was never stored."""

    tensor: str
    max_abs_error: float
    max_rel_error: float
    max_error: float
    tolerance: float
    ok: bool
    unstored: str = ""


@attrs.frozen(eq=False, repr=False)
class ReportData:
    """Everything that a report page shows; the page itself computes nothing but pictures.

    ``title`` names the kernel and its launch, ``machine`` the machine. ``policies`` are in the order of the ladder.
    ``bounds_ps`` are the lower bounds by name (empty where the graph's own edges close a cycle). ``numbers`` is empty
    where nothing was compared; ``numbers_note`` says why, or how it was done; ``numbers_failed``: the reference itself
    is at fault. ``sources`` are the functions that the
    nodes come from (none: not at hand). ``against`` is what it is compared with, the earlier one. ``version`` is
    kernscope's own. ``branches`` are those that the trace took (None: not known), ``other_launches`` those of the
    kernel's other launches; ``not_looked_at`` names launches of which that is not known.
    """

    title: str
    graph: Graph
    machine: str
    policies: tuple[PolicyResult, ...]
    bounds_ps: Mapping[str, int]
    liveness: Liveness
    lint: LintReport
    numbers: tuple[NumbersRow, ...] = ()
    numbers_note: str = ""
    numbers_failed: bool = False
    sources: tuple[SourceText, ...] = ()
    version: str = ""
    against: ReportData | None = None
    branches: Branches | None = None
    other_launches: Mapping[str, Branches] = attrs.field(factory=dict)
    not_looked_at: tuple[str, ...] = ()

    def __repr__(self) -> str:
        best = "no schedule" if self.best is None else format_ps(self.best.makespan_ps)
        return f"<Report {quote(self.title)} on {quote(self.machine)}: {best}; {self.lint.summary.partition(': ')[2]}>"

    @property
    def bound_ps(self) -> int:
        """The best (largest) lower bound, in picoseconds; 0 where there is none."""
        return max(self.bounds_ps.values(), default=0)

    @property
    def verdict(self) -> str:
        """Why there is no schedule at all, in a word."""
        return next((row.verdict for row in self.policies if row.schedule is None), "")

    @property
    def best(self) -> Schedule | None:
        """The schedule to explain, as ``Ladder.best``."""
        return best_of(result.schedule for result in self.policies)
