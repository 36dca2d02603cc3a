"""The target: what of a machine a graph depends on (addresses, neighbours, message slots). Nothing of its speed."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from .errors import ChannelError, did_you_mean

__all__ = ["OPPOSITE", "Target"]

#: A message sent in a direction arrives on the neighbour's opposite direction.
OPPOSITE = {"next": "prev", "prev": "next", "north": "south", "south": "north", "east": "west", "west": "east"}
_STEPS = {"next": (0, 1), "prev": (0, -1), "north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}


@attrs.frozen
class Target:
    """Scratch bytes per rank, the alignment sizes are rounded up to, the topology of the ranks, and slots per channel.

    ``topology`` is ``"ring"`` (directions next, prev) or ``"mesh2d"`` (north, south, east, west; ``shape`` is
    ``(rows, cols)``, ``wraps`` joins the borders). An empty shape of a mesh means one row of all ranks.
    """

    scratch_bytes: int = 1 << 20
    align: int = 16
    topology: str = "ring"
    shape: tuple[int, ...] = ()
    wraps: bool = False
    slots: int = 2

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
        names = [field.name for field in attrs.fields(Target)]
        return [
            f"{name}: {getattr(self, name)} here, {getattr(other, name)} there"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]


def _by(grid: Sequence[int]) -> str:
    return " x ".join(map(str, grid))
