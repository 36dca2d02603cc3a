"""The scratch allocator: a cursor for each memory of a rank, which only grows, and scopes that rewind them all.

And what stands in its place where lifetimes are automatic: nothing has an address, or a scope, while it is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.errors import ScopeError
from ...ir.layout import Layout
from ...ir.tables import UNPLACED
from ...ir.target import Target

__all__ = ["AutomaticLifetimes", "Scope", "ScratchAllocator"]

#: More than any size.
_NO_LIMIT = 1 << 62


class Scope:
    """An open or closed scope: its row in the scope table, its parent, and the cursors it rewinds to (bytes): ``base``
    of the memory where results go, ``elsewhere`` of the others by their places."""

    __slots__ = ("base", "closed", "elsewhere", "name", "parent", "row")

    def __init__(self, row: int, parent: Scope | None, base: int, name: str, elsewhere: Mapping[int, int]) -> None:
        self.row = row
        self.parent = parent
        self.base = base
        self.elsewhere = elsewhere
        self.name = name
        self.closed = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{state} scope {self.name or self.row}>"


class ScratchAllocator:
    """Bump allocation in the memories of a rank. Sizes are rounded up to the alignment *before* they are checked.

    The allocator never refuses: a cursor may pass its memory's capacity, and the caller decides what that means.
    ``cursor`` and ``budget`` are those of the memory where results go, which the recorder's innermost path moves
    itself; ``elsewhere`` holds the other memories' cursors by place.
    """

    def __init__(self, target: Target, row: int) -> None:
        self._memories = target.memories
        self._results = target.results_memory
        self.budget = self._memories[self._results].bytes
        self.cursor = 0
        self.elsewhere = {place: 0 for place in target.scratch_memories if place != self._results}
        self.scope = Scope(row, None, 0, "", dict(self.elsewhere))

    def allocate(self, layout: Layout, place: int) -> tuple[int, int]:
        """Take the next bytes of a memory: where they begin, and the cursor after them."""
        held = self._memories[place].held_bytes(layout.nbytes, layout.shape)
        if place == self._results:
            address = self.cursor
            self.cursor = address + held
        else:
            address = self.elsewhere[place]
            self.elsewhere[place] = address + held
        return address, address + held

    def give_back(self, address: int, place: int) -> None:
        """Undo the last allocation of a memory, which began there."""
        if place == self._results:
            self.cursor = address
        else:
            self.elsewhere[place] = address

    def open(self, row: int, name: str) -> Scope:
        """Open a scope within the innermost one, saving the cursors."""
        self.scope = Scope(row, self.scope, self.cursor, name, dict(self.elsewhere))
        return self.scope

    def close(self, scope: Scope) -> None:
        """Close the innermost scope and rewind to its save-point. Raises ``ScopeError`` for any other scope."""
        if scope is not self.scope or scope.parent is None:
            raise ScopeError(
                f"{scope!r} is not the innermost scope: that is {self.scope!r}",
                help="scopes nest: leave them in the reverse order of entering, with `with` blocks",
            )
        scope.closed = True
        self.scope = scope.parent
        self.cursor = scope.base
        self.elsewhere = dict(scope.elsewhere)


class AutomaticLifetimes(ScratchAllocator):
    """Gives out no addresses and never runs full: an allocation lives from its first access to its last one, which is
    known when the trace has ended. There is no scope, and none can be opened."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, -1)
        self.budget = _NO_LIMIT

    # The recorder's innermost path moves the cursor itself: this one stays where it is.
    @property
    def cursor(self) -> int:
        return UNPLACED

    @cursor.setter
    def cursor(self, end: int) -> None:
        """Nothing is taken."""

    def allocate(self, layout: Layout, place: int) -> tuple[int, int]:
        """No address, and nothing taken."""
        return UNPLACED, 0

    def open(self, row: int, name: str) -> Scope:
        """Raise ``ScopeError``."""
        raise ScopeError(
            "a scope is opened in a trace whose allocations have automatic lifetimes",
            help="leave the scope out: each allocation gives its bytes back after its last access",
        )
