"""The placement of scratch: never overlapping, never below the bound, optimal only where it says so truly."""

from __future__ import annotations

import importlib.util
import itertools
from typing import Any

import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.ir.arrays import compiling
from kernscope.memory import placement as module
from kernscope.memory.greedy_placement import sweep_fit
from kernscope.memory.placement import Placed, ScratchPlacement, place_blocks
from kernscope.memory.skyline_placement import lowest_peak

BLOCK = st.tuples(st.integers(0, 8), st.integers(1, 6), st.integers(1, 6))
Block = tuple[int, int, int]


def place(blocks: list[Block]) -> Placed:
    """Blocks given as (start, length, bytes)."""
    start, length, nbytes = np.array(blocks, dtype=np.int64).reshape(-1, 3).T
    return place_blocks(start, start + length, nbytes)


def overlaps(blocks: list[Block], address: list[int]) -> bool:
    """Pair by pair, instant by instant, byte by byte."""
    taken = set()
    for (start, length, nbytes), base in zip(blocks, address, strict=True):
        mine = set(itertools.product(range(start, start + length), range(base, base + nbytes)))
        if mine & taken:
            return True
        taken |= mine
    return False


def least_peak(blocks: list[Block]) -> int:
    """The optimum by trying all orders: the blocks of an optimal placement, put down by address, never rise."""
    best = sum(nbytes for *_, nbytes in blocks)
    for order in itertools.permutations(range(len(blocks))):
        put: list[tuple[Block, int]] = []
        for number in order:
            start, length, nbytes = blocks[number]
            met = sorted(
                (base, base + other[2])
                for other, base in put
                if other[0] < start + length and start < other[0] + other[1]
            )
            at = 0
            for low, high in met:
                if low - at >= nbytes:
                    break
                at = max(at, high)
            put.append((blocks[number], at))
        best = min(best, max(base + block[2] for block, base in put))
    return best


@given(st.lists(BLOCK, min_size=1, max_size=12))
@kernelgen.examples(150)
def test_blocks_never_overlap_and_never_fall_below_the_bound(blocks: list[Block]) -> None:
    """The bound is the largest sum at one instant, or more where that is proved; the peak is the highest end."""
    placed = place(blocks)
    assert not overlaps(blocks, placed.address.tolist())
    assert min(placed.address.tolist()) >= 0
    assert placed.peak_bytes == max(a + b[2] for a, b in zip(placed.address.tolist(), blocks, strict=True))
    sums = [sum(n for s, length, n in blocks if s <= t < s + length) for t in range(16)]
    assert max(sums) <= placed.bound_bytes <= placed.peak_bytes


@given(st.lists(BLOCK, min_size=1, max_size=6))
@kernelgen.examples(60)
def test_small_instances_are_placed_optimally(blocks: list[Block]) -> None:
    """Held against all orders; and it is proved."""
    placed = place(blocks)
    assert placed.peak_bytes == placed.bound_bytes == least_peak(blocks)


def test_an_optimum_above_the_sum_of_live_bytes_is_proved() -> None:
    """That sum cannot always be reached: here 7 are live at once, and 8 are needed. Without a search it is not called
    optimal."""
    blocks = [(2, 2, 2), (0, 1, 3), (3, 3, 3), (1, 3, 2), (0, 2, 3), (1, 2, 2), (4, 1, 3)]
    placed = place(blocks)
    assert (placed.bound_bytes, least_peak(blocks), placed.peak_bytes) == (8, 8, 8)
    start, length, nbytes = np.array(blocks, dtype=np.int64).T
    unproved = place_blocks(start, start + length, nbytes, steps=0)
    assert (unproved.bound_bytes, unproved.peak_bytes) == (7, 8)


@given(st.lists(BLOCK, min_size=1, max_size=14), st.integers(0, 6))
@kernelgen.examples(100)
def test_a_capacity_is_met_or_refuted_truly(blocks: list[Block], more: int) -> None:
    """What fits lies within the capacity, and no two share a byte. What is refuted is refuted for every lower capacity,
    too, and the proof passes no peak that is known."""
    start, length, nbytes = np.array(blocks, dtype=np.int64).T
    known = place(blocks)
    capacity = int(nbytes.max()) + more
    found = lowest_peak(start, start + length, nbytes, low=0, high=1 << 40, budget=10**7, capacity=capacity)
    assert found.proved_bytes <= known.peak_bytes
    if found.address is None:
        assert found.proved_bytes > capacity and known.peak_bytes > capacity
        return
    assert known.bound_bytes <= capacity
    assert int((found.address + nbytes).max()) <= capacity and not overlaps(blocks, found.address.tolist())


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra 'fast' (numba)")
@pytest.mark.parametrize("seed", range(6))
def test_the_search_is_the_same_compiled_and_not(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Addresses, proof and steps, whether it ends or its budget does."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 30, 24)
    stop, nbytes = start + random.integers(1, 12, 24), 8 * random.integers(1, 20, 24)
    greedy = int((sweep_fit(start, stop, nbytes) + nbytes).max())
    found = []
    for compiled_from in (1 << 62, 0):
        monkeypatch.setattr(compiling, "COMPILED_FROM", compiled_from)
        one = lowest_peak(start, stop, nbytes, low=0, high=greedy, budget=40_000, seed=seed)
        found.append((None if one.address is None else one.address.tolist(), one.proved_bytes, one.steps))
    assert found[0] == found[1]


def test_the_search_stops_at_the_bound() -> None:
    """Nothing is tried after the first order where that meets it."""
    placed = place([(t, 2, 4) for t in range(50)])
    assert (placed.peak_bytes, placed.bound_bytes, placed.tried) == (8, 8, 1)


def test_a_large_instance_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One order only, and that is said; unless it meets the bound, when no other could be better."""
    monkeypatch.setattr(module, "_MOST_PAIRS", 3)
    tight = [(0, 2, 4), (1, 3, 2), (2, 3, 4), (1, 5, 3), (4, 3, 5), (5, 3, 1), (5, 2, 3), (7, 2, 4), (6, 4, 2)]
    for blocks in (tight, [(0, 9, 1)] * 4):
        placed = place(blocks)
        assert placed.tried == 1
        assert placed.limited is (placed.peak_bytes > placed.bound_bytes)
        assert not overlaps(blocks, placed.address.tolist())


def test_an_instance_is_large_by_its_pairs_of_live_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many pairs as the limit says are searched, one more are not."""
    tight = [(2, 2, 2), (0, 1, 3), (3, 3, 3), (1, 3, 2), (0, 2, 3), (1, 2, 2), (4, 1, 3)]
    pairs = sum(max(a[0], b[0]) < min(a[0] + a[1], b[0] + b[1]) for at, a in enumerate(tight) for b in tight[at + 1 :])
    monkeypatch.setattr(module, "_MOST_PAIRS", pairs - 1)
    small = place(tight)
    assert (small.tried, small.limited) == (1, True)
    monkeypatch.setattr(module, "_MOST_PAIRS", pairs)
    assert place(tight).tried > 1


@given(st.one_of(kernelgen.programs(), kernelgen.programs(faults=True), kernelgen.programs(ranks=2, max_size=20)))
@kernelgen.examples(40)
def test_allocations_that_are_live_together_lie_apart(program: kernelgen.Program) -> None:
    """On random kernels, well-formed or not: by live ranges taken from the accesses alone, in rounded bytes."""
    graph = program.trace()
    live = ks.liveness(graph)
    placed = live.placement()
    accesses = graph.accesses
    spans: dict[int, tuple[int, int]] = {}
    for node, row in zip(accesses.node.tolist(), accesses.storage.tolist(), strict=True):
        storage = graph.storages
        if graph.storage(row).is_hbm or (0 <= storage.freed[row] < node):
            continue
        first, _ = spans.get(row, (node, node))
        spans[row] = (first, node)
    assert set(np.flatnonzero(placed.address >= 0).tolist()) == set(spans)
    boxes = []
    for row, span in spans.items():
        base, size = int(placed.address[row]), graph.storage(row).held_bytes
        boxes.append((graph.storage(row).rank, *span, base, base + size))
    for one, other in itertools.combinations(boxes, 2):
        together = one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]
        assert not (together and one[3] < other[4] and other[3] < one[4])
    assert live.peak_bound_bytes <= placed.bound_bytes <= placed.peak_bytes
    assert placed.peak_bytes == max((box[4] for box in boxes), default=0)
    assert all(box[3] % graph.target.memories[live.memory].align == 0 for box in boxes)


def test_a_kernel_without_scopes_fits_where_its_bump_allocation_does_not() -> None:
    """Each tile's bytes are free again for the next one, and the text says how good that is."""

    def kernel(x: Any, o: Any) -> None:
        for _ in range(40):
            tl.store(o[:, :], tl.exp(tl.load(x[:, :])))

    x = ks.hbm((128, 128), "f32")
    live = ks.liveness(ks.trace(kernel, x, x, on_overflow="record"))
    assert live.peak_bytes == 40 * 2 * 65_536 > live.budget_bytes
    placed = live.placement()
    assert placed.optimal
    assert str(placed) == "131,072 B, optimal (it equals the bound)"
    assert live.placement() is placed


def test_a_placement_says_how_far_from_the_bound_it_is() -> None:
    """In per cent of the bound; and how many ranks were too large, unless nothing could be better."""
    nothing = np.zeros(0, dtype=np.int64)

    def said(peaks: tuple[int, ...], bounds: tuple[int, ...], limited: tuple[int, ...]) -> str:
        return str(ScratchPlacement(nothing, nothing, nothing, peaks, bounds, 1, limited))

    assert said((1_100, 1_250), (1_000, 1_000), ()) == "1,250 B, 25.00 % above the bound of 1,000 B"
    assert said((1_250,), (1_000,), (0,)).endswith("of 1,000 B; 1 ranks were too large to try all orders")
    assert said((1_000,), (1_000,), (0,)) == "1,000 B, optimal (it equals the bound)"


@pytest.mark.parametrize("live", [1, 7, 500])
def test_the_sweep_never_overlaps_however_many_are_live(live: int) -> None:
    """Held against a map of bytes over time; also where more gaps are free than are looked at one by one."""
    rng = np.random.default_rng(live)
    start = np.sort(rng.integers(0, 300, 1200))
    stop = start + rng.integers(1, live + 1, 1200)
    nbytes = rng.integers(1, 20, 1200)
    address = sweep_fit(start, stop, nbytes)
    owner = np.zeros((int(stop.max()), int((address + nbytes).max())), dtype=np.int64)
    for a, b, base, size in zip(start, stop, address, nbytes, strict=True):
        assert not owner[a:b, base : base + size].any()
        owner[a:b, base : base + size] = 1


def test_an_empty_kernel_needs_no_place() -> None:
    """Nor does one whose only allocation nobody accesses."""

    def nothing() -> None:
        tl.empty((4, 4), tl.float32)

    placed = ks.liveness(ks.trace(nothing)).placement()
    assert placed.address.tolist() == [-1]
    assert (placed.peak_bytes, placed.optimal) == (0, True)


def test_the_peak_is_attributed_to_lines() -> None:
    """Bytes by line sum to what is held at the peak; dead ones are told apart."""

    def kernel(x: Any, o: Any) -> None:
        for _ in range(3):
            tile = tl.load(x[:, :])
            total = tl.exp(tile)
        tl.store(o[:, :], total)

    x = ks.hbm((64, 64), "f32")
    live = ks.liveness(ks.trace(kernel, x, x))
    lines = live.peak_by_line()
    assert [(line.name, line.count, line.held_bytes, line.dead_bytes) for line in lines] == [
        ("tile", 3, 49_152, 32_768),
        ("total", 3, 49_152, 32_768),
    ]
    assert sum(line.held_bytes for line in lines) == sum(holder.held_bytes for holder in live.peak_holders())
