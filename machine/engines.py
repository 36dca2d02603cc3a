"""Which engine carries a node out: the one place where operations and a machine's engines meet.

An operation says what kind of engine it needs and where its operands lie; a machine lists engines of kinds, with the
memories that they reach. The first one listed that fits is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from ..ir.columns import GraphColumns
from ..ir.errors import MachineError
from ..ir.ops import OPERATIONS, Kind, Operation, Space
from ..ir.tables import IntArray
from ..ir.target import Target
from .description import Machine
from .parts import Engine

__all__ = ["EngineInstance", "engine_by_operation", "engine_instances"]


@attrs.frozen
class EngineInstance:
    """One engine of one rank: ``name`` is ``"gemm"``, ..., ``"link:next"``; it works on ``channels`` nodes at once."""

    rank: int
    name: str
    channels: int


def engine_by_operation(machine: Machine) -> list[Engine | None]:
    """By code of an operation the engine that carries it out; None for those that take none, and for those that no
    engine of the machine can do."""
    return [_engine_for(operation, machine.engines, machine.target) for operation in OPERATIONS.values()]


def _engine_for(operation: Operation, engines: Sequence[Engine], target: Target) -> Engine | None:
    if operation.kind is Kind.NONE:
        return None
    memory = {Space.SCRATCH: target.results, Space.GLOBAL: target.memories[target.global_memory].name}
    reads, writes = memory[operation.reads_from], memory.get(operation.writes_to)
    for engine in engines:
        if engine.kind is operation.kind and reads in engine.reads and (writes is None or writes in engine.writes):
            return engine
    return None


def engine_instances(graph: GraphColumns, machine: Machine) -> tuple[tuple[EngineInstance, ...], IntArray]:
    """Every rank's engines (of the links those that carry a message), and for each node the index of its own, int32
    ``(n,)``, -1 for a node that takes none. Raises ``MachineError`` where the machine has no engine for a node."""
    fixed = [engine for engine in machine.engines if engine.kind is not Kind.LINK]
    links = [engine for engine in machine.engines if engine.kind is Kind.LINK]
    directions = graph.target.directions
    names = [engine.name for engine in fixed] + [f"{link.name}:{to}" for link in links[:1] for to in directions]
    channels = [engine.channels for engine in fixed] + [link.channels for link in links[:1] for _ in directions]
    width = len(names)
    nodes = graph.nodes
    by_code = engine_by_operation(machine)
    _refuse_missing(nodes.op, by_code, machine)
    local = np.array([fixed.index(e) if e in fixed else -1 for e in by_code], dtype=np.int64)[nodes.op]
    sends = np.flatnonzero(OPERATIONS.mask(lambda op: op.kind is Kind.LINK)[nodes.op])
    local[sends] = len(fixed) + graph.channels.direction[nodes.channel[sends]]
    slot = np.where(local < 0, -1, nodes.rank.astype(np.int64) * width + local)

    used = np.zeros(graph.ranks * width, dtype=np.bool_)
    used.reshape(graph.ranks, width)[:, : len(fixed)] = True
    used[slot[sends]] = True
    listed = np.flatnonzero(used)
    instances = tuple(EngineInstance(int(s) // width, names[int(s) % width], channels[int(s) % width]) for s in listed)
    number = np.cumsum(used) - 1
    return instances, np.where(slot < 0, -1, number[slot]).astype(np.int32)


def _refuse_missing(codes: IntArray, by_code: Sequence[Engine | None], machine: Machine) -> None:
    """Every operation that a graph uses needs an engine, unless it takes none."""
    used = np.unique(codes).tolist()
    missing = [op for code in used if (op := OPERATIONS.by_code(code)).kind is not Kind.NONE and not by_code[code]]
    if missing:
        first = missing[0]
        raise MachineError(
            f"machine {machine.name} has no engine for {first.name}, which needs one of kind {first.kind}",
            help=f"its engines are {', '.join(f'{engine.name} ({engine.kind})' for engine in machine.engines)}",
        )
