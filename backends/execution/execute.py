"""Phase 2: execute a graph on real numbers with numpy, inside one byte array per rank at the traced addresses.

Every legal order gives bit-identical HBM outputs for a kernel without KS201, KS202, KS204 and KS502 findings: an edge
that is missing from the graph shows as a difference, at the latest with poison on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ...ir.errors import ExecutionError, IndexTileError
from ...ir.graph import Graph, Node
from ...ir.messages import channel_ends, refuse_unmatched
from ...ir.tables import IntArray
from ...ir.unstored import Unstored, find_unstored
from ...ir.verifier.verify import require_valid
from .inputs import ready_inputs
from .memory import Memory, memory_limit
from .order import Order, execution_order
from .plan import Plans
from .tracking import OrderTracker, ProgramTracker, Tracker
from .views import Array

__all__ = ["Execution", "execute"]


@attrs.frozen(eq=False)
class Execution:
    """What came of a run.

    ``outputs`` holds every tensor that is stored to, by name in argument order, in its own shape and dtype.
    ``unstored``, by name, are those of them that had no input and of which a part was never stored: there they hold
    poison, NaN in every float dtype.
    ``high_water_bytes`` is, per rank, the highest rounded end of an allocation. ``stale_reads``, ``stale_writes`` and
    ``unwritten_reads`` are sorted ids of the nodes that read or wrote an allocation's bytes when it did not own them
    (any more), or read bytes that were never written through a view of their owner; they are watched for in program
    order with poison on only: ``tracked`` says whether they were.
    """

    outputs: dict[str, Array]
    unstored: dict[str, Unstored]
    high_water_bytes: tuple[int, ...]
    stale_reads: tuple[int, ...]
    stale_writes: tuple[int, ...]
    unwritten_reads: tuple[int, ...]
    tracked: bool


def execute(
    graph: Graph, inputs: Mapping[str, Array] | None = None, order: Order = "program", poison: bool = False
) -> Execution:
    """Execute a graph on numbers.

    ``inputs`` are arrays by tensor name, of exactly the tensor's shape and dtype; a tensor without one takes the array
    it was traced with, else starts as poison (all bits set: NaN in every float dtype). They are never changed.
    ``order`` is ``"program"``, a schedule, or the ids of all nodes. With ``poison`` rewound scratch is poisoned, too:
    at the scope's exit in program order, else as soon as an allocation's last access has run.

    Raises ``ExecutionError`` for a graph with recorded faults (an overflow, an access out of bounds),
    ``UnmatchedMessageError`` for a message without partner, ``MemoryLimitError`` where the tensors do not fit into
    memory, ``InputError`` for missing or unfit inputs, ``OrderError`` for an order that breaks an edge, and
    ``DeadlockError`` where program order cannot go on.
    """
    require_valid(graph, edges=False)
    refuse_unmatched(graph)
    _refuse_bounds_faults(graph)
    _refuse_overflow(graph)
    sender_of = _pair_messages(graph)
    ids = execution_order(graph, order)
    with memory_limit(graph):
        return _execute(graph, inputs, ids, sender_of, poison=poison, tracked=poison and isinstance(order, str))


def _execute(
    graph: Graph,
    inputs: Mapping[str, Array] | None,
    ids: IntArray,
    sender_of: Mapping[int, int],
    *,
    poison: bool,
    tracked: bool,
) -> Execution:
    ready = ready_inputs(graph, inputs, ids)
    memory = Memory(graph, ready)
    plans = Plans(graph)
    tracker = Tracker() if not poison else (ProgramTracker if tracked else OrderTracker)(graph, plans, memory)
    with np.errstate(all="ignore"):
        _run(ids, plans, memory, tracker, sender_of)
    stale_reads, stale_writes, unwritten_reads = tracker.found
    return Execution(
        outputs=memory.outputs(),
        unstored=_unstored(graph, ready),
        high_water_bytes=memory.high_water_bytes,
        stale_reads=stale_reads,
        stale_writes=stale_writes,
        unwritten_reads=unwritten_reads,
        tracked=tracked,
    )


def _run(ids: IntArray, plans: Plans, memory: Memory, tracker: Tracker, sender_of: Mapping[int, int]) -> None:
    of_storage, storage_of, byte_start = memory.of_storage, plans.storage, plans.byte_start
    in_flight: dict[int, Array | None] = {}
    for node in ids.tolist():
        tracker.before(node)
        plan = plans.plan(node)
        if not plan.is_idle:
            row = plans.access_start[node]
            operands: list[Any] = []
            for view in plan.reads:
                operands.append(view.read(of_storage[storage_of[row]], byte_start[row]))
                row += 1
            if plan.is_send:
                in_flight[node] = operands[0] if operands else None  # a signal has no bytes
            else:
                if plan.is_receive:
                    operands.append(in_flight.pop(sender_of[node]))
                try:
                    result = plan.compute(operands)
                except IndexTileError as error:
                    raise plans.blamed(error, node) from None
                for view in plan.writes:
                    view.write(of_storage[storage_of[row]], byte_start[row], result)
                    row += 1
        tracker.after(node, plan)


def _unstored(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Unstored]:
    return {each.name: each for each in find_unstored(graph) if each.name not in inputs}


def _refuse_bounds_faults(graph: Graph) -> None:
    if not graph.bounds_faults:
        return
    first = graph.bounds_faults[0]
    node, tensor = Node(graph, first.node), graph.storage(first.storage)
    more = f" (and {len(graph.bounds_faults) - 1} more)" if len(graph.bounds_faults) > 1 else ""
    error = ExecutionError(
        f"%{node.id} {node.op} leaves tensor {tensor.name!r} of shape {tensor.layout.shape}: "
        f"it asks for {list(first.lower)} to {list(first.upper)}{more}",
        help="keep the region inside its tensor, or use load(pad=...) and store(clip=True) at ragged edges",
    )
    raise error.at(node.location)


def _refuse_overflow(graph: Graph) -> None:
    over = np.flatnonzero(graph.overflows)
    if not len(over):
        return
    first = graph.storage(int(over[0]))
    called = graph.target.called(int(graph.storages.memory[over[0]]))
    error = ExecutionError(
        f"{called} of rank {first.rank} overflows: {first} takes {first.held_bytes:,} bytes at {first.address:,} "
        f"of {first.memory.bytes:,} ({len(over)} allocations pass the budget)",
        help="kernscope lint says what holds the bytes (KS101); free them with tl.scratch_scope()",
    )
    raise error.at(first.location, "allocated")


def _pair_messages(graph: Graph) -> dict[int, int]:
    """For each receive the send whose message it takes: the i-th of a channel takes the i-th, each side counted in its
    own program order. Each has one."""
    return {recv: send for sends, recvs in channel_ends(graph) for send, recv in zip(sends, recvs, strict=True)}
