"""The dataflow graph: columns of nodes and accesses, with light views of single nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from . import dtypes
from .arrays.permutations import group_starts
from .columns import GraphColumns
from .dependence.edges import find_edges
from .dtypes import DType
from .forms.counts import plural
from .forms.html_table import html_table
from .forms.saved import write_columns
from .forms.text import describe_access, format_graph, format_node, quote
from .grid import coordinates
from .layout import Layout
from .memories import Memory
from .ops import OPERATIONS, End, Operand, Operation, Work
from .source.location import Location
from .tables import AccessKind, EdgeTable, IntArray, Mode, Reason

__all__ = ["Access", "Edge", "Graph", "Node", "Storage"]


@attrs.frozen(eq=False, repr=False, slots=False)
class Graph(GraphColumns):
    """A traced kernel: what every rank does, to which bytes, and what has to wait for what.

    Immutable. ``len(graph)`` counts nodes (markers included), ``graph[i]`` is a :class:`Node`; all is stored in columns
    (:class:`kernscope.ir.columns.GraphColumns`). Two graphs are equal when all their columns are.
    """

    # --- size and iteration -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: int) -> Node:
        """The node of an id; negative ids count from the end. Raises ``IndexError`` outside the graph."""
        number = range(len(self.nodes))[index]
        return Node(self, number)

    def __iter__(self) -> Iterator[Node]:
        return (Node(self, index) for index in range(len(self.nodes)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        fields = [f.name for f in attrs.fields(Graph) if f.name not in ("defaults", "branches", "facts")]
        return all(getattr(self, name) == getattr(other, name) for name in fields)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        grid = f", grid={self.grid}" if self.grid else ""
        return f"<Graph {quote(self.kernel)}: {len(self):,} nodes, {len(self.edges):,} edges, ranks={self.ranks}{grid}>"

    def __str__(self) -> str:
        """The stable text form."""
        return format_graph(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: how many nodes each operation has."""
        caption = f"{self.kernel}: {len(self):,} nodes, {len(self.edges):,} edges, {plural(self.ranks, 'rank')}"
        rows = [(name, f"{count:,}") for name, count in self.summary().items()]
        return html_table(quote(caption), rows, align=("left", "right"), row_heads=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file that :func:`kernscope.load` reads (:mod:`kernscope.ir.forms.saved`). The arrays it
        was traced with are not part of it. Raises ``OutputError`` where it cannot be written."""
        write_columns(self, path)

    # --- edges ------------------------------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> EdgeTable:
        """All edges (:class:`kernscope.ir.tables.EdgeTable`), found from the accesses and channels on first use."""
        return find_edges(self)

    @cached_property
    def edge_start(self) -> IntArray:
        """``(n + 1,)``: the edges into node i are rows ``edge_start[i]`` up to ``edge_start[i + 1]``."""
        return group_starts(self.edges.target, len(self.nodes))

    # --- the log ----------------------------------------------------------------------------------------------------

    def op_log(self) -> list[str]:
        """The ``kind/name`` entries in program order (rank-major); nodes without an entry are left out."""
        logs = [OPERATIONS.by_code(code).log for code in range(len(OPERATIONS))]
        return [entry for code in self.nodes.op.tolist() if (entry := logs[code])]

    def count(self, entry: str) -> int:
        """How many nodes have this log entry (``"memory/dma_read"``), or this operation's name where it has none."""
        matches = OPERATIONS.mask(lambda op: op.log == entry or (not op.log and op.name == entry))
        return int(np.count_nonzero(matches[self.nodes.op]))

    def summary(self) -> dict[str, int]:
        """How many nodes each operation has, by name, the most frequent first."""
        names = OPERATIONS.names
        codes, sizes = np.unique(self.nodes.op, return_counts=True)
        counts = {names[code]: size for code, size in zip(codes.tolist(), sizes.tolist(), strict=True)}
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    # --- lookups ----------------------------------------------------------------------------------------------------

    def storage(self, index: int) -> Storage:
        """A light view of a row of the storage table."""
        return Storage(self, range(len(self.storages))[index])


@attrs.frozen(eq=True)
class Access:
    """One access of a node: a view (``layout`` at ``offset`` elements) of a storage, read or written."""

    graph: Graph = attrs.field(repr=False)
    row: int

    @property
    def storage(self) -> Storage:
        return Storage(self.graph, int(self.graph.accesses.storage[self.row]))

    @property
    def mode(self) -> Mode:
        return Mode(self.graph.accesses.mode[self.row])

    @property
    def kind(self) -> AccessKind:
        return AccessKind(self.graph.accesses.kind[self.row])

    @property
    def offset(self) -> int:
        return int(self.graph.accesses.offset[self.row])

    @property
    def layout(self) -> Layout:
        return self.graph.layouts[int(self.graph.accesses.layout[self.row])]

    @property
    def byte_range(self) -> tuple[int, int]:
        """The covering bytes: in the rank's scratch, or in the HBM tensor."""
        start = self.storage.address + self.offset * self.layout.dtype.itemsize
        return start, start + self.layout.span * self.layout.dtype.itemsize

    def __str__(self) -> str:
        return describe_access(self.graph, self.row)


@attrs.frozen(eq=True)
class Storage:
    """A tensor in global memory or a scratch allocation."""

    graph: Graph = attrs.field(repr=False)
    row: int

    @property
    def memory(self) -> Memory:
        """The memory that it lies in."""
        return self.graph.target.memories[int(self.graph.storages.memory[self.row])]

    @property
    def is_hbm(self) -> bool:
        """Whether it is a tensor in global memory."""
        return self.memory.is_global

    @property
    def rank(self) -> int:
        return int(self.graph.storages.rank[self.row])

    @property
    def address(self) -> int:
        return int(self.graph.storages.address[self.row])

    @property
    def nbytes(self) -> int:
        return int(self.graph.storages.nbytes[self.row])

    @property
    def held_bytes(self) -> int:
        """The bytes taken of the memory: rounded up to its alignment."""
        return self.memory.held_bytes(self.nbytes, self.layout.shape)

    @property
    def layout(self) -> Layout:
        return self.graph.layouts[int(self.graph.storages.layout[self.row])]

    @property
    def scope(self) -> int:
        return int(self.graph.storages.scope[self.row])

    @property
    def born(self) -> int:
        return int(self.graph.storages.born[self.row])

    @property
    def freed(self) -> int:
        return int(self.graph.storages.freed[self.row])

    @property
    def name(self) -> str:
        return self.graph.names[int(self.graph.storages.name[self.row])]

    @property
    def location(self) -> Location | None:
        return self.graph.location(int(self.graph.storages.stack[self.row]))

    def __str__(self) -> str:
        return f"{quote(self.name) or f'#{self.row}'} {self.layout!r}"


@attrs.frozen
class Edge:
    """``target`` waits for ``source``, for a reason."""

    source: int
    target: int
    reason: Reason
    recycled: bool


@attrs.frozen(eq=True)
class Node:
    """A light view of one node: nothing is stored, everything is looked up in the graph's columns."""

    graph: Graph = attrs.field(repr=False)
    id: int

    @property
    def op(self) -> str:
        return self.operation.name

    @property
    def operation(self) -> Operation:
        return OPERATIONS.by_code(int(self.graph.nodes.op[self.id]))

    @property
    def log(self) -> str:
        return self.operation.log

    @property
    def rank(self) -> int:
        return int(self.graph.nodes.rank[self.id])

    @property
    def program(self) -> tuple[int, ...]:
        """Where its program stands in the launch grid; empty where there is no grid."""
        return coordinates(self.graph.grid, int(self.graph.program[self.id])) if self.graph.grid else ()

    @property
    def scope(self) -> int:
        return int(self.graph.nodes.scope[self.id])

    @property
    def command(self) -> int:
        return int(self.graph.nodes.command[self.id])

    @property
    def channel(self) -> int:
        return int(self.graph.nodes.channel[self.id])

    @property
    def engine(self) -> str:
        """The engine's name: ``"gemm"``, ..., ``"link:next"`` for a send, ``"none"`` for what takes no engine."""
        if self.operation.end is not End.SENDS:
            return self.operation.engine
        direction = int(self.graph.channels.direction[self.channel])
        return f"link:{self.graph.target.directions[direction]}"

    @property
    def work(self) -> Work:
        n = self.graph.nodes
        return (int(n.work0[self.id]), int(n.work1[self.id]), int(n.work2[self.id]))

    @property
    def dtype(self) -> DType:
        return dtypes.ALL[int(self.graph.nodes.dtype[self.id])]

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.graph.attributes[int(self.graph.nodes.attributes[self.id])]

    @property
    def location(self) -> Location | None:
        return self.graph.location(int(self.graph.nodes.stack[self.id]))

    @property
    def accesses(self) -> tuple[Access, ...]:
        start = self.graph.access_start
        return tuple(Access(self.graph, row) for row in range(int(start[self.id]), int(start[self.id + 1])))

    @property
    def reads(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.mode is Mode.READ)

    @property
    def writes(self) -> tuple[Access, ...]:
        return tuple(a for a in self.accesses if a.mode is Mode.WRITE)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in their order: layouts of what is read, with Python scalars at their positions."""
        found: list[Operand] = [a.layout for a in self.reads]
        for position, value in self.attributes.get("scalars", ()):
            found.insert(position, value)
        return tuple(found)

    @property
    def static(self) -> dict[str, Any]:
        """The operation's static values, as its rule and evaluation take them."""
        return {k: v for k, v in self.attributes.items() if k != "scalars"}

    @property
    def edges_in(self) -> tuple[Edge, ...]:
        """The edges this node waits for."""
        start, e = self.graph.edge_start, self.graph.edges
        return tuple(
            Edge(int(e.source[i]), self.id, Reason(e.reason[i]), bool(e.recycled[i]))
            for i in range(int(start[self.id]), int(start[self.id + 1]))
        )

    def __str__(self) -> str:
        return format_node(self.graph, self.id)
