"""A launch of a session, and what is known of it: graphs, scratch, schedules, its time on a machine, findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ...analysis.analysis import Analysis
from ...ir.forms.counts import plural
from ...ir.graph import Graph
from ...ir.launch_facts import LaunchFacts
from ...ir.ops import OPERATIONS
from ...ir.source.digests import source_digest
from ...ir.source.location import Location
from ...linter import Diagnostic, LintReport, lint_graph
from ...linter.facts import CODES_OF_FACTS, judged_facts, line_of
from ...linter.findings import in_order
from ...linter.suppressions import suppressions_of
from ...machine.description import Machine
from ...memory.liveness import Liveness
from ...scheduler.result.schedule import Schedule
from ...tracer.triton.arguments import DescriptorArgument, TensorArgument
from ...tracer.triton.host.session_state import LaunchRequest
from ...tracer.triton.launching import Launch
from ...tracer.triton.recording.turns import Alike, grouped_by_turns
from .launch_facts import launch_facts

__all__ = ["LaunchResult", "TraceResult"]

#: Rules that judge a whole suite, or a second trace.
_OF_A_SUITE = frozenset({"KS001", "KS701"})
#: A kernel that stores nothing; and rules that say of a line that what it makes is never used.
_NO_STORE = "KS505"
_OF_ALL_TRACES = frozenset({"KS302", "KS304", "KS504"})


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

    @cached_property
    def lines(self) -> frozenset[tuple[str, int]]:
        """The lines that its programs come to."""
        places = (self.graph.location(int(stack)) for stack in np.unique(self.graph.nodes.stack))
        return frozenset(line_of(place) for place in places)

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
    """One launch: ``number`` counts those of a session, from 1. ``kernel`` is its kernel's name, ``location`` where
    that is defined, ``grid`` the numbers of programs, ``arguments`` what it was given but for the data, ``config`` the
    configuration that an autotuner chose (None without one)."""

    number: int
    kernel: str
    location: Location
    grid: tuple[int, int, int]
    arguments: tuple[tuple[str, Any], ...]
    config: Any
    launch: Launch
    machine: Machine
    processing_elements: int

    @classmethod
    def of(cls, request: LaunchRequest, launch: Launch, number: int, machine: Machine, elements: int) -> LaunchResult:
        """What came of a request. The tensors are let go of."""
        given = tuple((name, _told(value)) for name, value in request.arguments.items())
        kernel = request.kernel
        return cls(
            number, kernel.fn.__name__, kernel.location, request.grid, given, request.config, launch, machine, elements
        )

    @property
    def programs(self) -> int:
        """How many programs there are."""
        return self.launch.programs

    @property
    def programs_run(self) -> int:
        """How many of them were run: all, unless the session asked for a sample."""
        return self.launch.programs_run

    @cached_property
    def traces(self) -> tuple[TraceResult, ...]:
        """The programs, those that do the same together; most programs first."""
        traces = [TraceResult(trace, self.machine) for trace in self.launch.traces]
        return tuple(sorted(traces, key=lambda trace: -trace.programs))

    @cached_property
    def alike(self) -> tuple[Alike, ...]:
        """The traces, by their places in ``traces``, in groups of those that differ in nothing but how often their
        loops turn."""
        return tuple(grouped_by_turns([trace.trace.kinds for trace in self.traces]))

    @cached_property
    def examined(self) -> tuple[TraceResult, ...]:
        """The traces that are linted and scheduled: of many that differ in their turns alone the smallest and the
        largest ones, which stand for all."""
        places = sorted(group.members[place] for group in self.alike for place in group.examined)
        return tuple(self.traces[place] for place in places)

    @cached_property
    def times_ps(self) -> tuple[int, ...]:
        """The time of a program of each trace, in the order of ``traces``: scheduled of those that are examined, linear
        between them of the others."""
        found = [0] * len(self.traces)
        for group in self.alike:
            measured = [self.traces[group.members[place]].schedule.makespan_ps for place in group.examined]
            for member, time in zip(group.members, group.times(measured), strict=True):
                found[member] = time
        return tuple(found)

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """What tells it from other launches: all but the data. Launches of one signature take the same time."""
        return (str(self.location), self.grid, self.arguments, tuple(trace.programs for trace in self.traces))

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of one program of each trace that is examined, with what the data told of all programs."""
        return tuple(self.with_facts(trace.graph) for trace in self.examined)

    def with_facts(self, graph: Graph) -> Graph:
        """A graph of the launch, with what the data told; it is saved and linted with that."""
        files = {
            at.file
            for fact in self.facts.facts
            for place in (fact.place, fact.other_place)
            if place is not None
            for at in (place, *place.stack)
        }
        digests = {**{file: source_digest(file) for file in sorted(files)}, **(graph.digests or {})}
        return attrs.evolve(graph, facts=self.facts, digests=digests)

    @property
    def commonest(self) -> TraceResult:
        """Of the traces that are examined the one that most programs have; of several the first."""
        return max(self.examined, key=lambda trace: len(trace.trace.programs))

    @cached_property
    def fullest(self) -> TraceResult:
        """The trace that holds most scratch."""
        return max(self.examined, key=lambda trace: trace.liveness.peak_bytes)

    @property
    def fits(self) -> bool:
        """Whether every program has room in scratch."""
        return all(trace.liveness.fits for trace in self.examined)

    @cached_property
    def longest(self) -> TraceResult:
        """The trace whose program takes longest."""
        return max(self.examined, key=lambda trace: trace.schedule.makespan_ps)

    @cached_property
    def makespan_ps(self) -> int:
        """The time of the whole launch: the programs are dealt to the processing elements in the order of the grid, and
        each runs its own one after the other. Of a sample: programs that were not run are taken to need the mean time
        of those that were."""
        busy = np.zeros(self.processing_elements, np.int64)
        run = np.zeros(self.processing_elements, np.int64)
        for trace, time in zip(self.traces, self.times_ps, strict=True):
            element = np.asarray(trace.trace.programs) % self.processing_elements
            count = np.bincount(element, minlength=self.processing_elements)
            busy += count * time
            run += count
        if 0 < self.programs_run < self.programs:
            dealt = np.full(self.processing_elements, self.programs // self.processing_elements)
            dealt[: self.programs % self.processing_elements] += 1
            busy += (dealt - run) * (sum(busy.tolist()) // self.programs_run)
        return int(busy.max())

    def lint(
        self,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> LintReport:
        """The findings of all traces, each once; and what the data told of any program. The ``notes`` are what could
        not be looked at."""
        reports = [
            lint_graph(trace.analysis, select=select, ignore=ignore, options=options, title=self.title)
            for trace in self.examined
        ]
        found: dict[Any, Diagnostic] = {}
        silenced: dict[Any, Diagnostic] = {}
        for report in reports:
            found |= {_key(d): d for d in report if self._holds(d, reports)}
            silenced |= {_key(d): d for d in report.suppressed if d.code not in CODES_OF_FACTS}
        # What other programs do than those whose graphs were linted.
        told = {(d.code, line_of(d.location)) for d in (*found.values(), *silenced.values())}
        suppressions = [s for trace in self.examined for s in suppressions_of(trace.graph)]
        kept, hidden = judged_facts(self.facts.facts, suppressions, told=told, select=select, ignore=ignore)
        found |= {str(d): d for d in kept}
        silenced |= {str(d): d for d in hidden}
        notes = self.facts.open_questions
        return LintReport(self.title, in_order(found.values()), in_order(silenced.values()), notes)

    @cached_property
    def facts(self) -> LaunchFacts:
        """What the data told, of all programs that were run."""
        return launch_facts(self.launch)

    def _holds(self, finding: Diagnostic, reports: Sequence[LintReport]) -> bool:
        """Whether a finding of one trace holds for the launch: what says that something is never done has to be true of
        all programs that come to that line."""
        if finding.code in _OF_A_SUITE | CODES_OF_FACTS:
            return False
        if finding.code == _NO_STORE:  # a tensor that one kernel of many leaves alone is an option not taken
            return not any(OPERATIONS.stores[trace.graph.nodes.op].any() for trace in self.examined)
        if finding.code not in _OF_ALL_TRACES:
            return True
        line = line_of(finding.location)
        passing = [r for r, trace in zip(reports, self.examined, strict=True) if line in trace.lines]
        return all(any(d.code == finding.code and line_of(d.location) == line for d in r) for r in passing)

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


def _told(value: Any) -> Any:
    """An argument without its data, hashable."""
    if isinstance(value, TensorArgument):
        return (str(value.memory.dtype), value.shape, value.strides)
    if isinstance(value, DescriptorArgument):
        return (_told(value.base), value.shape, value.strides, value.block_shape, value.padding)
    return repr(value)


def _key(finding: Diagnostic) -> tuple[str, str, str]:
    """What makes findings of several traces one: the same at one place, but for the numbers."""
    return finding.code, re.sub(r"\d+", "N", finding.message), str(finding.location)
