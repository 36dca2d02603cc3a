"""Growth: loops without a scope, whose every iteration takes more scratch."""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.arrays.distinct import distinct_rows
from ..ir.columns import GraphColumns
from ..ir.source.location import Location
from ..ir.tables import IntArray

__all__ = ["Growth", "find_growth"]


@attrs.frozen
class Growth:
    """A line that allocates again and again in one scope instance: an iteration runs from one such allocation to the
    next.

    ``allocation`` is the first of them (a row of the storage table), ``scope`` the scope that holds them all,
    ``iterations`` how many there are up to the peak, ``bytes_per_iteration`` how far the scope's bytes grow from one to
    the next (the average, rounded down, where ``uniform`` is false), ``overflow_iteration`` the iteration, counted from
    1, in which the cursor first passes the budget (None: in none of them).
    """

    allocation: int
    scope: int
    location: Location | None
    iterations: int
    bytes_per_iteration: int
    uniform: bool
    overflow_iteration: int | None

    def __str__(self) -> str:
        about = "" if self.uniform else "about "
        place = f"line {self.location.line}" if self.location else f"allocation #{self.allocation}"
        text = f"peak grows by {about}{self.bytes_per_iteration:,} B per iteration of {place}"
        return text if self.overflow_iteration is None else f"{text}; overflows at iteration {self.overflow_iteration}"


def find_growth(graph: GraphColumns, at_peak: IntArray, rank: int) -> tuple[Growth, ...]:
    """The loops among the allocations that a rank holds at its peak (``at_peak``: storage rows of one memory, in order
    of making).

    Two allocations of one call stack in one scope instance are two iterations of a loop; those of one call (a composite
    has several) are one. Of the stacks of one loop the first stands for it, so that what an inner loop allocates counts
    for the outer one.
    """
    if len(at_peak) == 0 or not graph.is_scoped:  # an automatic lifetime ends with its last access: nothing piles up
        return ()
    storages = graph.storages
    memory = storages.memory[at_peak[0]]
    over = np.flatnonzero(graph.overflows & (storages.rank == rank) & (storages.memory == memory))
    first_over = int(over[0]) if len(over) else None
    found: list[Growth] = []
    for scope in np.unique(storages.scope[at_peak]).tolist():
        rows = at_peak[(storages.scope[at_peak] == scope) & (storages.stack[at_peak] >= 0)]
        for starts in _loops(graph, rows):
            found.append(_measure(graph, starts, scope, first_over))
    found.sort(key=lambda growth: growth.allocation)
    return tuple(found)


def _loops(graph: GraphColumns, rows: IntArray) -> list[IntArray]:
    """For each loop the allocations that begin its iterations: those of its first stack."""
    storages = graph.storages
    rows = rows[np.sort(distinct_rows(storages.stack[rows], storages.born[rows]).first)]
    order = rows[np.argsort(storages.stack[rows], kind="stable")]
    _, starts, counts = np.unique(storages.stack[order], return_index=True, return_counts=True)
    repeated = [order[a : a + n] for a, n in zip(starts.tolist(), counts.tolist(), strict=True) if n >= 2]
    repeated.sort(key=lambda group: int(group[0]))
    loops: list[IntArray] = []
    for group in repeated:
        if not loops or group[0] > loops[-1][-1]:
            loops.append(group)
    return loops


def _measure(graph: GraphColumns, starts: IntArray, scope: int, first_over: int | None) -> Growth:
    storages = graph.storages
    steps = np.diff(storages.address[starts])
    return Growth(
        allocation=int(starts[0]),
        scope=scope,
        location=graph.location(int(storages.stack[starts[0]])),
        iterations=len(starts),
        bytes_per_iteration=int(steps.sum()) // len(steps),
        uniform=bool((steps == steps[0]).all()),
        overflow_iteration=_iteration_of(graph, starts, first_over),
    )


def _iteration_of(graph: GraphColumns, starts: IntArray, row: int | None) -> int | None:
    """The iteration, counted from 1, in which an allocation is made; None outside the loop."""
    if row is None or row < starts[0]:
        return None
    number = int(np.searchsorted(starts, row, side="right"))
    if number < len(starts):
        return number
    # After the last start: in the loop's last iteration if an earlier one came by the same line.
    stacks = graph.storages.stack[starts[0] : starts[-1] + 1]
    return number if bool((stacks == graph.storages.stack[row]).any()) else None
