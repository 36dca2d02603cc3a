"""Local search on the critical chain of a schedule: nodes move along their lane to where they hold nobody up.

Every lane is a sequence of nodes; with the edges, the sequences make a graph whose longest path is the makespan. Only
moves on that path can shorten it: within a run of nodes that follow each other on one lane, one is moved right behind
the last or right before the first, or the first or last one into the run (Balas and Vazacopoulos 1998, the moves called
N6). The best move by an estimate from heads and tails is made, even where it lengthens the schedule, and may not be
undone for a while (tabu search: Taillard 1994; Nowicki and Smutnicki 1996). After a time without a gain the search
starts anew from the best order found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.tables import IntArray
from .compiling import run_loop
from .dag import Dag
from .lanes import assign_lanes
from .list_scheduling import left_shifted

__all__ = ["search_critical_chain"]

#: By pairs of nodes, hashed: a collision forbids a move that need not be forbidden, for a while.
_TABU_SLOTS = 1 << 16


def search_critical_chain(dag: Dag, start: IntArray, *, visits: int, enough_ps: int, seed: int = 0) -> IntArray:
    """Start times no worse than ``start`` (which satisfy the problem), left-shifted, int64 ``(n,)``.

    ``visits``: how many visits of nodes and edges the search is worth; it makes as many moves as these allow, and none
    if they allow less than ten. Stops at a makespan of ``enough_ps``. Deterministic for a ``seed``.
    """
    n = len(dag)
    # A move costs something however small the graph is, and a small graph is searched through before long.
    moves = min(visits // max(n + len(dag.source), 300), 300 * n)
    if moves < 10:
        return start
    place = np.empty(n, dtype=np.int64)
    place[dag.order] = np.arange(n)
    order = np.lexsort((place, start + dag.duration_ps, start))
    first_lane = np.cumsum(dag.channels) - dag.channels
    on_engine = dag.engine >= 0
    lane = np.full(n, -1, dtype=np.int64)
    lane[on_engine] = first_lane[dag.engine[on_engine]] + assign_lanes(dag, start)[on_engine]
    found = run_loop(
        _tabu_pass,
        moves * (n + len(dag.source)) // 20,
        np.zeros(n, dtype=np.int64),
        order,
        lane,
        dag.duration_ps,
        dag.release_ps,
        dag.pred_start,
        dag.source,
        *dag.successors,
        int(dag.channels.sum()),
        moves,
        enough_ps,
        _TABU_SLOTS,
        seed,
    )
    return left_shifted(dag, found)


def _tabu_pass(
    best_head: Any,
    order: Any,
    lane: Any,
    duration: Any,
    release: Any,
    pred_start: Any,
    source: Any,
    succ_start: Any,
    succ: Any,
    lanes: int,
    moves: int,
    enough: int,
    slots: int,
    seed: int,
) -> Any:
    """The loop. ``order``: topological, lanes' sequences included. Returns the starts of the best order found."""
    n = len(order)
    place = [0 for _ in range(n)]
    before = [-1 for _ in range(n)]  # on the lane
    behind = [-1 for _ in range(n)]
    last_on = [-1 for _ in range(lanes + 1)]
    for at in range(n):
        node = order[at]
        place[node] = at
        if lane[node] >= 0:
            other = last_on[lane[node]]
            before[node] = other
            if other >= 0:
                behind[other] = node
            last_on[lane[node]] = node
    head = [0 for _ in range(n)]
    tail = [0 for _ in range(n)]  # the node's duration included
    best_order = [order[at] for at in range(n)]
    best_before = [before[at] for at in range(n)]
    best_behind = [behind[at] for at in range(n)]
    forbidden = [0 for _ in range(slots)]
    path = [0 for _ in range(n)]
    marked = [-1 for _ in range(n)]
    kept = [0 for _ in range(n)]
    run = [0 for _ in range(n)]
    best = -1
    idle = 0
    patience = 1500
    chance = seed + 1
    shake = 0
    head_from = 0
    tail_from = n - 1
    for step in range(1, moves + 1):
        # --- heads and tails, from where the order has changed
        for at in range(head_from, n):
            node = order[at]
            earliest = release[node]
            other = before[node]
            if other >= 0 and head[other] + duration[other] > earliest:
                earliest = head[other] + duration[other]
            for arc in range(pred_start[node], pred_start[node + 1]):
                other = source[arc]
                if head[other] + duration[other] > earliest:
                    earliest = head[other] + duration[other]
            head[node] = earliest
        for at in range(tail_from, -1, -1):
            node = order[at]
            longest = 0
            other = behind[node]
            if other >= 0:
                longest = tail[other]
            for arc in range(succ_start[node], succ_start[node + 1]):
                if tail[succ[arc]] > longest:
                    longest = tail[succ[arc]]
            tail[node] = longest + duration[node]
        makespan = 0
        last = -1
        for node in range(n):
            if head[node] + duration[node] > makespan:
                makespan = head[node] + duration[node]
                last = node
        if best < 0 or makespan < best:
            best = makespan
            idle = 0
            for node in range(n):
                best_head[node] = head[node]
                best_order[node] = order[node]
                best_before[node] = before[node]
                best_behind[node] = behind[node]
        else:
            idle += 1
        if best <= enough or last < 0:
            break
        head_from = n
        tail_from = -1
        if idle >= patience:
            # Anew from the best order, by some moves at random; what was forbidden is forgotten.
            idle = 0
            for node in range(n):
                order[node] = best_order[node]
                before[node] = best_before[node]
                behind[node] = best_behind[node]
                place[order[node]] = node
            for slot in range(slots):
                forbidden[slot] = 0
            head_from = 0
            tail_from = n - 1
            chance = (chance * 1103515245 + 12345) & 0x7FFFFFFF
            shake = 4 + (chance >> 8) % 12
            continue
        # --- a critical chain, from its end
        length = 0
        node = last
        while node >= 0:
            path[length] = node
            length += 1
            chosen = -1
            ties = 0
            other = before[node]
            if other >= 0 and head[other] + duration[other] == head[node]:
                chosen = other
                ties = 1
            for arc in range(pred_start[node], pred_start[node + 1]):
                other = source[arc]
                if other != chosen and head[other] + duration[other] == head[node]:
                    ties += 1
                    if ties == 1:
                        chosen = other
                    else:
                        chance = (chance * 1103515245 + 12345) & 0x7FFFFFFF
                        if (chance >> 8) % ties == 0:
                            chosen = other
            node = chosen
        # --- the best move within its runs
        move_node = -1
        move_at = -1
        move_back = False
        least = -1
        spare_node = -1
        spare_at = -1
        spare_back = False
        spares = 0
        stop = length - 1
        while stop > 0:
            # A run: path[stop], path[stop - 1], ..., path[stop - size + 1] follow each other on a lane.
            size = 1
            while size <= stop and before[path[stop - size]] == path[stop - size + 1]:
                size += 1
            if size > 1:
                for at in range(size):
                    run[at] = path[stop - at]
                reach = min(size - 1, 10)
                # Numbered: 0.. a node behind the last, a node before the first, the first into the run, the last.
                for number in range(4 * reach):
                    kind = number // reach
                    away = number % reach + 1
                    if size == 2 and kind > 0:
                        break
                    if kind >= 2 and away == size - 1:
                        continue
                    if kind == 0:
                        low = size - 1 - away
                        high = size - 1
                        back = False
                    elif kind == 1:
                        low = 0
                        high = away
                        back = True
                    elif kind == 2:
                        low = 0
                        high = away
                        back = False
                    else:
                        low = size - 1 - away
                        high = size - 1
                        back = True
                    # Estimate: heads and tails of what is between, in the new sequence (Taillard 1994).
                    moved = run[high] if back else run[low]
                    shift = -1 if back else 1
                    allowed = True
                    outer = before[run[low]]
                    end = 0
                    if outer >= 0:
                        end = head[outer] + duration[outer]
                    for index in range(low, high + 1):
                        # The new sequence: low + 1 .. high, low; or high, low .. high - 1.
                        at = index + shift
                        if at < low or at > high:
                            at = high if back else low
                        node = run[at]
                        earliest = max(release[node], end)
                        for arc in range(pred_start[node], pred_start[node + 1]):
                            other = source[arc]
                            if head[other] + duration[other] > earliest:
                                earliest = head[other] + duration[other]
                        kept[index] = earliest
                        end = earliest + duration[node]
                        if node != moved:
                            pair = (moved * 7919 + node * 2) if back else (node * 7919 + moved * 2)
                            if forbidden[pair % slots] >= step:
                                allowed = False
                    outer = behind[run[high]]
                    after = 0
                    if outer >= 0:
                        after = tail[outer]
                    estimate = 0
                    for index in range(high, low - 1, -1):
                        at = index + shift
                        if at < low or at > high:
                            at = high if back else low
                        node = run[at]
                        longest = after
                        for arc in range(succ_start[node], succ_start[node + 1]):
                            if tail[succ[arc]] > longest:
                                longest = tail[succ[arc]]
                        after = longest + duration[node]
                        if kept[index] + after > estimate:
                            estimate = kept[index] + after
                    if shake == 0 and (allowed or estimate < best):
                        if least < 0 or estimate < least:
                            least = estimate
                            move_node = moved
                            move_at = run[low] if back else run[high]
                            move_back = back
                    else:
                        spares += 1
                        chance = (chance * 1103515245 + 12345) & 0x7FFFFFFF
                        if (chance >> 8) % spares == 0:
                            spare_node = moved
                            spare_at = run[low] if back else run[high]
                            spare_back = back
            stop -= size
        if move_node < 0:
            if spare_node < 0:
                # The chain waits for no lane: it is as long as a path of edges, and no order is shorter.
                break
            move_node = spare_node
            move_at = spare_at
            move_back = spare_back
        # --- make the move, unless it closes a cycle
        shake = max(shake - 1, 0)
        chance = (chance * 1103515245 + 12345) & 0x7FFFFFFF
        tenure = 8 + (chance >> 8) % 8
        node = move_node
        if before[node] >= 0:
            behind[before[node]] = behind[node]
        if behind[node] >= 0:
            before[behind[node]] = before[node]
        old_before = before[node]
        old_behind = behind[node]
        if move_back:
            before[node] = before[move_at]
            behind[node] = move_at
        else:
            before[node] = move_at
            behind[node] = behind[move_at]
        if before[node] >= 0:
            behind[before[node]] = node
        if behind[node] >= 0:
            before[behind[node]] = node
        low = min(place[node], place[move_at])
        high = max(place[node], place[move_at])
        # Of the stretch of the order between the two: what must go along with the node.
        marked[node] = step
        if move_back:
            for at in range(high - 1, low - 1, -1):
                other = order[at]
                if behind[other] >= 0 and marked[behind[other]] == step and behind[other] != move_at:
                    marked[other] = step
                for arc in range(succ_start[other], succ_start[other + 1]):
                    if marked[succ[arc]] == step:
                        marked[other] = step
                        break
        else:
            for at in range(low + 1, high + 1):
                other = order[at]
                if before[other] >= 0 and marked[before[other]] == step and before[other] != move_at:
                    marked[other] = step
                for arc in range(pred_start[other], pred_start[other + 1]):
                    if marked[source[arc]] == step:
                        marked[other] = step
                        break
        closes = marked[move_at] == step
        # What the node has passed stays in front of it, or behind it, for a while; so does what it could not pass.
        passed = old_before if move_back else old_behind
        while passed >= 0:
            pair = (passed * 7919 + node * 2) if move_back else (node * 7919 + passed * 2)
            if closes:
                pair = (node * 7919 + passed * 2) if move_back else (passed * 7919 + node * 2)
            forbidden[pair % slots] = step + tenure
            if passed == move_at:
                break
            passed = before[passed] if move_back else behind[passed]
        if closes:
            if before[node] >= 0:
                behind[before[node]] = behind[node]
            if behind[node] >= 0:
                before[behind[node]] = before[node]
            before[node] = old_before
            behind[node] = old_behind
            if old_before >= 0:
                behind[old_before] = node
            if old_behind >= 0:
                before[old_behind] = node
            continue
        count = 0
        for at in range(low, high + 1):
            if (marked[order[at]] == step) == move_back:
                kept[count] = order[at]
                count += 1
        for at in range(low, high + 1):
            if (marked[order[at]] == step) != move_back:
                kept[count] = order[at]
                count += 1
        for at in range(count):
            order[low + at] = kept[at]
            place[kept[at]] = low + at
        head_from = low
        tail_from = high
    return best_head
