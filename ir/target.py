"""The target: what of a machine a graph depends on (addresses, neighbours, message slots). Nothing of its speed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from .errors import ChannelError, did_you_mean
from .memories import HBM, TCM, Memory
from .ops.operation import Cost, Kind, Operation, Space
from .tables import IntArray

__all__ = ["OPPOSITE", "Reach", "Target"]

#: A message sent in a direction arrives on the neighbour's opposite direction.
OPPOSITE = {"next": "prev", "prev": "next", "north": "south", "south": "north", "east": "west", "west": "east"}
_STEPS = {"next": (0, 1), "prev": (0, -1), "north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


@attrs.frozen
class Reach:
    """Which memories an engine of a kind reads and writes, by name, and which operations it takes: by name, by class of
    cost or by kind; none listed: all of its kind. ``operands``: by operand those of the memories that it is read from,
    where not from all."""

    kind: Kind
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    ops: tuple[str, ...] = ()
    operands: tuple[tuple[str, ...], ...] = ()

    def takes(self, operation: Operation) -> bool:
        """Whether it carries an operation out, wherever its operands lie."""
        if not self.ops:
            return self.kind is operation.kind
        told = (
            operation.name,
            operation.like or operation.name,
            operation.kind,
            None if operation.cost is Cost.MOVE else operation.cost,
        )
        return any(name in self.ops for name in told)

    def of_operand(self, number: int) -> tuple[str, ...]:
        """The memories that it reads an operand from."""
        return self.operands[number] if number < len(self.operands) else self.reads

    def joins(self, reads: Collection[str], writes: str | None, operands: Sequence[str] = ()) -> bool:
        """Whether it reads all of these memories and writes that one (None: its result goes nowhere), with ``operands``
        each in its own (empty for one that is written in place; none listed: wherever they lie)."""
        each = all(not name or name in self.of_operand(number) for number, name in enumerate(operands))
        return each and all(name in self.reads for name in reads) and (writes is None or writes in self.writes)

    def __str__(self) -> str:
        what = f"{self.kind} ({', '.join(self.ops)})" if self.ops else str(self.kind)
        reads = " and ".join("+".join(each) for each in self.operands) or "+".join(self.reads)
        return f"{what} from {reads} to {'+'.join(self.writes)}"


_HBM = Memory(HBM, is_global=True)


def _every_reach(target: Target) -> tuple[Reach, ...]:
    """An engine of each kind that reaches all of a rank's own memories; only transfers reach what all ranks share."""
    shared = tuple(memory.name for memory in target.memories if memory.is_global)
    own = tuple(memory.name for memory in target.memories if not memory.is_global)
    kinds = (Kind.MATMUL, Kind.ELEMENTWISE, Kind.LINK)
    transfers = (Reach(Kind.TRANSFER, shared, own), Reach(Kind.TRANSFER, own, shared))
    return (*transfers, *(Reach(kind, own, own) for kind in kinds))


@attrs.frozen(slots=False)
class Target:
    """The memories, who reaches them, the topology of the ranks, and slots per channel.

    ``memories`` are one global memory and at least one of each rank's own; a storage holds its memory's place among
    them. ``results`` names the one, of a rank's own, where the results of operations go by default; ``places`` where
    those of some do, by name of the operation or kind of its engine. ``reaches`` are those of the engines, in order.
    ``strict_spaces``: what an engine does not reach is an error, where else it is moved to where it does.

    ``topology`` is ``"ring"`` (directions next, prev) or ``"mesh2d"`` (north, south, east, west; ``shape`` is
    ``(rows, cols)``, ``wraps`` joins the borders). An empty shape of a mesh means one row of all ranks.
    """

    memories: tuple[Memory, ...] = (_HBM, Memory(TCM, 1 << 20, 16))
    results: str = TCM
    reaches: tuple[Reach, ...] = attrs.field(default=attrs.Factory(_every_reach, takes_self=True))
    places: tuple[tuple[str, str], ...] = ()
    strict_spaces: bool = False
    topology: str = "ring"
    shape: tuple[int, ...] = ()
    wraps: bool = False
    slots: int = 2

    @classmethod
    def of_scratch(cls, scratch_bytes: int, align: int = 16, **others: Any) -> Target:
        """A target with one scratch memory a rank, beside the global one."""
        return cls(memories=(_HBM, Memory(TCM, scratch_bytes, align)), results=TCM, **others)

    # --- memories ---------------------------------------------------------------------------------------------------

    @cached_property
    def memory_names(self) -> tuple[str, ...]:
        """The memories' names, by place."""
        return tuple(memory.name for memory in self.memories)

    @cached_property
    def global_memory(self) -> int:
        """The place of the global memory."""
        return next(place for place, memory in enumerate(self.memories) if memory.is_global)

    @cached_property
    def scratch_memories(self) -> tuple[int, ...]:
        """The places of the memories that each rank has of its own, in order."""
        return tuple(place for place, memory in enumerate(self.memories) if not memory.is_global)

    @cached_property
    def results_memory(self) -> int:
        """The place of the memory where results go by default."""
        return self.memory_names.index(self.results)

    def place_of(self, operation: Operation) -> str:
        """The memory where an operation's result goes where nothing else is said."""
        places = dict(self.places)
        return places.get(operation.name, places.get(operation.kind, self.results))

    def engine_for(
        self, operation: Operation, reads: Collection[str], writes: str | None, operands: Sequence[str] = ()
    ) -> int:
        """The first of ``reaches`` that carries an operation out between these memories, with its operands each in its
        own; -1 where there is none."""
        for number, reach in enumerate(self.reaches):
            if reach.takes(operation) and reach.joins(reads, writes, operands):
                return number
        return -1

    def usual_reach(self, operation: Operation) -> tuple[tuple[str, ...], str | None]:
        """The memories of an operation's operands and its result where nothing else is said."""
        names = {Space.SCRATCH: self.results, Space.GLOBAL: self.memory_names[self.global_memory]}
        writes = self.place_of(operation) if operation.writes_to is Space.SCRATCH else names.get(operation.writes_to)
        return (names[operation.reads_from],), writes

    @cached_property
    def is_plain(self) -> bool:
        """Whether a rank has one memory, and everything in it is reached: nothing depends on where an operand lies."""
        return len(self.scratch_memories) == 1 and all(
            reach.joins((self.results,), self.results)
            for reach in self.reaches
            if reach.kind not in (Kind.TRANSFER, Kind.NONE)
        )

    def called(self, place: int) -> str:
        """What messages call a memory: ``scratch`` where it is a rank's only one, else its name."""
        return "scratch" if self.scratch_memories == (place,) else self.memory_names[place]

    @cached_property
    def capacities(self) -> IntArray:
        """The bytes that a rank has, by memory (0 for the global one: no limit)."""
        return np.array([memory.bytes for memory in self.memories], dtype=np.int64)

    # --- ranks ------------------------------------------------------------------------------------------------------

    @property
    def directions(self) -> tuple[str, ...]:
        """The topology's directions, in the order in which links are numbered."""
        return ("next", "prev") if self.topology == "ring" else ("north", "south", "east", "west")

    def grid(self, ranks: int) -> tuple[int, ...]:
        """The ranks' grid: ``(ranks,)`` on a ring, ``(rows, cols)`` on a mesh. Raises ``ChannelError`` where the
        number of ranks does not fill the mesh."""
        if self.topology == "ring":
            return (ranks,)
        rows, cols = self.shape or (1, ranks)
        if rows * cols != ranks:
            raise ChannelError(
                f"{ranks} ranks do not fill a mesh of {rows} x {cols}", help=f"trace with ranks={rows * cols}"
            )
        return (rows, cols)

    def coordinates(self, rank: int, ranks: int) -> tuple[int, ...]:
        """Where a rank stands in :meth:`grid`, row-major."""
        grid = self.grid(ranks)
        return (rank,) if len(grid) == 1 else divmod(rank, grid[1])

    def neighbour(self, rank: int, direction: str, ranks: int) -> int:
        """The rank that a message sent in a direction reaches. Raises ``ChannelError`` for an unknown direction, a
        mesh's border, and a line of one rank."""
        if direction not in self.directions:
            raise ChannelError(
                f"no direction {direction!r} on a {self.topology}",
                help=did_you_mean(str(direction), self.directions, what="directions"),
            )
        grid = self.grid(ranks)
        rows, cols = (1, *grid) if len(grid) == 1 else grid
        row, col = divmod(rank, cols)
        down, right = _STEPS[direction]
        size = cols if right else rows
        at = (col + right) if right else (row + down)
        joined = self.topology == "ring" or self.wraps
        if size == 1 or (not joined and not 0 <= at < size):
            raise ChannelError(
                f"rank {rank} of {ranks} has no neighbour {direction!r} on a {self.topology} of {_by(grid)}",
                help="guard the message with tl.program_id / tl.num_programs, or trace with more ranks",
            )
        at %= size
        return row * cols + at if right else at * cols + col

    def differences(self, other: Target) -> list[str]:
        """One line for each field in which another target differs: ``slots: 2 here, 4 there``."""
        here, there = self._facts(), other._facts()
        return [
            f"{name}: {here.get(name, 'none')} here, {there.get(name, 'none')} there"
            for name in (*here, *(name for name in there if name not in here))
            if here.get(name) != there.get(name)
        ]

    def _facts(self) -> dict[str, object]:
        """What there is to differ in, by name."""
        facts: dict[str, object] = {}
        for memory in self.memories:
            if not memory.is_global:
                facts[f"bytes of {memory.name}"] = memory.bytes
                facts[f"align of {memory.name}"] = memory.align
                facts[f"partitions of {memory.name}"] = memory.partitions or "none"
            else:
                facts["global memory"] = memory.name
        facts["engines"] = "; ".join(map(str, self.reaches))
        facts["places"] = ", ".join(f"{key} in {memory}" for key, memory in self.places) or "none"
        others = ("results", "strict_spaces", "topology", "shape", "wraps", "slots")
        return facts | {name: getattr(self, name) for name in others}


def _by(grid: Sequence[int]) -> str:
    return " x ".join(map(str, grid))
