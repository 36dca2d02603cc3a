"""How long a node takes: from its work and the machine's numbers to integer picoseconds.

Two numbers, as in any model of instruction scheduling: a node holds its engine for its *occupancy*, and what it makes
is there after its *duration*, which is no less. A latency model is a function from a job to both. It is monotone in
work, never negative, exact (rationals, rounded up once), and has no number of its own: all come from the machine. One
conformance test holds all of them to that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np

from ..ir import dtypes
from ..ir.arrays.distinct import distinct_rows
from ..ir.columns import GraphColumns
from ..ir.dtypes import DType
from ..ir.errors import MachineError
from ..ir.ops import OPERATIONS, Kind, Operation, Space, Work, WorkKind
from ..ir.tables import IntArray
from .description import Machine
from .engines import node_engines, usual_engine
from .jobs import Job, job_columns
from .parts import COMPOSITE, Elementwise, Engine, Link, Matmul, MemoryPart, Transfer

__all__ = [
    "LATENCY_MODELS",
    "LONGEST_PS",
    "LatencyModel",
    "NodeTimes",
    "Took",
    "duration_ps",
    "durations_ps",
    "issue_cost_ps",
    "latencies_ps",
    "node_times",
    "shared_bound_ps",
    "shared_time_ps",
    "took_ps",
]

#: Exact picoseconds: how long the engine is held, and when the result is there.
Took = tuple[Fraction, Fraction]
#: From a machine, an engine's costs, and what has to be done.
LatencyModel = Callable[[Machine, Any, Job], Took]
_PS_PER_NS = 1000
#: All times of a schedule lie below the sum of all durations; it has to fit an int64 with room to add.
LONGEST_PS = 1 << 61


def _transfer(machine: Machine, port: Transfer, job: Job) -> Took:
    nbytes = Fraction(job.work[0])
    busy = nbytes / (port.bytes_per_ns * port.spread * _efficiency(port, job.run))
    if job.operation.reads_from != job.operation.writes_to:  # one of them is the global memory
        busy = max(busy, *(nbytes / charged / rate for rate, charged in _shares(machine, job)), Fraction(0))
    done = port.latency_ns + busy
    return (busy if port.pipelined else done) * _PS_PER_NS, done * _PS_PER_NS


def _shares(machine: Machine, job: Job) -> list[tuple[Fraction, int]]:
    """What bounds a rank's transfers to and from the global memory: its fair share of each rate, and how many transfers
    one passage there serves. What is stored through a level is written back from there in its own time: only all of it
    together has to get through (:func:`shared_time_ps`)."""
    found = []
    written_back = machine.level is not None and job.operation.writes_to is Space.GLOBAL
    if machine.global_memory.bytes_per_ns is not None and not written_back:
        found.append((machine.global_memory.bytes_per_ns / job.ranks, job.readers))
    if machine.level is not None and machine.level.bytes_per_ns is not None:
        found.append((machine.level.bytes_per_ns / job.ranks, 1))
    return found


def _efficiency(port: Transfer, run: int) -> Fraction:
    """The share of its rate at which runs of so many bytes go: linear between the pairs that are listed."""
    if not port.efficiency or not run:
        return Fraction(1)
    first, last = port.efficiency[0], port.efficiency[-1]
    if run <= first[0] or run >= last[0]:
        return first[1] if run <= first[0] else last[1]
    (low, small), (high, large) = next(pair for pair in itertools.pairwise(port.efficiency) if run <= pair[1][0])
    return small + (large - small) * (run - low) / (high - low)


def _link(machine: Machine, link: Link, job: Job) -> Took:
    toward = link.toward(job.direction) if job.direction else link
    took = (toward.latency_ns + job.work[0] / toward.bytes_per_ns) * _PS_PER_NS
    return took, took


def _matmul(machine: Machine, array: Matmul, job: Job) -> Took:
    m, n, k = job.work
    rate, limits = array.rate.of(job.dtype.name), array.limits
    cycle = machine.engine_cycle_ps(array)
    busy = Fraction(0)
    for (rows, many), (cols, much), (deep, often) in itertools.product(
        _passes(m, limits.m), _passes(n, limits.n), _passes(k, limits.k)
    ):
        steps = -(-rows // array.rows) * -(-cols // array.cols) * math.ceil(Fraction(deep) / rate)
        each = (array.startup_cycles + max(Fraction(steps), array.least_cycles)) * cycle
        if array.feed_bytes_per_ns is not None:
            nbytes = (rows * deep + deep * cols) * job.dtype.itemsize
            each = max(each, nbytes / array.feed_bytes_per_ns * _PS_PER_NS)
        busy += each * many * much * often
    return busy, busy + array.latency_cycles * cycle


def _passes(size: int, limit: int | None) -> list[tuple[int, int]]:
    """A dimension as (size of a pass, how many of it): full ones, then what is left."""
    if limit is None or size <= limit:
        return [(size, 1)]
    whole, left = divmod(size, limit)
    return [(limit, whole), *([(left, 1)] if left else [])]


def _elementwise(machine: Machine, unit: Elementwise, job: Job) -> Took:
    operation, amount = job.operation, job.work[0]
    if operation.work_kind is WorkKind.BYTES:  # a move between memories
        amount = -(-amount // job.dtype.itemsize)
    each = _cycles(unit, operation) * unit.dtype.of(job.dtype.name)
    if job.both_in in unit.both_in:
        each *= unit.both_in[job.both_in].of(job.dtype.name)
    cycles = unit.startup_cycles + _steps(unit, amount, job) * each
    cycle = machine.engine_cycle_ps(unit)
    return cycles * cycle, (cycles + unit.latency_cycles) * cycle


def _cycles(unit: Elementwise, operation: Operation) -> Fraction:
    """What an element costs: of an operation made of others, and not listed itself, what all of them do."""
    if operation.parts and not unit.cycles.lists(operation.name):
        return sum((_cycles(unit, OPERATIONS[part]) for part in operation.parts), Fraction(0))
    return unit.cycles.of(operation.name, str(operation.cost))


def _steps(unit: Elementwise, elements: int, job: Job) -> int:
    """How often all lanes work at once. Of a partitioned memory the rows of a tile lie across the partitions, and each
    partition's elements go one after the other through its share of the lanes."""
    if not job.partitions or not job.rows:
        return -(-elements // unit.lanes)
    # What has no whole rows (a move counted in bytes, say) has so many elements a row at the most.
    along = -(-elements // job.rows)
    return -(-job.rows // job.partitions) * -(-along * job.partitions // unit.lanes)


#: By kind of engine: the exact picoseconds of a job.
LATENCY_MODELS: Mapping[Kind, LatencyModel] = MappingProxyType(
    {
        Kind.TRANSFER: _transfer,
        Kind.MATMUL: _matmul,
        Kind.ELEMENTWISE: _elementwise,
        Kind.LINK: _link,
    }
)


def took_ps(machine: Machine, engine: Engine, job: Job) -> tuple[int, int]:
    """The occupancy and the duration of a job on an engine, each rounded up, in picoseconds."""
    busy, done = LATENCY_MODELS[engine.kind](machine, engine.cost, job)
    return math.ceil(busy), math.ceil(done)


def duration_ps(machine: Machine, operation: Operation, work: Work, dtype: DType, direction: str = "") -> int:
    """The duration of one node in picoseconds, rounded up; 0 for what takes no engine. Of a message in a
    ``direction``, else of one in a direction without numbers of its own. Operands and result lie where they do if
    nothing else is said, and nothing else is asked of what is shared."""
    place = usual_engine(machine, operation)
    if place < 0:
        return 0
    return took_ps(machine, machine.engines[place], Job(operation, work, dtype, direction=direction))[1]


@attrs.frozen(eq=False)
class NodeTimes:
    """By node, int64 ``(n,)``: ``engine``, its place among the machine's engines (-1: none), ``occupancy_ps``: how long
    that is held, ``duration_ps``: when what it makes is there, no less."""

    engine: IntArray
    occupancy_ps: IntArray
    duration_ps: IntArray


def node_times(graph: GraphColumns, machine: Machine) -> NodeTimes:
    """The engines and times of all nodes.

    Raises ``MachineError`` where the machine has no engine for a node, and where durations add up to more than an int64
    schedule can hold (about 26 days).
    """
    nodes = graph.nodes
    engine, toward, columns = node_engines(graph, machine), _directions(graph), job_columns(graph, machine)
    where = (columns.rows, columns.memory, columns.both_in, columns.run, columns.readers)
    keys = (nodes.op, nodes.dtype, nodes.work0, nodes.work1, nodes.work2, toward, engine, *where)
    kinds = distinct_rows(*keys)
    rows = zip(*(column[kinds.first].tolist() for column in keys), strict=True)
    directions, memories = (*graph.target.directions, ""), graph.target.memory_names
    each: list[tuple[int, int]] = []
    for op, dtype, a, b, c, direction, place, size, memory, both, run, readers in rows:
        if place < 0:
            each.append((0, 0))
            continue
        job = Job(
            OPERATIONS.by_code(op),
            (a, b, c),
            dtypes.ALL[dtype],
            rows=size,
            partitions=(machine.memory[memories[memory]].partitions or 0) if memory >= 0 else 0,
            both_in=memories[both] if both >= 0 else "",
            run=run,
            readers=readers,
            ranks=graph.ranks,
            direction=directions[direction],
        )
        each.append(took_ps(machine, machine.engines[place], job))
    many = np.bincount(kinds.which, minlength=len(each)).tolist()
    _check_total(machine, sum(done * n for (_, done), n in zip(each, many, strict=True)), "the durations add")
    times = np.array(each, dtype=np.int64).reshape(-1, 2)[kinds.which]
    return NodeTimes(engine, times[:, 0].copy(), times[:, 1].copy())


def durations_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The durations of all nodes, int64 ``(n,)`` in picoseconds. Raises as :func:`node_times`."""
    return node_times(graph, machine).duration_ps


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


def shared_bound_ps(graph: GraphColumns, machine: Machine) -> dict[str, int]:
    """By memory that ranks share, a time below which no schedule gets all that is moved through it, in picoseconds.

    Each rank has its fair share of the rate; only where it has several lanes that reach there can it draw on more than
    that at once, and the bound is that much lower.
    """
    home = next(name for name, part in machine.memory.items() if part.scope == "global")
    lanes = sum(e.channels for e in machine.engines if home in (*e.reads, *e.writes))
    return _through_shared(graph, machine, lanes, all_stores=machine.level is None)


def shared_time_ps(graph: GraphColumns, machine: Machine) -> dict[str, int]:
    """By memory that ranks share, the time that all that is moved takes through it at its rate, in picoseconds. A
    schedule may be shorter: a rank may move over several lanes at once, each of which has the rank's share of the rate,
    and what is stored through a level is not waited for. What is longer of the two is nearer to the truth."""
    return _through_shared(graph, machine, 1, all_stores=True)


def _through_shared(graph: GraphColumns, machine: Machine, lanes: int, *, all_stores: bool) -> dict[str, int]:
    """``all_stores``: whether the global memory's time counts what is stored, as a level's always does."""
    nodes = graph.nodes
    moves = (OPERATIONS.loads | OPERATIONS.stores)[nodes.op]
    waited = moves if all_stores else OPERATIONS.loads[nodes.op]
    shared = [(name, part) for name, part in machine.memory.items() if part.scope != "rank" and part.bytes_per_ns]
    if not shared or not moves.any():
        return {}
    readers = job_columns(graph, machine).readers
    counted = {name: np.flatnonzero(waited if part.scope == "global" else moves) for name, part in shared}
    return {name: _shared_ps(part, nodes.work0[counted[name]], readers[counted[name]], lanes) for name, part in shared}


def _shared_ps(part: MemoryPart, nbytes: IntArray, readers: IntArray, lanes: int) -> int:
    assert part.bytes_per_ns is not None
    times = distinct_rows(readers) if part.scope == "global" else None
    if times is None:
        total = Fraction(int(nbytes.sum()))
    else:
        sums = np.zeros(len(times), dtype=np.int64)
        np.add.at(sums, times.which, nbytes)
        of = readers[times.first].tolist()
        total = sum((Fraction(moved, many) for moved, many in zip(sums.tolist(), of, strict=True)), Fraction(0))
    return math.floor(total / (part.bytes_per_ns * lanes) * _PS_PER_NS)


def latencies_ps(graph: GraphColumns, machine: Machine) -> IntArray:
    """The part of each node's duration that is a latency, int64 ``(n,)``: what no bandwidth would shorten."""
    engine = node_engines(graph, machine)
    found = np.zeros(len(engine), dtype=np.int64)
    for place in np.unique(engine[engine >= 0]).tolist():
        part = machine.engines[place].cost
        if isinstance(part, Transfer):
            exact = part.latency_ns * _PS_PER_NS
        elif isinstance(part, Matmul | Elementwise):
            exact = part.latency_cycles * machine.engine_cycle_ps(part)
        else:
            continue
        found[engine == place] = min(math.ceil(exact), LONGEST_PS)  # what is used is less, or it were too long
    toward = _directions(graph)
    for number in np.unique(toward[toward >= 0]).tolist():
        assert machine.link is not None
        latency = machine.link.toward(graph.target.directions[number]).latency_ns
        found[toward == number] = min(math.ceil(latency * _PS_PER_NS), LONGEST_PS)
    return found


def issue_cost_ps(graph: GraphColumns, machine: Machine, engine: IntArray | None = None) -> IntArray:
    """What the CPU pays to issue each node's command, int64 ``(n,)`` in picoseconds: non-zero only at a command's first
    node, zero for scope markers. Of a composite it is the cost listed as ``composite``, else that of
    the first engine for products. ``engine``: what ``node_engines`` gives, where that is known."""
    nodes = graph.nodes
    issue, cycle = machine.cpu.issue_cycles, machine.cycle_ps
    engine = node_engines(graph, machine) if engine is None else engine
    kinds = distinct_rows(nodes.op, engine)
    alone = [
        0
        if (op := OPERATIONS.by_code(code)).is_marker
        else math.ceil(issue.of(op.name, machine.engines[place].name if place >= 0 else "") * cycle)
        for code, place in zip(nodes.op[kinds.first].tolist(), engine[kinds.first].tolist(), strict=True)
    ]
    arrays = [part.name for part in machine.engines if part.kind is Kind.MATMUL]
    composite = math.ceil(issue.of(COMPOSITE, *arrays[:1]) * cycle)
    inside = nodes.command != np.arange(len(nodes))
    used = alone + [composite] * bool(inside.any())
    _check_total(machine, max(used, default=0), "what the CPU pays to issue a command comes")
    cost = np.array(alone, dtype=np.int64)[kinds.which]
    if inside.any():
        cost[nodes.command[inside]] = composite
    cost[inside] = 0
    return cost
