"""The rows that a recorder writes, and the tables made of them.

Python's own time is what tracing costs, so a row holds only what differs from node to node, as integers in flat arrays;
what follows from the operation and its operands' layouts stands once, in the plan's row.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from ...ir.dependence.regions import boxes
from ...ir.layout import Layout
from ...ir.memories import Memory
from ...ir.tables import (
    AccessKind,
    AccessTable,
    ChannelTable,
    FrameTable,
    IntArray,
    NodeTable,
    ScopeTable,
    StackTable,
    StorageTable,
)
from ...ir.target import Target
from .sites import SiteTable

__all__ = ["READ", "WRITE", "NodeKind", "Rows", "frame_table", "stack_table"]

#: Added to twice a layout's number: how the layout is used by an access.
READ, WRITE = 0, 1

_NODE, _ACCESS, _STORAGE = 4, 3, 5


@attrs.frozen
class NodeKind:
    """The columns of a node that its plan fixes: operation code, attributes, work, dtype; and the kind of its accesses
    of global memory, -1 where no index names them."""

    code: int
    attributes: int
    work0: int
    work1: int
    work2: int
    dtype: int
    index_kind: int = -1


class Rows:
    """Growing rows. The arrays are public so that the recorder's innermost path can extend them directly.

    ``nodes``: kind, stack, scope, number of accesses. ``accesses``: storage, offset, twice the layout's number plus
    ``READ`` or ``WRITE``. ``storages``: address, layout, scope, stack, next node; ``elsewhere`` the memories of those
    that do not lie where results go. ``channels`` holds (node, channel) pairs, ``commands`` the (first, stop) nodes of
    composites, ``rank_starts`` and ``rank_storages`` each rank's first node and storage; ``scopes`` lists rank, parent,
    enter, exit, base, stack.
    """

    def __init__(self) -> None:
        self.nodes = array("q")
        self.accesses = array("q")
        self.storages = array("q")
        self.elsewhere: dict[int, int] = {}
        self.kinds: list[NodeKind] = []
        self.layouts: dict[Layout, int] = {}
        self.rank_starts: list[int] = []
        self.rank_storages: list[int] = []
        self.channels: list[tuple[int, int]] = []
        self.commands: list[tuple[int, int]] = []
        self.channel_ends: list[tuple[int, int, int, int]] = []
        self.hbm_names: list[str] = []
        self.scopes: list[list[int]] = []
        self.scope_names: list[str] = []

    def layout_number(self, layout: Layout) -> int:
        """The number of a layout among those used; a new one is added."""
        number = self.layouts.get(layout)
        if number is None:
            number = self.layouts[layout] = len(self.layouts)
        return number

    def stack_of_storage(self, storage: int) -> int:
        """Where a storage was made."""
        return self.storages[storage * _STORAGE + 3]

    def rank_of_storage(self, storage: int) -> int:
        """The rank whose scratch holds an allocation."""
        return bisect_right(self.rank_storages, storage) - 1

    def stack_of_node(self, node: int) -> int:
        """Where a node was recorded."""
        return self.nodes[node * _NODE + 1]

    def live_bytes_by_stack(
        self, open_scopes: Sequence[int], memory: Memory, place: int, results: int
    ) -> dict[int, list[int]]:
        """The rounded sizes of the allocations that open scopes hold in a memory, by where they were made."""
        rows = _matrix(self.storages, _STORAGE)
        held = np.isin(rows[:, 2], list(open_scopes)) & (self._memories(len(rows), results) == place)
        held[: len(self.hbm_names)] = False
        layouts = list(self.layouts)
        groups: dict[int, list[int]] = {}
        for layout, stack in rows[held][:, [1, 3]].tolist():
            groups.setdefault(stack, []).append(memory.held_bytes(layouts[layout].nbytes, layouts[layout].shape))
        return groups

    def _memories(self, count: int, results: int) -> IntArray:
        """By storage its memory's place, as if all were allocations."""
        memory = np.full(count, results, dtype=np.int64)
        memory[list(self.elsewhere)] = list(self.elsewhere.values())
        return memory

    # --- tables -----------------------------------------------------------------------------------------------------

    def node_table(self) -> NodeTable:
        """All nodes; the columns that kinds fix are looked up in them."""
        rows = _matrix(self.nodes, _NODE)
        count = len(rows)
        kinds = np.array([attrs.astuple(kind) for kind in self.kinds], dtype=np.int64).reshape(-1, 7)[rows[:, 0]]
        channel = np.full(count, -1, dtype=np.int64)
        for node, used in self.channels:
            channel[node] = used
        command = np.arange(count)
        for first, stop in self.commands:
            command[first:stop] = first
        table: NodeTable = NodeTable.make(
            op=kinds[:, 0],
            rank=np.searchsorted(self.rank_starts, np.arange(count), side="right") - 1,
            scope=rows[:, 2],
            stack=rows[:, 1],
            attributes=kinds[:, 1],
            work0=kinds[:, 2],
            work1=kinds[:, 3],
            work2=kinds[:, 4],
            dtype=kinds[:, 5],
            channel=channel,
            command=command,
        )
        return table

    def storage_table(self, sites: SiteTable, number: Callable[[str], int], target: Target) -> StorageTable:
        """All storages; an allocation takes the name that its making was assigned to."""
        rows = _matrix(self.storages, _STORAGE)
        layout, scope, stack = rows[:, 1], rows[:, 2], rows[:, 3]
        scopes = np.array([*self.scopes, [-1] * 6], dtype=np.int64)  # the last row, of no scope, is what -1 finds
        made_at, which = np.unique(stack, return_inverse=True)
        by_stack = np.array([number(sites.name(int(row))) for row in made_at], dtype=np.int64)
        name = by_stack[which] if len(rows) else np.zeros(0, dtype=np.int64)
        tensors = len(self.hbm_names)
        name[:tensors] = [number(tensor) for tensor in self.hbm_names]
        memory = self._memories(len(rows), target.results_memory)
        memory[:tensors] = target.global_memory
        nbytes = np.array([used.nbytes for used in self.layouts], dtype=np.int64)
        table: StorageTable = StorageTable.make(
            memory=memory,
            rank=np.searchsorted(self.rank_storages, np.arange(len(rows)), side="right") - 1,
            address=rows[:, 0],
            nbytes=nbytes[layout],
            layout=layout,
            scope=scope,
            stack=stack,
            name=name,
            born=rows[:, 4],
            freed=scopes[scope, 3],
        )
        return table

    def access_table(self, storages: StorageTable) -> AccessTable:
        """All accesses, each with its kind."""
        rows = _matrix(self.accesses, _ACCESS)
        counts = _matrix(self.nodes, _NODE)[:, 3]
        columns: dict[str, IntArray] = {
            "node": np.repeat(np.arange(len(counts)), counts),
            "storage": rows[:, 0],
            "mode": rows[:, 2] & 1,
            "offset": rows[:, 1],
            "layout": rows[:, 2] >> 1,
        }
        flat: AccessTable = AccessTable.make(kind=np.zeros(len(rows)), **columns)
        _, _, exact = boxes(flat, storages, tuple(self.layouts))
        kind = np.where(exact, AccessKind.BOX, AccessKind.RANGE)
        by_index = np.array([k.index_kind for k in self.kinds], dtype=np.int64)[_matrix(self.nodes, _NODE)[:, 0]]
        of_node = by_index[columns["node"]]
        indexed = (of_node >= 0) & (rows[:, 0] < len(self.hbm_names))
        table: AccessTable = AccessTable.make(kind=np.where(indexed, of_node, kind), **columns)
        return table

    def scope_table(self, number: Callable[[str], int]) -> ScopeTable:
        """All scopes."""
        rows = np.array(self.scopes, dtype=np.int64).reshape(-1, 6)
        columns = dict(zip(("rank", "parent", "enter", "exit", "base", "stack"), rows.T, strict=True))
        table: ScopeTable = ScopeTable.make(name=[number(name) for name in self.scope_names], **columns)
        return table

    def channel_table(self) -> ChannelTable:
        """All channels."""
        rows = np.array(self.channel_ends, dtype=np.int64).reshape(-1, 4)
        columns = dict(zip(("sender", "direction", "receiver", "arrival"), rows.T, strict=True))
        table: ChannelTable = ChannelTable.make(**columns)
        return table


def frame_table(sites: SiteTable, number: Callable[[str], int]) -> FrameTable:
    """All source frames."""
    frames = sites.frames
    table: FrameTable = FrameTable.make(
        file=[number(f.file) for f in frames],
        function=[number(f.function) for f in frames],
        line=[f.line for f in frames],
        column=[f.column for f in frames],
        end_line=[f.end_line for f in frames],
        end_column=[f.end_column for f in frames],
    )
    return table


def stack_table(sites: SiteTable) -> StackTable:
    """All call stacks."""
    table: StackTable = StackTable.make(
        frame=[frame for frame, _ in sites.stacks], caller=[caller for _, caller in sites.stacks]
    )
    return table


def _matrix(rows: array[int], width: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows as a matrix of their own: a view of the array would forbid it to grow."""
    flat = np.frombuffer(rows, dtype=np.int64) if len(rows) else np.zeros(0, dtype=np.int64)
    return flat.reshape(-1, width).copy()
