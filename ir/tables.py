"""The columns of a graph. A row is a node, an access, a storage, a scope, a frame, ...; a column is a numpy array.

Everything downstream works on these arrays; object views (:class:`kernscope.ir.graph.Node`) are made on demand.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar

import attrs
import numpy as np

from .layout import Layout, Shape

__all__ = [
    "UNPLACED",
    "AccessKind",
    "AccessTable",
    "BoundsFault",
    "ChannelTable",
    "EdgeTable",
    "FrameTable",
    "IntArray",
    "Mode",
    "NodeTable",
    "Reason",
    "ScopeTable",
    "StackTable",
    "StorageTable",
]

IntArray = np.ndarray[Any, np.dtype[Any]]


class Mode(enum.IntEnum):
    """What an access does. (Room: atomics.)"""

    READ = 0
    WRITE = 1


class AccessKind(enum.IntEnum):
    """What an access covers: a box of its storage, or a flat range of elements that no box can express; or what an
    :class:`~kernscope.ir.indices.Index` among its node's attributes names: rows (one dimension of a tile is indexed) or
    a list of elements. Then its layout is the flat range from the first element to the last: what is ordered by."""

    BOX = 0
    RANGE = 1
    ROWS = 2
    LIST = 3

    @property
    def is_indexed(self) -> bool:
        """Whether an index names the elements."""
        return self >= AccessKind.ROWS


class Reason(enum.IntEnum):
    """Why one node waits for another. A pair with several reasons keeps the first in this order."""

    DATA = 0
    MESSAGE = 1
    CREDIT = 2
    FIFO = 3
    CONTROL = 4
    WAR = 5
    WAW = 6
    ORDER = 7

    @property
    def label(self) -> str:
        return self.name.lower()


#: The address of an allocation that has none yet: of automatic lifetime, and not placed.
UNPLACED = -1


@attrs.frozen(eq=False)
class Table:
    """Base of all tables: equal columns make equal tables."""

    #: numpy dtypes of the columns, by name; subclasses say what each holds.
    dtypes: ClassVar[dict[str, str]] = {}

    def columns(self) -> dict[str, IntArray]:
        """The columns by name, in declaration order."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}

    def __len__(self) -> int:
        return len(next(iter(self.columns().values())))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.columns(), other.columns()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal by value, and therefore not hashable

    @classmethod
    def make(cls, **columns: Any) -> Any:
        """A table of these columns, each brought to its declared dtype and made read-only."""
        ready = {}
        for name, dtype in cls.dtypes.items():
            column = np.ascontiguousarray(columns[name], dtype=dtype)
            column.flags.writeable = False
            ready[name] = column
        return cls(**ready)


@attrs.frozen(eq=False)
class NodeTable(Table):
    """Nodes, rank-major, program order within a rank: a node's id is its row.

    ``op`` is a code of ``ir.ops.OPERATIONS``; ``scope`` a row of the scope table (a marker belongs to the scope it
    opens or closes; -1: none, as in all of a graph without scopes); ``stack`` a row of the stack table (-1: unknown);
    ``attributes`` an index into ``Graph.attributes``; ``work0..2`` as ``Operation.work_kind`` says (bytes; M, N, K;
    elements); ``dtype`` the index of the dtype the work is done in (of a dot: its operands'); ``channel`` a row of the
    channel table for sends and receives, else -1; ``command`` the id of the first node of the command that the node
    belongs to: its own id except within a composite.
    """

    op: IntArray
    rank: IntArray
    scope: IntArray
    stack: IntArray
    attributes: IntArray
    work0: IntArray
    work1: IntArray
    work2: IntArray
    dtype: IntArray
    channel: IntArray
    command: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "op": "int16",
        "rank": "int32",
        "scope": "int32",
        "stack": "int32",
        "attributes": "int32",
        "work0": "int64",
        "work1": "int32",
        "work2": "int32",
        "dtype": "int8",
        "channel": "int32",
        "command": "int32",
    }


@attrs.frozen(eq=False)
class AccessTable(Table):
    """Accesses in node order; within a node the operands it reads in their order, then what it writes.

    ``storage`` is a row of the storage table, ``mode`` a :class:`Mode`, ``kind`` an :class:`AccessKind`; the view is
    ``layout`` (an index into ``Graph.layouts``) at ``offset`` elements past the storage's start.
    """

    node: IntArray
    storage: IntArray
    mode: IntArray
    kind: IntArray
    offset: IntArray
    layout: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "node": "int32",
        "storage": "int32",
        "mode": "uint8",
        "kind": "uint8",
        "offset": "int64",
        "layout": "int32",
    }


@attrs.frozen(eq=False)
class StorageTable(Table):
    """Tensors in global memory (first, in argument order) and scratch allocations (in order of allocation).

    ``memory`` is a place in ``Target.memories``; ``rank`` is -1 for a tensor; ``address`` the first byte in the rank's
    own memory (0 for a tensor, ``UNPLACED`` while it has none); ``nbytes`` the bytes, before rounding; ``layout`` its
    dense layout; ``scope`` the scope that frees it (-1 for a tensor, and for an allocation of automatic lifetime);
    ``stack`` where it was made; ``name`` an index into ``Graph.names``; ``born`` the id that the next node had when it
    was made, ``freed`` the ``scope_exit`` node that frees it (-1: never).
    """

    memory: IntArray
    rank: IntArray
    address: IntArray
    nbytes: IntArray
    layout: IntArray
    scope: IntArray
    stack: IntArray
    name: IntArray
    born: IntArray
    freed: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "memory": "uint8",
        "rank": "int32",
        "address": "int64",
        "nbytes": "int64",
        "layout": "int32",
        "scope": "int32",
        "stack": "int32",
        "name": "int32",
        "born": "int32",
        "freed": "int32",
    }


@attrs.frozen(eq=False)
class ScopeTable(Table):
    """Scopes, in order of opening; each rank's first one is its kernel's own, without markers. There are none at all in
    a graph whose allocations have automatic lifetimes.

    ``parent`` is -1 for a kernel's own scope; ``enter`` and ``exit`` are the marker nodes (-1 for it); ``base`` is the
    cursor on entry of the memory where results go, in bytes (with several buffers: where the scope's own copy begins);
    ``name`` an index into ``Graph.names``; ``stack`` where it was opened (-1).
    """

    rank: IntArray
    parent: IntArray
    enter: IntArray
    exit: IntArray
    base: IntArray
    name: IntArray
    stack: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "rank": "int32",
        "parent": "int32",
        "enter": "int32",
        "exit": "int32",
        "base": "int64",
        "name": "int32",
        "stack": "int32",
    }


@attrs.frozen(eq=False)
class ChannelTable(Table):
    """Channels that carry a message: ``sender`` and ``receiver`` ranks; ``direction`` and ``arrival`` are indices into
    ``Target.directions``: where the sender sends, and where the receiver receives."""

    sender: IntArray
    direction: IntArray
    receiver: IntArray
    arrival: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "sender": "int32",
        "direction": "int8",
        "receiver": "int32",
        "arrival": "int8",
    }


@attrs.frozen(eq=False)
class FrameTable(Table):
    """Source frames: ``file`` and ``function`` are indices into ``Graph.names``; positions as in ``Location``."""

    file: IntArray
    function: IntArray
    line: IntArray
    column: IntArray
    end_line: IntArray
    end_column: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "file": "int32",
        "function": "int32",
        "line": "int32",
        "column": "int32",
        "end_line": "int32",
        "end_column": "int32",
    }


@attrs.frozen(eq=False)
class StackTable(Table):
    """Call stacks as a forest: ``frame`` is the innermost frame, ``caller`` the stack that called it (-1: the kernel
    itself). A caller's row lies before its callee's."""

    frame: IntArray
    caller: IntArray
    dtypes: ClassVar[dict[str, str]] = {"frame": "int32", "caller": "int32"}


@attrs.frozen(eq=False)
class EdgeTable(Table):
    """Edges, sorted by target node, then by source node. ``reason`` is a :class:`Reason`; ``recycled`` marks an edge
    between two allocations that share bytes after a rewind. ``source``/``target`` are node ids."""

    source: IntArray
    target: IntArray
    reason: IntArray
    recycled: IntArray
    dtypes: ClassVar[dict[str, str]] = {
        "source": "int32",
        "target": "int32",
        "reason": "uint8",
        "recycled": "bool",
    }


@attrs.frozen
class BoundsFault:
    """A load or store that leaves its HBM tensor, recorded rather than raised: ``node`` does it, on ``storage``;
    ``lower`` and ``upper`` are the box asked for (upper exclusive), in the tensor's dimensions."""

    node: int
    storage: int
    lower: Shape
    upper: Shape


def layout_columns(layouts: tuple[Layout, ...]) -> tuple[IntArray, IntArray, IntArray]:
    """Per layout: its span in elements, its item size in bytes, and whether it is dense."""
    span = np.array([layout.span for layout in layouts], dtype=np.int64)
    itemsize = np.array([layout.dtype.itemsize for layout in layouts], dtype=np.int64)
    dense = np.array([layout.is_dense for layout in layouts], dtype=np.bool_)
    return span, itemsize, dense
