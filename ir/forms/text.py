"""The stable text form of a graph, for reading and for golden tests.

One line a node: ``%12 = exp x@0x400 f32[128,256]  # flash.py:14``. No absolute path and no address of this process is
in it, so that the same kernel gives the same text everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..columns import GraphColumns
from ..dtypes import DType
from ..memories import Memory
from ..ops import OPERATIONS, End
from ..tables import UNPLACED, IntArray, Mode
from ..target import Target
from .printable import printable as quote

__all__ = ["describe_access", "described_by", "format_graph", "format_node", "graph_lines", "quote"]

#: How many nodes are written at a time.
_BATCH = 8192


def _escaped(name: str) -> str:
    """As :func:`quote`, and different names stay different: a backslash is doubled, so that a line break and a name
    that spells one with a backslash do not look alike."""
    return quote(name.replace("\\", "\\\\"))


def describe_access(graph: GraphColumns, row: int) -> str:
    """``k[0:128, 0:64]`` of an HBM tensor, ``m@0x400 f32[128,1]`` of scratch."""
    accesses, storages = graph.accesses, graph.storages
    storage = int(accesses.storage[row])
    view = graph.layouts[accesses.layout[row]]
    whole = graph.layouts[storages.layout[storage]]
    offset = int(accesses.offset[row])
    name = _escaped(graph.names[storages.name[storage]])
    if not graph.in_scratch[storage]:
        return f"{name}+{offset} {view!r}"
    start = int(storages.address[storage])
    address = "?" if start == UNPLACED else f"{start + offset * view.dtype.itemsize:#x}"
    memory = graph.target.memory_names[storages.memory[storage]]
    where = "" if memory == graph.target.results else f"{_escaped(memory)}:"
    text = f"{name or f'#{storage}'}@{where}{address} {view!r}"
    return text if view is whole else f"{text} of {whole!r}"


def described_by(graph: GraphColumns, rows: slice = slice(None)) -> tuple[IntArray, ...]:
    """Columns of some accesses: those that are equal in all of them :func:`describe_access` describes alike, such as
    scratch of one name, address and shape, made anew in every iteration. Without a name the allocation itself is
    named."""
    accesses, storages = graph.accesses, graph.storages
    storage = accesses.storage[rows]
    named = np.array([bool(name) for name in graph.names], dtype=np.bool_)[storages.name[storage]]
    own = np.where(named & graph.in_scratch[storage], -1, storage)
    columns = (storages.name, storages.memory, storages.address, storages.layout)
    return (own, *(column[storage] for column in columns), accesses.offset[rows], accesses.layout[rows])


def _value(value: Any) -> str:
    if isinstance(value, DType):
        return value.short
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, tuple):
        return "(" + ",".join(map(_value, value)) + ")"
    return repr(value)


def _static(attributes: Mapping[str, Any], name: str) -> str:
    shown = [
        f"{key}={_value(value)}" for key, value in attributes.items() if not (name == "load" and key in _FROM_RESULT)
    ]
    return f" {{{', '.join(shown)}}}" if shown else ""


#: What a load's result says anyway.
_FROM_RESULT = ("shape", "dtype")


def format_node(graph: GraphColumns, index: int) -> str:
    """One node as one line, without indentation."""
    return next(_NodeLines(graph).of_nodes(index, index + 1))


class _NodeLines:
    """Writes nodes as lines; whatever several nodes share is written once."""

    def __init__(self, graph: GraphColumns) -> None:
        self.graph = graph
        self.accesses: dict[tuple[int, ...], str] = {}
        self.statics: dict[tuple[int, int], str] = {}
        self.places: dict[int, str] = {}

    def of_nodes(self, start: int, stop: int) -> Iterator[str]:
        """The lines of the nodes from ``start`` up to ``stop``."""
        graph, nodes = self.graph, self.graph.nodes
        reads, writes = self._touched(start, stop)
        columns = (nodes.op, nodes.channel, nodes.attributes, nodes.scope, nodes.stack)
        rows = zip(*(column[start:stop].tolist() for column in columns), reads, writes, strict=True)
        for index, (op, channel, attributes, scope, stack, read, written) in enumerate(rows, start):
            operation = OPERATIONS.by_code(op)
            text = f"%{index} = {operation.name}"
            if channel >= 0:
                side = graph.channels.direction if operation.end is End.SENDS else graph.channels.arrival
                text += f" {graph.target.directions[side[channel]]}"
            if read:
                text += " " + ", ".join(read)
            text += self._static(attributes, op)
            if written:
                text += " -> " + ", ".join(written)
            if operation.is_marker:
                name = self._scope_name(scope)
                text += f" {name + ' ' if name else ''}cursor={int(graph.scopes.base[scope])}"
            yield text + self._place(stack)

    def _touched(self, start: int, stop: int) -> tuple[list[list[str]], list[list[str]]]:
        """What each node reads, and what it writes."""
        graph, accesses = self.graph, self.graph.accesses
        reads: list[list[str]] = [[] for _ in range(start, stop)]
        writes: list[list[str]] = [[] for _ in range(start, stop)]
        rows = slice(int(graph.access_start[start]), int(graph.access_start[stop]))
        alike = described_by(graph, rows)
        keys = zip(*(column.tolist() for column in alike), strict=True)
        each = zip(accesses.node[rows].tolist(), accesses.mode[rows].tolist(), keys, strict=True)
        for row, (node, mode, key) in enumerate(each, rows.start):
            text = self.accesses.get(key)
            if text is None:
                text = self.accesses[key] = describe_access(graph, row)
            (reads if mode == Mode.READ else writes)[node - start].append(text)
        return reads, writes

    def _scope_name(self, scope: int) -> str:
        graph = self.graph
        if graph.grid and graph.scopes.parent[graph.scopes.parent[scope]] < 0:
            return graph.describe_scope(scope)
        return _escaped(self.graph.names[self.graph.scopes.name[scope]])

    def _static(self, attributes: int, op: int) -> str:
        key = attributes, op
        if key not in self.statics:
            self.statics[key] = _static(self.graph.attributes[attributes], OPERATIONS.by_code(op).name)
        return self.statics[key]

    def _place(self, stack: int) -> str:
        if stack not in self.places:
            place = self.graph.location(stack)
            self.places[stack] = f"  # {_escaped(os.path.basename(place.file))}:{place.line}" if place else ""
        return self.places[stack]


def _memories(target: Target) -> str:
    """``scratch=1048576 align=16``: the memory where results go, and the further ones by name."""
    own: list[Memory] = [target.memories[place] for place in target.scratch_memories]
    own.sort(key=lambda memory: memory.name != target.results)
    return " ".join(
        f"{'scratch' if memory.name == target.results else _escaped(memory.name)}={memory.bytes} align={memory.align}"
        + (f" partitions={memory.partitions}" if memory.partitions else "")
        for memory in own
    )


def format_graph(graph: GraphColumns) -> str:
    """The whole graph: target, tensors, then each rank's nodes, indented by scope."""
    return "".join(f"{line}\n" for line in graph_lines(graph))


def graph_lines(graph: GraphColumns) -> Iterator[str]:
    """The lines of :func:`format_graph`, made as they are asked for."""
    t = graph.target
    yield (
        f"kernel {_escaped(graph.kernel)} ranks={graph.ranks}"
        + (f" grid=({','.join(map(str, graph.grid))})" if graph.grid else "")
        + (f" buffers={graph.buffers}" if graph.buffers else "")
        + ("" if graph.is_scoped else " lifetimes=automatic")
    )
    yield (
        f"target {_memories(t)} topology={t.topology}"
        + (f"({','.join(map(str, t.shape))}{' wraps' if t.wraps else ''})" if t.shape else "")
        + f" slots={t.slots}"
    )
    for name, row in graph.tensors.items():
        yield f"hbm {_escaped(name)} {graph.layouts[graph.storages.layout[row]]!r}"
    entering, leaving = (OPERATIONS.code(name) for name in ("scope_enter", "scope_exit"))
    lines = _NodeLines(graph)
    depth, rank = 0, -1
    for start in range(0, len(graph.nodes), _BATCH):
        stop = min(start + _BATCH, len(graph.nodes))
        codes, ranks = (column[start:stop].tolist() for column in (graph.nodes.op, graph.nodes.rank))
        for code, its_rank, line in zip(codes, ranks, lines.of_nodes(start, stop), strict=True):
            if its_rank != rank:
                rank, depth = its_rank, 0
                yield f"rank {rank}"
            depth -= code == leaving
            yield "  " * (depth + 1) + line
            depth += code == entering
    for f in graph.bounds_faults:
        name = _escaped(graph.names[graph.storages.name[f.storage]])
        yield f"out of bounds: %{f.node} {name} {[*f.lower]}..{[*f.upper]}"
