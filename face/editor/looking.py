"""The process that looks at a file for an editor: ``python -m kernscope.face.editor.looking FILE`` prints, as JSON, a
line about each launch and notes on the lines of the first one of each kernel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import attrs

from ...analysis.analysis import Analysis
from ...ir.errors import DeadlockError, KernscopeError, UnmatchedMessageError
from ...machine.description import DEFAULT_MACHINE, load_machine
from ...machine.units import format_ps
from ...tracer.kernel import Kernel, Launch
from ..guard.guard import Guard
from ..targets import find_kernels, split_target
from ..tracing import trace_launch
from ..user_errors import as_user_error
from .notes import line_notes

__all__ = ["looked_at"]


def looked_at(file: str) -> dict[str, list[dict[str, Any]]]:
    """``lenses``: kernel, launch, line and text; ``notes``: as :class:`Note`."""
    found: dict[str, list[dict[str, Any]]] = {"lenses": [], "notes": []}
    guard = Guard(file)
    for kernel in find_kernels(split_target(file), guard).values():
        for number, launch in enumerate(kernel.launches.values()):
            text, notes = _launch(launch, guard, number == 0)
            found["lenses"].append({"kernel": kernel.name, "launch": launch.name, "line": _line(kernel), "text": text})
            found["notes"] += notes
    return found


def _line(kernel: Kernel) -> int:
    return kernel.location.line if kernel.location is not None else 1


def _launch(launch: Launch, guard: Guard, with_notes: bool) -> tuple[str, list[dict[str, Any]]]:
    try:
        machine = load_machine(DEFAULT_MACHINE if launch.machine is None else launch.machine)
        known = Analysis(trace_launch(guard.of_launch(launch), machine, guard, record=True), machine)
        live = known.liveness()
        peak = f"peak {live.peak_bytes:,} of {live.budget_bytes:,} B"
    except KernscopeError as error:
        return f"{launch.name}: {error.message.splitlines()[0]}", []
    try:
        schedule = known.schedule("list", effort="fast")
    except (DeadlockError, UnmatchedMessageError) as error:
        return f"{launch.name}: {error.code}, {peak}", []
    notes = [attrs.asdict(note) for note in line_notes(known, schedule)] if with_notes else []
    return f"{launch.name}: {format_ps(schedule.makespan_ps)}, x {schedule.ratio:.3f} of the bound, {peak}", notes


def _answer(file: str) -> Iterator[str]:
    try:
        yield json.dumps(looked_at(file))
    except Exception as error:  # told by the linter, with its place
        yield json.dumps({"lenses": [], "notes": [], "error": as_user_error(error).message})


if __name__ == "__main__":
    # What an author's code prints is no answer.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answers.writelines(_answer(sys.argv[1]))
    answers.flush()
