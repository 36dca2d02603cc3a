"""A plugin of pytest's, for ``public_triton.py``: what came of each test, a line of JSON each.

``--outcomes FILE`` names the file, ``--sample N`` keeps N parametrisations of each test function (those whose names
hash lowest: the same ones each time), ``--limit SECONDS`` ends a test that takes longer.
"""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kernscope.ir.errors import KernscopeError
from kernscope.tracer.triton.host.jit import JITCallable

#: The files whose kernels, or functions that kernels call, the running test has run.
_RUN: set[str] = set()


class OverTime(BaseException):
    """A test took longer than it may. No ``Exception``: what a test catches is its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("outcomes")
    group.addoption("--outcomes", type=Path, help="the file for what came of each test")
    group.addoption("--sample", type=int, default=0, help="parametrisations kept of each test function; 0: all")
    group.addoption("--limit", type=float, default=0.0, help="seconds that a test may take; 0: any")


def pytest_configure(config: pytest.Config) -> None:
    """From now on it is noted whose functions run."""
    function = JITCallable.function.fget
    assert function is not None

    def noted(self: JITCallable) -> Any:
        _RUN.add(self.fn.__code__.co_filename)
        return function(self)

    JITCallable.function = property(noted)  # type: ignore[method-assign]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _hash(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.rpartition("/")[2].encode()).digest()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of each function, in the order of the file."""
    count = config.getoption("--sample")
    if not count:
        return
    kept: set[pytest.Item] = set()
    for _, group in groupby(sorted(items, key=_function), _function):
        kept.update(sorted(group, key=_hash)[:count])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End a test that takes too long."""
    limit = item.config.getoption("--limit")
    _RUN.clear()
    if not limit:
        return (yield)

    def end(*_: Any) -> None:
        raise OverTime(f"not done within {limit:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """Write a line for a test that has run, or could not."""
    report = yield
    path = item.config.getoption("--outcomes")
    if path is not None and (call.when == "call" or (call.when == "setup" and not report.passed)):
        what, why = _came_of(report, call.excinfo)
        line = {
            "test": _function(item),
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
