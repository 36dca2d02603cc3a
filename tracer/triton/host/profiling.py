"""``triton.profiler``: scripts that profile go on, and are told that nothing was measured."""

from __future__ import annotations

import contextlib
from typing import Any

from .session_state import current_session

__all__ = ["PROFILER", "VIEWER"]

_NOTE = "triton.profiler measures nothing here: kernscope's own report says where the time of a launch goes"


def _start(*args: Any, **kwargs: Any) -> int:
    current_session().note(_NOTE)
    return 0


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _scope(*args: Any, **kwargs: Any) -> Any:
    return contextlib.nullcontext()


def _parse(metrics: Any, *args: Any, **kwargs: Any) -> tuple[None, Any]:
    return None, metrics


def _print_tree(*args: Any, **kwargs: Any) -> None:
    print(_NOTE)


PROFILER = {
    "start": _start,
    "activate": _nothing,
    "deactivate": _nothing,
    "finalize": _nothing,
    "scope": _scope,
    "cpu_timed_scope": _scope,
    "enter_scope": _nothing,
    "exit_scope": _nothing,
}
VIEWER = {"parse": _parse, "print_tree": _print_tree}
