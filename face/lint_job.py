"""One launch (or file, to begin with) to lint: what is asked, what comes back, and the work itself."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from ..analysis.analysis import Analysis
from ..ir.forms.saved import is_saved_graph
from ..linter import LintReport, lint_graph
from ..linter.config import LintConfig
from ..linter.findings import Failure
from ..scheduler.result.loading import load
from ..scheduler.result.schedule import machine_of
from ..tracer.kernel import Kernel, Launch
from ..tracer.retrace import trace_twice as retracing
from . import api
from .guard.guard import Guard
from .guard.time_limit import time_limit
from .invocations import launch_invocation, machine_words
from .targets import Target, find_kernels
from .tracing import described_machine, trace_launch
from .user_errors import as_user_error

__all__ = ["Answer", "Found", "LaunchName", "LintJob", "Share", "lint_launch", "perform"]

#: The kernel's name in its file, and the launch's.
LaunchName = tuple[str, str]


@attrs.frozen
class LintJob:
    """What is to be linted: a target, one launch of it (None: find its launches and lint the first), and how.

    ``only`` is the launch that the user asked for in every kernel. ``is_named``: the user gave this very file, and is
    told if nothing in it can be linted. Holds nothing that cannot be sent to another process.
    """

    target: Target
    launch: LaunchName | None = None
    only: str | None = None
    is_named: bool = True
    machine: str | None = None
    overrides: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    trace_twice: bool | None = None

    def __str__(self) -> str:
        if self.launch is None:
            return str(self.target)
        kernel, launch = self.launch
        return f"{attrs.evolve(self.target, kernel=kernel)} ({launch})"

    @property
    def command_alone(self) -> str:
        """The command that does this job alone and without a process of its own, for a shell."""
        kernel, launch = self.launch or (self.target.kernel, self.only)
        words = ["kernscope", "lint", "--jobs", "0", str(attrs.evolve(self.target, kernel=kernel))]
        return shlex.join([*words, "--launch", launch] if launch is not None else words)

    @property
    def machine_words(self) -> list[str]:
        """The options that set its machine, as words."""
        return machine_words(self.machine, self.overrides)

    def configured(self, config: LintConfig) -> LintJob:
        """The job with the rules and options of a configuration."""
        options = {code: dict(values) for code, values in config.options.items()}
        return attrs.evolve(self, select=config.select, ignore=config.ignore, options=options)


@attrs.frozen
class Found:
    """The launches of a target, in the order they are written, and what there is to say of kernels without one."""

    launches: tuple[LaunchName, ...]
    notes: tuple[str, ...]


Answer = Found | LintReport | Failure
#: Which of the launches that a job finds it lints itself: the first, the only one (of several none), or all.
Share = Literal["first", "only", "all"]


def perform(
    job: LintJob,
    send: Callable[[Answer], None],
    *,
    timeout_s: float | None = None,
    share: Share = "first",
    last_words: Callable[[Failure], None] | None = None,
) -> None:
    """Do a job and send what comes of it: the report of its launch or, where it names none, the launches of its target
    and then the reports of a ``share`` of them. What cannot be had is a failure instead.

    ``timeout_s`` limits importing the target, and then each launch; None sets no limit. ``last_words``: what pays no
    heed to the limit ends this process, after these have been called with its failure.
    """

    def limited(what: str, of: LintJob) -> contextlib.AbstractContextManager[None]:
        if last_words is None:
            return time_limit(timeout_s, what)
        say = last_words
        return time_limit(timeout_s, what, ends_process=True, last_words=lambda error: say(_failure(of, error)))

    guard = Guard(job.target.source)
    try:
        if job.target.is_file and is_saved_graph(job.target.source):
            send(_lint_saved(job))
            return
        with limited(f"importing {job.target.source}", job):
            kernels = find_kernels(job.target, guard)
    except Exception as error:
        send(_failure(job, error))
        return
    launches = [job.launch] if job.launch is not None else []
    if job.launch is None:
        found = _launches(job, kernels)
        send(found)
        several = len(found.launches) > 1
        launches += [] if several and share == "only" else found.launches[: 1 if share == "first" else None]
    for kernel, name in launches:
        one = attrs.evolve(job, launch=(kernel, name))
        try:
            with limited(str(one), one):
                report = lint_launch(
                    kernels[kernel].launch(name),
                    guard,
                    one.machine,
                    one.overrides,
                    select=one.select,
                    ignore=one.ignore,
                    options=one.options,
                    trace_twice=one.trace_twice,
                    options_given=one.machine_words,
                )
        except Exception as error:
            send(_failure(one, error))
        else:
            send(report)


def _failure(job: LintJob, error: Exception) -> Failure:
    # A fault of our own takes the report of one launch, the others have theirs.
    return Failure.of(str(job), as_user_error(error, f"kernscope failed on {job}"))


def _launches(job: LintJob, kernels: Mapping[str, Kernel]) -> Found:
    notes = [] if kernels or not job.is_named else [f"{job.target}: no kernels"]
    found: list[LaunchName] = []
    for name, kernel in kernels.items():
        chosen = [launch for launch in kernel.launches if job.only in (None, launch)]
        if not chosen:
            what = f"no launch {job.only!r}" if job.only else "no launch"
            notes.append(f"{job.target.source}: kernel {name} is not linted: it has {what}")
        found += [(name, launch) for launch in chosen]
    return Found(tuple(found), tuple(notes))


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
    traced = retracing(lambda: trace_launch(launch, described, guard, record=True), trace_twice)
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


def _lint_saved(job: LintJob) -> LintReport:
    graph = load(job.target.source)
    machine = described_machine(job.machine or machine_of(graph, None), job.overrides)
    return lint_graph(Analysis(graph, machine), select=job.select, ignore=job.ignore, options=job.options)
