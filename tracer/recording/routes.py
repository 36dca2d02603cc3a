"""Which way an operation is done where a rank has several memories: what has to be moved first, where its result is
made, where it is moved to afterwards.

Worked out once per operation, memories of its operands, and memory that its result is wanted in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs

from ...ir.ops import OPERATIONS, Kind, Operation, Space
from ...ir.target import Reach, Target

__all__ = ["Route", "Router"]

#: Places of memories, in the order in which something is moved through them.
_Path = tuple[int, ...]


@attrs.frozen
class Route:
    """By operand the memories that it is moved through before (none: it is used where it lies); the memory that the
    result is made in; those that it is moved through after that."""

    operands: tuple[_Path, ...]
    result: int
    after: _Path

    @property
    def is_direct(self) -> bool:
        """Whether nothing is moved."""
        return not self.after and not any(self.operands)

    @property
    def moves(self) -> int:
        """How many moves there are."""
        return len(self.after) + sum(map(len, self.operands))


class Router:
    """Finds routes on a target, each once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[tuple[Operation, _Path, int, int, bool], Route | None] = {}

    def route(
        self, operation: Operation, reads: _Path, *, wanted: int = -1, in_place: int = -1, fixed: bool = False
    ) -> Route | None:
        """The route with the fewest moves, of several the one of the engine listed first; None where there is none.

        ``reads``: the places of the operands' memories. ``wanted``: that of the result's (-1: nobody said).
        ``in_place``: the number of the operand that is written over, -1 for none. ``fixed``: there is no moving the
        result afterwards, as it is a tensor.
        """
        key = (operation, reads, wanted, in_place, fixed)
        if key not in self._known:
            found = sorted(self._routes(operation, reads, wanted, in_place, fixed), key=lambda route: route.moves)
            self._known[key] = found[0] if found else None
        return self._known[key]

    def _routes(self, operation: Operation, reads: _Path, wanted: int, in_place: int, fixed: bool) -> Iterator[Route]:
        target = self._target
        if operation.kind is Kind.NONE:
            place = target.memory_names.index(target.place_of(operation))
            yield Route(((),) * len(reads), place if wanted < 0 else wanted, ())
            return
        able = [reach for reach in target.reaches if reach.takes(operation)]
        for reach in able:
            for made in self._made_in(operation, reach, able, wanted):
                after = self.path(made, (wanted,)) if wanted >= 0 and made != wanted else ()
                before = [
                    ()
                    # Addresses of what comes out of the global memory are read by whoever issues the transfer; what is
                    # changed there is reached by writing it.
                    if (operation.reads_from is Space.GLOBAL) != (place == target.global_memory)
                    else self.path(place, (made,) if number == in_place else self._places(reach.of_operand(number)))
                    for number, place in enumerate(reads)
                ]
                if after is None or None in before or (after and fixed):
                    continue
                yield Route(tuple(path for path in before if path is not None), made, after)

    def _made_in(self, operation: Operation, reach: Reach, able: Sequence[Reach], wanted: int) -> _Path:
        """Where an engine can make a result: all that it writes, if one place is wanted; else, the operation's own
        place, and only where no engine writes that, the first that this one does."""
        target = self._target
        if operation.writes_to is Space.NOWHERE:
            return (-1,)
        writes = self._places(reach.writes)
        if operation.writes_to is Space.GLOBAL:
            return tuple(place for place in writes if place == target.global_memory)
        own = tuple(place for place in writes if place != target.global_memory)
        if wanted >= 0:
            return own
        name = target.place_of(operation)
        if any(name in other.writes for other in able):
            return tuple(place for place in own if target.memory_names[place] == name)
        return own[:1]

    def _places(self, names: Sequence[str]) -> _Path:
        return tuple(map(self._target.memory_names.index, names))

    def path(self, start: int, ends: Sequence[int]) -> _Path | None:
        """The shortest way from a memory to one of several, as the memories that are moved to; empty where it is one of
        them; None where there is none."""
        before: dict[int, int] = {start: start}
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            if at in ends:
                found: list[int] = []
                while at != start:
                    found.append(at)
                    at = before[at]
                return tuple(reversed(found))
            for there in self._moves.get(at, ()):
                if there not in before:
                    before[there] = at
                    waiting.append(there)
        return None

    @cached_property
    def _moves(self) -> dict[int, _Path]:
        """From each of a rank's memories where its engines can move something, in their order."""
        target, move = self._target, OPERATIONS["move"]
        found: dict[int, list[int]] = {}
        for reach in target.reaches:
            for start in self._places(reach.reads) if reach.takes(move) else ():
                ends = [place for place in self._places(reach.writes) if place != start]
                known = found.setdefault(start, [])
                known += [place for place in ends if place not in known and place in target.scratch_memories]
        return {start: tuple(ends) for start, ends in found.items() if start in target.scratch_memories}
