"""What a node computes, ready to be called: made once for all nodes of one operation, form and set of layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from ...ir.errors import KernscopeError
from ...ir.graph import Graph, Node
from ...ir.ops import End, Kind
from ...ir.tables import Mode
from .views import Array, IndexedView, View

__all__ = ["Plan", "Plans"]


@attrs.frozen(eq=False)
class Plan:
    """How to execute the nodes that share it.

    ``reads`` and ``writes`` are the views of their accesses in order; ``scalars`` the Python operands with their
    positions; ``evaluate`` the operation's own evaluation with all static values bound. ``is_send`` and ``is_receive``
    move a message; ``is_idle`` is a marker or a wait, which moves nothing.
    """

    reads: tuple[View | IndexedView, ...]
    writes: tuple[View | IndexedView, ...]
    scalars: tuple[tuple[int, Any], ...]
    evaluate: Callable[..., Array]
    is_send: bool
    is_receive: bool
    is_idle: bool

    def compute(self, operands: list[Any]) -> Array:
        """The result for the arrays of the operands that are tensors; of a signal, which has no bytes, for None."""
        arguments = operands
        if self.scalars:
            arguments = [*operands]
            for position, value in self.scalars:
                arguments.insert(position, value)
        return self.evaluate(*arguments)


class Plans:
    """The plans of a graph's nodes, and where in memory each access begins."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._views = [View.of(layout) for layout in graph.layouts]
        accesses, storages = graph.accesses, graph.storages
        itemsize = np.array([view.itemsize for view in self._views], dtype=np.int64)
        start = storages.address[accesses.storage] + accesses.offset * itemsize[accesses.layout]
        # Plain lists: a node at a time is read from here, and indexing a list is several times quicker.
        self.access_start: list[int] = graph.access_start.tolist()
        self.byte_start: list[int] = start.tolist()
        self.storage: list[int] = accesses.storage.tolist()
        self.is_hbm: list[bool] = (~graph.in_scratch).tolist()
        self._layout: list[int] = accesses.layout.tolist()
        self._op: list[int] = graph.nodes.op.tolist()
        self._attributes: list[int] = graph.nodes.attributes.tolist()
        reading = accesses.node[accesses.mode == Mode.READ]
        self._reads: list[int] = np.bincount(reading, minlength=len(graph)).tolist()
        self._made: dict[tuple[Any, ...], Plan] = {}

    def plan(self, node: int) -> Plan:
        """The plan of a node."""
        first, last = self.access_start[node], self.access_start[node + 1]
        reads = self._reads[node]
        key = (self._op[node], self._attributes[node], reads, *self._layout[first:last])
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _make(Node(self._graph, node), self._views_of(node))
        return found

    def blamed(self, error: KernscopeError, node: int) -> KernscopeError:
        """An error of a node's evaluation, with what it is and its place."""
        shown = Node(self._graph, node)
        error.message = f"{shown.op}: {error.message}"
        error.args = (error.message,)
        return error.at(shown.location)

    def _views_of(self, node: int) -> list[View | IndexedView]:
        rows = range(self.access_start[node], self.access_start[node + 1])
        index = self._graph.attributes[self._attributes[node]].get("index")
        if index is None:
            return [self._views[self._layout[row]] for row in rows]
        layouts = self._graph.layouts
        return [
            IndexedView.of(index, layouts[self._layout[row]])
            if self.is_hbm[self.storage[row]]
            else self._views[self._layout[row]]
            for row in rows
        ]


def _make(node: Node, views: Sequence[View | IndexedView]) -> Plan:
    operation, reads = node.operation, len(node.reads)
    result = node.writes[0].layout.dtype if node.writes else None
    receives = operation.end is End.RECEIVES
    return Plan(
        reads=tuple(views[:reads]),
        writes=tuple(views[reads:]),
        scalars=tuple(node.attributes.get("scalars", ())),
        evaluate=partial(operation.evaluate, result=result, operands=node.operands, **node.static),
        is_send=operation.end is End.SENDS,
        is_receive=receives,
        is_idle=operation.kind is Kind.NONE and not receives,
    )
