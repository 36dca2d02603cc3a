"""Which engine carries a node out: the one place where operations and a machine's engines meet.

An operation says what kind of engine it needs; a machine lists engines of kinds, with the memories that they reach and
what they take. The first one listed that takes the operation and reaches its operands and its result is taken.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.arrays.distinct import distinct_rows
from ..ir.columns import GraphColumns
from ..ir.errors import MachineError
from ..ir.ops import OPERATIONS, Kind, Operation, Space
from ..ir.tables import IntArray, Mode
from .description import Machine

__all__ = ["EngineInstance", "engine_instances", "node_engines", "reached_memories", "usual_engine"]


@attrs.frozen
class EngineInstance:
    """One engine of one rank: ``name`` is ``"gemm"``, ..., ``"link:next"``; it works on ``channels`` nodes at once, all
    of its ``kind``."""

    rank: int
    name: str
    channels: int
    kind: str = attrs.field(default="", repr=False)


def usual_engine(machine: Machine, operation: Operation) -> int:
    """The place among the machine's engines of the one that carries an operation out whose operands and result lie
    where they do if nothing else is said; -1 for what takes none, and for what no engine can do."""
    target = machine.target
    return -1 if operation.kind is Kind.NONE else target.engine_for(operation, *target.usual_reach(operation))


def node_engines(graph: GraphColumns, machine: Machine) -> IntArray:
    """For each node the place of its engine among the machine's, int64 ``(n,)``; -1 for a node that takes none. Raises
    ``MachineError`` where the machine has no engine for a node."""
    nodes = graph.nodes
    reads, writes = reached_memories(graph)
    wide = max((len(reach.operands) for reach in machine.target.reaches), default=0)
    keys = (nodes.op, reads, writes, *_operand_memories(graph, wide))
    kinds = distinct_rows(*keys)
    names = graph.target.memory_names
    rows = zip(*(column[kinds.first].tolist() for column in keys), strict=True)
    each = []
    for op, read, write, *operands in rows:
        operation = OPERATIONS.by_code(op)
        wanted = tuple(name for place, name in enumerate(names) if read >> place & 1)
        into = names[write] if write >= 0 else None
        lie = [names[place] if place >= 0 else "" for place in operands]
        found = -1 if operation.kind is Kind.NONE else machine.target.engine_for(operation, wanted, into, lie)
        if found < 0 and operation.kind is not Kind.NONE:
            raise _missing(machine, operation, wanted, into)
        each.append(found)
    return np.array(each, dtype=np.int64)[kinds.which] if each else np.zeros(0, dtype=np.int64)


def reached_memories(graph: GraphColumns) -> tuple[IntArray, IntArray]:
    """By node the memories that it reads, as a set of bits, and the one that it writes (-1: none). What it reads and
    writes in place is reached by writing it; addresses in scratch, of what it moves out of global memory, are read by
    whoever issues it."""
    accesses, count = graph.accesses, len(graph.nodes)
    memory = graph.storages.memory[accesses.storage].astype(np.int64)
    is_write = accesses.mode == Mode.WRITE
    writes = np.full(count, -1, dtype=np.int64)
    writes[accesses.node[is_write]] = memory[is_write]
    written = np.full(count, -1, dtype=np.int64)
    written[accesses.node[is_write]] = accesses.storage[is_write]
    read = ~is_write & (accesses.storage != written[accesses.node])
    from_global = OPERATIONS.mask(lambda op: op.reads_from is Space.GLOBAL)[graph.nodes.op]
    read &= (memory == graph.target.global_memory) | ~from_global[accesses.node]
    reads = np.zeros(count, dtype=np.int64)
    np.bitwise_or.at(reads, accesses.node[read], np.int64(1) << memory[read])
    return reads, writes


def _operand_memories(graph: GraphColumns, wide: int) -> list[IntArray]:
    """By node the memories of its first operands, one column each; -1 where there is none, where it is written in
    place, and for the addresses of what a transfer moves."""
    accesses, count = graph.accesses, len(graph.nodes)
    columns: list[IntArray] = [np.full(count, -1, dtype=np.int64) for _ in range(wide)]
    if not wide:
        return columns
    is_write = accesses.mode == Mode.WRITE
    written = np.full(count, -1, dtype=np.int64)
    written[accesses.node[is_write]] = accesses.storage[is_write]
    memory = graph.storages.memory[accesses.storage].astype(np.int64)
    number = np.arange(len(accesses.node)) - np.searchsorted(accesses.node, accesses.node)  # by node, reads come first
    from_global = OPERATIONS.mask(lambda op: op.reads_from is Space.GLOBAL)[graph.nodes.op]
    counted = ~is_write & (accesses.storage != written[accesses.node])
    counted &= (memory == graph.target.global_memory) | ~from_global[accesses.node]
    for place, column in enumerate(columns):
        rows = np.flatnonzero(counted & (number == place))
        column[accesses.node[rows]] = memory[rows]
    return columns


def engine_instances(
    graph: GraphColumns, machine: Machine, engine: IntArray
) -> tuple[tuple[EngineInstance, ...], IntArray]:
    """Every rank's engines (of the links those that carry a message), and for each node the index of its own, int32
    ``(n,)``, -1 for a node that takes none. ``engine``: what :func:`node_engines` gives."""
    fixed = [place for place, part in enumerate(machine.engines) if part.kind is not Kind.LINK]
    links = [part for part in machine.engines if part.kind is Kind.LINK]
    directions = graph.target.directions
    names = [machine.engines[place].name for place in fixed]
    names += [f"{link.name}:{to}" for link in links[:1] for to in directions]
    channels = [machine.engines[place].channels for place in fixed]
    channels += [link.channels for link in links[:1] for _ in directions]
    kinds = [machine.engines[place].kind.value for place in fixed] + [Kind.LINK.value] * (len(names) - len(fixed))
    width = len(names)
    nodes = graph.nodes
    number = np.full(len(machine.engines) + 1, -1, dtype=np.int64)  # the last, of no engine, is what -1 finds
    number[fixed] = np.arange(len(fixed))
    local = number[engine]
    sends = np.flatnonzero(OPERATIONS.sends[nodes.op])
    local[sends] = len(fixed) + graph.channels.direction[nodes.channel[sends]]
    slots = np.where(local < 0, -1, nodes.rank.astype(np.int64) * width + local)

    used = np.zeros(graph.ranks * width, dtype=np.bool_)
    used.reshape(graph.ranks, width)[:, : len(fixed)] = True
    used[slots[sends]] = True
    listed = np.flatnonzero(used)
    instances = tuple(
        EngineInstance(slot // width, names[slot % width], channels[slot % width], kinds[slot % width])
        for slot in listed.tolist()
    )
    index = np.cumsum(used) - 1
    return instances, np.where(slots < 0, -1, index[slots]).astype(np.int32)


def _missing(machine: Machine, operation: Operation, reads: tuple[str, ...], writes: str | None) -> MachineError:
    """Every operation that a graph uses needs an engine, unless it takes none."""
    where = "" if machine.target.is_plain else f" that reads {' and '.join(reads) or 'nothing'}"
    where += f" and writes {writes}" if where and writes is not None else ""
    return MachineError(
        f"machine {machine.name} has no engine for {operation.name}, which needs one of kind {operation.kind}{where}",
        help=f"its engines are {', '.join(f'{engine.name} ({engine.kind})' for engine in machine.engines)}",
    )
