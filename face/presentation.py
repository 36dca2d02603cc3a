"""The public functions that draw. Apart from :mod:`kernscope.face.api`, so that importing kernscope loads no drawing
library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import attrs
import numpy as np

from ..analysis.analysis import Analysis
from ..backends.execution.execute import execute
from ..backends.execution.inputs import random_inputs
from ..backends.graph_picture.drawing import Drawing, draw
from ..backends.report.data import NumbersRow, PolicyResult, ReportData
from ..backends.report.notebook import Report, written_report
from ..backends.report.page import check_page
from ..backends.report.source import collect_sources
from ..backends.timelines.timeline import Timeline, timeline
from ..ir.columns import expect_graph
from ..ir.errors import KernscopeError, UnmatchedMessageError
from ..ir.graph import Graph
from ..linter import lint_graph
from ..linter.invocation import Invocation
from ..machine.description import Machine
from ..scheduler.policy.registry import LADDER
from ..scheduler.result.schedule import machine_of
from ..tracer.kernel import Launch
from . import api
from .other_launches import Watch, branches_of, watched

__all__ = ["Drawing", "Timeline", "draw", "gather", "report", "timeline"]

Array = np.ndarray[Any, np.dtype[Any]]


def report(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    launch: Launch | None = None,
    machine: Any = None,
    policies: Sequence[str] = LADDER,
    effort: str = "normal",
    inputs: Mapping[str, Array] | None = None,
    against: Graph | ReportData | None = None,
) -> Report:
    """Write one self-contained HTML page: summary, findings, the ladder of policies, the timeline, the scratch map, the
    graph, the source line by line, numbers. Selecting a node anywhere shows it everywhere.

    ``policies`` are those of the ladder. With a ``launch`` that has a reference the kernel is executed (on ``inputs``,
    else those it was traced with, else random ones) and compared. With ``against``, an earlier graph or what an earlier
    report returned, the page says what changed in makespan and peak and which lines are to blame. Returns what the page
    shows; a notebook shows the page itself. Raises ``OutputError`` where it cannot be written.
    """
    expect_graph(graph, "report")
    check_page(path)
    if isinstance(against, Graph):
        # A machine given fits the other graph only where their targets are the same.
        fits = machine if against.target == graph.target else None
        against = gather(against, machine_of(against, fits), policies=policies, effort=effort, numbers=False)
    known = machine_of(graph, machine)
    data = gather(graph, known, launch=launch, policies=policies, effort=effort, inputs=inputs)
    data = attrs.evolve(data, against=against)
    return written_report(path, data)


def gather(
    graph: Graph,
    machine: Machine,
    *,
    launch: Launch | None = None,
    policies: Sequence[str] = LADDER,
    effort: str = "normal",
    inputs: Mapping[str, Array] | None = None,
    numbers: bool = True,
    begins: Callable[[str], None] = lambda stage: None,
    invocation: Invocation | None = None,
    watch: Watch = watched,
) -> ReportData:
    """Everything a report shows: schedules under the policies, bounds, liveness, findings, and (``numbers``) the
    outputs beside the launch's reference. ``begins`` is told each stage as it begins; ``invocation`` is how the kernel
    was asked for; ``watch`` traces the kernel's other launches, for their branches."""
    begins("scheduling")
    known = Analysis(graph, machine)
    results, bounds_ps = _policies(known, policies, effort)
    title = f"{graph.kernel}:{launch.name}" if launch is not None and launch.name else graph.kernel
    if numbers:
        begins("executing")
    rows, note, failed = (
        _numbers(graph, launch, inputs) if numbers else ((), "not executed: left out on request", False)
    )
    begins("linting")
    branches = branches_of(graph, launch, watch)
    return ReportData(
        title=title,
        graph=graph,
        machine=machine.name,
        policies=results,
        bounds_ps=bounds_ps,
        liveness=known.liveness(),
        lint=lint_graph(known, title=title, invocation=invocation),
        numbers=rows,
        numbers_note=note,
        numbers_failed=failed,
        sources=collect_sources(graph),
        version=metadata.version("kernscope"),
        branches=branches.own,
        other_launches=branches.others,
        not_looked_at=branches.left,
    )


def _policies(
    known: Analysis, wanted: Sequence[str], effort: str
) -> tuple[tuple[PolicyResult, ...], Mapping[str, int]]:
    """What came of each policy, and the bounds of all. Without schedules the rest of the page still stands."""
    try:
        ladder = known.ladder(wanted, effort)
    except UnmatchedMessageError as error:
        return tuple(PolicyResult(policy, None, str(error), error.verdict) for policy in wanted), {}
    rows = tuple(
        PolicyResult(row.policy, None, str(row.deadlock), row.deadlock.verdict)
        if row.deadlock is not None
        else PolicyResult(row.policy, row.schedule)
        for row in ladder.rows
    )
    return rows, {} if ladder.bounds is None else ladder.bounds.each


def _numbers(
    graph: Graph, launch: Launch | None, inputs: Mapping[str, Array] | None
) -> tuple[tuple[NumbersRow, ...], str, bool]:
    if launch is None:
        return (), "not executed: a graph alone has no reference, whatever its launch had; give the launch", False
    if launch.reference is None:
        return (), f"not executed: launch {launch.name!r} has no reference function", False
    try:
        ready = {**random_inputs(graph), **graph.defaults, **(inputs or {})}
        done = execute(graph, ready)
    except KernscopeError as error:  # a graph with faults cannot be executed; the rest of the page stands
        return (), f"not executed: {error.message}", False
    try:
        compared = api.compare_with_launch(launch, ready, done.outputs, done.unstored)
    except KernscopeError as error:  # the reference's own fault: the rest of the page stands
        where = f" ({error.places[0][1].short})" if error.places else ""
        return (), f"executed, but not compared: {error.message}{where}", True
    rows = tuple(
        NumbersRow(c.tensor, c.max_abs_error, c.max_rel_error, c.max_error, c.tolerance, c.ok, c.unstored)
        for c in compared
    )
    how = "given inputs" if inputs else "the inputs it was traced with" if graph.defaults else "random inputs (seed 0)"
    return rows, f"executed by numpy in program order on {how}", False
