"""Loops, for a sentence: which one is spoken of, and what to do with its body."""

from __future__ import annotations

from ..fixes.scoping import GrowingLoop
from ..fixes.syntax import Loop, enclosing_loop
from ..rule import LintContext

__all__ = ["loop_named", "wrap_body"]


def loop_named(context: LintContext, growing: GrowingLoop | None, row: int) -> Loop | None:
    """The loop to speak of: that in whose body all happens, else the innermost around the line that makes a storage."""
    if growing is not None:
        return growing.loop
    place = context.location(int(context.graph.storages.stack[row]))
    return None if place is None else enclosing_loop(place)


def wrap_body(loop: Loop | None, where: str) -> str:
    """The edit that puts a loop's body in a scope; ``where`` names a line of it, for a loop that is not known."""
    if loop is None:
        return f"wrap the body of the loop around {where} in `with tl.scratch_scope():`"
    body = f"line {loop.first}" if loop.first == loop.last else f"lines {loop.first}-{loop.last}"
    return f"wrap {body}, the body of the loop at line {loop.line}, in `with tl.scratch_scope():`"
