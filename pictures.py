"""The public functions that draw. Apart from :mod:`kernscope.api`, so that importing kernscope loads no drawing
library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import attrs
import numpy as np

from . import api
from .backends.drawing import Drawing, draw
from .backends.execute import execute
from .backends.execute_inputs import random_inputs
from .backends.report_data import NumbersRow, PolicyResult, ReportData
from .backends.report_page import write_report
from .backends.report_source import collect_sources
from .backends.timeline import Timeline, timeline
from .ir.errors import KernscopeError
from .ir.graph import Graph
from .ir.output import check_output
from .linter import lint_graph
from .scheduler.liveness import liveness
from .scheduler.machine import Machine
from .scheduler.schedule import machine_of
from .tracer.kernel import Launch

__all__ = ["Drawing", "Timeline", "draw", "gather", "report", "timeline"]

Array = np.ndarray[Any, np.dtype[Any]]


def report(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    launch: Launch | None = None,
    machine: Any = None,
    effort: str = "normal",
    inputs: Mapping[str, Array] | None = None,
    against: Graph | ReportData | None = None,
) -> ReportData:
    """Write one self-contained HTML page: summary, findings, the ladder of policies, the timeline, the scratch map, the
    graph, the source line by line, numbers. Selecting a node anywhere shows it everywhere.

    With a ``launch`` that has a reference the kernel is executed (on ``inputs``, else those it was traced with, else
    random ones) and compared. With ``against``, an earlier graph or what an earlier report returned, the page says what
    changed in makespan and peak and which lines are to blame. Returns what the page shows. Raises ``OutputError`` where
    it cannot be written.
    """
    check_output(path)
    if isinstance(against, Graph):
        # A machine given fits the other graph only where their targets are the same.
        fits = machine if against.target == graph.target else None
        against = gather(against, machine_of(against, fits), effort=effort, numbers=False)
    data = gather(graph, machine_of(graph, machine), launch=launch, effort=effort, inputs=inputs)
    data = attrs.evolve(data, against=against)
    write_report(path, data)
    return data


def gather(
    graph: Graph,
    machine: Machine,
    *,
    launch: Launch | None = None,
    effort: str = "normal",
    inputs: Mapping[str, Array] | None = None,
    numbers: bool = True,
) -> ReportData:
    """Everything a report shows: schedules under every policy, bounds, liveness, findings, and (``numbers``) the
    outputs beside the launch's reference."""
    ladder = api.compare(graph, machine=machine, effort=effort)
    title = f"{graph.kernel}:{launch.name}" if launch is not None and launch.name else graph.kernel
    rows, note, failed = (
        _numbers(graph, launch, inputs) if numbers else ((), "not executed: left out on request", False)
    )
    return ReportData(
        title=title,
        graph=graph,
        machine=machine.name,
        policies=tuple(
            PolicyResult(row.policy, row.schedule, "" if row.deadlock is None else str(row.deadlock))
            for row in ladder.rows
        ),
        bounds_ps={} if ladder.bounds is None else ladder.bounds.each,
        liveness=liveness(graph),
        lint=lint_graph(graph, machine=machine, title=title),
        numbers=rows,
        numbers_note=note,
        numbers_failed=failed,
        sources=collect_sources(graph),
        version=metadata.version("kernscope"),
    )


def _numbers(
    graph: Graph, launch: Launch | None, inputs: Mapping[str, Array] | None
) -> tuple[tuple[NumbersRow, ...], str, bool]:
    if launch is None:
        return (), "not executed: a graph alone has no reference; give its launch", False
    if launch.reference is None:
        return (), f"not executed: launch {launch.name!r} has no reference function", False
    try:
        ready = {**random_inputs(graph), **graph.defaults, **(inputs or {})}
        outputs = execute(graph, ready).outputs
    except KernscopeError as error:  # a graph with faults cannot be executed; the rest of the page stands
        return (), f"not executed: {error.message}", False
    try:
        compared = api.compare_with_launch(launch, ready, outputs)
    except KernscopeError as error:  # the reference's own fault: the rest of the page stands
        return (), f"executed, but not compared: {error.message}", True
    rows = tuple(NumbersRow(c.tensor, c.max_abs_error, c.max_rel_error, c.tolerance, c.ok) for c in compared)
    how = "given inputs" if inputs else "the inputs it was traced with" if graph.defaults else "random inputs (seed 0)"
    return rows, f"executed by numpy in program order on {how}", False
