"""Values that are accumulated across iterations, and how precisely: sums that go around a loop."""

from __future__ import annotations

import itertools

import attrs
import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.dtypes import DType
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS, Linear
from ...ir.tables import IntArray, Mode, Reason

__all__ = ["Accumulation", "find_narrow_accumulations"]

#: An iteration's chain of operations longer than this is not followed.
_LONGEST_CHAIN = 2_000


@attrs.frozen
class Accumulation:
    """A sum that goes around a loop in a narrow float.

    ``node`` is the sum's second instance, ``nodes`` are all of them, on all ranks. ``storage`` is what holds the value
    between iterations, in ``dtype``; ``keeper`` is the copy that puts it there, None where the sum itself does.
    ``in_place`` says whether that is one allocation for all iterations: else each makes a fresh one.
    """

    node: int
    nodes: tuple[int, ...]
    storage: int
    dtype: DType
    keeper: int | None
    in_place: bool


def find_narrow_accumulations(graph: Graph, iterations: int = 2) -> list[Accumulation]:
    """Sums (add, sub, fma, dot with ``acc=``) of one call stack, each of which takes in the one before it, with a value
    of at most 16 bits on the way around; of ``iterations`` instances or more on a rank. In order of their nodes.

    From the second instance (and from the last one, since a loop's first iterations may differ) the operands are
    followed back along data edges, through operations that keep a sum a sum, until the instance before it is met. A
    running maximum is no sum, nor is a value that goes through a product with itself.
    """
    narrow = np.array([_is_narrow(layout.dtype) for layout in graph.layouts], dtype=np.bool_)
    if not narrow.any():
        return []
    walker = _Walker(graph, narrow)
    found: list[Accumulation] = []
    settled: set[int] = set()
    for stack, instances in _repeated_sums(graph, iterations):
        if stack in settled:
            continue
        for before, after in dict.fromkeys(((instances[0], instances[1]), (instances[-2], instances[-1]))):
            ring = walker.ring(before, after)
            if not any(walker.is_narrow(node) for node in ring):
                continue
            # Several sums of one iteration are one accumulation.
            settled.update(int(graph.nodes.stack[node]) for node in ring)
            found.append(_describe(graph, walker, ring, after, stack))
            break
    return sorted(found, key=lambda accumulation: accumulation.node)


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.itemsize <= 2


def _sums(graph: Graph) -> IntArray:
    """The nodes that sum, without those of composites (these accumulate in f32)."""
    nodes = graph.nodes
    # What adds in an operand that it has: a dot accumulates only with a third one. Scalars are operands, too, but no
    # accesses: of one that is linear in its first operand any number of reads will do.
    least = np.array([min(op.linear.operands) if op.linear and op.linear.adds else -1 for op in OPERATIONS.values()])
    reads = np.bincount(graph.accesses.node[graph.accesses.mode == Mode.READ], minlength=len(nodes))
    chosen = (least[nodes.op] >= 0) & (reads > least[nodes.op])
    chosen &= nodes.command == np.arange(len(nodes))
    return np.flatnonzero(chosen & (nodes.stack >= 0))


def _repeated_sums(graph: Graph, iterations: int) -> list[tuple[int, list[int]]]:
    """The call stack and the instances of every sum that a rank runs often enough, in order of the first one."""
    sums = _sums(graph)
    stacks = graph.nodes.stack[sums]
    groups = distinct_rows(graph.nodes.rank[sums], stacks).in_order_met()
    return [(int(stacks[one[0]]), sums[one].tolist()) for one in groups if len(one) >= max(iterations, 2)]


class _Walker:
    """Follows operands back along data edges."""

    def __init__(self, graph: Graph, narrow: IntArray) -> None:
        self._graph = graph
        self._narrow = narrow

    def target(self, node: int) -> int:
        """The row of the access with which a node writes: its last one."""
        return int(self._graph.access_start[node + 1]) - 1

    def is_narrow(self, node: int) -> bool:
        """Whether what a node writes is a float of 16 bits or fewer."""
        return bool(self._narrow[self._graph.accesses.layout[self.target(node)]])

    def ring(self, before: int, after: int) -> list[int]:
        """The nodes by which ``after`` takes in the result of ``before``, itself included, ascending; none where it
        does not."""
        sources: dict[int, list[list[int]]] = {}
        waiting = [after]
        while waiting:
            node = waiting.pop()
            if node in sources or node == before:
                continue
            if len(sources) == _LONGEST_CHAIN:
                return []
            sources[node] = self._sources(node, before)
            waiting += [source for operand in sources[node] for source in operand]
        derived = {before}
        for node in sorted(sources):
            operands = sum(any(source in derived for source in operand) for operand in sources[node])
            linear = self._linear(node)
            if operands == 1 or (operands and linear is not None and linear.jointly):
                derived.add(node)
        return sorted(derived - {before}) if after in derived else []

    def _linear(self, node: int) -> Linear | None:
        return OPERATIONS.by_code(int(self._graph.nodes.op[node])).linear

    def _sources(self, node: int, first: int) -> list[list[int]]:
        """By operand that keeps a sum a sum: the nodes from ``first`` on whose results it reads."""
        graph, linear = self._graph, self._linear(node)
        if linear is None or graph.nodes.command[node] != node:
            return []
        start, stop = int(graph.access_start[node]), self.target(node)
        scalars = dict(graph[node].attributes.get("scalars", ()))
        places = (place for place in itertools.count() if place not in scalars)
        reads = [
            int(graph.accesses.storage[row])
            for row, place in zip(range(start, stop), places, strict=False)
            if place in linear.operands
        ]
        edges = graph.edges
        rows = np.arange(int(graph.edge_start[node]), int(graph.edge_start[node + 1]))
        rows = rows[(edges.reason[rows] == Reason.DATA) & (edges.source[rows] >= first)]
        writers = edges.source[rows].tolist()
        written = [int(graph.accesses.storage[self.target(writer)]) for writer in writers]
        return [[w for w, storage in zip(writers, written, strict=True) if storage == read] for read in reads]


def _describe(graph: Graph, walker: _Walker, ring: list[int], after: int, stack: int) -> Accumulation:
    """The allocation that the ring writes over again, else the narrow one that is made anew."""
    accesses = graph.accesses
    writes = np.bincount(accesses.storage[accesses.mode == Mode.WRITE], minlength=len(graph.storages))
    narrow = [node for node in ring if walker.is_narrow(node)]
    storages = {node: int(accesses.storage[walker.target(node)]) for node in narrow}
    kept = [node for node in narrow if writes[storages[node]] > 1]
    holder = kept[-1] if kept else (after if after in storages else narrow[-1])
    codes = graph.nodes.op
    return Accumulation(
        node=after,
        nodes=tuple(np.intersect1d(np.flatnonzero(graph.nodes.stack == stack), _sums(graph)).tolist()),
        storage=storages[holder],
        dtype=graph.layouts[accesses.layout[walker.target(holder)]].dtype,
        keeper=holder if OPERATIONS.copies[codes[holder]] else None,
        in_place=bool(kept),
    )
