"""A plugin of pytest's: a sample of each test function's parametrisations, and a limit of a test's time.

``--sample N`` keeps N parametrisations of each test function (those whose names hash lowest: the same ones each time),
``--limit SECONDS`` ends a test that takes more processor time: waiting for a busy machine does not count. It needs
neither kernscope nor Triton.
"""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

__all__ = ["OverTime", "function_of"]


class OverTime(BaseException):
    """A test took longer than it may. No ``Exception``: what a test catches is its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("sampling")
    group.addoption("--sample", type=int, default=0, help="parametrisations kept of each test function; 0: all")
    group.addoption("--limit", type=float, default=0.0, help="seconds of processor time that a test may take; 0: any")


def function_of(item: pytest.Item) -> str:
    """A test's name without its parameters."""
    return item.nodeid.partition("[")[0]


def _hash(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.rpartition("/")[2].encode()).digest()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of each function, in the order of the file."""
    count = config.getoption("--sample")
    if not count:
        return
    kept: set[pytest.Item] = set()
    for _, group in groupby(sorted(items, key=function_of), function_of):
        kept.update(sorted(group, key=_hash)[:count])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """End a test that takes too long."""
    limit = item.config.getoption("--limit")
    if not limit:
        return (yield)

    def end(*_: Any) -> None:
        raise OverTime(f"not done within {limit:g} s")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
