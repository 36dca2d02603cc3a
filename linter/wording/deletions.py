"""What to delete, for a sentence."""

from __future__ import annotations

from ..rule import LintContext
from ..source_places import shares_its_line

__all__ = ["deletion"]


def deletion(context: LintContext, stack: int, what: str) -> str:
    """What to delete: a line, or where that holds other code, too, what is at fault in it."""
    location = context.location(stack)
    shared = location is not None and shares_its_line(location)
    return f"delete {f'this {what} of ' if shared else ''}{context.line(stack)}"
