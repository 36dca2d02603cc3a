"""Where two graphs first do something else: the question whether a kernel does the same each time it is called."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import attrs
import numpy as np

from .graph import Graph
from .tables import IntArray

__all__ = ["Difference", "first_difference"]


@attrs.frozen
class Difference:
    """The first row of two graphs that differs: of their nodes, or (``nodes`` alike) of their ``storages``. ``first``
    and ``second`` are its numbers; None where one graph has ended."""

    table: str
    first: int | None
    second: int | None


def first_difference(one: Graph, other: Graph) -> Difference | None:
    """The first node that differs in operation, operands, values or place; where all are alike, the first allocation;
    None where the graphs do the same. Names say nothing of what is done, and are not compared."""
    if one == other:
        return None
    known: dict[Hashable, int] = {}
    width = max(int(np.diff(graph.access_start).max(initial=0)) for graph in (one, other))
    numbers = [_Numbers(graph, known, width) for graph in (one, other)]
    for table in ("nodes", "storages"):
        row = _first_row(*(getattr(number, table)() for number in numbers))
        if row is not None:
            counts = [len(getattr(graph, table)) for graph in (one, other)]
            return Difference(table, *(row if row < count else None for count in counts))
    return None


def _first_row(one: IntArray, other: IntArray) -> int | None:
    shared = min(len(one), len(other))
    unlike = np.flatnonzero(np.any(one[:shared] != other[:shared], axis=1)) if shared else np.zeros(0, np.int64)
    if len(unlike):
        return int(unlike[0])
    return None if len(one) == len(other) else shared


class _Numbers:
    """What the numbers in a graph's columns stand for, numbered alike for several graphs by ``known``; ``width`` is the
    most accesses that a node of any of them has."""

    def __init__(self, graph: Graph, known: dict[Hashable, int], width: int) -> None:
        self._graph, self._width = graph, width
        self._layout = _table(known, (("layout", layout) for layout in graph.layouts))
        self._attributes = _table(known, (("attributes", repr(sorted(a.items()))) for a in graph.attributes))
        stacks: list[int] = []
        for row in range(len(graph.stacks)):
            caller = int(graph.stacks.caller[row])
            key = ("stack", graph.location(row), stacks[caller] if caller >= 0 else -1)
            stacks.append(known.setdefault(key, len(known)))
        ends = zip(graph.channels.sender.tolist(), graph.channels.direction.tolist(), strict=True)
        channels = _table(known, (("channel", *end) for end in ends))
        # The last one is what -1 finds.
        self._stack, self._channel = np.array([*stacks, -1], dtype=np.int64), np.append(channels, -1)

    def nodes(self) -> IntArray:
        """``(n, k)``: the columns of a node, with those of its accesses."""
        graph, nodes, accesses = self._graph, self._graph.nodes, self._graph.accesses
        columns = [nodes.op, nodes.rank, nodes.scope, nodes.command, nodes.dtype, self._channel[nodes.channel]]
        columns += [self._attributes[nodes.attributes], self._stack[nodes.stack], np.diff(graph.access_start)]
        used = [accesses.storage, accesses.offset, self._layout[accesses.layout], accesses.mode]
        place = np.arange(len(accesses)) - graph.access_start[accesses.node]
        for position in range(self._width):
            there = place == position
            for column in used:
                spread = np.full(len(nodes), -1, dtype=np.int64)
                spread[accesses.node[there]] = column[there]
                columns.append(spread)
        return np.column_stack(columns).astype(np.int64)

    def storages(self) -> IntArray:
        """``(n, k)``: the columns of a storage but its name."""
        s = self._graph.storages
        columns = [s.memory, s.rank, s.address, self._layout[s.layout], s.scope, self._stack[s.stack], s.born, s.freed]
        return np.column_stack(columns).astype(np.int64)


def _table(known: dict[Hashable, int], keys: Iterable[Hashable]) -> IntArray:
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
