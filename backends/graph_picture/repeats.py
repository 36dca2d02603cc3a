"""Which parts of a graph repeat: scopes of one content, and stretches of a scope that follow one another unchanged.

A scope's *content* is the sequence of what stands in it: nodes, by operation, source stack, direction and the layouts
they access; scopes inside it, by their own content. A loop, whether its iterations have a scope or not, is a tandem
repeat of that sequence. Repeats are found from the inside outward: a repeat becomes one symbol, which may repeat again,
so that a loop around a loop is one iteration of one iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray

__all__ = ["Alike", "find_alike", "first_of_repeats"]

#: Comparisons of symbols allowed for each symbol of a sequence; what a sequence full of near repeats would take beyond
#: that is not worth a shorter picture.
_EFFORT = 64
#: From so many candidates of one period on the whole sequence is compared at once.
_MANY = 16
# Odd constants of a polynomial hash (Knuth, "The Art of Computer Programming" 3, section 6.4: multiplicative hashing).
_BASE, _SPREAD = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


@attrs.frozen(eq=False)
class Alike:
    """What is drawn for each scope and for each node: the first of those alike. ``scope`` has shape ``(scopes,)``,
    ``node`` shape ``(n,)``; both are idempotent, and hold rows and ids of the graph."""

    scope: IntArray
    node: IntArray


def find_alike(graph: Graph, *, across_ranks: bool = False) -> Alike:
    """The scopes and nodes that repeat within each rank; with ``across_ranks`` ranks of equal content are alike, too.

    Near-linear in nodes and accesses; exact: nothing is compared by its hash.
    """
    scopes = graph.scopes
    content = _Contents(graph)
    place = content.place_of_scope
    parents, ranks = scopes.parent.tolist(), [-1] * len(content.first_of)
    numbers = content.number
    first: list[int] = []
    for scope, parent in enumerate(parents):  # a parent's row lies before its children's
        if parent < 0:
            number = numbers[scope]
            if ranks[number] < 0 or not across_ranks:
                ranks[number] = scope
            first.append(ranks[number])
            continue
        drawn = first[parent]
        at = int(content.first_of[numbers[drawn]][place[scope]])
        first.append(content.scope_at(drawn, at))
    return Alike(np.array(first, dtype=np.int64), content.first_nodes(np.array(first, dtype=np.int64)))


class _Contents:
    """The sequences of all scopes: ``number`` of each scope's content, equal for equal ones; ``first_of`` by such a
    number, for each place of the sequence, the place that is drawn for it; ``place_of_scope``: where each scope stands
    in its parent's sequence."""

    def __init__(self, graph: Graph) -> None:
        scopes = graph.scopes
        opening = np.sort(scopes.enter[scopes.enter >= 0])
        # A scope stands in its parent's sequence where it is opened; its own sequence begins after its marker.
        self._owner = graph.nodes.scope.astype(np.int64)
        self._opened: IntArray = np.full(len(graph), -1, dtype=np.int64)
        self._opened[opening] = graph.nodes.scope[opening]
        self._owner[opening] = scopes.parent[graph.nodes.scope[opening]]
        self._order = np.argsort(self._owner, kind="stable")
        self._start = np.searchsorted(self._owner[self._order], np.arange(len(scopes) + 1))
        self._position = position = inverse_permutation(self._order)
        enters, parents = scopes.enter.tolist(), scopes.parent.tolist()
        starts = self._start.tolist()
        at = position.tolist()
        self.place_of_scope = [
            at[enter] - starts[parent] if parent >= 0 else -1 for enter, parent in zip(enters, parents, strict=True)
        ]
        self._opened_at = self._opened[self._order].tolist()
        self._starts = starts
        self.number, self.first_of = self._intern_all(graph, at, enters, parents)

    def _intern_all(
        self, graph: Graph, at: list[int], enters: list[int], parents: list[int]
    ) -> tuple[list[int], list[IntArray]]:
        tokens = _node_tokens(graph)[self._order]
        known: dict[tuple[int, int, bytes], int] = {}
        first_of: list[IntArray] = []
        number = [0] * len(parents)
        heads = list(zip(graph.scopes.stack.tolist(), graph.scopes.name.tolist(), strict=True))
        for scope in range(len(parents) - 1, -1, -1):  # children before their parents
            inside = tokens[self._starts[scope] : self._starts[scope + 1]]
            key = (*heads[scope], inside.tobytes())
            if key not in known:
                known[key] = len(known)
                first_of.append(first_of_repeats(inside))
            number[scope] = known[key]
            if parents[scope] >= 0:
                tokens[at[enters[scope]]] = -1 - number[scope]
        return number, first_of

    def scope_at(self, scope: int, place: int) -> int:
        """The scope that is opened at a place of a scope's sequence."""
        return int(self._opened_at[self._starts[scope] + place])

    def first_nodes(self, first: IntArray) -> IntArray:
        """For each node the node drawn for it, where ``first`` holds the scope drawn for each scope."""
        nodes: IntArray = np.arange(len(self._owner), dtype=np.int64)
        if not self.first_of:
            return nodes
        begins = np.concatenate([[0], np.cumsum([len(places) for places in self.first_of])])
        flat = np.concatenate(self.first_of)
        inside = self._owner >= 0
        owner = self._owner[inside]
        number = np.array(self.number, dtype=np.int64)
        place = self._position[inside] - self._start[owner]
        nodes[inside] = self._order[self._start[first[owner]] + flat[begins[number[owner]] + place]]
        return nodes


def _node_tokens(graph: Graph) -> IntArray:
    """For each node a number, from 0, that two nodes share when and only when operation, stack, direction of a message
    and the sequence of layouts and modes of their accesses are equal. Interned exactly, without hashing."""
    nodes, accesses, start, channels = graph.nodes, graph.accesses, graph.access_start, graph.channels
    token = _intern(nodes.op.astype(np.int64), nodes.stack + 1)
    if len(channels):
        sends = OPERATIONS.sends[nodes.op]
        ways = np.where(sends, channels.direction[nodes.channel], channels.arrival[nodes.channel]).astype(np.int64)
        token = _intern(token, np.where(nodes.channel >= 0, ways + 1, 0))
    counts = np.diff(start)
    for place in range(int(counts.max(initial=0))):
        has = np.flatnonzero(counts > place)
        rows = start[has] + place
        part = np.zeros(len(nodes), dtype=np.int64)
        part[has] = 1 + accesses.layout[rows].astype(np.int64) * 2 + accesses.mode[rows]
        token = _intern(token, part)
    return token


def _intern(left: IntArray, right: IntArray) -> IntArray:
    """Small numbers for pairs of non-negative numbers, equal for equal pairs."""
    width = int(right.max(initial=0)) + 1
    pairs = left.astype(np.int64) * width + right
    inverse: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return inverse


# --- tandem repeats ---------------------------------------------------------------------------------------------------


def first_of_repeats(sequence: IntArray) -> IntArray:
    """For each place of a sequence of symbols the place that stands for it: where a stretch is repeated at once, its
    like in the first of the repetitions; elsewhere itself. Idempotent; what stands for a place holds the same symbol.
    """
    places: IntArray = np.arange(len(sequence), dtype=np.int64)
    symbols = np.unique(sequence, return_inverse=True)[1].astype(np.int64)
    starts = places.copy()  # where each symbol's stretch of the sequence begins
    effort = _EFFORT * len(sequence)
    while True:
        runs, spent = _runs(symbols, effort)
        effort -= spent
        if not runs:
            return places
        symbols, starts = _shorten(symbols, starts, places, runs)


def _shorten(
    symbols: IntArray, starts: IntArray, places: IntArray, runs: list[tuple[int, int, int]]
) -> tuple[IntArray, IntArray]:
    """Replace each run ``(begin, period, repetitions)`` by one new symbol, and let the first repetition stand for the
    others in ``places``."""
    ends = np.append(starts, len(places))
    kept_symbols: list[IntArray] = []
    kept_starts: list[IntArray] = []
    known: dict[tuple[int, bytes], int] = {}
    fresh = int(symbols.max()) + 1
    done = 0
    for begin, period, times in runs:
        first, last = int(ends[begin]), int(ends[begin + period])
        stop = int(ends[begin + period * times])
        places[last:stop] = np.tile(places[first:last], times - 1)
        kept_symbols.append(symbols[done:begin])
        kept_starts.append(starts[done:begin])
        key = (times, symbols[begin : begin + period].tobytes())
        kept_symbols.append(np.array([known.setdefault(key, fresh + len(known))], dtype=np.int64))
        kept_starts.append(starts[begin : begin + 1])
        done = begin + period * times
    return np.concatenate([*kept_symbols, symbols[done:]]), np.concatenate([*kept_starts, starts[done:]])


def _runs(symbols: IntArray, effort: int) -> tuple[list[tuple[int, int, int]], int]:
    """Tandem repeats that do not overlap, as ``(begin, period, repetitions)`` in order; and the comparisons spent.

    A repeat in which some symbol occurs once a period shows in the distance of that symbol's occurrences. Short periods
    come first, so that what is inside is found before what is around it.
    """
    taken = np.zeros(len(symbols), dtype=np.bool_)
    found: list[tuple[int, int, int]] = []
    places, periods = _candidates(symbols)
    if not len(places):
        return [], 0
    distinct, begins = np.unique(periods, return_index=True)
    stops = np.append(begins[1:], len(periods))
    spent = 0
    for period, low, high in zip(distinct.tolist(), begins.tolist(), stops.tolist(), strict=True):
        if spent > effort:
            break
        at = places[low:high].tolist()
        if len(at) > _MANY:
            spent += len(symbols)
            stretches: Iterable[tuple[int, int]] = _ranges(symbols[:-period] == symbols[period:])
        else:
            stretches = _stretches(symbols, at, period)
        for first, last in stretches:
            spent += last - first + 1
            if last - first < period:
                continue
            whole = last + period
            free = _free(taken, first, whole) if taken[first:whole].any() else ((first, whole),)
            for begin, stop in free:
                times = (stop - begin) // period
                if times > 1:
                    taken[begin : begin + period * times] = True
                    found.append((begin, period, times))
    return sorted(found), spent


def _candidates(symbols: IntArray) -> tuple[IntArray, IntArray]:
    """Places and distances to the next occurrence of the same symbol there, by distance, then place: those at which a
    stretch of at least that length may repeat. Such a stretch reaches half its length to one side of the place at
    least; that is compared by polynomial hashes (mod 2^64), which may let a wrong candidate pass, but lose none."""
    size = len(symbols)
    order = np.argsort(symbols, kind="stable")
    same = symbols[order][1:] == symbols[order][:-1]
    place, distance = order[:-1][same], np.diff(order)[same]
    powers = np.full(size + 1, _BASE, dtype=np.uint64)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint64)
    values = (symbols.astype(np.uint64) + np.uint64(1)) * np.uint64(_SPREAD)
    values ^= values >> np.uint64(29)
    prefix = np.zeros(size + 1, dtype=np.uint64)
    np.cumsum(values * powers[:size], dtype=np.uint64, out=prefix[1:])
    half = (distance - 1) // 2

    def equal(first: IntArray, last: IntArray) -> IntArray:
        inside = (first >= 0) & (last + distance <= size)
        low, high = np.where(inside, first, 0), np.where(inside, last, 0)
        shift = np.where(inside, distance, 0)
        here = (prefix[high] - prefix[low]) * powers[shift]
        alike: IntArray = inside & (here == prefix[high + shift] - prefix[low + shift])
        return alike

    may = equal(place, place + half + 1) | equal(place - half, place + 1)
    place, distance = place[may], distance[may]
    by_distance = np.lexsort((place, distance))
    return place[by_distance], distance[by_distance]


def _ranges(mask: IntArray) -> list[tuple[int, int]]:
    """The ranges of places in which a mask holds."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]])))
    return list(zip(change[::2].tolist(), change[1::2].tolist(), strict=True))


def _stretches(symbols: IntArray, places: list[int], period: int) -> Iterator[tuple[int, int]]:
    """The stretches around some places, in ascending order: the longest ranges in which every symbol equals the one a
    period later."""
    seen = -1
    for place in places:
        if place >= seen:
            first, seen = _stretch(symbols, place, period)
            yield first, seen


def _stretch(symbols: IntArray, place: int, period: int) -> tuple[int, int]:
    first, step = place, 16
    while first > 0:
        low = max(first - step, 0)
        differs = np.flatnonzero(symbols[low:first] != symbols[low + period : first + period])
        if len(differs):
            first = low + int(differs[-1]) + 1
            break
        first, step = low, step * 2
    last, step, limit = place + 1, 16, len(symbols) - period
    while last < limit:
        high = min(last + step, limit)
        differs = np.flatnonzero(symbols[last:high] != symbols[last + period : high + period])
        if len(differs):
            last += int(differs[0])
            break
        last, step = high, step * 2
    return first, last


def _free(taken: IntArray, first: int, last: int) -> list[tuple[int, int]]:
    """The parts of a range that are not taken."""
    return [(first + begin, first + stop) for begin, stop in _ranges(~taken[first:last])]
