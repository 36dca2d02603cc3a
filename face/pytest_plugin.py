"""The pytest plugin: ``pytest --kernscope`` lints the kernels of the files that are collected, a test item a launch.

The assertions for tests of one's own are in :mod:`kernscope.face.testing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..ir.errors import KernscopeError
from ..linter import Diagnostic
from ..linter.config import LintConfig, find_config
from ..tracer.kernel import Launch
from .guard.guard import Guard
from .guard.time_limit import DEFAULT_TIMEOUT_S, time_limit
from .lint_files import may_hold_kernels
from .lint_job import lint_launch
from .targets import Target, find_kernels
from .triton.pytest_session import (
    add_triton_option,
    pytest_load_initial_conftests,
    pytest_runtest_call,
    pytest_terminal_summary,
    pytest_unconfigure,
)

__all__ = [
    "KernelFile",
    "LaunchItem",
    "pytest_addoption",
    "pytest_collect_file",
    "pytest_configure",
    "pytest_load_initial_conftests",
    "pytest_runtest_call",
    "pytest_terminal_summary",
    "pytest_unconfigure",
]

#: Judged over all launches of a kernel together, which a test item does not see.
_OF_ALL_LAUNCHES = ("KS001",)
#: By which an author's file speaks to pytest: it skips itself where it cannot be imported.
_OUTCOMES = (pytest.skip.Exception, pytest.fail.Exception, pytest.xfail.Exception, pytest.exit.Exception)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("kernscope")
    group.addoption(
        "--kernscope",
        action="store_true",
        help="lint the kernels in the collected Python files: each launch is a test",
    )

    group.addoption(
        "--kernscope-timeout",
        type=_seconds,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help="how long importing such a file, and then each launch, may take (default: %(default)g)",
    )
    add_triton_option(group)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 1e6:
        raise ValueError
    return seconds


def pytest_configure(config: pytest.Config) -> None:
    """The marker of the items, so that ``-m kernscope`` selects them."""
    config.addinivalue_line("markers", "kernscope: a kernel's launch that is linted")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Python files that may hold kernels; a file that pytest takes for a test itself is collected besides."""
    if not parent.config.getoption("--kernscope") or file_path.suffix != ".py" or file_path.name == "conftest.py":
        return None
    config = find_config(file_path)
    if config.excludes(str(file_path)) or not may_hold_kernels(str(file_path)):
        return None
    return KernelFile.from_parent(parent, path=file_path, lint_config=config)


class Findings(Exception):
    """The findings of a launch that make its item fail."""


class KernelFile(pytest.File):
    """A Python file with kernels."""

    def __init__(self, *, lint_config: LintConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lint_config = lint_config
        self.timeout_s: float = self.config.getoption("--kernscope-timeout")
        self.guard = Guard(str(self.path), lets_pass=_OUTCOMES)

    def collect(self) -> Iterator[pytest.Item]:
        """An item for every launch, and one that is skipped for every kernel without."""
        try:
            with time_limit(self.timeout_s, f"importing {self.path}"):
                kernels = find_kernels(Target(str(self.path), None, True), self.guard)
        except KernscopeError as error:
            raise self.CollectError(str(Diagnostic.of_error(error))) from error
        for name, kernel in kernels.items():
            if not kernel.launches:
                yield LaunchItem.from_parent(self, name=f"kernscope:{name}", launch=None)
            for launch in kernel.launches.values():
                yield LaunchItem.from_parent(self, name=f"kernscope:{name}:{launch.name}", launch=launch)


class LaunchItem(pytest.Item):
    """One launch to lint. It fails from the severity ``fail-on`` of the configuration on (default: error); what it
    finds besides is a section of its report."""

    def __init__(self, *, launch: Launch | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.launch = launch
        self.add_marker("kernscope")

    def runtest(self) -> None:
        """Trace and lint the launch."""
        if self.launch is None:
            pytest.skip("not linted: the kernel has no launch")
        file = self.getparent(KernelFile)
        assert file is not None, "made by one"
        config = file.lint_config.overridden(ignore=_OF_ALL_LAUNCHES)
        with time_limit(file.timeout_s, self.name):
            report = lint_launch(
                self.launch, file.guard, select=config.select, ignore=config.ignore, options=config.options
            )
        report = config.apply(report, str(self.path))
        failing = report.at_least(config.fail_on)
        if failing:
            raise Findings(str(report))
        if len(report):
            self.add_report_section("call", "kernscope", str(report))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Findings and errors as kernscope words them, without the frames that led there."""
        if isinstance(excinfo.value, KernscopeError):
            return str(Diagnostic.of_error(excinfo.value))
        if isinstance(excinfo.value, Findings):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The kernel's line."""
        line = None if self.launch is None else self.launch.kernel.function.__code__.co_firstlineno - 1
        return self.path, line, self.name
