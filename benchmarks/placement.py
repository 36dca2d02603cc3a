"""How far the placement lies above the optimum: 500 random small instances, the optimum by CP-SAT (extra ``optimal``).

Run: ``python benchmarks/placement.py [INSTANCES]``. Prints the mean and the largest excess over the optimum, how many
instances are optimal, for how many the bound says so, and the time per placement beside that of the solver.
"""

from __future__ import annotations

import random
import sys
import time

import numpy as np
from ortools.sat.python import cp_model

from kernscope.memory.placement import place_blocks

Instance = tuple[list[int], list[int], list[int]]


def random_instance(chance: random.Random) -> Instance:
    """10 to 40 blocks in 30 instants: short and long live ranges, sizes of 1 to 30 units."""
    count = chance.randint(10, 40)
    start = [chance.randrange(30) for _ in range(count)]
    stop = [s + 1 + min(chance.randrange(16), chance.randrange(30)) for s in start]
    return start, stop, [chance.randint(1, 30) for _ in range(count)]


def optimum(instance: Instance, upper: int) -> int:
    """The least peak, proven: rectangles of fixed times and free addresses that do not overlap."""
    model = cp_model.CpModel()
    peak = model.new_int_var(0, upper, "peak")
    in_time, in_space = [], []
    for number, (start, stop, size) in enumerate(zip(*instance, strict=True)):
        address = model.new_int_var(0, upper - size, f"address{number}")
        in_time.append(model.new_fixed_size_interval_var(start, stop - start, f"time{number}"))
        in_space.append(model.new_fixed_size_interval_var(address, size, f"space{number}"))
        model.add(address + size <= peak)
    model.add_no_overlap_2d(in_time, in_space)
    model.minimize(peak)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = 60
    if solver.solve(model) != cp_model.OPTIMAL:
        raise SystemExit("the solver proved no optimum within its time")
    return round(solver.objective_value)


def main(instances: int) -> None:
    """Place, solve, compare, print."""
    chance = random.Random(2026)
    excess, said_optimal, ours_s, solver_s = [], 0, 0.0, 0.0
    for _ in range(instances):
        instance = random_instance(chance)
        columns = [np.array(column, dtype=np.int64) for column in instance]
        began = time.perf_counter()
        placed = place_blocks(*columns)
        ours_s += time.perf_counter() - began
        began = time.perf_counter()
        best = optimum(instance, placed.peak_bytes)
        solver_s += time.perf_counter() - began
        if not placed.bound_bytes <= best <= placed.peak_bytes:
            raise SystemExit(f"bound {placed.bound_bytes}, optimum {best}, placement {placed.peak_bytes}: {instance}")
        excess.append(placed.peak_bytes / best - 1)
        said_optimal += placed.peak_bytes == placed.bound_bytes
    optimal = sum(e == 0 for e in excess)
    print(f"{instances} instances of 10 to 40 blocks")
    print(f"excess over the optimum: mean {100 * np.mean(excess):.3f} %, largest {100 * max(excess):.2f} %")
    print(f"optimal: {optimal} ({100 * optimal / instances:.1f} %); said to be, by the bound: {said_optimal}")
    print(f"time per instance: {1e3 * ours_s / instances:.2f} ms, CP-SAT {1e3 * solver_s / instances:.2f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
