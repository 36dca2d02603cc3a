"""Projects in the format of PSPLIB (Kolisch and Sprecher 1997), ``.sm``: jobs of one mode, renewable resources."""

from __future__ import annotations

import re

import numpy as np

from .task_graph import MOST_TASKS, Numbers, TaskGraph, pairs

__all__ = ["read_psplib"]

_Lines = list[tuple[int, str]]
_MOST_KINDS = 100


def read_psplib(file: str, lines: _Lines) -> TaskGraph:
    """Raises ``TaskFileError``."""
    wrong = Numbers(file, []).wrong
    jobs = _announced(file, lines, r"jobs\b.*:\s*(\S+)", "the number of jobs", MOST_TASKS)
    kinds = _announced(file, lines, r"-\s*renewable\s*:\s*(\S+)", "the number of renewable resources", _MOST_KINDS)
    for kind in ("nonrenewable", "doubly constrained"):
        if _announced(file, lines, rf"-\s*{kind}\s*:\s*(\S+)", f"the number of {kind} resources", _MOST_KINDS):
            raise wrong(f"it has {kind} resources, and only renewable ones are known here")
    follows = Numbers(file, _rows(file, lines, "PRECEDENCE RELATIONS"))
    edges: list[tuple[int, int]] = []
    for job in range(jobs):
        follows.take(f"the number {job + 1} of the next job", job + 1, job + 1)
        follows.take("one mode", 1, 1)
        edges += [(job, follows.take("a job", 1, jobs) - 1) for _ in range(follows.take("how many follow", 0, jobs))]
    follows.end()
    asks = Numbers(file, _rows(file, lines, "REQUESTS/DURATIONS"))
    durations, demands = [], []
    for job in range(jobs):
        asks.take(f"the number {job + 1} of the next job", job + 1, job + 1)
        asks.take("one mode", 1, 1)
        durations.append(asks.take("a time"))
        demands.append([asks.take("a demand") for _ in range(kinds)])
    asks.end()
    there = Numbers(file, _rows(file, lines, "RESOURCEAVAILABILITIES"))
    capacity = [there.take("how much there is of a resource") for _ in range(kinds)]
    there.end()
    demand = np.array(demands, dtype=np.int64).reshape(jobs, kinds)
    over = np.argwhere((demand > np.array(capacity, dtype=np.int64)) & (np.array(durations)[:, None] > 0))
    if len(over):
        job, kind = over[0].tolist()
        raise wrong(
            f"job {job + 1} takes {demand[job, kind]} of resource {kind + 1}, of which there is {capacity[kind]}"
        )
    return TaskGraph(
        what=f"project, {kinds:,} resources",
        durations=np.array(durations, dtype=np.int64),
        engine=np.full(jobs, -1, dtype=np.int64),
        channels=np.zeros(0, dtype=np.int64),
        edges=pairs(edges),
        demand=demand,
        capacity=np.array(capacity, dtype=np.int64),
    )


def _announced(file: str, lines: _Lines, pattern: str, what: str, most: int) -> int:
    """A number that a line of the head announces."""
    for number, line in lines:
        found = re.search(pattern, line, re.IGNORECASE)
        if found:
            # PSPLIB writes the kind of resource behind its number.
            return Numbers(file, [(number, found[1])]).take(what, 0, most)
    raise Numbers(file, []).wrong(f"no line says {what}")


def _rows(file: str, lines: _Lines, head: str) -> _Lines:
    """The lines of numbers behind a heading, until stars."""
    names = [line.strip().rstrip(":").upper() for _, line in lines]
    if head not in names:
        raise Numbers(file, []).wrong(f"no part {head}")
    rows: _Lines = []
    for number, line in lines[names.index(head) + 1 :]:
        if line.startswith("*"):
            break
        if re.match(r"\s*-?\d", line):
            rows.append((number, line))
        elif rows:
            raise Numbers(file, []).wrong(f"line {number}: {line.strip()[:40]!r} where numbers should be")
    return rows
