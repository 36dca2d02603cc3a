"""Active schedules: an engine may wait for a node that is more urgent than those it could start at once.

Giffler and Thompson (1960): of all nodes that can start, take the one that could end first; on its engine, any node
that can start before that end may come first without leaving a hole that another would fit into. How long an engine may
wait is a parameter (Bierwirth and Mattfeld 1999): a share of the time from the earliest start there to that earliest
end. At 0 none waits, and the schedules are those of :mod:`.list_scheduling`. Where each engine's order is kept, no node
of such a schedule could start earlier: what an engine waits for is the data of the node that it runs next.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np

from ...ir.arrays.compiling import LARGEST_COMPILED, run_loop
from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["WHOLE_WAIT", "active_schedule"]

#: Waits are given in thousandths of the longest that keeps a schedule active.
WHOLE_WAIT = 1000


def active_schedule(dag: Dag, priority: IntArray, wait: int) -> IntArray:
    """Start times, int64 ``(n,)``. ``priority``: larger first; of equal ones what is ready first, then the
    smallest id. ``wait``: how long an engine of one lane may stay idle for a node that comes first, from 0 to
    ``WHOLE_WAIT``; one of several lanes never does. The edges must close no cycle."""
    n = len(dag)
    bits = max(n, len(dag.channels)).bit_length()
    return run_loop(
        _active_pass,
        n,
        np.full(n, -1, dtype=np.int64),
        np.unique(-priority, return_inverse=True)[1],
        dag.release_ps.copy(),
        dag.duration_ps,
        dag.engine,
        dag.channels,
        *dag.successors,
        np.bincount(dag.target, minlength=n),
        wait,
        bits,
        exact=dag.horizon_ps <= LARGEST_COMPILED >> max(bits, 11),
    )


def _active_pass(
    start: Any,
    place: Any,
    earliest: Any,
    duration: Any,
    engine: Any,
    channels: Any,
    succ_start: Any,
    succ: Any,
    missing: Any,
    wait: int,
    bits: int,
) -> Any:
    """The loop: ``earliest`` comes in as the releases. Engines are taken in the order of the earliest ends of what can
    run next on them. That order only goes up, and what a node's end makes ready is ready no earlier than that."""
    n = len(start)
    engines = len(channels)
    mask = (1 << bits) - 1
    # By engine: when its lanes fall free, as a heap; the nodes that could start by then, by priority and by duration;
    # those that come later, by when they are ready and by when they could end. What stands in two heaps is left in the
    # second until it comes first there.
    free = [[0 for _ in range(channels[on])] for on in range(engines)]
    by_priority = [[0 for _ in range(0)] for _ in range(engines)]
    by_duration = [[0 for _ in range(0)] for _ in range(engines)]
    by_ready = [[0 for _ in range(0)] for _ in range(engines)]
    by_end = [[0 for _ in range(0)] for _ in range(engines)]
    # By engine: when it last started something; a lane that was free before that has missed its time.
    clock = [0 for _ in range(engines)]
    # The nodes that could start, in the order in which they came.
    came = [0 for _ in range(0)]
    is_here = [False for _ in range(n)]
    # The engines by the earliest end on them: entries that no longer hold are passed over.
    first_end = [-1 for _ in range(engines)]
    agenda = [0 for _ in range(0)]
    arrived = [node for node in range(n) if missing[node] == 0]
    while True:
        # --- what is ready goes to its engine; what needs none has started
        while len(arrived) > 0:
            node = arrived.pop()
            on = engine[node]
            if on >= 0:
                heappush(by_ready[on], (earliest[node] << bits) | node)
                heappush(by_end[on], ((earliest[node] + duration[node]) << bits) | node)
                end = max(earliest[node], free[on][0], clock[on]) + duration[node]
                if first_end[on] < 0 or end < first_end[on]:
                    first_end[on] = end
                    heappush(agenda, (end << bits) | on)
                continue
            start[node] = earliest[node]
            _free_followers(node, earliest[node] + duration[node], earliest, missing, succ_start, succ, arrived)
        # --- the engine on which something could end first
        on = -1
        while len(agenda) > 0 and on < 0:
            entry = heappop(agenda)
            if first_end[entry & mask] == entry >> bits:
                on = entry & mask
        if on < 0:
            return start
        lanes = free[on]
        now = max(lanes[0], clock[on])
        _let_in(on, now, mask, bits, place, duration, by_priority, by_duration, by_ready, came, is_here)
        if len(by_priority[on]) == 0:
            now = by_ready[on][0] >> bits
        clock[on] = now
        until = now
        if channels[on] == 1:
            until += (first_end[on] - now) * wait // 1000
        _let_in(on, until, mask, bits, place, duration, by_priority, by_duration, by_ready, came, is_here)
        node = came[heappop(by_priority[on]) & mask]
        at = max(earliest[node], lanes[0])
        start[node] = at
        heapreplace(lanes, at + duration[node])
        _free_followers(node, at + duration[node], earliest, missing, succ_start, succ, arrived)
        # --- the earliest end on that engine from now on
        now = max(lanes[0], now)
        _let_in(on, now, mask, bits, place, duration, by_priority, by_duration, by_ready, came, is_here)
        shortest = by_duration[on]
        while len(shortest) > 0 and start[shortest[0] & mask] >= 0:
            heappop(shortest)
        later = by_end[on]
        while len(later) > 0 and is_here[later[0] & mask]:
            heappop(later)
        end = -1
        if len(shortest) > 0:
            end = now + (shortest[0] >> bits)
        if len(later) > 0 and (end < 0 or later[0] >> bits < end):
            end = later[0] >> bits
        first_end[on] = end
        if end >= 0:
            heappush(agenda, (end << bits) | on)


def _let_in(
    on: int,
    until: int,
    mask: int,
    bits: int,
    place: Any,
    duration: Any,
    by_priority: Any,
    by_duration: Any,
    by_ready: Any,
    came: Any,
    is_here: Any,
) -> None:
    """Moves the nodes that are ready by then to those that can start."""
    waiting = by_ready[on]
    while len(waiting) > 0 and waiting[0] >> bits <= until:
        node = heappop(waiting) & mask
        is_here[node] = True
        heappush(by_priority[on], (place[node] << bits) | len(came))
        came.append(node)
        heappush(by_duration[on], (duration[node] << bits) | node)


def _free_followers(node: int, end: int, earliest: Any, missing: Any, succ_start: Any, succ: Any, arrived: Any) -> None:
    """Notes the end of a node, and what now waits for nothing more."""
    for arc in range(succ_start[node], succ_start[node + 1]):
        after = succ[arc]
        if end > earliest[after]:
            earliest[after] = end
        missing[after] -= 1
        if missing[after] == 0:
            arrived.append(after)
