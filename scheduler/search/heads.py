"""Heads that count what engines have to do: for each node a time before which no policy can start it.

The longest path to a node lets engines work on everything at once. But of a node's ancestors those that share an engine
run one after another: for any set of them, the least of their heads, their load and the least of the longest paths from
their ends to the node add up to a head of the node (the bound of a set in Carlier 1982, section 2; here the sets are
those met so far when walking back by heads). Heads so raised raise those that follow (adjustment of heads: Carlier and
Pinson 1989), so that a chain of products that each wait for two transfers on one channel comes out as long as it is.

Every node looks at its immediate predecessors; some look further back, at all their ancestors in a window of the order
of heads. Windows of several sizes are spread evenly, at the nodes on the longest paths of each stretch; small graphs
have them dense, so that the work stays proportional to the nodes.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...ir.arrays.compiling import run_loop
from ...ir.arrays.permutations import inverse_permutation
from ...ir.tables import IntArray
from .dag import Dag, longest_from_start, longest_to_end

__all__ = ["HeadsAndTails", "heads_and_tails"]


@attrs.frozen(eq=False)
class HeadsAndTails:
    """By node, int64 ``(n,)`` in picoseconds: it starts no earlier than ``head_ps``, and from its end to the end of all
    it takes no less than ``tail_ps``. ``longest_path_ps``: the longest path alone, releases included."""

    head_ps: IntArray
    tail_ps: IntArray
    longest_path_ps: int


def heads_and_tails(dag: Dag) -> HeadsAndTails:
    """The heads, and the tails: the heads of the reversed problem. The edges must close no cycle."""
    backwards = dag.reversed()
    head, to_end = longest_from_start(dag), longest_to_end(dag)
    through = head + to_end
    return HeadsAndTails(
        head_ps=_raised(dag, head, through),
        tail_ps=_raised(backwards, to_end - dag.duration_ps, through),
        longest_path_ps=int(through.max(initial=0)),
    )


def _raised(dag: Dag, head: IntArray, through: IntArray) -> IntArray:
    n = len(dag)
    # By heads: topological still (between nodes of one head the order decides), and what is close in time is close in
    # place.
    order = np.lexsort((inverse_permutation(dag.order), head))
    return run_loop(
        _raise_pass,
        n,
        head.copy(),
        order,
        inverse_permutation(order),
        _windows(n, through[order]),
        dag.duration_ps,
        dag.engine,
        dag.channels,
        dag.pred_start,
        dag.source,
    )


def _windows(n: int, through: IntArray) -> IntArray:
    """By place, how far the node there looks back; 0: at its immediate predecessors only. In each stretch the first of
    those on the longest paths looks."""
    window = np.zeros(n, dtype=np.int64)
    scales = [32, 128, 512, 2048, 8192] if n <= 100_000 else [64, 1024]
    overlap = 16 if n <= 1_500 else 4 if n <= 5_000 else 1
    for scale in scales:
        if scale >= 2 * n and scale > scales[0]:
            break
        stretch = np.arange(n) // (scale // overlap)
        by_stretch = np.lexsort((-through, stretch))
        first = np.ones(n, dtype=np.bool_)
        first[1:] = stretch[1:] != stretch[:-1]
        window[by_stretch[first]] = scale
    return window


def _raise_pass(
    head: Any,
    order: Any,
    place: Any,
    window: Any,
    duration: Any,
    engine: Any,
    channels: Any,
    pred_start: Any,
    source: Any,
) -> Any:
    """The loop: ``head`` comes in as the longest paths to the nodes."""
    n = len(order)
    # Of the ancestors met in the window of the node at hand (seen): the longest path from their ends to it.
    path = [0 for _ in range(n)]
    seen = [-1 for _ in range(n)]
    # By engine, of the ancestors that it works on: the least head and path, and the load.
    met = [-1 for _ in range(len(channels))]
    least_head = [0 for _ in range(len(channels))]
    least_path = [0 for _ in range(len(channels))]
    load = [0 for _ in range(len(channels))]
    for at in range(n):
        node = order[at]
        lowest = max(at - window[at], 0)
        looks_back = window[at] > 0
        earliest = head[node]
        for arc in range(pred_start[node], pred_start[node + 1]):
            before = source[arc]
            end = head[before] + duration[before]
            if end > earliest:
                earliest = end
            if looks_back and place[before] >= lowest:
                path[before] = 0
                seen[before] = node
            else:
                on = engine[before]
                if on >= 0:
                    if met[on] != node:
                        met[on] = node
                        least_head[on] = head[before]
                        least_path[on] = 0
                        load[on] = duration[before]
                    else:
                        load[on] += duration[before]
                        if head[before] < least_head[on]:
                            least_head[on] = head[before]
                        end = least_head[on] - (-load[on] // channels[on])
                        if end > earliest:
                            earliest = end
        if looks_back:
            for back in range(at - 1, lowest - 1, -1):
                before = order[back]
                if seen[before] != node:
                    continue
                on = engine[before]
                if on >= 0:
                    if met[on] != node:
                        met[on] = node
                        least_head[on] = head[before]
                        least_path[on] = path[before]
                        load[on] = duration[before]
                    else:
                        load[on] += duration[before]
                        if head[before] < least_head[on]:
                            least_head[on] = head[before]
                        if path[before] < least_path[on]:
                            least_path[on] = path[before]
                        end = least_head[on] - (-load[on] // channels[on]) + least_path[on]
                        if end > earliest:
                            earliest = end
                through = path[before] + duration[before]
                for arc in range(pred_start[before], pred_start[before + 1]):
                    further = source[arc]
                    if place[further] >= lowest:
                        if seen[further] != node:
                            seen[further] = node
                            path[further] = through
                        elif through > path[further]:
                            path[further] = through
        head[node] = earliest
    return head
