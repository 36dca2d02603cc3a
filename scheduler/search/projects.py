"""Projects: activities that each take some of several resources while they run (RCPSP: Brucker et al. 1999).

Lists of activities are decoded by the serial scheme: each in turn at the first time at which its predecessors have
ended and all resources have room for it (Kolisch 1996). A schedule is improved by turns from the right and from the
left, in the order of its ends, then of its starts (justification: Valls, Ballestin and Quintanilla 2005). The search
repeats that from the best schedule, or now and then from a worse one, with starts that are moved at random, a little or
a lot.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.tables import IntArray
from .dag import Dag, longest_from_start, longest_to_end

__all__ = ["LONGEST_PROJECT", "Project", "ProjectSchedule", "schedule_project"]

#: Time is counted step by step: up to so many of them.
LONGEST_PROJECT = 100_000
#: Rounds without a gain before the search goes on from another schedule; and how far starts are moved at random, in
#: percent of the makespan, in turn. By hand.
_PATIENCE = 60
_SHIFTS = (5, 10, 20, 40)
#: A round takes so many times what a list takes a node.
_TIMES_A_LIST = 50


@attrs.frozen(eq=False)
class Project:
    """``dag``: durations and edges (engines play no part); ``demand`` ``(n, k)``: what an activity takes of each
    resource while it runs; ``capacity`` ``(k,)``: no activity takes more."""

    dag: Dag
    demand: IntArray
    capacity: IntArray


@attrs.frozen(eq=False)
class ProjectSchedule:
    """``start`` ``(n,)``; the ``makespan``; ``bounds`` by name: the longest path, and for each resource its work with
    what must come before and after at the least."""

    start: IntArray
    makespan: int
    bounds: dict[str, int]


def schedule_project(project: Project, rounds: int, seed: int = 0) -> ProjectSchedule:
    """The best schedule that so many rounds find, two turns each; none where a bound is met. Deterministic."""
    dag = project.dag
    n = len(dag)
    bounds = _bounds(project)
    latest = longest_to_end(dag)
    found = run_loop(
        _project_pass,
        n * rounds // _TIMES_A_LIST,
        np.zeros(n, dtype=np.int64),
        dag.duration_ps,
        dag.pred_start,
        dag.source,
        *dag.successors,
        project.demand.ravel(),
        project.capacity,
        latest.max(initial=0) - latest,
        dag.horizon_ps,
        rounds,
        max(bounds.values()),
        np.array([seed + 1]),
    )
    return ProjectSchedule(found, int((found + dag.duration_ps).max(initial=0)), bounds)


def _bounds(project: Project) -> dict[str, int]:
    dag = project.dag
    head, to_end = longest_from_start(dag), longest_to_end(dag)
    tail = to_end - dag.duration_ps
    found = {"longest path": int((head + to_end).max(initial=0))}
    for resource, capacity in enumerate(project.capacity.tolist()):
        work = dag.duration_ps * project.demand[:, resource]
        mine = np.flatnonzero(work)
        # Of the activities from each head on (and to each tail) the work, between the least head and the least tail.
        best = 0
        for least in np.unique(head[mine])[:200].tolist():
            late = mine[head[mine] >= least]
            by_tail = late[np.argsort(-tail[late], kind="stable")]
            total = np.cumsum(work[by_tail])
            best = max(best, int((least - (-total // capacity) + tail[by_tail]).max(initial=0)))
        found[f"resource {resource + 1}"] = best
    return found


def _project_pass(
    best: Any,
    duration: Any,
    pred_start: Any,
    source: Any,
    succ_start: Any,
    succ: Any,
    demand: Any,
    capacity: Any,
    latest: Any,
    horizon: int,
    rounds: int,
    enough: int,
    chance: Any,
) -> Any:
    """The loop; ``latest``: the latest starts, as the first list. Returns the starts of the best schedule."""
    n = len(duration)
    used = [0 for _ in range((horizon + 1) * len(capacity))]
    key = [latest[node] * 1024 for node in range(n)]
    start = [0 for _ in range(n)]
    current = [0 for _ in range(n)]
    missing = [0 for _ in range(n)]
    shortest = -1
    reached = -1
    idle = 0
    for number in range(rounds):
        length = _decode(key, start, duration, pred_start, source, succ_start, succ, demand, capacity, used, missing)
        # From the right, in the order of the ends: with time running backwards the successors come first.
        for node in range(n):
            key[node] = (length - start[node] - duration[node]) * 1024
        length = _decode(key, start, duration, succ_start, succ, pred_start, source, demand, capacity, used, missing)
        for node in range(n):
            key[node] = (length - start[node] - duration[node]) * 1024
        length = _decode(key, start, duration, pred_start, source, succ_start, succ, demand, capacity, used, missing)
        if shortest < 0 or length < shortest:
            shortest = length
            for node in range(n):
                best[node] = start[node]
        if shortest <= enough:
            break
        if reached < 0 or length <= reached:
            idle = 0 if length < reached else idle + 1
            reached = length
            for node in range(n):
                current[node] = start[node]
        else:
            idle += 1
        if idle > _PATIENCE:
            # Another schedule: the best one, or what has just come out.
            idle = 0
            from_best = _draw(chance, 2) == 0
            for node in range(n):
                current[node] = best[node] if from_best else start[node]
            reached = shortest if from_best else length
        shift = _SHIFTS[number % 4] * shortest * 1024 // 100 + 2
        few = number % 3 == 0
        for node in range(n):
            key[node] = current[node] * 1024
            if not few or _draw(chance, 8) == 0:
                key[node] += _draw(chance, shift) - shift // 2
    return best


def _draw(chance: Any, sides: int) -> int:
    """A number below ``sides``, at random: the linear congruential generator of the C standard's example (the high
    bits of it)."""
    chance[0] = (chance[0] * 1103515245 + 12345) & 0x7FFFFFFF
    return (chance[0] >> 8) % sides  # type: ignore[no-any-return]


def _decode(
    key: Any,
    start: Any,
    duration: Any,
    pred_start: Any,
    source: Any,
    succ_start: Any,
    succ: Any,
    demand: Any,
    capacity: Any,
    used: Any,
    missing: Any,
) -> int:
    """The serial scheme: of what waits for nothing the activity of the least key comes next. Fills in starts; the
    makespan."""
    n = len(duration)
    kinds = len(capacity)
    for at in range(len(used)):
        used[at] = 0
    ready = [0 for _ in range(0)]
    for node in range(n):
        missing[node] = pred_start[node + 1] - pred_start[node]
        if missing[node] == 0:
            ready.append(node)
    length = 0
    while len(ready) > 0:
        place = 0
        for at in range(1, len(ready)):
            if key[ready[at]] < key[ready[place]]:
                place = at
        node = ready[place]
        ready[place] = ready[len(ready) - 1]
        ready.pop()
        begin = 0
        for arc in range(pred_start[node], pred_start[node + 1]):
            begin = max(begin, start[source[arc]] + duration[source[arc]])
        # The first time from there on at which no step of it is too full.
        at = begin
        while at < begin + duration[node]:
            for kind in range(kinds):
                if used[at * kinds + kind] + demand[node * kinds + kind] > capacity[kind]:
                    begin = at + 1
                    break
            at += 1
        for at in range(begin, begin + duration[node]):
            for kind in range(kinds):
                used[at * kinds + kind] += demand[node * kinds + kind]
        start[node] = begin
        length = max(length, begin + duration[node])
        for arc in range(succ_start[node], succ_start[node + 1]):
            missing[succ[arc]] -= 1
            if missing[succ[arc]] == 0:
                ready.append(succ[arc])
    return length
