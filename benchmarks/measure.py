"""Measuring: processor time, medians of interleaved runs, and the rows of the printed table."""

from __future__ import annotations

import gc
import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

__all__ = ["Row", "installed", "interleaved", "print_rows", "seconds"]


@attrs.frozen
class Row:
    """One line: what was measured, the figure, and what it stands beside."""

    what: str
    figure: str
    beside: str


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of one run, in seconds: waiting for a busy machine does not count."""
    gc.collect()
    begin = time.process_time()
    run()
    return time.process_time() - begin


def interleaved(runs: Sequence[Callable[[], Any]], times: int) -> list[float]:
    """The median time of each, run in turns so that all meet the same disturbances."""
    measured = [[seconds(run) for run in runs] for _ in range(times)]
    return [statistics.median(column) for column in zip(*measured, strict=True)]


def installed(module: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(module) is not None


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """A section of the table."""
    print(f"\n{title}")
    for row in rows:
        print(f"  {row.what:<52} {row.figure:>22}  {row.beside}", flush=True)
