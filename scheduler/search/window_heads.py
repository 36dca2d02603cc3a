"""Heads raised by local windows: one node after another, a start is tried and refuted by what comes right before it.

In the order of heads, for each chosen node: take its last ancestors, as many as its window is wide. "The node starts at
T or before" gives each of them a window of time, from its head up to T less the longest path from its end to the node's
start. Edges and engines of one lane narrow these: of two nodes on such an engine one comes first, and where one of them
cannot, it starts after the other, and after all others of which the same is known (detectable precedences: Vilim 2004).
Where a window comes out too short, the node starts after T in every schedule. The largest such T that is found
(doubling, then bisection) and one step more is the node's head from then on. Tails are the heads of the reversed
problem. Destructive bounds are Klein and Scholl's (1999); here one works on each node, and on its surroundings alone.

Sound, by induction over the order: a head bounds its node's start from below in every schedule. Take a schedule in
which the node starts at T or before. Its start times of the ancestors taken lie in their windows, respect the edges
among them and let no two of one lane overlap; narrowing never removes such times, so that it never finds a
contradiction. Other nodes, other engines and edges from outside are left out, which only adds schedules. Nothing is
assumed of an order of tiles, of periods, or of ranks that do the same.

A window that was met before (the same durations, engines, edges and paths, heads in the same distance) is not solved
again: the graph of a loop costs as much as a few of its rounds.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["raised_heads"]

#: How often edges and engines narrow the windows before a start counts as possible: chosen by hand.
_ROUNDS = 4
_HASHED_BELOW = (1 << 31) - 1


def raised_heads(dag: Dag, head: IntArray, width: int, budget: int, step: int = 1) -> IntArray:
    """Heads no lower than ``head`` (which bound every start, longest paths included), int64 ``(n,)``.

    ``width``: how many ancestors a window holds. ``budget``: how many steps of narrowing are made at most; what is then
    left keeps what edges make of its head. ``step``: how exactly a head is looked for.
    """
    order = np.lexsort((inverse_permutation(dag.order), head))
    return run_loop(
        _window_pass,
        len(dag) * width,  # a node of a window takes what one does in other loops
        head.copy(),
        order,
        inverse_permutation(order),
        dag.duration_ps,
        one_lane_engine(dag),
        dag.pred_start,
        dag.source,
        np.where(_changes_engine(dag), width, 0),
        width,
        budget,
        step,
    )


def one_lane_engine(dag: Dag) -> IntArray:
    """The engine of each node that takes time on one of one lane, else -1."""
    if not len(dag.channels):
        return np.full(len(dag), -1, dtype=np.int64)
    alone = (dag.engine >= 0) & (dag.duration_ps > 0) & (dag.channels[dag.engine] == 1)
    return np.where(alone, dag.engine, -1)


def _changes_engine(dag: Dag) -> IntArray:
    """Whether a node is on an engine and waits for one that is not on it: where heads are worth a look."""
    waits = np.zeros(len(dag), dtype=np.bool_)
    on = dag.engine[dag.target]
    waits[dag.target[(on >= 0) & (on != dag.engine[dag.source])]] = True
    return waits


def _window_pass(
    head: Any,
    order: Any,
    place: Any,
    duration: Any,
    engine: Any,
    pred_start: Any,
    source: Any,
    width: Any,
    widest: int,
    budget: int,
    step: int,
) -> Any:
    """The loop: ``head`` comes in as what is known."""
    n = len(order)
    # By node, of the one at hand: whether it was met on the way back, its path to there, its number in the window.
    seen = [-1 for _ in range(n)]
    path = [0 for _ in range(n)]
    taken = [-1 for _ in range(n)]
    number = [0 for _ in range(n)]
    # By number in the window: the node, the engine's number there, and what narrowing works on.
    node_of = [0 for _ in range(widest)]
    engine_of = [0 for _ in range(widest)]
    takes = [0 for _ in range(widest)]
    arc_start = [0 for _ in range(widest + 1)]
    low = [0 for _ in range(widest)]
    high = [0 for _ in range(widest)]
    members = [0 for _ in range(widest)]
    member_start = [0 for _ in range(widest + 1)]
    room = [[0 for _ in range(widest)] for _ in range(5)]
    # Windows met: where the description of one begins, by a hash of it; descriptions, each with its outcome at the end.
    known = {-1: 0}
    told = [0 for _ in range(0)]
    spent = [0]
    for at in range(n):
        node = order[at]
        earliest = head[node]
        for arc in range(pred_start[node], pred_start[node + 1]):
            end = head[source[arc]] + duration[source[arc]]
            if end > earliest:
                earliest = end
        head[node] = earliest
        if width[node] == 0 or spent[0] > budget:
            continue
        count = _take_window(
            node, width[node], order, place, duration, pred_start, source, seen, path, taken, number, node_of
        )
        if count < 2:
            continue
        arcs = [0 for _ in range(0)]
        kinds = _number_engines(count, node_of, engine, engine_of)
        for here in range(count):
            takes[here] = duration[node_of[here]]
            for arc in range(pred_start[node_of[here]], pred_start[node_of[here] + 1]):
                if taken[source[arc]] == node:
                    arcs.append(number[source[arc]])
            arc_start[here + 1] = len(arcs)
        window = [count]
        code = count
        for here in range(count):
            window.append(takes[here])
            window.append(engine_of[here])
            window.append(head[node_of[here]] - earliest)
            window.append(path[node_of[here]])
            window.append(arc_start[here + 1])
        for other in arcs:
            window.append(other)
        for value in window:
            code = (code * 1_000_003 + value) % _HASHED_BELOW
        spent[0] += len(window) + len(arcs)
        size = len(window)
        begin = known.get(code, -1)
        if begin >= 0 and _is_told(told, begin, window):
            head[node] = earliest + told[begin + size]
            continue
        _group_engines(count, kinds, engine_of, members, member_start)
        # The largest start that is refuted, and one that is not.
        refuted = earliest - 1
        possible = earliest
        stride = step
        while True:
            for here in range(count):
                low[here] = head[node_of[here]]
                high[here] = possible - path[node_of[here]]
            if not _is_refuted(count, kinds, takes, arc_start, arcs, member_start, members, low, high, room, spent):
                break
            refuted = possible
            possible += stride
            stride *= 2
        while refuted >= earliest and possible - refuted > step:
            middle = refuted + (possible - refuted) // 2
            for here in range(count):
                low[here] = head[node_of[here]]
                high[here] = middle - path[node_of[here]]
            if _is_refuted(count, kinds, takes, arc_start, arcs, member_start, members, low, high, room, spent):
                refuted = middle
            else:
                possible = middle
        if begin < 0:
            known[code] = len(told)
            for value in window:
                told.append(value)
            told.append(refuted + 1 - earliest)
        head[node] = refuted + 1
    return head


def _take_window(
    node: int,
    width: int,
    order: Any,
    place: Any,
    duration: Any,
    pred_start: Any,
    source: Any,
    seen: Any,
    path: Any,
    taken: Any,
    number: Any,
    node_of: Any,
) -> int:
    """Fills in the last ancestors in the order of heads, and the longest paths from their ends to the node; how many
    there are."""
    waiting = [0 for _ in range(0)]
    for arc in range(pred_start[node], pred_start[node + 1]):
        before = source[arc]
        seen[before] = node
        path[before] = 0
        heappush(waiting, -place[before])
    count = 0
    while len(waiting) > 0 and count < width:
        before = order[-heappop(waiting)]
        node_of[count] = before
        taken[before] = node
        count += 1
        through = path[before] + duration[before]
        for arc in range(pred_start[before], pred_start[before + 1]):
            further = source[arc]
            if seen[further] != node:
                seen[further] = node
                path[further] = through
                heappush(waiting, -place[further])
            elif through > path[further]:
                path[further] = through
    for here in range(count // 2):
        other = node_of[here]
        node_of[here] = node_of[count - 1 - here]
        node_of[count - 1 - here] = other
    for here in range(count):
        number[node_of[here]] = here
    return count


def _number_engines(count: int, node_of: Any, engine: Any, engine_of: Any) -> int:
    """Fills in engines by number, in the order in which they are met, -1 for none; how many there are."""
    kinds = 0
    for here in range(count):
        engine_of[here] = -1
        on = engine[node_of[here]]
        if on < 0:
            continue
        for other in range(here):
            if engine[node_of[other]] == on:
                engine_of[here] = engine_of[other]
                break
        if engine_of[here] < 0:
            engine_of[here] = kinds
            kinds += 1
    return kinds


def _group_engines(count: int, kinds: int, engine_of: Any, members: Any, member_start: Any) -> None:
    """Fills in the nodes of each engine, one engine after another."""
    filled = 0
    for kind in range(kinds):
        member_start[kind] = filled
        for here in range(count):
            if engine_of[here] == kind:
                members[filled] = here
                filled += 1
    member_start[kinds] = filled


def _is_told(told: Any, begin: int, window: Any) -> bool:
    """Whether the description that begins there is this window's. (One of another window that is shorter does not run
    on into the next one's by chance: the count comes first, and the arcs' number is in it.)"""
    if begin + len(window) >= len(told):
        return False
    for at in range(len(window)):  # noqa: SIM110 - compiled code has no all()
        if told[begin + at] != window[at]:
            return False
    return True


def _is_refuted(
    count: int,
    kinds: int,
    takes: Any,
    arc_start: Any,
    arcs: Any,
    member_start: Any,
    members: Any,
    low: Any,
    high: Any,
    room: Any,
    spent: Any,
) -> bool:
    """Narrows the windows from ``low`` (the earliest start) to ``high`` (the latest end); whether one is too short."""
    head, end, begin, after, row = room[0], room[1], room[2], room[3], room[4]
    for _ in range(_ROUNDS):
        spent[0] += 2 * (count + len(arcs))
        for here in range(count):
            for arc in range(arc_start[here], arc_start[here + 1]):
                other = low[arcs[arc]] + takes[arcs[arc]]
                if other > low[here]:
                    low[here] = other
        for here in range(count - 1, -1, -1):
            latest = high[here] - takes[here]
            if latest < low[here]:
                return True
            for arc in range(arc_start[here], arc_start[here + 1]):
                if high[arcs[arc]] > latest:
                    high[arcs[arc]] = latest
        changed = False
        for kind in range(kinds):
            first = member_start[kind]
            size = member_start[kind + 1] - first
            if size < 2:
                continue
            spent[0] += 2 * size * size
            # Forwards, then with time running backwards.
            for back in range(2):
                for at in range(size):
                    here = members[first + at]
                    head[at] = -high[here] if back == 1 else low[here]
                    end[at] = head[at] + takes[here]
                    begin[at] = (-low[here] if back == 1 else high[here]) - takes[here]
                    row[at] = at
                if not _fill_after(size, head, end, begin, after, row):
                    return True
                for at in range(size):
                    here = members[first + at]
                    if back == 0 and after[at] > low[here]:
                        low[here] = after[at]
                        changed = True
                    if back == 1 and -after[at] < high[here]:
                        high[here] = -after[at]
                        changed = True
        if not changed:
            return False
    return False


def _fill_after(size: int, head: Any, end: Any, begin: Any, after: Any, row: Any) -> bool:
    """Fills in when each node of one engine may start at the earliest, after all that it cannot come before; false
    where of two nodes none can come first. ``head``, ``end``: earliest start and end, ``begin``: latest start."""
    for at in range(1, size):
        moved = row[at]
        to = at
        while to > 0 and head[row[to - 1]] > head[moved]:
            row[to] = row[to - 1]
            to -= 1
        row[to] = moved
    for at in range(size):
        earliest = head[at]
        until = earliest
        met = False
        for place in range(size):
            other = row[place]
            if end[at] > begin[other] and other != at:
                if end[other] > begin[at]:
                    return False
                if not met or head[other] > until:
                    until = head[other]
                met = True
                until += end[other] - head[other]
        after[at] = until if met and until > earliest else earliest
    return True
