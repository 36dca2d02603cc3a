"""The rule on signals between ranks: accesses of global memory keep to their side of a notification and of a wait for
one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir.ops import OPERATIONS, Orders
from ..ir.tables import IntArray
from .violation import CheckableSchedule, Violation, pairs

__all__ = ["check_order"]


def check_order(schedule: CheckableSchedule) -> Iterator[Violation]:
    """The violations of the rule ``order``: of each notification the latest of the accesses and signals that it has to
    follow; of each access, and of each wait, the latest wait."""
    graph = schedule.graph
    nodes, accesses = graph.nodes, graph.accesses
    orders = [operation.orders for operation in OPERATIONS.values()]
    tells = np.array([kind is Orders.BEFORE for kind in orders], dtype=np.bool_)[nodes.op]
    waits = np.array([kind is Orders.AFTER for kind in orders], dtype=np.bool_)[nodes.op]
    if not tells.any() and not waits.any():
        return
    touches = np.zeros(len(graph), dtype=np.bool_)
    touches[accesses.node[~graph.in_scratch[accesses.storage]]] = True
    for a, b in (
        _latest_before(schedule, touches | waits | tells, tells),
        _latest_before(schedule, waits, touches | waits),
    ):
        yield from pairs(
            schedule,
            "order",
            a,
            b,
            schedule.end_ps[a],
            schedule.start_ps[b],
            "{b} starts at {at} ps, before {a}, on the other side of the signal, ends at {limit} ps",
        )


def _latest_before(schedule: CheckableSchedule, earlier: IntArray, later: IntArray) -> tuple[IntArray, IntArray]:
    """For each ``later`` node (a mask) the ``earlier`` one before it on its rank that ends last: pairs of nodes."""
    sources: list[int] = []
    targets: list[int] = []
    rank = schedule.graph.nodes.rank
    latest = -1
    for node in np.flatnonzero(earlier | later).tolist():
        if latest >= 0 and rank[latest] != rank[node]:
            latest = -1
        if later[node] and latest >= 0:
            sources.append(latest)
            targets.append(node)
        if earlier[node] and (latest < 0 or schedule.end_ps[node] >= schedule.end_ps[latest]):
            latest = node
    return np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)
