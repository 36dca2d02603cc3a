"""The loop of :mod:`.critical_search`, in parts. Each reads and writes columns that it is given, and is compiled with
the loop (:mod:`kernscope.ir.arrays.compiling`)."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["TABU_SLOTS", "Order", "Paths", "Room", "tabu_pass"]

# The numbers, against others in an experiment: 40 published job shops (every other one of abz, ft, la 20 to 39, orb,
# swv, ta 1 to 29 and yn), two seeds, 10 million visits from the longest-path rule. The mean above the best known is
# 2.73 %, with a standard error of 0.28 between shops, so that only differences of half a percent say something. Behind
# each number are others, and what they gave.

#: By pairs of nodes, hashed: a collision forbids a move that need not be forbidden, for a while. 2^12: 2.62 %, 2^20:
#: 2.63 %: collisions do no harm; it is to stay in a cache.
TABU_SLOTS = 1 << 16
#: Moves without a gain before the search starts anew. 500: 3.24 %, 5,000: 2.48 %.
_PATIENCE = 1500
#: How many moves at random it then starts with: at least so many, and up to so many more. 2 + 4: 2.86 %,
#: 12 + 24: 2.80 %.
_LEAST_SHAKEN = 4
_SHAKEN_MORE = 12
#: How far from the ends of a run its nodes are moved, at most. 3: 2.58 %, 30: 2.78 %, with longer steps.
_REACH = 10
#: For how many moves one may not be undone: at least so many, and up to so many more. 4 + 4: 2.67 %, 16 + 16: 3.23 %.
_LEAST_TENURE = 8
_TENURE_MORE = 8


class Order(NamedTuple):
    """Nodes in a row so that every edge goes forward, and the sequences of the lanes: by place, and by node its place
    and the nodes before and behind it on its lane (-1: none)."""

    row: Any
    place: Any
    before: Any
    behind: Any


class Paths(NamedTuple):
    """By node: the longest path to its start, and from its start to the end of all."""

    head: Any
    tail: Any


class Room(NamedTuple):
    """What the parts of one step write to, made once: ``marked`` by node, the others by place in what they hold."""

    chain: Any
    run: Any
    moved: Any
    heads: Any
    marked: Any


def tabu_pass(
    best_head: Any,
    dag: Any,
    order: Any,
    best_order: Any,
    paths: Any,
    room: Any,
    forbidden: Any,
    lane: Any,
    lanes: int,
    moves: int,
    enough: int,
    chance: Any,
) -> Any:
    """The loop. ``order.row``: topological, lanes' sequences included. Returns the starts of the best order found."""
    n = len(order.row)
    # Taken apart here and handed on one by one: compiled code counts references to every field of a tuple that a part
    # is given, which took a quarter of the time of a small problem's step.
    duration, release, _, pred_start, source, succ_start, succ = dag
    row, place, before, behind = order
    head, tail = paths
    chain, run, moved, heads, marked = room
    _link_lanes(order, lane, lanes)
    best = -1
    idle = 0
    shake = 0
    # The stretch of the order that has changed: heads behind its start are to be found anew, tails before its end.
    low = 0
    high = n - 1
    for step in range(1, moves + 1):
        _renew_heads(row, before, duration, release, pred_start, source, head, low)
        _renew_tails(row, behind, duration, succ_start, succ, tail, high)
        last = _last_to_end(duration, head)
        makespan = head[last] + duration[last]
        if best < 0 or makespan < best:
            best = makespan
            idle = 0
            _copy_order(order, best_order)
            for node in range(n):
                best_head[node] = head[node]
        else:
            idle += 1
        if best <= enough or makespan == 0:
            break
        if idle >= _PATIENCE:
            # Anew from the best order, by some moves at random; what was forbidden is forgotten.
            idle = 0
            _copy_order(best_order, order)
            for slot in range(TABU_SLOTS):
                forbidden[slot] = 0
            low = 0
            high = n - 1
            shake = _LEAST_SHAKEN + _draw(chance, _SHAKEN_MORE)
            continue
        length = _critical_chain(before, duration, pred_start, source, head, chain, last, chance)
        # --- the move of the least estimate that is not forbidden, or promises a schedule shorter than the best; where
        # there is none, or to shake the search, any of the others
        node = -1
        to = -1
        back = False
        least = -1
        spare_node = -1
        spare_to = -1
        spare_back = False
        spares = 0
        stop = length - 1
        while stop > 0:
            size = _fill_run(before, chain, stop, run)
            stop -= size
            reach = min(size - 1, _REACH)
            # A node behind the last, a node before the first, the first into the run, the last into it; of two nodes
            # the first of these is all there is.
            for kind in range(4 if size > 2 else 1):
                backwards = kind == 1 or kind == 3
                for away in range(1, reach + 1):
                    if kind >= 2 and away == size - 1:
                        break  # from one end of the run to the other: that was among the first two kinds
                    first = 0 if kind == 1 or kind == 2 else size - 1 - away
                    final = first + away
                    moved_node = run[final] if backwards else run[first]
                    passed = run[first] if backwards else run[final]
                    _fill_moved(run, moved, first, final, backwards)
                    other = before[run[first]]
                    start = head[other] + duration[other] if other >= 0 else 0
                    _fill_heads(heads, moved, first, final, start, duration, release, pred_start, source, head)
                    other = behind[run[final]]
                    rest = tail[other] if other >= 0 else 0
                    estimate = _longest_through(heads, moved, first, final, rest, duration, succ_start, succ, tail)
                    if shake == 0 and (estimate < best or _is_allowed(run, first, final, backwards, forbidden, step)):
                        if least < 0 or estimate < least:
                            least = estimate
                            node = moved_node
                            to = passed
                            back = backwards
                    else:
                        spares += 1
                        if _draw(chance, spares) == 0:
                            spare_node = moved_node
                            spare_to = passed
                            spare_back = backwards
        if least < 0:
            if spare_node < 0:
                # The chain waits for no lane: it is as long as a path of edges, and no order is shorter.
                break
            node = spare_node
            to = spare_to
            back = spare_back
        # --- make it, unless that closes a cycle with edges
        shake = max(shake - 1, 0)
        until = step + _LEAST_TENURE + _draw(chance, _TENURE_MORE)
        old_before = before[node]
        old_behind = behind[node]
        _unlink(before, behind, node)
        if back:
            _link(before, behind, node, before[to], to)
        else:
            _link(before, behind, node, to, behind[to])
        low = min(place[node], place[to])
        high = max(place[node], place[to])
        if back:
            _mark_before(row, behind, succ_start, succ, marked, low, high, node, to, step)
        else:
            _mark_behind(row, before, pred_start, source, marked, low, high, node, to, step)
        closes = marked[to] == step
        if back:
            _forbid_before(before, forbidden, old_before, node, to, closes, until)
        else:
            _forbid_behind(behind, forbidden, old_behind, node, to, closes, until)
        if closes:
            _unlink(before, behind, node)
            _link(before, behind, node, old_before, old_behind)
            low = n
            high = -1
        else:
            _move_marked(row, place, marked, heads, low, high, back, step)
    return best_head


def _draw(chance: Any, sides: int) -> int:
    """A number below ``sides``, at random: the linear congruential generator of the C standard's example (the high
    bits of it)."""
    chance[0] = (chance[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return (chance[0] >> 8) % sides  # type: ignore[no-any-return]


def _link_lanes(order: Any, lane: Any, lanes: int) -> None:
    """Fills places and the lanes' sequences in from the row."""
    last_on = [-1 for _ in range(lanes + 1)]
    for at in range(len(order.row)):
        node = order.row[at]
        order.place[node] = at
        if lane[node] < 0:
            continue
        other = last_on[lane[node]]
        order.before[node] = other
        if other >= 0:
            order.behind[other] = node
        last_on[lane[node]] = node


def _copy_order(order: Any, into: Any) -> None:
    for at in range(len(order.row)):
        into.row[at] = order.row[at]
        into.place[at] = order.place[at]
        into.before[at] = order.before[at]
        into.behind[at] = order.behind[at]


def _renew_heads(
    row: Any, before: Any, duration: Any, release: Any, pred_start: Any, source: Any, head: Any, low: int
) -> None:
    """Heads from a place of the order on."""
    for at in range(low, len(row)):
        node = row[at]
        earliest = release[node]
        other = before[node]
        if other >= 0 and head[other] + duration[other] > earliest:
            earliest = head[other] + duration[other]
        for arc in range(pred_start[node], pred_start[node + 1]):
            other = source[arc]
            if head[other] + duration[other] > earliest:
                earliest = head[other] + duration[other]
        head[node] = earliest


def _renew_tails(row: Any, behind: Any, duration: Any, succ_start: Any, succ: Any, tail: Any, high: int) -> None:
    """Tails from a place of the order back."""
    for at in range(high, -1, -1):
        node = row[at]
        longest = 0
        other = behind[node]
        if other >= 0:
            longest = tail[other]
        for arc in range(succ_start[node], succ_start[node + 1]):
            if tail[succ[arc]] > longest:
                longest = tail[succ[arc]]
        tail[node] = longest + duration[node]


def _last_to_end(duration: Any, head: Any) -> int:
    """The node that ends last, the first of equal ones."""
    last = 0
    makespan = 0
    for node in range(len(head)):
        if head[node] + duration[node] > makespan:
            makespan = head[node] + duration[node]
            last = node
    return last


def _critical_chain(
    before: Any, duration: Any, pred_start: Any, source: Any, head: Any, chain: Any, last: int, chance: Any
) -> int:
    """Fills in a longest path, from its end, and returns how many nodes it has. Of several that a node has waited for
    equally long one is taken at random."""
    length = 0
    node = last
    while node >= 0:
        chain[length] = node
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
                if ties == 1 or _draw(chance, ties) == 0:
                    chosen = other
        node = chosen
    return length


def _fill_run(before: Any, chain: Any, stop: int, run: Any) -> int:
    """Fills in the nodes of the chain from place ``stop`` on that follow each other on a lane; how many there are."""
    run[0] = chain[stop]
    size = 1
    while size <= stop and before[chain[stop - size]] == run[size - 1]:
        run[size] = chain[stop - size]
        size += 1
    return size


def _fill_moved(run: Any, moved: Any, first: int, final: int, back: bool) -> None:
    """Fills in a part of a run with its last node moved first (``back``), or its first last."""
    if back:
        moved[first] = run[final]
        for at in range(first, final):
            moved[at + 1] = run[at]
    else:
        moved[final] = run[first]
        for at in range(first, final):
            moved[at] = run[at + 1]


def _fill_heads(
    heads: Any,
    moved: Any,
    first: int,
    final: int,
    end: int,
    duration: Any,
    release: Any,
    pred_start: Any,
    source: Any,
    head: Any,
) -> None:
    """Fills in the heads of a sequence that is new, after the ``end`` of what is before it on the lane."""
    for at in range(first, final + 1):
        node = moved[at]
        earliest = max(release[node], end)
        for arc in range(pred_start[node], pred_start[node + 1]):
            other = source[arc]
            if head[other] + duration[other] > earliest:
                earliest = head[other] + duration[other]
        heads[at] = earliest
        end = earliest + duration[node]


def _longest_through(
    heads: Any, moved: Any, first: int, final: int, rest: int, duration: Any, succ_start: Any, succ: Any, tail: Any
) -> int:
    """The longest path through one of the nodes of such a sequence, with ``rest`` behind it on the lane: an estimate of
    the makespan, as heads and tails of what is around them may change as well (Taillard 1994)."""
    longest = 0
    for at in range(final, first - 1, -1):
        node = moved[at]
        for arc in range(succ_start[node], succ_start[node + 1]):
            if tail[succ[arc]] > rest:
                rest = tail[succ[arc]]
        rest += duration[node]
        if heads[at] + rest > longest:
            longest = heads[at] + rest
    return longest


def _slot(first: int, second: int) -> int:
    """Where it is noted until when ``first`` may not come before ``second`` on their lane."""
    return (first * 7919 + second * 2) % TABU_SLOTS


def _is_allowed(run: Any, low: int, high: int, back: bool, forbidden: Any, step: int) -> bool:
    """Whether a move puts no two nodes into an order that is forbidden."""
    if back:
        for at in range(low, high):
            if forbidden[_slot(run[high], run[at])] >= step:
                return False
    else:
        for at in range(low + 1, high + 1):
            if forbidden[_slot(run[at], run[low])] >= step:
                return False
    return True


def _unlink(before: Any, behind: Any, node: int) -> None:
    """Takes a node out of its lane's sequence."""
    first = before[node]
    second = behind[node]
    if first >= 0:
        behind[first] = second
    if second >= 0:
        before[second] = first


def _link(before: Any, behind: Any, node: int, first: int, second: int) -> None:
    """Puts a node between two that follow each other (-1: at an end of the sequence)."""
    before[node] = first
    behind[node] = second
    if first >= 0:
        behind[first] = node
    if second >= 0:
        before[second] = node


def _mark_before(
    row: Any, behind: Any, succ_start: Any, succ: Any, marked: Any, low: int, high: int, node: int, to: int, step: int
) -> None:
    """Of a stretch of the order, up to the node: marks what has to come before the node. The new link from the node to
    ``to`` is left out, so that ``to`` is marked only where that link closes a cycle."""
    marked[node] = step
    for at in range(high - 1, low - 1, -1):
        other = row[at]
        if behind[other] >= 0 and marked[behind[other]] == step and behind[other] != to:
            marked[other] = step
        for arc in range(succ_start[other], succ_start[other + 1]):
            if marked[succ[arc]] == step:
                marked[other] = step
                break


def _mark_behind(
    row: Any, before: Any, pred_start: Any, source: Any, marked: Any, low: int, high: int, node: int, to: int, step: int
) -> None:
    """As :func:`_mark_before`, from the node on: what has to come behind it."""
    marked[node] = step
    for at in range(low + 1, high + 1):
        other = row[at]
        if before[other] >= 0 and marked[before[other]] == step and before[other] != to:
            marked[other] = step
        for arc in range(pred_start[other], pred_start[other + 1]):
            if marked[source[arc]] == step:
                marked[other] = step
                break


def _move_marked(row: Any, place: Any, marked: Any, kept: Any, low: int, high: int, first: bool, step: int) -> None:
    """Of a stretch of the order: what is marked comes ``first``, or last; else all stays in its order."""
    count = 0
    for at in range(low, high + 1):
        if (marked[row[at]] == step) == first:
            kept[count] = row[at]
            count += 1
    for at in range(low, high + 1):
        if (marked[row[at]] == step) != first:
            kept[count] = row[at]
            count += 1
    for at in range(count):
        row[low + at] = kept[at]
        place[kept[at]] = low + at


def _forbid_before(before: Any, forbidden: Any, passed: int, node: int, to: int, closes: bool, until: int) -> None:
    """What the node has passed stays behind it for a while; so does the node behind what it could not pass."""
    while passed >= 0:
        forbidden[_slot(node, passed) if closes else _slot(passed, node)] = until
        if passed == to:
            break
        passed = before[passed]


def _forbid_behind(behind: Any, forbidden: Any, passed: int, node: int, to: int, closes: bool, until: int) -> None:
    """As :func:`_forbid_before`, for a move the other way."""
    while passed >= 0:
        forbidden[_slot(passed, node) if closes else _slot(node, passed)] = until
        if passed == to:
            break
        passed = behind[passed]
