"""How good the searches are, pinned: a few problems with the exact results. All of them are deterministic, so that a
change of a search shows here, for better or worse. Better numbers are written down; worse ones want a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernscope import schedule_dag
from kernscope.memory.greedy_placement import sweep_fit
from kernscope.memory.placement import place_blocks
from kernscope.scheduler.search.bounds import best_bound_ps
from kernscope.scheduler.search.dag import Dag
from kernscope.scheduler.search.dag_arrays import make_dag
from kernscope.scheduler.search.heads import heads_and_tails

EFFORTS = ("fast", "normal", "high")


def job_shop(seed: int, jobs: int, engines: int, lanes: int = 1) -> dict[str, Any]:
    """Jobs that each visit all engines, in an order of their own."""
    random = np.random.default_rng(seed)
    return {
        "durations_ps": random.integers(1, 100, jobs * engines),
        "engine": np.concatenate([random.permutation(engines) for _ in range(jobs)]),
        "channels": [lanes] * engines,
        "edges": [(engines * j + k, engines * j + k + 1) for j in range(jobs) for k in range(engines - 1)],
    }


def layers(seed: int, count: int, lanes: int) -> dict[str, Any]:
    """A wide graph: every node waits for up to three of the twenty before it; releases, and an engine of some lanes."""
    random = np.random.default_rng(seed)
    edges = [(int(s), t) for t in range(1, count) for s in random.integers(max(0, t - 20), t, random.integers(0, 4))]
    return {
        "durations_ps": random.integers(1, 50, count),
        "engine": random.integers(-1, 4, count),
        "channels": [1, 1, lanes, 1],
        "edges": edges,
        "release_ps": random.integers(0, 200, count),
    }


PROBLEMS = {
    "shop 10x6": job_shop(1, 10, 6),
    "shop 6x6": job_shop(2, 6, 6),
    "shop 15x5": job_shop(3, 15, 5),
    "shop 10x5 of 2 lanes": job_shop(4, 10, 5, lanes=2),
    "layers 80": layers(5, 80, 1),
    "layers 200 of 3 lanes": layers(6, 200, 3),
}


def dag_of(problem: dict[str, Any]) -> Dag:
    given = {"release_ps": None, **problem}
    return make_dag(*(given[name] for name in ("durations_ps", "engine", "channels", "edges", "release_ps")))


def makespans(problem: dict[str, Any]) -> tuple[int, ...]:
    """By effort."""
    return tuple(int((schedule_dag(**problem, effort=e) + problem["durations_ps"]).max()) for e in EFFORTS)


def heads_of(problem: dict[str, Any]) -> tuple[int, int, int]:
    """The sums of all heads and of all tails, and the best bound."""
    known = heads_and_tails(dag_of(problem))
    return int(known.head_ps.sum()), int(known.tail_ps.sum()), best_bound_ps(dag_of(problem))


def blocks(seed: int, count: int, longest: int) -> tuple[Any, Any, Any]:
    """Starts, stops and bytes."""
    random = np.random.default_rng(seed)
    start = random.integers(0, 4 * count, count)
    return start, start + random.integers(1, longest, count), 16 * random.integers(1, 40, count)


BLOCKS = {"30 short": (1, 30, 20), "60 long": (2, 60, 120), "150 mixed": (3, 150, 60), "400 long": (4, 400, 700)}


def placed(problem: tuple[int, int, int]) -> tuple[int, int, int, int]:
    """The peak that one sweep reaches, the peak of the search, its bound and how many orders it tried."""
    start, stop, nbytes = blocks(*problem)
    found = place_blocks(start, stop, nbytes)
    return int((sweep_fit(start, stop, nbytes) + nbytes).max()), found.peak_bytes, found.bound_bytes, found.tried


MAKESPANS: dict[str, tuple[int, ...]] = {
    "shop 10x6": (841, 662, 662),
    "shop 6x6": (598, 512, 512),
    "shop 15x5": (842, 795, 795),
    "shop 10x5 of 2 lanes": (479, 466, 421),
    "layers 80": (643, 597, 597),
    "layers 200 of 3 lanes": (1167, 1059, 1056),
}
HEADS: dict[str, tuple[int, int, int]] = {
    "shop 10x6": (7513, 7312, 662),
    "shop 6x6": (4617, 4893, 477),
    "shop 15x5": (7778, 6486, 795),
    "shop 10x5 of 2 lanes": (5611, 5993, 399),
    "layers 80": (18350, 8555, 555),
    "layers 200 of 3 lanes": (84029, 51318, 1051),
}
PLACED: dict[str, tuple[int, int, int, int]] = {
    "30 short": (2352, 1968, 1968, 9),
    "60 long": (7200, 5952, 5952, 249),
    "150 mixed": (5024, 4560, 4560, 12),
    "400 long": (40912, 37872, 36080, 13),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_makespans_of_the_search(name: str) -> None:
    """By effort, to the picosecond; never below the bound."""
    found = makespans(PROBLEMS[name])
    assert found == MAKESPANS[name]
    assert min(found) >= HEADS[name][2]


@pytest.mark.parametrize("name", PROBLEMS)
def test_heads_and_tails(name: str) -> None:
    """Their sums, and the bound that they give: every window and every rule that raises one counts."""
    assert heads_of(PROBLEMS[name]) == HEADS[name]


@pytest.mark.parametrize("name", BLOCKS)
def test_peaks_of_placement(name: str) -> None:
    """Of the sweep and of the search, with the number of orders tried."""
    assert placed(BLOCKS[name]) == PLACED[name]


def test_a_gap_that_fits_exactly_is_taken() -> None:
    """Three blocks of 2, 4 and 2 side by side; the middle one leaves, and one just as large takes its place."""
    start, stop = np.array([0, 0, 0, 5]), np.array([9, 5, 9, 9])
    nbytes = np.array([2, 4, 2, 4])
    address = sweep_fit(start, stop, nbytes)
    assert address[3] == address[1] and int((address + nbytes).max()) == 8
    found = place_blocks(start, stop, nbytes)
    assert (found.peak_bytes, found.bound_bytes) == (8, 8)
