"""Job shops: the standard form of the OR-Library (Beasley 1990), and Taillard's (1993) in blocks of times and machines.

The standard form: how many jobs and machines there are, then a line for each job: of each of its operations the
machine (from 0) and the time. Taillard's: a line of headings, one of numbers that begins with jobs and machines,
``Times`` with a line for each job, ``Machines`` with the machines (from 1) in the same order. What follows ``#`` on a
line is a comment.
"""

from __future__ import annotations

import numpy as np

from .task_graph import MOST_TASKS, Numbers, TaskGraph, pairs

__all__ = ["is_taillard", "read_job_shop", "read_taillard"]

_Lines = list[tuple[int, str]]


def is_taillard(lines: _Lines) -> bool:
    """Whether the lines are Taillard's form."""
    return any(line.strip().lower() == "times" for _, line in lines)


def read_job_shop(file: str, lines: _Lines) -> TaskGraph:
    """Raises ``TaskFileError``."""
    numbers = Numbers(file, lines)
    jobs, machines = _sizes(numbers)
    operations = [
        [(numbers.take("a machine", high=machines - 1), numbers.take("a time")) for _ in range(machines)]
        for _ in range(jobs)
    ]
    numbers.end()
    return _job_shop(jobs, machines, operations)


def read_taillard(file: str, lines: _Lines) -> TaskGraph:
    """Raises ``TaskFileError``."""
    words = [line.strip().lower() for _, line in lines]
    times = words.index("times")
    if "machines" not in words[times:]:
        raise Numbers(file, []).wrong("Times without Machines")
    visits = words.index("machines", times)
    jobs, machines = _sizes(Numbers(file, [row for row in lines[:times] if row[1].split()[0].isdecimal()]))
    taken = Numbers(file, lines[times + 1 : visits])
    visited = Numbers(file, lines[visits + 1 :])
    operations = [
        [(visited.take("a machine", 1, machines) - 1, taken.take("a time")) for _ in range(machines)]
        for _ in range(jobs)
    ]
    taken.end()
    visited.end()
    return _job_shop(jobs, machines, operations)


def _sizes(numbers: Numbers) -> tuple[int, int]:
    jobs = numbers.take("the number of jobs", 1, MOST_TASKS)
    return jobs, numbers.take("the number of machines", 1, MOST_TASKS // jobs)


def _job_shop(jobs: int, machines: int, operations: list[list[tuple[int, int]]]) -> TaskGraph:
    every = np.array(operations, dtype=np.int64).reshape(-1, 2)
    first = [machines * job + place for job in range(jobs) for place in range(machines - 1)]
    return TaskGraph(
        what=f"job shop, {jobs:,} jobs, {machines:,} machines",
        durations=every[:, 1].copy(),
        engine=every[:, 0].copy(),
        channels=np.ones(machines, dtype=np.int64),
        edges=pairs([(node, node + 1) for node in first]),
    )
