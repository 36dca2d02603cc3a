"""A plugin of pytest's, for ``public_triton.py``: what came of each test, a line of JSON each, in the file that
``--outcomes`` names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from public_sampling import function_of

from kernscope.ir.errors import KernscopeError
from kernscope.tracer.triton.host.jit import JITCallable

#: The files whose kernels, or functions that kernels call, the running test has run.
_RUN: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option."""
    parser.getgroup("outcomes").addoption("--outcomes", type=Path, help="the file for what came of each test")


def pytest_configure(config: pytest.Config) -> None:
    """From now on it is noted whose functions run."""
    function = JITCallable.function.fget
    assert function is not None

    def noted(self: JITCallable) -> Any:
        _RUN.add(self.fn.__code__.co_filename)
        return function(self)

    JITCallable.function = property(noted)  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test begins with no file."""
    _RUN.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Write a line for a test that has run, or could not."""
    report = yield
    path = item.config.getoption("--outcomes")
    if path is not None and (call.when == "call" or (call.when == "setup" and not report.passed)):
        what, why = _came_of(report, call.excinfo)
        line = {
            "test": function_of(item),
            "id": item.nodeid,
            "what": what,
            "why": why,
            "seconds": call.duration,
            "files": sorted(_RUN),
        }
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    return report


def _came_of(report: Any, raised: Any) -> tuple[str, str]:
    """``passed``, ``skipped``, ``refused`` by kernscope, ``finding`` of its linter, or ``failed``; and the reason."""
    if hasattr(report, "wasxfail"):
        return ("skipped", f"expected to fail: {report.wasxfail}") if report.skipped else ("passed", "")
    if report.passed:
        return "passed", ""
    error: BaseException | None = raised.value
    if report.skipped:
        return "skipped", str(error)[:200]
    while error is not None:
        if isinstance(error, KernscopeError):
            return "refused", f"{type(error).__name__}: {error.message}"[:300]
        error = error.__cause__ or error.__context__
    text = str(raised.value)
    if isinstance(raised.value, pytest.fail.Exception) and "error[KS" in text:
        return "finding", text[text.index("error[KS") :].splitlines()[0][:200]
    return "failed", f"{type(raised.value).__name__}: {text}"[:300]
