"""What a timeline counts over a schedule's time: scratch held and used by rank, and messages in flight by channel."""

from __future__ import annotations

import heapq

import attrs
import numpy as np

from ...ir.forms.text import quote
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray
from ...scheduler.result.schedule import Schedule

__all__ = ["Counter", "counters_of"]


@attrs.frozen(eq=False)
class Counter:
    """A step function of time: from ``at_ps[i]`` on it is ``value[i]``. Instants ascend strictly, neighbouring values
    differ; before the first instant it is 0. ``rank`` is whose counter it is (of a channel: the sender), ``unit``
    ``"bytes"`` or ``"messages"``."""

    rank: int
    name: str
    unit: str
    at_ps: IntArray
    value: IntArray


def counters_of(schedule: Schedule) -> tuple[Counter, ...]:
    """The counters of a schedule, by rank, in the order in which they are shown.

    - ``scratch cursor`` (with several memories one for each, under its name): the end of the highest allocation held,
      in bytes. Over a schedule's time an allocation is held from the start of its first access until the last node of
      its scope (or whatever uses it later) has ended; without scopes, while it is live. At its largest it is the rank's
      peak, if the highest allocation is accessed at all.
    - ``scratch live``: the rounded bytes of the allocations between the start of their first and the end of their last
      access.
    - ``in flight to rank R (direction)``: slots of a channel in use: from the start of a send until its receive has
      ended; never more than the target's slots.
    """
    held, live = _scratch(schedule)
    channels = _channels(schedule)
    by_rank: list[Counter] = []
    for rank in range(schedule.graph.ranks):
        by_rank += [counter for counter in (*held, *live, *channels) if counter.rank == rank]
    return tuple(by_rank)


def _scratch(schedule: Schedule) -> tuple[list[Counter], list[Counter]]:
    graph = schedule.graph
    accesses, storages = graph.accesses, graph.storages
    of_scratch = np.flatnonzero(graph.in_scratch[accesses.storage])
    storage, node = accesses.storage[of_scratch], accesses.node[of_scratch]
    never = np.iinfo(np.int64).max
    first = np.full(len(storages), never, dtype=np.int64)
    last = np.zeros(len(storages), dtype=np.int64)
    np.minimum.at(first, storage, schedule.start_ps[node])
    np.maximum.at(last, storage, schedule.end_ps[node])
    used = np.flatnonzero((first < never) & graph.in_scratch)
    over = np.append(_scope_end_ps(schedule), 0)[storages.scope[used]]  # what has no scope is held while it is live
    size = graph.held_bytes[used]
    top = storages.address[used] + size
    held, live = [], []
    for rank in range(graph.ranks):
        for place in graph.target.scratch_memories:
            mine = np.flatnonzero((storages.rank[used] == rank) & (storages.memory[used] == place))
            rows, name = used[mine], graph.target.called(place)
            begin, end = first[rows], last[rows]
            steps = _highest(begin, np.maximum(end, over[mine]), top[mine])
            held.append(Counter(rank, f"{name} cursor", "bytes", *steps))
            live.append(Counter(rank, f"{name} live", "bytes", *_sum(begin, end, size[mine])))
    return held, live


def _scope_end_ps(schedule: Schedule) -> IntArray:
    """By scope, when the last node in it, or in a scope within it, has ended."""
    graph = schedule.graph
    end = np.zeros(len(graph.scopes), dtype=np.int64)
    inside = np.flatnonzero(graph.nodes.scope >= 0)
    np.maximum.at(end, graph.nodes.scope[inside], schedule.end_ps[inside])
    latest: list[int] = end.tolist()
    # A scope opens after its parent does: from the last one back, every scope is final when it is handed on.
    for scope, parent in reversed(list(enumerate(graph.scopes.parent.tolist()))):
        if parent >= 0 and latest[scope] > latest[parent]:
            latest[parent] = latest[scope]
    return np.array(latest, dtype=np.int64)


def _sum(begin: IntArray, end: IntArray, amount: IntArray) -> tuple[IntArray, IntArray]:
    """The sum of the amounts whose interval [begin, end) holds an instant, as a step function."""
    at, place = np.unique(np.concatenate((begin, end)), return_inverse=True)
    change = np.zeros(len(at), dtype=np.int64)
    np.add.at(change, place, np.concatenate((amount, -amount)))
    return _steps(at, np.cumsum(change))


def _highest(begin: IntArray, end: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """The largest value whose interval [begin, end) holds an instant (0: none does), as a step function."""
    order = np.lexsort((value, begin))
    waiting = list(zip(*(column[order].tolist() for column in (begin, end, value)), strict=True))
    at = np.unique(np.concatenate((begin, end)))
    heap: list[tuple[int, int]] = []  # the largest value first; what has ended is dropped once it comes up
    values, next_one = [], 0
    for now in at.tolist():
        while next_one < len(waiting) and waiting[next_one][0] <= now:
            _, until, height = waiting[next_one]
            heapq.heappush(heap, (-height, until))
            next_one += 1
        while heap and heap[0][1] <= now:
            heapq.heappop(heap)
        values.append(-heap[0][0] if heap else 0)
    return _steps(at, np.array(values, dtype=np.int64))


def _steps(at: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """Without the instants at which nothing changes."""
    changed = np.diff(value, prepend=0) != 0
    return at[changed], value[changed]


def _channels(schedule: Schedule) -> list[Counter]:
    graph = schedule.graph
    nodes, channels = graph.nodes, graph.channels
    receives = OPERATIONS.receives[nodes.op]
    sends = OPERATIONS.sends[nodes.op]
    found = []
    for row in range(len(channels)):
        of_channel = nodes.channel == row
        taken = schedule.start_ps[sends & of_channel]
        freed = schedule.end_ps[receives & of_channel]
        at, place = np.unique(np.concatenate((taken, freed)), return_inverse=True)
        change = np.zeros(len(at), dtype=np.int64)
        np.add.at(change, place, np.repeat((1, -1), (len(taken), len(freed))))
        direction = quote(graph.target.directions[channels.direction[row]])
        name = f"in flight to rank {channels.receiver[row]} ({direction})"
        found.append(Counter(int(channels.sender[row]), name, "messages", *_steps(at, np.cumsum(change))))
    return found
