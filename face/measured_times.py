"""Measured times from a CSV file: of kernels, scheduled under one policy, or of single operations."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ..ir import dtypes
from ..ir.errors import InputError, KernscopeError, did_you_mean
from ..ir.graph import Graph
from ..ir.ops import OPERATIONS, Kind, Work
from ..machine.description import Machine
from ..machine.latency import duration_ps, shared_time_ps
from ..scheduler.result.schedule import makespan_ps
from .machine_fitting import Measured

__all__ = ["COLUMNS", "read_measured"]

#: What the file's columns are called; ``ns`` and one of the first two are needed.
COLUMNS = ("kernel", "op", "launch", "ranks", "work", "dtype", "family", "ns", "host_us")
#: From a kernel's target, its launch and the number of ranks to its graph.
Tracer = Callable[[str, str | None, int | None], Graph]


def read_measured(path: str, trace: Tracer, policy: str) -> list[Measured]:
    """The rows of a file. ``kernel`` is a target as commands take it, with ``launch`` and ``ranks``; its prediction is
    the makespan under the policy (or what all that is moved takes through what ranks share, if that is longer), and
    ``host_us`` that the host took. ``op`` is an operation, with ``work`` (``65536``
    bytes or elements, or ``128x256x64``) and ``dtype``. Raises ``InputError`` with the line."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or ()
            for name in names:
                if name not in COLUMNS:
                    raise _bad(path, 1, f"no column {name!r}", did_you_mean(name, COLUMNS, what="columns"))
            rows = [_row(path, number, row, trace, policy) for number, row in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", help="give a CSV file that exists") from None
    if not rows:
        raise _bad(path, 1, "no measured time", f"its columns are {', '.join(COLUMNS)}")
    return rows


def _bad(path: str, line: int, what: str, help: str) -> InputError:
    return InputError(f"{path}:{line}: {what}", help=help)


def _row(path: str, line: int, row: Mapping[str, str | None], trace: Tracer, policy: str) -> Measured:
    given = {key: (value or "").strip() for key, value in row.items() if key is not None}
    ns, host = (_number(path, line, given, key) for key in ("ns", "host_us"))
    if ns <= 0:
        raise _bad(path, line, f"ns = {given.get('ns', '')!r}", "give the measured time in nanoseconds, above 0")
    kernel, op = given.get("kernel", ""), given.get("op", "")
    if bool(kernel) == bool(op):
        raise _bad(path, line, "a kernel or an op is needed, one of the two", "leave the other column empty")
    if op:
        return Measured(f"{op} {given.get('work', '')}", given.get("family") or op, ns, _operation(path, line, given))
    launch, ranks = given.get("launch") or None, int(_number(path, line, given, "ranks")) or None
    try:
        graph = trace(kernel, launch, ranks)
    except KernscopeError as error:
        raise _bad(path, line, error.message, error.help or "") from None
    name = f"{graph.kernel}:{launch}" if launch else graph.kernel
    return Measured(name, given.get("family") or graph.kernel, ns, partial(_makespan_ns, graph, policy, host * 1000))


def _makespan_ns(graph: Graph, policy: str, host_ns: float, machine: Machine) -> float:
    shared = max(shared_time_ps(graph, machine).values(), default=0)
    return max(makespan_ps(graph, machine, policy), shared) / 1000 + host_ns


def _number(path: str, line: int, given: Mapping[str, str], key: str) -> float:
    text = given.get(key) or "0"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise _bad(path, line, f"{key} = {text!r}", "give a number, 0 or more")
    return number


def _operation(path: str, line: int, given: Mapping[str, str]) -> Callable[[Machine], float]:
    name = given["op"]
    known = [op.name for op in OPERATIONS.values() if op.kind is not Kind.NONE]
    if name not in known:
        raise _bad(path, line, f"no operation {name!r}", did_you_mean(name, known, what="operations"))
    parts = given.get("work", "").lower().split("x")
    if len(parts) not in (1, 3) or not all(part.isdigit() for part in parts):
        raise _bad(path, line, f"work = {given.get('work', '')!r}", "write 65536 bytes or elements, or 128x256x64")
    a, b, c = (*map(int, parts), *(0,) * (3 - len(parts)))
    try:
        dtype = dtypes.of(given.get("dtype") or "f32")
    except KernscopeError as error:
        raise _bad(path, line, error.message, error.help or "") from None
    work: Work = (a, b, c)
    return lambda machine: duration_ps(machine, OPERATIONS[name], work, dtype) / 1000
