"""The tape of a trace: its steps, once for all lanes. What differs from lane to lane are columns of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ....ir.layout import Layout
from ..values.accesses import Access

__all__ = ["Handle", "PerLane", "Step", "Tape"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen(eq=False)
class PerLane:
    """A number that each lane has its own of: a column ``(lanes or 1,)``."""

    column: Array

    def of(self, lane: int) -> Any:
        """The number of a lane, of the column's dtype."""
        return self.column[lane if len(self.column) > 1 else 0]


@attrs.frozen(eq=False)
class Handle:
    """A view of a step's result."""

    step: Step
    layout: Layout
    offset: int = 0

    def view(self, function: Callable[..., Layout], *args: Any) -> Handle:
        """Another view of the same elements."""
        return Handle(self.step, function(self.layout, *args), self.offset)

    def at(self, offset: int, layout: Layout) -> Handle:
        """A part of the view."""
        return Handle(self.step, layout, self.offset + offset)


Operand = Handle | PerLane | bool | int | float


@attrs.define(eq=False)
class Step:
    """One operation of every lane. ``result`` is the layout of what it makes (None: nothing, in scratch); ``access`` is
    what a memory operation touches, ``addresses`` what that was computed from."""

    number: int
    name: str
    operands: tuple[Operand, ...]
    static: tuple[tuple[str, Any], ...]
    stack: int
    result: Layout | None
    access: Access | None = None
    addresses: tuple[Handle, ...] = ()


@attrs.define(eq=False)
class Loop:
    """A loop that was met: the copies of what it loads that it asks for (None: what the launch says), and the number of
    the next step at each of its turns, and at its end."""

    copies: int | None
    turns: list[int] = attrs.field(factory=list)


class Tape:
    """The steps, in order; and the loops."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.loops: list[Loop] = []

    def add(
        self,
        name: str,
        operands: tuple[Operand, ...],
        static: tuple[tuple[str, Any], ...],
        stack: int,
        result: Layout | None,
        access: Access | None = None,
        addresses: tuple[Handle, ...] = (),
    ) -> Step:
        """Add a step."""
        step = Step(len(self.steps), name, operands, static, stack, result, access, addresses)
        self.steps.append(step)
        return step

    def structure(self) -> tuple[Any, ...]:
        """What is equal of two tapes that do the same: everything but the columns."""
        return tuple(
            (
                step.name,
                step.stack,
                step.result,
                tuple(map(_structure, step.operands)),
                tuple((name, _structure(value)) for name, value in step.static),
                None if step.access is None else (step.access.storage.number, step.access.shape),
                tuple(map(_structure, step.addresses)),
            )
            for step in self.steps
        )

    def kinds(self) -> Counter[Any]:
        """How often each kind of step occurs: of steps at one line that do the same to values of one layout, whichever
        they are."""
        return Counter(
            (
                step.name,
                step.stack,
                step.result,
                tuple(map(_kind, step.operands)),
                tuple((name, _structure(value)) for name, value in step.static),
                None if step.access is None else (step.access.storage.number, step.access.shape),
                tuple(map(_kind, step.addresses)),
            )
            for step in self.steps
        )

    def last_uses(self) -> list[int]:
        """By step the number of the last one that uses its result; its own where none does."""
        last = list(range(len(self.steps)))
        for step in self.steps:
            for operand in (*step.operands, *step.addresses):
                if isinstance(operand, Handle):
                    last[operand.step.number] = step.number
        return last


def _kind(operand: Any) -> Any:
    return (operand.layout, operand.offset) if isinstance(operand, Handle) else "a number"


def _structure(operand: Any) -> Any:
    match operand:
        case Handle():
            return ("step", operand.step.number, operand.layout, operand.offset)
        case PerLane():
            return "a number a lane"
    return (type(operand), repr(operand))
