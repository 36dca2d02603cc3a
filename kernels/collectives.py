"""Collectives along lines of ranks, as kernels write them: what each rank sends, receives and adds.

A line is open: nothing goes over the joined ends of a ring. Both directions are used at once, and no link carries more
than its end's: (size - 1) parts, as in a ring that turns one way. On a mesh the collective goes along one axis, then
along the other (Chan et al., "Collective communication: theory, practice, and experience", 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import kernscope as ks
from kernscope import tl

__all__ = ["MESH", "RING", "Line", "Tile", "Ways", "blocks", "gathered", "lines", "reduced"]

Tile = ks.TensorHandle
#: By axis of the ranks, the ways along it: onward and backward.
Ways = tuple[tuple[str, str], ...]
RING: Ways = (("next", "prev"),)
MESH: Ways = (("south", "north"), ("east", "west"))


class Line(NamedTuple):
    """Where a rank stands in a line of ``size`` ranks, and the ways along it."""

    place: int
    size: int
    onward: str
    backward: str


def lines(ways: Ways | None = None) -> list[Line]:
    """The rank's lines, one for each axis. Without ``ways`` those of a mesh where there is more than one column, else
    of a ring: who runs on a mesh of one column names them."""
    if ways is None:
        ways = MESH if tl.num_programs(1) > 1 else RING
    return [Line(tl.program_id(axis), tl.num_programs(axis), *way) for axis, way in enumerate(ways)]


def blocks(ranks: Sequence[Line]) -> int:
    """How many ranks the lines span."""
    count = 1
    for line in ranks:
        count *= line.size
    return count


def gathered(line: Line, own: Sequence[Tile]) -> list[list[Tile]]:
    """By place in the line the tiles of the rank there: each rank passes on what it got the step before, both ways."""
    found: dict[int, list[Tile]] = {line.place: list(own)}
    for step in range(1, line.size):
        behind, ahead = line.place - step, line.place + step
        for number, tile in enumerate(own):
            if line.place < line.size - 1 and behind + 1 >= 0:
                tl.send(line.onward, found[behind + 1][number])
            if line.place > 0 and ahead - 1 < line.size:
                tl.send(line.backward, found[ahead - 1][number])
            if behind >= 0:
                found.setdefault(behind, []).append(tl.recv(line.backward, tile.shape, tile.dtype))
            if ahead < line.size:
                found.setdefault(ahead, []).append(tl.recv(line.onward, tile.shape, tile.dtype))
    return [found[place] for place in range(line.size)]


def reduced(line: Line, parts: Sequence[Sequence[Tile]]) -> list[Tile]:
    """The sums, over all ranks of the line, of the tiles that are meant for this one: ``parts`` holds this rank's, by
    place of the rank that they are meant for. They are changed."""
    return [_reduced(line, same) for same in zip(*parts, strict=True)]


def _reduced(line: Line, parts: Sequence[Tile]) -> Tile:
    """Of one tile a place. Sums for the far ends go first, and grow on their way; each direction in turn, as a channel
    holds few messages."""
    for step in range(line.size):
        onward, backward = line.size - 1 - step, step
        if onward > line.place:
            own = parts[onward]
            tl.send(line.onward, _plus(line.backward, own) if line.place > 0 else own)
        if backward < line.place:
            own = parts[backward]
            tl.send(line.backward, _plus(line.onward, own) if line.place < line.size - 1 else own)
    total = parts[line.place]
    if line.place > 0:
        _plus(line.backward, total)
    if line.place < line.size - 1:
        _plus(line.onward, total)
    return total


def _plus(direction: str, own: Tile) -> Tile:
    with tl.scratch_scope():
        tl.add(own, tl.recv(direction, own.shape, own.dtype), out=own)
    return own
