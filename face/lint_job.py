"""One launch (or file, to begin with) to lint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from ..analysis.analysis import Analysis
from ..linter import LintReport, lint_graph
from ..linter.config import LintConfig
from ..linter.findings import Failure
from ..scheduler.result.loading import load
from ..scheduler.result.schedule import machine_of
from ..tracer.kernel import Launch
from ..tracer.retrace import trace_twice as retracing
from . import api
from .guard.guard import Guard
from .invocations import launch_invocation
from .launch_job import Found, LaunchJob
from .tracing import described_machine, trace_launch

__all__ = ["Answer", "LintJob", "lint_launch"]

Answer = Found | LintReport | Failure


@attrs.frozen(kw_only=True)
class LintJob(LaunchJob[LintReport]):
    """What is to be linted, and how. What comes back is the launch's report."""

    command: ClassVar[str] = "lint"
    done: ClassVar[str] = "linted"
    alone: ClassVar[tuple[str, ...]] = ("--jobs", "0")

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    trace_twice: bool | None = None

    def configured(self, config: LintConfig) -> LintJob:
        """The job with the rules and options of a configuration."""
        options = {code: dict(values) for code, values in config.options.items()}
        return attrs.evolve(self, select=config.select, ignore=config.ignore, options=options)

    def of_launch(self, launch: Launch, guard: Guard) -> LintReport:
        """Trace the launch and lint it."""
        return lint_launch(
            launch,
            guard,
            self.machine,
            self.overrides,
            select=self.select,
            ignore=self.ignore,
            options=self.options,
            trace_twice=self.trace_twice,
            options_given=self.machine_words,
        )

    def of_saved(self) -> LintReport:
        """Lint the saved graph."""
        graph = load(self.target.source)
        machine = described_machine(self.machine or machine_of(graph, None), self.overrides)
        return lint_graph(Analysis(graph, machine), select=self.select, ignore=self.ignore, options=self.options)


def lint_launch(
    launch: Launch,
    guard: Guard,
    machine: Any = None,
    overrides: Sequence[str] = (),
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    trace_twice: bool | None = None,
    options_given: Sequence[str] = (),
) -> LintReport:
    """Trace a launch for a machine (None: its own) with overrides, a second time too as :func:`kernscope.lint` does,
    and lint it. Raises ``KernelRaisedError`` for what the kernel's own code raises."""
    described = described_machine(launch.machine if machine is None else machine, overrides)
    traced = retracing(
        lambda: trace_launch(launch, described, guard, record=True),
        trace_twice,
        again=lambda: trace_launch(launch, described, guard, record=True, observe=True),
    )
    return api.lint_retraced(
        traced,
        described,
        twice=trace_twice,
        title=f"{launch.kernel.name}:{launch.name}",
        invocation=launch_invocation(launch, options=options_given),
        select=select,
        ignore=ignore,
        options=options,
    )
