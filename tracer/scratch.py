"""The scratch allocator: one cursor that only grows, and scopes that rewind it."""

from __future__ import annotations

from ..ir.errors import ScopeError

__all__ = ["Scope", "ScratchAllocator"]


class Scope:
    """An open or closed scope: its row in the scope table, its parent, and the cursor it rewinds to (bytes)."""

    __slots__ = ("base", "closed", "name", "parent", "row")

    def __init__(self, row: int, parent: Scope | None, base: int, name: str) -> None:
        self.row = row
        self.parent = parent
        self.base = base
        self.name = name
        self.closed = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<{state} scope {self.name or self.row}>"


class ScratchAllocator:
    """Bump allocation within a budget. Sizes are rounded up to the alignment *before* the budget is checked.

    The caller moves :attr:`cursor` on. It may pass :attr:`budget`: the caller decides what that means.
    """

    def __init__(self, budget: int, align: int, root: Scope) -> None:
        self.budget = budget
        self.align = align
        self.cursor = 0
        self.scope = root

    def end_of(self, nbytes: int) -> int:
        """The cursor after an allocation of so many bytes: nothing is taken yet."""
        return self.cursor + -(-nbytes // self.align) * self.align

    def open(self, row: int, name: str) -> Scope:
        """Open a scope within the innermost one, saving the cursor."""
        self.scope = Scope(row, self.scope, self.cursor, name)
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
