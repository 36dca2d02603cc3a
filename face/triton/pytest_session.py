"""``pytest --kernscope-triton``: a test suite of Triton kernels as it stands, in one session.

The session begins before the first ``conftest.py`` is imported. After each test the launches that it made are linted:
findings from the configuration's ``fail-on`` on (default: error) fail it; others, and those of a test that fails
already, are a section of its report.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from ...ir.errors import KernscopeError
from ...ir.forms.counts import plural
from ...linter import LintReport
from ...linter.config import find_config
from ...linter.findings import SEVERITIES
from ...machine.description import DEFAULT_MACHINE
from .session import Session, session

__all__ = [
    "add_triton_option",
    "pytest_load_initial_conftests",
    "pytest_runtest_call",
    "pytest_terminal_summary",
    "pytest_unconfigure",
]


@attrs.define(eq=False)
class _Suite:
    """The session of a run, and what its launches came to."""

    session: Session
    launches: int = 0
    kernels: set[str] = attrs.field(factory=set)
    findings: Counter[str] = attrs.field(factory=Counter)


_SUITE = pytest.StashKey[_Suite]()


def add_triton_option(group: Any) -> None:
    """The option."""
    group.addoption(
        "--kernscope-triton",
        nargs="?",
        const=DEFAULT_MACHINE,
        metavar="MACHINE",
        help="run Triton kernels without a GPU and without Triton, and lint what each test launches; a MACHINE is a "
        "preset's name or a TOML file, written with = (default: %(const)s)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin the session: what a conftest imports finds the stand-ins."""
    machine = getattr(early_config.known_args_namespace, "kernscope_triton", None)
    if machine is None:
        return
    if os.path.exists(machine) and not machine.endswith(".toml"):
        raise pytest.UsageError(
            f"--kernscope-triton {machine}: that is no machine; put the option last, or write "
            f"--kernscope-triton={DEFAULT_MACHINE}"
        )
    try:
        running = session(machine)
        running.__enter__()
    except KernscopeError as error:
        raise pytest.UsageError(f"--kernscope-triton: {error}") from error
    early_config.stash[_SUITE] = _Suite(running)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the session."""
    suite = config.stash.get(_SUITE, None)
    if suite is not None:
        suite.session.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test, then lint what it launched."""
    suite = item.config.stash.get(_SUITE, None)
    if suite is None:
        return (yield)
    try:
        try:
            result = yield
        except Exception:
            _lint(item, suite, fails_already=True)
            raise
        _lint(item, suite)
    finally:
        suite.session.forget()
    return result


def _lint(item: pytest.Item, suite: _Suite, *, fails_already: bool = False) -> None:
    config = find_config(item.path)
    reports: list[LintReport] = []
    for launch in suite.session.launches:
        suite.launches += 1
        suite.kernels.add(str(launch.location))
        report = launch.lint(select=config.select, ignore=config.ignore, options=config.options)
        report = config.apply(report, str(item.path))
        suite.findings.update(d.severity for d in report)
        reports += [report] if len(report) else []
    told = list(dict.fromkeys(map(str, reports)))
    if not fails_already and any(report.at_least(config.fail_on) for report in reports):
        pytest.fail("\n\n".join(told), pytrace=False)
    if told:
        item.add_report_section("call", "kernscope", "\n\n".join(told))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """How much was run, and what was found."""
    suite = config.stash.get(_SUITE, None)
    if suite is None:
        return
    counts = ", ".join(plural(suite.findings[s], s) for s in SEVERITIES if suite.findings[s]) or "no findings"
    terminalreporter.write_line(
        f"kernscope: {plural(suite.launches, 'launch', 'launches')} of {plural(len(suite.kernels), 'kernel')} on "
        f"{suite.session.machine.name}: {counts}"
    )
    for note in suite.session.notes:
        terminalreporter.write_line(f"kernscope: {note}")
