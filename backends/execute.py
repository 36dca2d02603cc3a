"""Phase 2: execute a graph on real numbers with numpy, inside one byte array per rank at the traced addresses.

Every legal order gives bit-identical HBM outputs for a kernel without KS201, KS202, KS204 and KS502 findings: an edge
that is missing from the graph shows as a difference, at the latest with poison on.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from ..ir.errors import ExecutionError
from ..ir.graph import Graph, Node
from ..ir.ops import OPERATIONS
from ..ir.tables import IntArray, StorageKind
from .execute_inputs import ready_inputs
from .execute_memory import Memory, memory_limit
from .execute_order import Order, execution_order
from .execute_plan import Plans
from .execute_track import OrderTracker, ProgramTracker, Tracker
from .execute_views import Array

__all__ = ["Execution", "execute"]


@attrs.frozen(eq=False)
class Execution:
    """What came of a run.

    ``outputs`` holds every tensor that is stored to, by name in argument order, in its own shape and dtype.
    ``high_water_bytes`` is, per rank, the highest rounded end of an allocation. ``stale_reads``, ``stale_writes`` and
    ``unwritten_reads`` are sorted ids of the nodes that read or wrote an allocation's bytes when it did not own them
    (any more), or read bytes that were never written through a view of their owner; they are watched for in program
    order with poison on only: ``tracked`` says whether they were.
    """

    outputs: dict[str, Array]
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
    it was traced with, else starts as zero. They are never changed. ``order`` is ``"program"``, a schedule, or the ids
    of all nodes. With ``poison`` rewound scratch is filled with 0xFF bytes, NaN in every float dtype: at the scope's
    exit in program order, else as soon as an allocation's last access has run.

    Raises ``ExecutionError`` for a graph with recorded faults (an overflow, an access out of bounds, a message without
    partner), ``MemoryLimitError`` where the tensors do not fit into memory, ``InputError`` for missing or unfit inputs,
    ``OrderError`` for an order that breaks an edge, and ``DeadlockError`` where program order cannot go on.
    """
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
    memory = Memory(graph, ready_inputs(graph, inputs, ids))
    plans = Plans(graph)
    tracker = Tracker() if not poison else (ProgramTracker if tracked else OrderTracker)(graph, plans, memory)
    with np.errstate(all="ignore"):
        _run(ids, plans, memory, tracker, sender_of)
    stale_reads, stale_writes, unwritten_reads = tracker.found
    return Execution(
        outputs=memory.outputs(),
        high_water_bytes=memory.high_water_bytes,
        stale_reads=stale_reads,
        stale_writes=stale_writes,
        unwritten_reads=unwritten_reads,
        tracked=tracked,
    )


def _run(ids: IntArray, plans: Plans, memory: Memory, tracker: Tracker, sender_of: Mapping[int, int]) -> None:
    of_storage, storage_of, byte_start = memory.of_storage, plans.storage, plans.byte_start
    in_flight: dict[int, Array] = {}
    for node in ids.tolist():
        tracker.before(node)
        plan = plans.plan(node)
        if not plan.is_idle:
            row = plans.access_start[node]
            operands: list[Array] = []
            for view in plan.reads:
                operands.append(view.read(of_storage[storage_of[row]], byte_start[row]))
                row += 1
            if plan.is_send:
                in_flight[node] = operands[0]
            else:
                if plan.is_receive:
                    operands.append(in_flight.pop(sender_of[node]))
                result = plan.compute(operands)
                for view in plan.writes:
                    view.write(of_storage[storage_of[row]], byte_start[row], result)
                    row += 1
        tracker.after(node, plan)


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
    storages = graph.storages
    ends = np.where(storages.kind == StorageKind.SCRATCH, storages.address + graph.held_bytes, 0)
    over = np.flatnonzero(ends > graph.target.scratch_bytes)
    if not len(over):
        return
    first = graph.storage(int(over[0]))
    error = ExecutionError(
        f"scratch of rank {first.rank} overflows: {first} takes {first.held_bytes:,} bytes at {first.address:,} "
        f"of {graph.target.scratch_bytes:,} ({len(over)} allocations pass the budget)",
        help="kernscope lint says what holds the bytes (KS101); free them with tl.scratch_scope()",
    )
    raise error.at(first.location, "allocated")


def _pair_messages(graph: Graph) -> dict[int, int]:
    """For each receive the send whose message it takes: the i-th of a channel takes the i-th, each side counted in its
    own program order."""
    nodes, pairs = graph.nodes, dict[int, int]()
    sends_of: dict[int, list[int]] = {}
    receives_of: dict[int, list[int]] = {}
    send = OPERATIONS.code("send")
    on_channel = np.flatnonzero(nodes.channel >= 0)
    for node, op, channel in zip(
        on_channel.tolist(), nodes.op[on_channel].tolist(), nodes.channel[on_channel].tolist(), strict=True
    ):
        (sends_of if op == send else receives_of).setdefault(channel, []).append(node)
    for channel in range(len(graph.channels)):
        sends, receives = sends_of.get(channel, []), receives_of.get(channel, [])
        for sent, received in zip(sends, receives, strict=False):
            _refuse_mismatch(Node(graph, sent), Node(graph, received))
            pairs[received] = sent
        if len(sends) != len(receives):
            paired = min(len(sends), len(receives))
            raise _unmatched(graph, channel, (sends if len(sends) > paired else receives)[paired:])
    return pairs


def _refuse_mismatch(sent: Node, received: Node) -> None:
    what, into = sent.reads[0].layout, received.writes[0].layout
    if what.shape == into.shape and what.dtype is into.dtype:
        return
    error = ExecutionError(
        f"%{sent.id} sends {what.dtype}{list(what.shape)}, %{received.id} receives {into.dtype}{list(into.shape)}",
        help="give both ends of the message one shape and dtype",
    )
    error.at(sent.location, "sent")
    raise error.at(received.location, "received")


def _unmatched(graph: Graph, channel: int, lonely: list[int]) -> ExecutionError:
    first, channels = Node(graph, lonely[0]), graph.channels
    other = "receive" if first.op == "send" else "send"
    error = ExecutionError(
        f"%{first.id} {first.op} on the channel from rank {channels.sender[channel]} to rank "
        f"{channels.receiver[channel]} has no {other} ({len(lonely)} such)",
        help="every send needs its receive (KS401)",
    )
    error.at(first.location)
    return error
