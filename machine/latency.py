"""How long a node takes: from its work and the machine's numbers to integer picoseconds.

A latency model is a function from work to picoseconds. It is monotone in work, never negative, exact (rationals,
rounded up once), and has no number of its own: all come from the machine. One conformance test holds all of them to
that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from ..ir import dtypes
from ..ir.arrays.distinct import distinct_rows
from ..ir.columns import GraphColumns
from ..ir.dtypes import DType
from ..ir.errors import MachineError
from ..ir.ops import OPERATIONS, Kind, Operation, Work
from ..ir.tables import IntArray
from .description import Machine
from .engines import engine_by_operation
from .parts import COMPOSITE, Dma, Engine, Gemm, Link, Math

__all__ = [
    "LATENCY_MODELS",
    "LONGEST_PS",
    "LatencyModel",
    "duration_ps",
    "durations_ps",
    "issue_cost_ps",
    "latencies_ps",
]

#: From an engine's costs, one clock cycle in picoseconds, and what has to be done, to exact picoseconds.
LatencyModel = Callable[[Any, Fraction, Operation, Work, DType], Fraction]
_PS_PER_NS = 1000
#: All times of a schedule lie below the sum of all durations; it has to fit an int64 with room to add.
LONGEST_PS = 1 << 61


def _transfer(port: Dma | Link, cycle_ps: Fraction, operation: Operation, work: Work, dtype: DType) -> Fraction:
    return (port.latency_ns + work[0] / port.bytes_per_ns) * _PS_PER_NS


def _matmul(array: Gemm, cycle_ps: Fraction, operation: Operation, work: Work, dtype: DType) -> Fraction:
    m, n, k = work
    steps = math.ceil(Fraction(k) / array.rate.of(dtype.name))
    return (array.startup_cycles + -(-m // array.rows) * -(-n // array.cols) * steps) * cycle_ps


def _elementwise(unit: Math, cycle_ps: Fraction, operation: Operation, work: Work, dtype: DType) -> Fraction:
    each = unit.cycles.of(operation.name, str(operation.cost))
    return (unit.startup_cycles + -(-work[0] // unit.lanes) * each) * cycle_ps


#: By kind of engine: the exact duration in picoseconds of an operation's work (``Operation.work_kind`` says what it
#: counts).
LATENCY_MODELS: Mapping[Kind, LatencyModel] = MappingProxyType(
    {
        Kind.TRANSFER: _transfer,
        Kind.MATMUL: _matmul,
        Kind.ELEMENTWISE: _elementwise,
        Kind.LINK: _transfer,
    }
)


def duration_ps(machine: Machine, operation: Operation, work: Work, dtype: DType, direction: str = "") -> int:
    """The duration of one node in picoseconds, rounded up; 0 for what takes no engine. Of a message in a
    ``direction``, else of one in a direction without numbers of its own."""
    engine = engine_by_operation(machine)[OPERATIONS.code(operation.name)]
    return _duration(machine, engine, operation, work, dtype, direction)


def _duration(
    machine: Machine, engine: Engine | None, operation: Operation, work: Work, dtype: DType, direction: str
) -> int:
    if engine is None:
        return 0
    cost = engine.cost.toward(direction) if isinstance(engine.cost, Link) and direction else engine.cost
    return math.ceil(LATENCY_MODELS[engine.kind](cost, machine.cycle_ps, operation, work, dtype))


def durations_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The durations of all nodes, int64 ``(n,)`` in picoseconds.

    Raises ``MachineError`` where they add up to more than an int64 schedule can hold (about 26 days).
    """
    nodes = graph.nodes
    toward = _directions(graph)
    kinds = distinct_rows(nodes.op, nodes.dtype, nodes.work0, nodes.work1, nodes.work2, toward)
    columns = (nodes.op, nodes.work0, nodes.work1, nodes.work2, nodes.dtype, toward)
    rows = zip(*(column[kinds.first].tolist() for column in columns), strict=True)
    engines, names = engine_by_operation(machine), (*graph.target.directions, "")
    each = [
        _duration(machine, engines[op], OPERATIONS.by_code(op), (a, b, c), dtypes.ALL[dtype], names[direction])
        for op, a, b, c, dtype, direction in rows
    ]
    total = sum(ps * int(n) for ps, n in zip(each, np.bincount(kinds.which, minlength=len(each)), strict=True))
    _check_total(machine, total, "the durations add")
    return np.array(each, dtype=np.int64)[kinds.which] if each else np.zeros(0, dtype=np.int64)


def _check_total(machine: Machine, total_ps: int, what: str) -> None:
    if total_ps >= LONGEST_PS:
        raise MachineError(
            f"machine {machine.name}: {what} up to {total_ps / 10**12:.3g} s, more than a schedule can hold",
            help="check clock_ghz, the latencies and the bandwidths",
        )


def _directions(graph: GraphColumns) -> IntArray:
    """By node the direction in which it sends, an index into ``Target.directions``; -1 for what sends nothing."""
    found = np.full(len(graph.nodes), -1, dtype=np.int64)
    sends = np.flatnonzero(OPERATIONS.sends[graph.nodes.op])
    found[sends] = graph.channels.direction[graph.nodes.channel[sends]]
    return found


def latencies_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The part of each node's duration that is a transfer's latency, int64 ``(n,)``: what no bandwidth would
    shorten."""
    costs = [engine.cost if engine is not None else None for engine in engine_by_operation(machine)]
    by_code = [math.ceil(cost.latency_ns * _PS_PER_NS) if isinstance(cost, Dma | Link) else 0 for cost in costs]
    by_code = [min(ps, LONGEST_PS) for ps in by_code]  # what is used is less, or its duration were too long
    found: IntArray = np.array(by_code, dtype=np.int64)[graph.nodes.op]
    toward = _directions(graph)
    for number in np.unique(toward[toward >= 0]).tolist():
        latency = machine.link.toward(graph.target.directions[number]).latency_ns
        found[toward == number] = min(math.ceil(latency * _PS_PER_NS), LONGEST_PS)
    return found


def issue_cost_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """What the CPU pays to issue each node's command, int64 ``(n,)`` in picoseconds: non-zero only at a command's first
    node, zero for scope markers. Of a composite it is the cost listed as ``composite``, else that of
    the first engine for products."""
    nodes = graph.nodes
    issue, cycle = machine.cpu.issue_cycles, machine.cycle_ps
    alone = [
        0 if op.is_marker else math.ceil(issue.of(op.name, engine.name if engine is not None else "") * cycle)
        for op, engine in zip(OPERATIONS.values(), engine_by_operation(machine), strict=True)
    ]
    arrays = [engine.name for engine in machine.engines if engine.kind is Kind.MATMUL]
    composite = math.ceil(issue.of(COMPOSITE, *arrays[:1]) * cycle)
    inside = nodes.command != np.arange(len(nodes))
    used = [alone[code] for code in np.unique(nodes.op).tolist()] + [composite] * bool(inside.any())
    _check_total(machine, max(used, default=0), "what the CPU pays to issue a command comes")
    cost = np.array([min(ps, LONGEST_PS) for ps in alone], dtype=np.int64)[nodes.op]
    if inside.any():
        cost[nodes.command[inside]] = composite
    cost[inside] = 0
    return cost
