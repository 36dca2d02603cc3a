"""Where a scope would help: loops that take more scratch with each iteration, and scopes that hold what is dead."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.graph import Graph
from ...ir.tables import IntArray
from ...memory.liveness import Liveness
from .allocations import call_parts, line_numbers

__all__ = [
    "GROWTH_FROM",
    "DeadAtPeak",
    "UnscopedLoop",
    "dead_at_peak",
    "find_unscoped_loops",
    "peak_with_copies",
    "peak_with_scopes",
]

#: From how many allocations of one line on a loop is said to grow, unless an option says otherwise.
GROWTH_FROM = 3


@attrs.frozen(eq=False)
class UnscopedLoop:
    """Allocations of one loop and one scope instance of which each is dead before the same line makes the next one.

    ``rows`` are these (storage rows, ascending), ``starts`` those of its first line: each begins an iteration.
    ``kept`` are the allocations of other lines in between, which a later iteration still accesses, and of ``rows``
    those that are accessed after the loop's last allocation: what a scope must not take along.
    """

    rank: int
    scope: int
    rows: IntArray
    starts: IntArray
    kept: IntArray


def find_unscoped_loops(graph: Graph, live: Liveness, minimum: int) -> list[UnscopedLoop]:
    """All of them with ``minimum`` allocations or more of each line, in order of their first rows. None in a graph
    without scopes, whose allocations give their bytes back themselves."""
    if not graph.is_scoped:
        return []
    storages, lines = graph.storages, line_numbers(graph)
    known = np.flatnonzero((lines >= 0) & (storages.memory == live.memory))
    order = known[np.lexsort((known, lines[known], storages.scope[known]))]
    if not len(order):
        return []
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (storages.scope[order[1:]] != storages.scope[order[:-1]]) | (lines[order[1:]] != lines[order[:-1]])
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(order)))
    alive = np.zeros(len(order), dtype=np.bool_)
    alive[:-1] = ~new[1:] & (live.last_access[order[:-1]] >= storages.born[order[1:]])
    # A composite's buffers count, also those that a small product leaves unused.
    used = (live.last_access[order] >= 0) | (call_parts(graph)[order] > 0)
    grows = (counts >= minimum) & ~np.logical_or.reduceat(alive, starts) & np.logical_or.reduceat(used, starts)
    groups = [order[a : a + n] for a, n in zip(starts[grows].tolist(), counts[grows].tolist(), strict=True)]
    groups.sort(key=lambda group: (int(storages.scope[group[0]]), int(group[0])))
    loops: list[list[IntArray]] = []
    last = -1
    for group in groups:
        # Lines of which one allocates between two allocations of another belong to one loop.
        joins = loops and storages.scope[group[0]] == storages.scope[loops[-1][0][0]] and group[0] < last
        if joins:
            loops[-1].append(group)
            last = max(last, int(group[-1]))
        else:
            loops.append([group])
            last = int(group[-1])
    found = [_loop(graph, live, loop) for loop in loops]
    return sorted(found, key=lambda loop: int(loop.rows[0]))


def _loop(graph: Graph, live: Liveness, groups: list[IntArray]) -> UnscopedLoop:
    storages = graph.storages
    rows = np.sort(np.concatenate(groups))
    scope = int(storages.scope[rows[0]])
    between = np.arange(rows[0], rows[-1] + 1)
    others = np.setdiff1d(between[storages.scope[between] == scope], rows)
    starts = groups[0]
    next_start = np.append(storages.born[starts[1:]], np.iinfo(np.int64).max)
    ends = next_start[np.searchsorted(starts, others, side="right") - 1]
    late = rows[live.last_access[rows] > storages.born[rows[-1]]]
    last_iteration = rows >= starts[-1]
    late = late[np.isin(late, rows[last_iteration])]
    # What the last iteration itself goes on reading after its last allocation is no reason to keep it.
    stop = _last_node_of_loop(graph, rows)
    late = late[live.last_access[late] > stop]
    return UnscopedLoop(
        rank=int(storages.rank[rows[0]]),
        scope=scope,
        rows=rows,
        starts=starts,
        kept=np.union1d(others[live.last_access[others] >= ends], late),
    )


def _last_node_of_loop(graph: Graph, rows: IntArray) -> int:
    """The last node that the loop's last iteration runs, as far as can be told: behind its last allocation, as long as
    nodes come from lines that an earlier iteration came by."""
    storages, nodes = graph.storages, graph.nodes
    first, last = int(storages.born[rows[0]]), int(storages.born[rows[-1]])
    if last >= len(nodes):
        return len(nodes) - 1
    seen = np.unique(nodes.stack[first:last])
    behind = ~np.isin(nodes.stack[last:], seen) | (nodes.rank[last:] != nodes.rank[last])
    leaves = np.flatnonzero(behind)
    return last + (int(leaves[0]) if len(leaves) else len(behind)) - 1


def peak_with_scopes(graph: Graph, live: Liveness, loops: list[UnscopedLoop], rank: int) -> int:
    """The peak of a rank if each iteration of these loops of it gave its ``rows`` back, in bytes."""
    storages = graph.storages
    mine = np.flatnonzero((storages.memory == live.memory) & (storages.rank == rank))
    ends = storages.address[mine] + live.held_bytes[mine]
    for loop in loops:
        closes = graph.scopes.exit[loop.scope]
        stop = len(mine) if closes < 0 else int(np.searchsorted(storages.born[mine], closes))
        first = int(np.searchsorted(mine, loop.rows[0]))
        given = np.setdiff1d(loop.rows, loop.kept)
        iteration = np.searchsorted(loop.starts, given, side="right")
        by_iteration = np.bincount(iteration, weights=live.held_bytes[given], minlength=len(loop.starts) + 1)
        before = np.cumsum(by_iteration).astype(np.int64)
        ends[first:stop] -= before[np.searchsorted(loop.starts, mine[first:stop], side="right") - 1]
    return int(ends.max(initial=0))


def peak_with_copies(graph: Graph, live: Liveness, loops: list[UnscopedLoop], rank: int) -> int:
    """The same at most, if each iteration gave what is ``kept`` back as well, copied into handles made before the loop:
    one for each line."""
    _, first = np.unique(graph.storages.stack[np.concatenate([loop.kept for loop in loops])], return_index=True)
    handles = np.concatenate([loop.kept for loop in loops])[first]
    all_given = [
        attrs.evolve(loop, rows=np.union1d(loop.rows, loop.kept), kept=np.zeros(0, dtype=np.int64)) for loop in loops
    ]
    return peak_with_scopes(graph, live, all_given, rank) + int(live.held_bytes[handles].sum())


@attrs.frozen(eq=False)
class DeadAtPeak:
    """What an open scope holds at its rank's peak though it is dead: ``rows`` (storage rows), all accessed for the last
    time at ``last_node`` or before. Given back there, they would bring the peak down to ``peak_bytes``. ``kept`` are
    the scope's allocations that were made before that and are needed after it; ``top`` is the allocation at the peak.
    """

    rank: int
    scope: int
    top: int
    rows: IntArray
    kept: IntArray
    last_node: int
    dead_bytes: int
    peak_bytes: int


def dead_at_peak(graph: Graph, live: Liveness, rank: int) -> DeadAtPeak | None:
    """Of the scopes open at a rank's peak the innermost by whose dead bytes the peak could fall; None for none. The
    kernel's own scope does not count: it has no end that could be moved."""
    held = live.held_at_peak(rank)
    if not len(held) or not graph.is_scoped:
        return None
    scope = int(graph.storages.scope[held[-1]])
    while graph.scopes.parent[scope] >= 0:
        found = _dead_of(graph, live, rank, scope, held)
        if found is not None:
            return found
        scope = int(graph.scopes.parent[scope])
    return None


def _dead_of(graph: Graph, live: Liveness, rank: int, scope: int, held: IntArray) -> DeadAtPeak | None:
    """For each last access at which dead bytes could be given back: the peak that would be left; the least of these."""
    storages = graph.storages
    top, last = int(held[-1]), live.last_access
    own = held[storages.scope[held] == scope]
    dead = own[(last[own] < storages.born[top]) & (last[own] >= 0)]
    if not len(dead):
        return None
    mine = np.flatnonzero((storages.memory == live.memory) & (storages.rank == rank))
    ends, born = storages.address[mine] + live.held_bytes[mine], storages.born[mine].astype(np.int64)
    inside = (born >= graph.scopes.enter[scope]) & (born < _exit(graph, scope))
    outside = int(ends[~inside].max(initial=0))
    ends, born = ends[inside], born[inside]
    dead = dead[np.argsort(last[dead], kind="stable")]
    instants, first = np.unique(last[dead], return_index=True)
    freed = np.cumsum(live.held_bytes[dead])[np.append(first[1:], len(dead)) - 1]
    split = np.searchsorted(born, instants, side="right")
    before = np.maximum.accumulate(np.append(0, ends))[split]
    after = np.append(np.maximum.accumulate(ends[::-1])[::-1], 0)[split] - freed
    # What is needed later takes bytes of its own before the scope, from its beginning on.
    last_of, born_of, size = last[own], storages.born[own], live.held_bytes[own]
    kept = np.array([int(size[(born_of <= t) & (last_of > t)].sum()) for t in instants.tolist()], dtype=np.int64)
    peaks = np.maximum(np.maximum(before + kept, after), outside)
    best = int(np.argmin(peaks))
    peak = int(peaks[best])
    if peak >= live.peak_bytes_by_rank[rank]:
        return None
    instant = int(instants[best])
    return DeadAtPeak(
        rank=rank,
        scope=scope,
        top=top,
        rows=np.sort(dead[last[dead] <= instant]),
        kept=own[(storages.born[own] <= instant) & (last[own] > instant)],
        last_node=instant,
        dead_bytes=int(freed[best]),
        peak_bytes=peak,
    )


def _exit(graph: Graph, scope: int) -> int:
    node = int(graph.scopes.exit[scope])
    return node if node >= 0 else len(graph)
