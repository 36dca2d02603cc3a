"""Tracing a kernel twice: one that does not do the same each time is told of nothing that holds for the next call."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable

import attrs

from ..ir.errors import TimeLimitError
from ..ir.graph import Graph

__all__ = ["AT_MOST_S", "Retraced", "trace_twice"]

#: A trace that takes longer is not repeated unless that is asked for, in seconds.
AT_MOST_S = 1.0


@attrs.frozen(eq=False)
class Retraced:
    """A graph, and what came of tracing it ``again``: another graph, or what the kernel raised then; None where it was
    traced once, which took so many ``seconds``."""

    graph: Graph
    again: Graph | Exception | None
    seconds: float


def trace_twice(
    trace: Callable[[], Graph], wanted: bool | None = None, *, again: Callable[[], Graph] | None = None
) -> Retraced:
    """Trace, and trace ``again`` (None: the same) where that is ``wanted`` (None: where the first time took less than a
    second). What the kernel prints the second time was seen before, and is not shown. Raises what the first trace
    raises."""
    begin = time.perf_counter()
    graph = trace()
    seconds = time.perf_counter() - begin
    if not (seconds < AT_MOST_S if wanted is None else wanted):
        return Retraced(graph, None, seconds)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return Retraced(graph, (again or trace)(), seconds)
        except TimeLimitError:
            raise
        except Exception as error:  # whatever a kernel may raise; the first time it did not
            return Retraced(graph, error, seconds)
