"""A launch of a session, and what is known of it: graphs, scratch, schedules, its time on a machine, findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ...analysis.analysis import Analysis
from ...ir.forms.counts import plural
from ...ir.graph import Graph
from ...ir.source.location import Location
from ...linter import LintReport, lint_graph
from ...machine.description import Machine
from ...memory.liveness import Liveness
from ...scheduler.result.schedule import Schedule
from ...tracer.triton.host.session_state import LaunchRequest
from ...tracer.triton.launching import Launch

__all__ = ["LaunchResult", "TraceResult"]


@attrs.frozen(eq=False, slots=False)
class TraceResult:
    """The programs of a launch that do the same, and the graph of one of them."""

    trace: Any
    machine: Machine

    @property
    def programs(self) -> int:
        """How many there are."""
        return len(self.trace.programs)

    @cached_property
    def graph(self) -> Graph:
        """The graph of the first of them."""
        graph: Graph = self.trace.graph()
        return graph

    @cached_property
    def analysis(self) -> Analysis:
        """What is found out about it, each once."""
        return Analysis(self.graph, self.machine)

    @property
    def liveness(self) -> Liveness:
        """Who holds scratch, and when."""
        return self.analysis.liveness()

    @cached_property
    def schedule(self) -> Schedule:
        """The program alone on a processing element, as the policy ``list`` has it with little search."""
        return self.analysis.schedule("list", "fast")


@attrs.frozen(eq=False, slots=False)
class LaunchResult:
    """One launch: ``number`` counts those of a session, from 1."""

    number: int
    request: LaunchRequest
    launch: Launch
    machine: Machine
    processing_elements: int

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        name: str = self.request.kernel.fn.__name__
        return name

    @property
    def grid(self) -> tuple[int, int, int]:
        """The numbers of programs."""
        return self.request.grid

    @property
    def location(self) -> Location:
        """Where the kernel is defined."""
        place: Location = self.request.kernel.location
        return place

    @property
    def config(self) -> Any:
        """The configuration that an autotuner chose; None without one."""
        return self.request.config

    @property
    def programs(self) -> int:
        """How many programs there are."""
        x, y, z = self.grid
        return x * y * z

    @cached_property
    def traces(self) -> tuple[TraceResult, ...]:
        """The programs, those that do the same together; most programs first."""
        traces = [TraceResult(trace, self.machine) for trace in self.launch.traces]
        return tuple(sorted(traces, key=lambda trace: -trace.programs))

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of one program of each trace."""
        return tuple(trace.graph for trace in self.traces)

    @cached_property
    def fullest(self) -> TraceResult:
        """The trace that holds most scratch."""
        return max(self.traces, key=lambda trace: trace.liveness.peak_bytes)

    @property
    def fits(self) -> bool:
        """Whether every program has room in scratch."""
        return all(trace.liveness.fits for trace in self.traces)

    @cached_property
    def longest(self) -> TraceResult:
        """The trace whose program takes longest."""
        return max(self.traces, key=lambda trace: trace.schedule.makespan_ps)

    @cached_property
    def makespan_ps(self) -> int:
        """The time of the whole launch: the programs are dealt to the processing elements in the order of the grid, and
        each runs its own one after the other."""
        busy = np.zeros(self.processing_elements, np.int64)
        for trace in self.traces:
            element = np.asarray(trace.trace.programs) % self.processing_elements
            busy += np.bincount(element, minlength=self.processing_elements) * trace.schedule.makespan_ps
        return int(busy.max())

    def lint(
        self,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> LintReport:
        """The findings of all traces, each once."""
        reports = [
            lint_graph(trace.analysis, select=select, ignore=ignore, options=options, title=self.title)
            for trace in self.traces
        ]
        found = {(d.code, d.message, str(d.location)): d for report in reports for d in report}
        silenced = {(d.code, d.message, str(d.location)): d for report in reports for d in report.suppressed}
        return LintReport(self.title, tuple(found.values()), tuple(silenced.values()))

    @property
    def title(self) -> str:
        """What names it: kernel and grid."""
        return f"{self.kernel}{self.grid_text}"

    @property
    def grid_text(self) -> str:
        """The grid as a script writes it: ``(4096,)``."""
        sizes = list(self.grid)
        while len(sizes) > 1 and sizes[-1] == 1:
            sizes.pop()
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"

    def __repr__(self) -> str:
        return f"LaunchResult({self.title}, {plural(len(self.launch.traces), 'trace')})"

