"""The lines of a kernel that hold scratch, for a sentence: their handles, how many bytes, how to make these fewer."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ...ir.tables import IntArray
from ..fixes.tiles import fit_command
from ..rule import LintContext

__all__ = ["ScratchLine", "handle_names", "how_to_fit", "lines_holding", "with_line"]

_NAMES_SHOWN = 4


@attrs.frozen
class ScratchLine:
    """What one call stack holds: how many allocations, their bytes together, those of the largest one."""

    stack: int
    name: str
    count: int
    held_bytes: int
    largest_bytes: int

    @property
    def role(self) -> str:
        many = f"{self.count:,} x " if self.count > 1 else ""
        return f"holds {self.held_bytes:,} B: {many}{self.name}"


def lines_holding(context: LintContext, rows: np.ndarray[Any, np.dtype[Any]]) -> list[ScratchLine]:
    """By call stack what the allocations hold, the most first."""
    storages, held = context.graph.storages, context.graph.held_bytes
    stacks, first, which = np.unique(storages.stack[rows], return_index=True, return_inverse=True)
    count = np.bincount(which)
    total, largest = np.zeros(len(stacks), dtype=np.int64), np.zeros(len(stacks), dtype=np.int64)
    np.add.at(total, which, held[rows])
    np.maximum.at(largest, which, held[rows])
    lines = [
        ScratchLine(stack, context.name_of(int(rows[first[i]])), int(count[i]), int(total[i]), int(largest[i]))
        for i, stack in enumerate(stacks.tolist())
    ]
    return sorted(lines, key=lambda line: (-line.held_bytes, line.stack))


def with_line(context: LintContext, line: ScratchLine) -> str:
    place = context.location(line.stack)
    return line.name + (f" (line {place.line})" if place is not None else "")


def how_to_fit(context: LintContext, line: ScratchLine) -> str:
    command = fit_command(context, line.stack)
    if command is None:
        return "`kernscope fit` finds the largest that fits, where it is a parameter"
    return f"`{command}` finds the largest that fits"


def handle_names(context: LintContext, rows: IntArray) -> str:
    """Allocations by name, each name once, for a sentence."""
    names = list(dict.fromkeys(context.name_of(int(row)) for row in rows.tolist()))
    shown = names[:_NAMES_SHOWN]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
