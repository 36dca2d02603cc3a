"""Placement by search: whether blocks fit a capacity, or how low their peak can be, with proof.

Time is reduced to the maximal sets of blocks that are live together ("sections"); a block covers a run of them. The
state of the search is a skyline over the sections, below which everything is decided. A valley is a run of one height
whose neighbours are higher. The lowest of the undecided blocks over a valley either begins at its floor, or nothing
does, and the valley rises to its lower neighbour. Parts that no undecided block connects are decided one by one,
without return; states of parts that have failed are remembered by a hash; floors of all undecided blocks bound every
section's height. (The setting and many of the rules: Moffitt, "MiniMalloc: a lightweight memory allocator for hardware-
accelerated machine learning", 2023. The code is this project's own.)

Which valley and which block comes first decides how long it takes, by orders of magnitude, and nobody knows beforehand.
So there are many short runs, whose orders vary at random and lean towards blocks where the search has failed, and few
long ones, each of which gets twice the nodes of the round before. The budget is in steps: the same on every computer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import numpy as np

from ..ir.arrays.compiling import run_loop
from ..ir.tables import IntArray
from .skyline_pass import FITS, NOTHING_FITS, SPENT, STATE, Blocks, skyline_pass

__all__ = ["Skyline", "lowest_peak"]

#: How many states that failed are remembered.
_SLOTS = 1 << 18
_FEW = 8
#: A compiled step is worth so many nodes of other loops: what a search of a moderate budget takes in plain Python.
_COMPILED_STEPS = 3_000_000


@attrs.frozen
class Skyline:
    """What a search has found: ``address`` by block, None where nothing was; ``proved_bytes``: no placement has a lower
    peak; ``steps`` taken."""

    address: IntArray | None
    proved_bytes: int
    steps: int


def lowest_peak(
    start: IntArray,
    stop: IntArray,
    nbytes: IntArray,
    *,
    low: int,
    high: int,
    budget: int,
    capacity: int | None = None,
    seed: int = 0,
) -> Skyline:
    """The lowest peak below ``high`` (which is known to be possible) that ``budget`` steps find; ``low``: no peak is
    below. With a ``capacity``: whether there is a placement of that peak or less, and no other question. Addresses are
    multiples of the sizes' greatest common divisor."""
    unit = int(np.gcd.reduce(nbytes))
    search = _Search(start, stop, nbytes // unit, budget, seed)
    best, bottom = None, -(-low // unit)
    if capacity is not None:
        outcome = search.fits(capacity // unit, budget)
        found = search.address if outcome == FITS else None
        proved = capacity // unit + 1 if outcome == NOTHING_FITS else bottom
        return Skyline(found * unit if found is not None else None, max(low, proved * unit), search.steps)
    top = high // unit
    doubted = 0  # no placement was found up to here, nor excluded
    while top > bottom and search.steps < budget:
        target = max(bottom, doubted + 1) if not doubted else max((doubted + top) // 2, doubted + 1)
        if target >= top:
            break
        share = search.steps + (budget - search.steps) // 2
        outcome = search.fits(target, share)
        if outcome == FITS:
            best = search.address
            top = int((best + search.size).max())
        elif outcome == NOTHING_FITS:
            bottom = max(bottom, target + 1)
        else:
            doubted = target
    return Skyline(best * unit if best is not None else None, max(low, bottom * unit), search.steps)


class _Search:
    """The blocks by section, and what the runs have learned."""

    def __init__(self, start: IntArray, stop: IntArray, size: IntArray, budget: int, seed: int) -> None:
        n = len(start)
        lo, hi = _sections(start, stop)
        self._order = np.lexsort((np.arange(n), -size, hi, lo))
        lo, hi, self._sorted = lo[self._order], hi[self._order], size[self._order]
        self.size = size
        self._lo, self._hi = lo, hi
        self.sections = int(hi.max())
        same = (lo[1:] == lo[:-1]) & (hi[1:] == hi[:-1]) & (self._sorted[1:] == self._sorted[:-1])
        twin = np.full(n, -1, dtype=np.int64)
        twin[1:][same] = np.flatnonzero(same)
        change = np.zeros(self.sections + 1, dtype=np.int64)
        np.add.at(change, lo, self._sorted)
        np.subtract.at(change, hi, self._sorted)
        load = np.cumsum(change)[:-1]
        self._full = np.array([load[a:b].max() for a, b in zip(lo.tolist(), hi.tolist(), strict=True)])
        numbers = np.random.default_rng(1)
        self._blocks = Blocks(
            lo,
            hi,
            self._sorted,
            twin,
            numbers.integers(1, 1 << 62, n),
            np.searchsorted(lo, np.arange(self.sections + 1)),
            numbers.integers(1, 2147483629, 4 * self.sections),
        )
        self._slots = min(_SLOTS, max(budget // 128, 64)) if n > _FEW else 64
        self._compiled = max(n, 50_000 * (budget // _COMPILED_STEPS))
        self._chance = random.Random(seed)
        self.steps = 0
        self.address: IntArray = np.zeros(n, dtype=np.int64)

    def fits(self, capacity: int, until: int) -> int:
        """Whether everything fits, until so many steps; half of them go to many short runs, half to few long ones."""
        n = len(self._order)
        state = np.zeros(STATE + n + self.sections + self._slots, dtype=np.int64)
        failed = slice(STATE + n, STATE + n + self.sections)
        state[failed] = 1
        kept = state[failed].copy()  # a long run fails too often in few places
        spent, runs = [0, 0], [0, 0]
        long_orders = list(self._systematic())
        while True:
            short = int(spent[0] > spent[1])
            turn = runs[short]
            rank = self._varied(state[failed], turn) if short else long_orders[turn % len(long_orders)]
            state[1] = self.steps
            short_failed = state[failed].copy()
            if not short:
                state[failed] = kept
            state = run_loop(
                skyline_pass,
                self._compiled,
                state,
                self._blocks,
                rank,
                capacity,
                (2, 2, 2, 1)[turn % 4] if short else 1,
                until,
                2 * n + 20 if short else 10_000 << min(turn // len(long_orders), 40),
                self._slots,
            )
            outcome, before, self.steps = int(state[0]), self.steps, int(state[1])
            if not short:
                kept = state[failed].copy()
                state[failed] = short_failed
            if outcome == FITS:
                self.address = np.empty(n, dtype=np.int64)
                self.address[self._order] = state[STATE : STATE + n]
            if outcome != SPENT or self.steps > until:
                return outcome
            spent[short] += self.steps - before
            runs[short] += 1

    def _systematic(self) -> Iterator[IntArray]:
        """The orders of long runs: by size; by the fullest section, then length and area; and so on."""
        width, size = self._hi - self._lo, self._sorted
        for keys in (
            (-size, -width),
            (-self._full, -width, -width * size),
            (-width * size,),
            (-self._full, -width * size),
        ):
            yield _ranked(np.lexsort((np.arange(len(size)), *reversed(keys))))

    def _varied(self, failures: IntArray, number: int) -> IntArray:
        """An order by size x length^a x fullness^b x failures^c, with exponents and noise at random; the first by size
        alone. Failures are those in the sections of a block so far."""
        chance = self._chance
        size, length, full = np.log(np.array([self._sorted, self._hi - self._lo, self._full], dtype=np.float64))
        a, b, c, noise = chance.uniform(-0.1, 0.6), 0.0, chance.uniform(0, 0.3), 0.1
        if number % 4 == 3:
            b, c = chance.choice((0, 1, 3, 10)) * chance.uniform(0.5, 1), 0.0
            noise = chance.choice((0, 0.05, 0.2))
        key = size + (a * length + b * full if number else 0.0)
        if number > 1 and c:
            spans = zip(self._lo.tolist(), self._hi.tolist(), strict=True)
            key = key + c * np.log([failures[first:last].max() for first, last in spans])
        if number > 1 and noise:
            key = key + np.array([chance.gauss(0, noise) for _ in size])
        return _ranked(np.argsort(np.round(-key, 9), kind="stable"))


def _ranked(order: IntArray) -> IntArray:
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def _sections(start: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """By block the first of the maximal sets live together that it is in, and the one past the last."""
    times = np.unique(np.concatenate((start, stop)))
    opens, closes = np.isin(times, start), np.isin(times, stop)
    before = np.maximum.accumulate(np.where(opens, np.arange(len(times)), -1))
    ended = np.maximum.accumulate(np.where(closes, np.arange(len(times)), -1))
    keep = times[:-1][closes[1:] & (before[:-1] >= ended[:-1]) & (before[:-1] >= 0)]
    return np.searchsorted(keep, start), np.searchsorted(keep, stop)
