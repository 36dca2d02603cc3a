"""What a graph consists of: its tables and what they index into. :class:`kernscope.ir.graph.Graph` adds the views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .arrays.permutations import group_starts
from .branches import Branches
from .errors import ArgumentError, shown
from .grid import Grid, program_text
from .launch_facts import LaunchFacts
from .layout import Layout
from .memories import held_bytes
from .source.location import CALLERS_KEPT, Location
from .tables import (
    UNPLACED,
    AccessTable,
    BoundsFault,
    ChannelTable,
    FrameTable,
    IntArray,
    NodeTable,
    ScopeTable,
    StackTable,
    StorageTable,
)
from .target import Target

__all__ = ["BoolArray", "GraphColumns", "expect_graph"]

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


@attrs.frozen(eq=False, repr=False, slots=False)
class GraphColumns:
    """The tables of a graph (see :mod:`kernscope.ir.tables`), what their columns index into, and plain lookups.

    ``kernel`` is the kernel's name, ``machine`` the name of the machine it was traced for (a label: only ``target``
    binds). ``buffers`` says by which rule the scratch is laid out: 0 for the bump allocation that scopes rewind, K for
    K rotating copies of every scope's bytes (:mod:`kernscope.ir.rebuffer`). A graph without scopes has allocations of
    automatic lifetime, which live from their first access to their last one, and which a pass after the trace gives
    their addresses; no graph has both. ``unentered_scopes`` are the stack rows
    where scopes were made that no ``with`` entered. ``grid`` are
    the sizes of the launch grid, if there is one (:mod:`kernscope.ir.grid`): then each rank's own scope holds a scope
    for each of its programs, and nothing else.
    ``machine_toml`` describes the machine, so that a graph can be
    scheduled wherever it is loaded; empty: it was traced for a bare target. ``digests`` tell by file the text that was
    traced (:mod:`kernscope.ir.source.digests`; None: nothing is known, and places are taken as they are).
    ``initial`` names the tensors that had values when the kernel was traced: an array stood in their place.
    ``defaults`` are the arrays the kernel was traced with: the inputs of a run that names no others; they are no part
    of a graph's identity and are not saved. ``branches`` are those that the kernel took, where the trace was watched
    (None: it was not); ``facts`` are what the data of a launch told, of all of its programs, where the graph is that of
    one of them (None: its language has none). Neither are part of a graph's identity.
    """

    kernel: str
    machine: str
    ranks: int
    target: Target
    nodes: NodeTable
    accesses: AccessTable
    storages: StorageTable
    scopes: ScopeTable
    channels: ChannelTable
    frames: FrameTable
    stacks: StackTable
    layouts: tuple[Layout, ...]
    names: tuple[str, ...]
    attributes: tuple[Mapping[str, Any], ...]
    bounds_faults: tuple[BoundsFault, ...] = ()
    unentered_scopes: tuple[int, ...] = ()
    buffers: int = 0
    grid: Grid = ()
    machine_toml: str = ""
    digests: Mapping[str, str] | None = None
    initial: tuple[str, ...] = ()
    defaults: Mapping[str, np.ndarray[Any, Any]] = attrs.field(factory=dict)
    branches: Branches | None = None
    facts: LaunchFacts | None = None

    @cached_property
    def access_start(self) -> IntArray:
        """``(n + 1,)``: node i's accesses are rows ``access_start[i]`` up to ``access_start[i + 1]``."""
        return group_starts(self.accesses.node, len(self.nodes))

    @property
    def is_scoped(self) -> bool:
        """Whether scopes free its allocations; else their lifetimes are automatic."""
        return len(self.scopes) > 0

    @cached_property
    def is_placed(self) -> bool:
        """Whether all of its allocations have addresses."""
        return not bool((self.storages.address == UNPLACED).any())

    @cached_property
    def acquired(self) -> IntArray:
        """By storage the first node at which its bytes are its own: the next one when it was made; of automatic
        lifetime, the first that accesses it."""
        storages, accesses = self.storages, self.accesses
        born = storages.born.astype(np.int64)
        if self.is_scoped:
            return born
        first = np.full(len(storages), len(self.nodes), dtype=np.int64)
        np.minimum.at(first, accesses.storage, accesses.node)
        return np.where(self.in_scratch & (first < len(self.nodes)), first, born)

    @cached_property
    def released(self) -> IntArray:
        """By storage the node after which its bytes may be another's: its scope's exit; of automatic lifetime, the last
        that accesses it. The number of nodes where it is never freed; less than ``acquired`` where nothing accesses
        what has an automatic lifetime: it takes no bytes."""
        storages, accesses = self.storages, self.accesses
        freed = np.where(storages.freed >= 0, storages.freed, len(self.nodes)).astype(np.int64)
        if self.is_scoped:
            return freed
        last = np.full(len(storages), -1, dtype=np.int64)
        np.maximum.at(last, accesses.storage, accesses.node)
        return np.where(self.in_scratch, np.where(last < 0, self.acquired - 1, last), freed)

    @cached_property
    def program_of_scope(self) -> IntArray:
        """By scope the number of the program that it is, or is part of; -1 for a rank's own scope, and for all of a
        graph without a grid."""
        scopes = self.scopes
        found = np.full(len(scopes), -1, dtype=np.int64)
        if not self.grid:
            return found
        above = np.where(scopes.parent >= 0, scopes.parent[scopes.parent], -1)
        outermost = np.flatnonzero((scopes.parent >= 0) & (above < 0))
        rank = scopes.rank[outermost]
        order = np.argsort(rank, kind="stable")
        nth = np.empty(len(outermost), dtype=np.int64)
        nth[order] = np.arange(len(order)) - np.searchsorted(rank[order], rank[order])
        found[outermost] = rank + nth * self.ranks
        for scope in np.flatnonzero((found < 0) & (scopes.parent >= 0)).tolist():  # parents come first
            found[scope] = found[scopes.parent[scope]]
        return found

    @cached_property
    def program(self) -> IntArray:
        """By node the number of its program in the grid; -1 where there is no grid."""
        if not self.grid:
            return np.full(len(self.nodes), -1, dtype=np.int64)
        return self.program_of_scope[self.nodes.scope]

    def describe_program(self, node: int) -> str:
        """Whose node it is, for a reader: ``program (3, 1)``; without a grid ``rank 3``."""
        number = int(self.program[node])
        return program_text(self.grid, number) if number >= 0 else f"rank {int(self.nodes.rank[node])}"

    @cached_property
    def in_scratch(self) -> BoolArray:
        """By storage: whether it is an allocation in a rank's own memory, not a tensor in the global one."""
        return np.not_equal(self.storages.memory, self.target.global_memory)

    @cached_property
    def arena(self) -> IntArray:
        """By storage: the number of the one memory of one rank that it lies in, -1 for a tensor in global memory.
        Allocations of one arena can share bytes, others never. Arenas are numbered rank by rank."""
        places = np.full(len(self.target.memories), -1, dtype=np.int64)
        places[list(self.target.scratch_memories)] = np.arange(len(self.target.scratch_memories))
        number = self.storages.rank * np.int64(len(self.target.scratch_memories)) + places[self.storages.memory]
        return np.where(self.in_scratch, number, -1)

    @property
    def arenas(self) -> int:
        """How many arenas there are: each rank's memories."""
        return self.ranks * len(self.target.scratch_memories)

    @cached_property
    def held_bytes(self) -> IntArray:
        """By storage: the bytes an allocation takes from its memory (rounded up to that one's alignment, and of all of
        its partitions); 0 for a tensor in global memory, and for what has an automatic lifetime and is never
        accessed."""
        align = np.array([memory.align for memory in self.target.memories], dtype=np.int64)
        partitions = np.array([memory.partitions or 1 for memory in self.target.memories], dtype=np.int64)
        rows = np.array([max(layout.shape[0], 1) if layout.shape else 1 for layout in self.layouts], dtype=np.int64)
        takes = self.in_scratch if self.is_scoped else self.in_scratch & (self.acquired <= self.released)
        memory, nbytes = self.storages.memory, self.storages.nbytes.astype(np.int64)
        leading = rows[self.storages.layout] if len(rows) else np.ones(len(nbytes), dtype=np.int64)
        return np.where(takes, held_bytes(nbytes, align[memory], leading, partitions[memory]), 0)

    @cached_property
    def overflows(self) -> BoolArray:
        """By storage: whether it ends beyond what its memory holds."""
        capacity = self.target.capacities[self.storages.memory]
        return self.in_scratch & (self.storages.address + self.held_bytes > capacity)

    @cached_property
    def tensors(self) -> dict[str, int]:
        """The tensors in global memory: storage row by name, in argument order."""
        return {self.names[self.storages.name[row]]: int(row) for row in np.flatnonzero(~self.in_scratch)}

    def location(self, stack: int) -> Location | None:
        """The source location of a row of the stack table, with its nearest callers; None for -1."""
        if stack < 0:
            return None
        chain: list[Location] = []
        row = stack
        while row >= 0 and len(chain) <= CALLERS_KEPT:
            chain.append(self._frame(int(self.stacks.frame[row])))
            row = int(self.stacks.caller[row])
        left_out = int(self._callers[row]) + 1 if row >= 0 else 0
        return attrs.evolve(chain[0], stack=tuple(chain[1:]), callers_left_out=left_out)

    @cached_property
    def _callers(self) -> IntArray:
        """By row of the stack table, how many callers it has."""
        callers: list[int] = []
        for caller in self.stacks.caller.tolist():
            callers.append(callers[caller] + 1 if caller >= 0 else 0)
        return np.array(callers, dtype=np.int64)

    def _frame(self, row: int) -> Location:
        f = self.frames
        return Location(
            file=self.names[f.file[row]],
            line=int(f.line[row]),
            function=self.names[f.function[row]],
            column=int(f.column[row]),
            end_line=int(f.end_line[row]),
            end_column=int(f.end_column[row]),
            digest=self.digest_of(self.names[f.file[row]]),
        )

    def digest_of(self, file: str) -> str | None:
        """What tells the text of a source file that was traced from any other: empty where that is not known, None
        where the file is taken as it is."""
        return None if self.digests is None else self.digests.get(file, "")

    def describe_scope(self, scope: int) -> str:
        """A scope for a reader: its name, or where it was opened, or ``kernel`` for a rank's own."""
        if scope < 0 or self.scopes.parent[scope] < 0:
            return "kernel"
        if self.grid and self.scopes.parent[self.scopes.parent[scope]] < 0:
            return program_text(self.grid, int(self.program_of_scope[scope]))
        name = self.names[self.scopes.name[scope]]
        place = self.location(int(self.scopes.stack[scope]))
        return name or (f"scope at {place.short}" if place else f"scope {scope}")


def expect_graph(value: object, taker: str, *, placed: bool = True) -> None:
    """Raise ``ArgumentError`` for what is no graph (a kernel that was not traced, most often), or, where they are
    needed (``placed``), has no addresses."""
    if not isinstance(value, GraphColumns):
        raise ArgumentError(
            f"{taker} takes a graph, not {shown(value)}", help="trace the kernel first: ks.trace(kernel, ...)"
        )
    if placed and not value.is_placed:
        raise ArgumentError(
            f"{taker} takes a graph whose allocations have addresses",
            help="give it addresses first: graph = kernscope.memory.automatic.placed(graph)",
        )
