"""A placement of scratch allocations by their live ranges, near the lower bound of its peak.

What the bump allocator cannot do: give bytes back as soon as their last access has run. Allocations whose live ranges
overlap must not share bytes; the peak is to be low. That is dynamic storage allocation, NP-hard (Garey and Johnson
1979, problem SR2). Here: several greedy orders, each put down at the lowest gap that is free (as memory planners do:
Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020), then hill climbing over orders,
in which blocks at the peak, and those beside them, move; then a search that lowers the peak or proves that it cannot
be lowered (:mod:`.skyline_placement`). Everything stops where the peak meets the bound.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import numpy as np

from ..ir.arrays.permutations import group_starts
from ..ir.tables import IntArray
from .greedy_placement import Conflicts, find_conflicts, first_fit, sweep_fit
from .skyline_placement import lowest_peak

__all__ = ["Placed", "ScratchPlacement", "place_blocks", "place_groups"]

#: Steps (allocations put down, and neighbours looked at) that greedy orders may take of one rank; and hill climbing.
_ORDER_STEPS = 400_000
_CLIMB_STEPS = 375_000
_CLIMB_ROUNDS = 1000
#: How often hill climbing takes on an order that is worse, to leave a plateau.
_TAKE_WORSE = 0.02
#: Steps of the search that follows, unless told otherwise: about a second in plain Python; and above how many blocks it
#: is not begun.
_SEARCH_STEPS = 2_000_000
_MOST_SEARCHED = 2_000
#: Pairs of overlapping live ranges above which no order but that of time is tried.
_MOST_PAIRS = 2_000_000


@attrs.frozen(eq=False)
class Placed:
    """Blocks put down: ``address`` by block, in bytes; the ``peak_bytes`` that takes; the lower bound on it; how many
    orders were ``tried``; and whether the search was ``limited``: the instance is so large that some greedy order was
    left out."""

    address: IntArray
    peak_bytes: int
    bound_bytes: int
    tried: int
    limited: bool


@attrs.frozen(eq=False)
class ScratchPlacement:
    """Where allocations could lie if each held its bytes only while it is live; made by ``Liveness.placement()``.

    ``address`` is by storage row, in bytes, -1 for what needs no place (HBM tensors, allocations that nothing
    accesses); ``start`` and ``stop`` are the live ranges behind it, in nodes, ``stop`` exclusive. ``tried`` counts
    orders over all ranks; ``limited_ranks`` are those that were too large to try all greedy orders.
    """

    address: IntArray
    start: IntArray
    stop: IntArray
    peak_bytes_by_rank: tuple[int, ...]
    bound_bytes_by_rank: tuple[int, ...]
    tried: int
    limited_ranks: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """The peak of the fullest rank."""
        return max(self.peak_bytes_by_rank, default=0)

    @property
    def bound_bytes(self) -> int:
        """No placement has a lower peak: the largest sum of live bytes at one time, or more where a search has proved
        it."""
        return max(self.bound_bytes_by_rank, default=0)

    @property
    def optimal(self) -> bool:
        """Whether the peak equals the bound: then no placement is better. Otherwise one may be, or not."""
        return self.peak_bytes == self.bound_bytes

    def __str__(self) -> str:
        text = f"{self.peak_bytes:,} B, "
        if self.optimal:
            text += "optimal (it equals the bound)"
        else:
            excess = 100 * (self.peak_bytes - self.bound_bytes) / self.bound_bytes
            text += f"{excess:.2f} % above the bound of {self.bound_bytes:,} B"
        if self.limited_ranks and not self.optimal:
            text += f"; {len(self.limited_ranks)} ranks were too large to try all orders"
        return text

    def __repr__(self) -> str:
        return f"<ScratchPlacement {self}>"


def place_blocks(start: IntArray, stop: IntArray, nbytes: IntArray, steps: int = _SEARCH_STEPS) -> Placed:
    """Put down blocks of ``nbytes`` (positive, rounded already), live in [start, stop) each (not empty), so that no two
    of them that are live together share a byte. ``steps``: how many the search takes at most. Deterministic.
    """
    count = len(start)
    if not count:
        return Placed(np.zeros(0, dtype=np.int64), 0, 0, 0, False)
    bound = _bound(start, stop, nbytes)
    best = sweep_fit(start, stop, nbytes)
    peak, tried = int((best + nbytes).max()), 1
    pairs = _pair_count(start, stop)
    if peak == bound or pairs > _MOST_PAIRS:
        return Placed(best, peak, bound, tried, limited=peak > bound)
    conflicts = find_conflicts(start, stop)
    step = count + 2 * pairs
    limited = False
    for number, candidate in enumerate(_orders(start, stop, nbytes)):
        limited = peak > bound and number * step > _ORDER_STEPS
        if peak == bound or limited:
            break
        address = first_fit(candidate, conflicts, nbytes)
        tried += 1
        if int((address + nbytes).max()) < peak:
            best, peak = address, int((address + nbytes).max())
    if peak > bound:
        rounds = min(_CLIMB_ROUNDS, _CLIMB_STEPS // step)
        best, peak, more = _climb(best, peak, bound, conflicts, nbytes, rounds)
        tried += more
    if peak > bound and count <= _MOST_SEARCHED:
        found = lowest_peak(start, stop, nbytes, low=bound, high=peak, budget=steps)
        bound = found.proved_bytes
        if found.address is not None:
            best, peak = found.address, int((found.address + nbytes).max())
    return Placed(best, peak, bound, tried, limited)


def place_groups(
    group: IntArray, groups: int, start: IntArray, stop: IntArray, nbytes: IntArray
) -> tuple[IntArray, list[Placed]]:
    """Blocks of several memories, each put down among those of its ``group`` (a number below ``groups``): addresses by
    block, and what came of each group. Groups that do the same, maybe at another time, are placed once."""
    address = np.zeros(len(group), dtype=np.int64)
    known: dict[bytes, Placed] = {}
    placed: list[Placed] = []
    order = np.argsort(group, kind="stable")
    bounds = group_starts(group[order], groups)
    for number in range(groups):
        blocks = order[bounds[number] : bounds[number + 1]]
        begin = int(start[blocks].min()) if len(blocks) else 0
        columns = (start[blocks] - begin, stop[blocks] - begin, nbytes[blocks])
        key = np.concatenate(columns).tobytes()
        if key not in known:
            known[key] = place_blocks(*columns)
        placed.append(known[key])
        address[blocks] = known[key].address
    return address, placed


def _bound(start: IntArray, stop: IntArray, nbytes: IntArray) -> int:
    change = np.zeros(int(stop.max()) + 1, dtype=np.int64)
    np.add.at(change, start, nbytes)
    np.subtract.at(change, stop, nbytes)
    return int(np.cumsum(change).max())


def _pair_count(start: IntArray, stop: IntArray) -> int:
    """How many pairs of live ranges overlap: those begun before a range's end, less those before its own place."""
    begun = np.sort(start)
    return int((np.searchsorted(begun, np.sort(stop)) - np.arange(1, len(start) + 1)).sum())


def _orders(start: IntArray, stop: IntArray, nbytes: IntArray) -> Iterator[list[int]]:
    """Greedy orders, the most promising first; ties by start, then by number."""
    number, length = np.arange(len(start)), stop - start
    for keys in (
        (-nbytes,),
        (-length, -nbytes),
        (-(nbytes * length),),
        (start, -nbytes),
        (-nbytes, -length),
        (stop, -nbytes),
    ):
        yield np.lexsort((number, start, *reversed(keys))).tolist()


def _climb(
    best: IntArray, peak: int, bound: int, conflicts: Conflicts, nbytes: IntArray, rounds: int
) -> tuple[IntArray, int, int]:
    """Hill climbing over orders, from that of the best addresses: one block moves, and all are put down anew. An order
    is taken on if the peak and the number of blocks that reach it are no worse, and now and then if they are. Returns
    the best addresses, their peak, and how many orders were tried."""
    chance = random.Random(0)
    order: list[int] = np.lexsort((np.arange(len(nbytes)), best)).tolist()
    at_peak = np.flatnonzero(best + nbytes == peak).tolist()
    level = (peak, len(at_peak))
    for number in range(rounds):
        candidate = _moved(order, chance.choice(at_peak), conflicts, chance)
        address = first_fit(candidate, conflicts, nbytes)
        height = int((address + nbytes).max())
        reached = np.flatnonzero(address + nbytes == height).tolist()
        if (height, len(reached)) <= level or chance.random() < _TAKE_WORSE:
            order, at_peak, level = candidate, reached, (height, len(reached))
        if height < peak:
            best, peak = address, height
            if peak == bound:
                return best, peak, number + 1
    return best, peak, rounds


def _moved(order: list[int], block: int, conflicts: Conflicts, chance: random.Random) -> list[int]:
    """The order with a block at the peak moved forward; or with one that is live beside it, or any, moved anywhere."""
    kind = chance.random()
    beside = conflicts.of[block]
    if kind >= 0.6:
        block = chance.choice(beside) if beside and kind < 0.85 else chance.randrange(len(order))
    place = order.index(block)
    moved = order[:place] + order[place + 1 :]
    moved.insert(chance.randrange(place + 1 if kind < 0.6 else len(order)), block)
    return moved
