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

import numpy as np

from ..ir import dtypes
from ..ir.columns import GraphColumns
from ..ir.dtypes import DType
from ..ir.errors import MachineError
from ..ir.ops import OPERATIONS, Engine, Family, Operation, Work
from ..ir.tables import IntArray, NodeTable
from .machine import Machine
from .machine_parts import COMPOSITE, Dma, Link

__all__ = [
    "LATENCY_MODELS",
    "LONGEST_PS",
    "LatencyModel",
    "duration_ps",
    "durations_ps",
    "issue_cost_ps",
    "latencies_ps",
]

LatencyModel = Callable[[Machine, Operation, Work, DType], Fraction]
_PS_PER_NS = 1000
#: All times of a schedule lie below the sum of all durations; it has to fit an int64 with room to add.
LONGEST_PS = 1 << 61


def _transfer(port: Dma | Link, nbytes: int) -> Fraction:
    return (port.latency_ns + nbytes / port.bytes_per_ns) * _PS_PER_NS


def _dma_read(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    return _transfer(machine.dma_read, work[0])


def _dma_write(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    return _transfer(machine.dma_write, work[0])


def _link(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    return _transfer(machine.link, work[0])


def _gemm(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    m, n, k = work
    gemm = machine.gemm
    steps = math.ceil(Fraction(k) / gemm.rate.of(dtype.name))
    return (gemm.startup_cycles + -(-m // gemm.rows) * -(-n // gemm.cols) * steps) * machine.cycle_ps


def _math(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    vector = machine.math
    return (vector.startup_cycles + -(-work[0] // vector.lanes) * vector.cycles.of(operation.name)) * machine.cycle_ps


def _nothing(machine: Machine, operation: Operation, work: Work, dtype: DType) -> Fraction:
    return Fraction(0)


#: By engine: the exact duration in picoseconds of an operation's work (``Operation.work_kind`` says what it counts).
LATENCY_MODELS: Mapping[Engine, LatencyModel] = MappingProxyType(
    {
        Engine.DMA_READ: _dma_read,
        Engine.DMA_WRITE: _dma_write,
        Engine.GEMM: _gemm,
        Engine.MATH: _math,
        Engine.LINK: _link,
        Engine.NONE: _nothing,
    }
)


def duration_ps(machine: Machine, operation: Operation, work: Work, dtype: DType) -> int:
    """The duration of one node in picoseconds, rounded up."""
    return math.ceil(LATENCY_MODELS[operation.engine](machine, operation, work, dtype))


def durations_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The durations of all nodes, int64 ``(n,)`` in picoseconds.

    Raises ``MachineError`` where they add up to more than an int64 schedule can hold (about 26 days).
    """
    nodes = graph.nodes
    first, inverse = _unique_work(nodes)
    columns = (nodes.op, nodes.work0, nodes.work1, nodes.work2, nodes.dtype)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    each = [duration_ps(machine, OPERATIONS.by_code(op), (a, b, c), dtypes.ALL[dtype]) for op, a, b, c, dtype in rows]
    total = sum(ps * int(n) for ps, n in zip(each, np.bincount(inverse, minlength=len(each)), strict=True))
    if total >= LONGEST_PS:
        raise MachineError(
            f"machine {machine.name}: the durations add up to {total / 1e12:.3g} s, more than a schedule can hold",
            help="check clock_ghz, the latencies and the bandwidths",
        )
    return np.array(each, dtype=np.int64)[inverse] if each else np.zeros(0, dtype=np.int64)


def _unique_work(nodes: NodeTable) -> tuple[IntArray, IntArray]:
    """For each distinct (operation, work, dtype) the first node that has it; and for each node which one it has."""
    key = nodes.op.astype(np.int64) * len(dtypes.ALL) + nodes.dtype
    for column in (nodes.work0, nodes.work1, nodes.work2):
        # Renumbered at each step: below (number of nodes) ** 2, which fits.
        values, place = np.unique(column, return_inverse=True)
        _, key = np.unique(key * max(len(values), 1) + place, return_inverse=True)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse


def latencies_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The part of each node's duration that is a transfer's latency, int64 ``(n,)``: what no bandwidth would
    shorten."""
    by_engine = {
        Engine.DMA_READ: machine.dma_read.latency_ns,
        Engine.DMA_WRITE: machine.dma_write.latency_ns,
        Engine.LINK: machine.link.latency_ns,
    }
    by_code = [math.ceil(by_engine.get(op.engine, Fraction(0)) * _PS_PER_NS) for op in OPERATIONS.values()]
    return np.array(by_code, dtype=np.int64)[graph.nodes.op]


def issue_cost_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """What the CPU pays to issue each node's command, int64 ``(n,)`` in picoseconds: non-zero only at a command's first
    node, zero for scope markers. Of a composite it is the cost listed as ``composite``, else the GEMM's."""
    nodes = graph.nodes
    issue, cycle = machine.cpu.issue_cycles, machine.cycle_ps
    alone = [
        0 if op.family is Family.MARKER else math.ceil(issue.of(op.name, str(op.engine)) * cycle)
        for op in OPERATIONS.values()
    ]
    cost = np.array(alone, dtype=np.int64)[nodes.op]
    ids = np.arange(len(nodes))
    inside = nodes.command != ids
    cost[nodes.command[inside]] = math.ceil(issue.of(COMPOSITE, str(Engine.GEMM)) * cycle)
    cost[inside] = 0
    return cost
