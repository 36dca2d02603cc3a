"""``--buffers`` of ``kernscope schedule``: how many copies of every scope's bytes, and the table of the trade."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from ..analysis.analysis import Analysis
from ..face import api
from ..ir.errors import InfeasibleError, OptionError
from ..ir.graph import Graph
from ..machine.description import Machine
from ..machine.units import format_ps
from ..scheduler.policy.optimal import SolverLimit
from ..scheduler.result.ladder import LadderRow
from .tables import percent, table

__all__ = ["buffered", "parse_buffers", "trade_lines"]

#: More rows than that say nothing, and each is a ladder of schedules.
_LARGEST = 64


def parse_buffers(text: str) -> range:
    """``"2"`` is 2 alone, ``"1-4"`` all from 1 to 4. Raises ``OptionError``."""
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text.strip(), re.ASCII)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last or last > _LARGEST:
        raise OptionError(f"--buffers {text!r}", help=f"write a number from 1 to {_LARGEST}, or a range such as 1-4")
    return range(first, last + 1)


def buffered(graph: Graph, machine: Machine, buffers: int) -> Analysis:
    """The graph with so many buffers. Raises ``InfeasibleError`` where they do not fit, and as ``ks.rebuffer``."""
    made = Analysis(api.rebuffer(graph, buffers), machine)
    live = made.liveness()
    if live.fits:
        return made
    needed, budget = live.peak_bytes, live.budget_bytes
    fitting = _most_that_fit(graph, buffers)
    raise InfeasibleError(
        f"{graph.kernel} does not fit with --buffers {buffers}: {needed:,} B of scratch, the budget is {budget:,} B",
        help=(f"{fitting} is the most that fits" if fitting else "none fits: use smaller tiles")
        + f"; --buffers 1-{buffers} shows the trade",
    )


def _most_that_fit(graph: Graph, below: int) -> int:
    """The largest number of buffers below one that does not fit; 0: none does. (More copies never take less.)"""
    fits, fails = 0, below
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fitting = api.liveness(api.rebuffer(graph, middle)).fits
        fits, fails = (middle, fails) if fitting else (fits, middle)
    return fits


def trade_lines(
    graph: Graph,
    variants: Iterable[Analysis],
    policies: Sequence[str],
    machine: Machine,
    effort: str,
    limit: SolverLimit,
) -> list[str]:
    """Makespan against scratch: the graph as it came, then with other numbers of buffers, also where they do not
    fit."""
    given = f"as saved ({graph.buffers})" if graph.buffers else "as traced"
    rows: list[Sequence[str]] = [("buffers", "scratch", "of budget", *policies, "bound")]
    for made in itertools.chain([Analysis(graph, machine)], variants):
        peak, budget = made.liveness().peak_bytes, made.liveness().budget_bytes
        ladder = made.ladder(policies, effort, limit)
        rows.append(
            (
                str(made.graph.buffers) if made.graph is not graph else given,
                f"{peak:,} B",
                percent(peak, budget) + ("" if peak <= budget else ", too much"),
                *(_makespan(row) for row in ladder),
                format_ps(ladder.bounds.best_ps) if ladder.bounds else "-",
            )
        )
    return [table(rows, right=range(1, len(rows[0])))]


def _makespan(row: LadderRow) -> str:
    return "deadlock" if row.schedule is None else format_ps(row.schedule.makespan_ps)
