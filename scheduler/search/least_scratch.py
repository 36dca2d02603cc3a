"""An order of nodes, one after another, that needs little scratch: a beam over sets of nodes that are closed under
predecessors.

What is held after such a set has run depends on the set alone, not on its order. So of all orders of one set the one of
the least peak is kept, and of all sets of one size the few of the least peak, then of the least that they hold. With a
beam that is wide enough this is the exact dynamic program over downsets; a narrow one finds the least peak of nearly
all small graphs.
"""

from __future__ import annotations

import numpy as np

from ...ir.tables import IntArray
from .dag import Dag

__all__ = ["LARGEST_BEAM", "least_scratch_order"]

#: Above so many nodes the sets alone take too much memory.
LARGEST_BEAM = 5_000

#: How many sets of one size are kept, at most; and how many nodes are tried as the next one, in all.
_WIDTH = 64
_TRIED = 600_000


def least_scratch_order(dag: Dag, nbytes: IntArray) -> IntArray:
    """A permutation ``(n,)`` in which every edge goes forward. The edges must close no cycle. In larger graphs the beam
    is narrower."""
    n = len(dag)
    size: list[int] = nbytes.tolist()
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for source, target in zip(dag.source.tolist(), dag.target.tolist(), strict=True):
        before[target].append(source)
        after[source].append(target)
    needs = [sum(1 << node for node in each) for each in before]
    readers = [sum(1 << node for node in each) for each in after]
    # By set: the peak so far, what is held, the nodes that could be next, and how it came about.
    sets: dict[int, tuple[int, int, tuple[int, ...], _Step | None]]
    sets = {0: (0, 0, tuple(node for node in range(n) if not needs[node]), None)}
    tried = 0
    for placed in range(n):
        following: dict[int, tuple[int, int, tuple[int, ...], _Step | None]] = {}
        for done, (peak, held, ready, last) in sets.items():
            tried += len(ready)
            for node in ready:
                now = done | 1 << node
                reached = max(peak, held + size[node])
                if now in following and following[now][0] <= reached:
                    continue
                freed = 0 if readers[node] else size[node]
                freed += sum(size[other] for other in before[node] if not readers[other] & ~now)
                opened = [other for other in after[node] if not needs[other] & ~now]
                left = (*(other for other in ready if other != node), *opened)
                following[now] = (reached, held + size[node] - freed, left, _Step(node, last))
        # What is left of the work, over the sizes that are left, at as many nodes a set as there are now.
        width = (_TRIED - tried) * len(sets) // max((n - placed) * sum(len(each[2]) for each in sets.values()), 1)
        width = max(1, min(_WIDTH, width))
        kept = sorted(following.items(), key=lambda each: (each[1][0], each[1][1], each[0]))[:width]
        sets = dict(kept)
    step = min(sets.values(), key=lambda each: each[0])[3]
    order: list[int] = []
    while step is not None:
        order.append(step.node)
        step = step.before
    return np.array(order[::-1], dtype=np.int64)


class _Step:
    """The last node of an order, and the order before it: orders that begin alike share their beginnings."""

    __slots__ = ("before", "node")

    def __init__(self, node: int, before: _Step | None) -> None:
        self.node, self.before = node, before
