"""The process that examines points: ``python -m kernscope.face.sweeping.point`` reads a request and then points from
standard input, a line of JSON each, and answers each point by a row. What an author's code prints goes nowhere."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, TextIO

from ...ir.errors import KernscopeError
from ...ir.graph import Graph
from ...machine.description import Machine, parse_machine
from ...tracer.kernel import Launch
from .. import api
from ..guard.guard import Guard
from ..targets import parse_arguments, resolve_launch
from ..user_errors import as_user_error
from .request import Request
from .result import failed_row, row_of
from .variants import OWN_AXES, Base, is_parameter

__all__ = ["row_to_json", "serve"]


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer until there is nothing more to read."""
    request = Request.from_json(requests.readline())
    guard = Guard(request.target.source)
    base: Base | KernscopeError
    try:
        base = _base(request, guard)
    except Exception as error:  # told with every point: nobody reads anything else of this process
        base = as_user_error(error)
    for line in requests:
        point = json.loads(line)
        answers.write(_answer(base, point, guard) + "\n")
        answers.flush()


def _base(request: Request, guard: Guard) -> Base:
    launch = resolve_launch(
        request.target,
        guard,
        launch=request.launch,
        arguments=request.arguments,
        ranks=request.ranks,
        grid=request.grid,
    )
    described = request.machine_toml and parse_machine(request.machine_toml, request.machine or "machine")
    overrides = dict(text.partition("=")[::2] for text in request.overrides)
    return Base(
        guard.of_launch(launch),
        parse_arguments(request.arguments),
        described or request.machine,
        {path.strip(): value.strip() for path, value in overrides.items()},
        request.policy,
        request.effort,
        request.ranks,
        request.grid,
    )


def _answer(base: Base | KernscopeError, point: Mapping[str, str], guard: Guard) -> str:
    def traced(launch: Launch, machine: Machine) -> Graph:
        with guard.running(f"tracing {launch.kernel.name}"):
            return api.trace_for(launch, machine, record=True)

    if isinstance(base, KernscopeError):
        return row_to_json(failed_row(point, base))
    kernel = base.launch.kernel
    try:
        values = {axis: _value(kernel, axis, text) for axis, text in point.items()}
        return row_to_json(row_of(point, base.examine(values, traced)))
    except Exception as error:  # a point more or less: the others have their rows
        return row_to_json(failed_row(point, as_user_error(error)))


def _value(kernel: Any, axis: str, text: str) -> Any:
    own = axis in OWN_AXES and not is_parameter(kernel, axis)
    return text if own or axis.startswith("machine.") else parse_arguments([f"{axis}={text}"])[axis]


def row_to_json(row: Any) -> str:
    """A row as one line."""
    fields = ("point", "verdict", "reason", "peak_bytes", "makespan_ps", "bound_ps")
    return json.dumps({name: getattr(row, name) for name in fields})


def _own_ends() -> tuple[TextIO, TextIO]:
    """Standard input and output for the answers alone: an author's code has the null device in their place."""
    ends = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return ends


if __name__ == "__main__":
    serve(*_own_ends())
