"""Assertions about kernels, for test suites: does a launch fit into scratch, and does the linter find nothing.

They need no test runner; under pytest a failure shows the findings and the line of the test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..analysis.analysis import Analysis
from ..ir.errors import LaunchError
from ..ir.graph import Graph
from ..linter import lint_graph
from ..linter.config import LintConfig, find_config
from ..linter.findings import LintReport, Severity
from ..linter.suppressions import settle_unused
from ..machine.description import load_machine
from ..tracer.kernel import Kernel, Launch
from .api import lint, trace

__all__ = ["assert_fits", "assert_no_findings"]

Subject = Graph | Kernel | Launch | Callable[..., Any]


def assert_fits(
    subject: Subject,
    *args: Any,
    budget_bytes: int | None = None,
    ranks: int | None = None,
    grid: int | Sequence[int] | None = None,
    machine: Any = None,
    **kwargs: Any,
) -> None:
    """Assert that the scratch of every rank fits.

    ``subject`` is a launch, a kernel (all its launches, unless arguments are given), a function with its arguments, or
    a graph; ``ranks``, ``grid``, ``machine`` and the arguments are as for ``ks.trace``. ``budget_bytes``: a tighter
    budget than the machine's.

    Raises ``AssertionError`` with the peak, the budget and what fills it, and what tracing raises.
    """
    __tracebackhide__ = True
    for graph in _graphs(subject, args, {**kwargs, "ranks": ranks, "grid": grid, "machine": machine}):
        known = Analysis(graph, None if machine is None else load_machine(machine))
        live = known.liveness()
        peak, budget = live.peak_bytes, live.budget_bytes
        if not live.fits:
            raise AssertionError(str(lint_graph(known, select=["KS101"])))
        if budget_bytes is not None and peak > budget_bytes:
            raise AssertionError(
                f"{graph.kernel}: the peak of its scratch is {peak:,} B, {peak - budget_bytes:,} B above the "
                f"{budget_bytes:,} B that the test allows (the machine has {budget:,} B)"
            )


def assert_no_findings(
    subject: Subject,
    *args: Any,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    severity: Severity = "info",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    ranks: int | None = None,
    grid: int | Sequence[int] | None = None,
    machine: Any = None,
    **kwargs: Any,
) -> None:
    """Assert that the linter finds nothing of this severity or a graver one (default: nothing at all).

    ``subject`` and the arguments are as for :func:`assert_fits`. Rules and options are those of
    ``[tool.kernscope.lint]`` for the kernel's file; ``select`` takes the place of its ``select`` and ``ignore``,
    ``ignore`` adds to them, as on the command line; so do ``options``. Comments in the source silence as everywhere.

    Raises ``AssertionError`` with the findings in full, ``RuleError`` for an unknown rule, and what tracing raises.
    """
    __tracebackhide__ = True
    file = _file_of(subject)
    config = (LintConfig() if file is None else find_config(file)).overridden(_listed(select), _listed(ignore))
    subjects = _launches(subject) if isinstance(subject, Kernel) and not (args or kwargs) else (subject,)
    reports = [
        lint(
            one,
            *args,
            ranks=ranks,
            grid=grid,
            machine=machine,
            select=config.select,
            ignore=config.ignore,
            options={**config.options, **(options or {})},
            **kwargs,
        )
        for one in subjects
    ]
    told = [_grave(config.apply(report, file), severity) for report in settle_unused(reports)]
    if any(map(len, told)):
        raise AssertionError("\n\n".join(str(report) for report in told if len(report)))


def _graphs(subject: Subject, args: tuple[Any, ...], options: Mapping[str, Any]) -> list[Graph]:
    if isinstance(subject, Graph):
        return [subject]
    given = args or any(name not in ("ranks", "grid", "machine") for name in options)
    subjects = _launches(subject) if isinstance(subject, Kernel) and not given else (subject,)
    return [trace(one, *args, on_overflow="record", **options) for one in subjects]


def _launches(kernel: Kernel) -> tuple[Launch, ...]:
    if not kernel.launches:
        raise LaunchError(
            f"kernel {kernel.name} has no launch",
            help="pass its arguments too: assert_fits(kernel, x=ks.hbm((128, 128), 'f16'), ...)",
        )
    return tuple(kernel.launches.values())


def _file_of(subject: Subject) -> str | None:
    """The source file of a kernel; None for a graph, whose nodes may come from anywhere."""
    if isinstance(subject, Graph):
        return None
    function = subject.kernel if isinstance(subject, Launch) else subject
    try:
        return inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # a partial, a callable object
        return None


def _grave(report: LintReport, severity: Severity) -> LintReport:
    return LintReport(report.title, report.at_least(severity), report.suppressed)


def _listed(codes: Iterable[str]) -> tuple[str, ...]:
    return (codes,) if isinstance(codes, str) else tuple(codes)
