"""Which trace is running, per thread and task."""

from __future__ import annotations

from contextvars import ContextVar

from ...ir.errors import NotTracingError
from .recorder import Recorder
from .sites import SiteTable

__all__ = ["CURRENT", "current"]

CURRENT: ContextVar[Recorder | None] = ContextVar("kernscope_recorder", default=None)


def current() -> Recorder:
    """The recorder of the trace that is running. Raises ``NotTracingError``, with the line, where there is none."""
    recorder = CURRENT.get()
    if recorder is not None:
        return recorder
    sites = SiteTable()
    raise NotTracingError(
        "tl was called outside a trace", help="call it from a kernel, and trace that: ks.trace(kernel, ...)"
    ).at(sites.location(sites.here()))
