"""Plans: what depends only on an operation and its operands' layouts, worked out once and remembered."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from ...ir.errors import KernscopeError
from ...ir.layout import Layout
from ...ir.memories import Memory
from ...ir.ops import OPERATIONS, Operand
from ...ir.tables import AccessKind
from .rows import NodeKind, Rows

__all__ = ["Plan", "Planner", "Static", "plain_scalar", "scalar_key"]

Static = tuple[tuple[str, Any], ...]


@attrs.frozen
class Plan:
    """What a node looks like, given its operation, static values and operands' layouts: the row of its kind, the dense
    layout of its result with its number, and what that takes of the memory where results go."""

    kind: int
    result: Layout
    result_number: int
    held_bytes: int


class Planner:
    """Makes plans, each once, and the rows of their kinds. ``known`` holds them by the key that :meth:`plan` makes;
    ``results`` is the memory where results go."""

    def __init__(self, rows: Rows, results: Memory) -> None:
        self.known: dict[tuple[Any, ...], Plan] = {}
        self._rows = rows
        self._results = results
        self._attributes: dict[tuple[tuple[str, Any, str], ...], int] = {(): 0}

    def plan(self, name: str, operands: tuple[Operand, ...], static: Static) -> Plan:
        """The plan of an operation: its rule is applied once per distinct operands and static values."""
        floats = [scalar_key(value) for _, value in static if value.__class__ is float]
        key = (name, static, *floats, *[o if isinstance(o, Layout) else scalar_key(o) for o in operands])
        known = self.known.get(key)
        return known or self._make_plan(key, name, operands, static)

    def _make_plan(self, key: tuple[Any, ...], name: str, operands: tuple[Operand, ...], static: Static) -> Plan:
        operation = OPERATIONS[name]
        try:
            shape, dtype = operation.rule(operands, **dict(static))
        except KernscopeError as error:
            error.args = (f"{name}: {error.message}",)
            error.message = f"{name}: {error.message}"
            raise
        result = Layout.dense(shape, dtype)
        scalars = tuple((i, o) for i, o in enumerate(operands) if not isinstance(o, Layout))
        attributes: Static = (*static, ("scalars", scalars)) if scalars else static
        tensor_dtypes = [o.dtype for o in operands if isinstance(o, Layout)]
        index = dict(static).get("index")
        self._rows.kinds.append(
            NodeKind(
                OPERATIONS.code(name),
                self._attribute_number(attributes),
                *operation.work_of(operands, result, dict(static)),
                (tensor_dtypes[0] if tensor_dtypes else dtype).index,
                -1 if index is None else AccessKind.ROWS if index.is_rows else AccessKind.LIST,
            )
        )
        plan = self.known[key] = Plan(
            kind=len(self._rows.kinds) - 1,
            result=result,
            result_number=self._rows.layout_number(result),
            held_bytes=self._results.held_bytes(result.nbytes, result.shape),
        )
        return plan

    def _attribute_number(self, attributes: Static) -> int:
        # True == 1 == 1.0 and 0.0 == -0.0 in Python: keep apart what computes differently.
        key = tuple((name, value, repr(value)) for name, value in attributes)
        number = self._attributes.get(key)
        if number is None:
            number = self._attributes[key] = len(self._attributes)
        return number

    def attribute_sets(self) -> tuple[dict[str, Any], ...]:
        """The static values of nodes, in the order of their numbers."""
        return tuple({name: value for name, value, _ in entry} for entry in self._attributes)


def plain_scalar(value: Any) -> Any:
    """A number of Python or numpy as exactly a ``bool``, ``int`` or ``float``; anything else as it is. There is one
    NaN, so that a kernel that fills with NaN gives equal graphs each time."""
    if isinstance(value, np.generic):
        item = value.item()
        value = float(value) if isinstance(item, np.generic) else item  # bf16 and f8 scalars have no Python twin
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return math.nan if math.isnan(value) else float(value)
    return value


def scalar_key(value: Any) -> tuple[Any, ...]:
    """A dictionary key that keeps apart what computes differently: ``True``, ``1`` and ``1.0``; ``0.0`` and
    ``-0.0``."""
    kind = value.__class__
    return (kind, value.hex()) if kind is float else (kind, value if kind is int or kind is bool else id(value))
