"""Standard task graphs (STG; Tobita and Kasahara 2002): how many tasks there are, then a line for each, and one for an
entry and an exit that take no time: number, time, how many tasks it waits for, and these. What follows ``#``
on a line is a comment. How many processors there are is not in the file."""

from __future__ import annotations

import numpy as np

from .task_graph import MOST_TASKS, Numbers, TaskGraph, pairs

__all__ = ["read_standard_task_graph"]


def read_standard_task_graph(file: str, lines: list[tuple[int, str]], processors: int) -> TaskGraph:
    """Raises ``TaskFileError``."""
    numbers = Numbers(file, lines)
    tasks = numbers.take("the number of tasks", 1, MOST_TASKS) + 2
    durations: list[int] = []
    edges: list[tuple[int, int]] = []
    for task in range(tasks):
        numbers.take(f"the number {task} of the next task", task, task)
        durations.append(numbers.take("a time"))
        before = numbers.take("how many tasks it waits for", 0, tasks)
        edges += [(numbers.take("a task", 0, tasks - 1), task) for _ in range(before)]
    numbers.end()
    takes = np.array(durations, dtype=np.int64)
    return TaskGraph(
        what=f"standard task graph, {processors:,} processors",
        durations=takes,
        engine=np.where(takes > 0, 0, -1),
        channels=np.array([processors], dtype=np.int64),
        edges=pairs(edges),
    )
