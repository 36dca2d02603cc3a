"""A deadlock as data, and as the error that names its source lines."""

from __future__ import annotations

import attrs

from ..ir.errors import DeadlockError
from ..ir.graph import Graph
from ..ir.tables import Reason
from .constraints import ArcKind, Constraints
from .dag import find_cycle
from .problem import Problem

__all__ = ["Wait", "deadlock_error", "edge_cycle", "waiting_cycle"]


@attrs.frozen
class Wait:
    """``node`` waits for ``other``: ``cause`` is an edge's reason, ``"engine"`` or ``"program order"``."""

    node: int
    cause: str
    other: int


def edge_cycle(problem: Problem) -> tuple[Wait, ...]:
    """The cycle that the graph's own edges close: no policy can run it."""
    dag = problem.dag
    arcs = find_cycle(len(dag), dag.order, dag.source, dag.target)
    waits = [Wait(int(dag.target[a]), Reason(problem.reason[a]).label, int(dag.source[a])) for a in arcs]
    return _rotated(waits)


def waiting_cycle(problem: Problem, constraints: Constraints) -> tuple[Wait, ...]:
    """The cycle of waits under an in-order policy. Commands that only hand the CPU on are left out."""
    arcs = find_cycle(len(constraints.base_ps), constraints.order, constraints.source, constraints.target)
    n = constraints.nodes
    # Begin behind an arc that comes from a node, so that the first wait is a whole one. Every cycle has one.
    begin = next(i for i, arc in enumerate(arcs) if constraints.source[arc] < n)
    arcs = arcs[begin + 1 :] + arcs[: begin + 1]
    waits: list[Wait] = []
    node, through = int(constraints.source[arcs[-1]]), False
    for arc in arcs:
        source, target, kind = (int(c[arc]) for c in (constraints.source, constraints.target, constraints.kind))
        if source >= n:
            through = True
            continue
        if target >= n:
            holder = int(problem.first_node[target - n])
            if kind != ArcKind.PROGRAM and through and problem.command[holder] != problem.command[node]:
                # The CPU is not held by the command before, but waits for this one's data or credit.
                waits.append(Wait(node, "program order", holder))
                node = holder
        label = Reason(kind).label if kind < ArcKind.ENGINE else "engine" if kind == ArcKind.ENGINE else "program order"
        waits.append(Wait(node, label, source))
        node, through = source, False
    return _rotated(waits)


def _rotated(waits: list[Wait]) -> tuple[Wait, ...]:
    """The same cycle from its smallest node on."""
    at = min(range(len(waits)), key=lambda i: waits[i].node)
    return tuple(waits[at:] + waits[:at])


_FULL = "let one rank receive before it sends, or give the link more slots"
_EMPTY = "let one rank send before it receives, or post the receive with tl.recv_async and wait for it later"


def deadlock_error(graph: Graph, policy: str, waits: tuple[Wait, ...]) -> DeadlockError:
    """The error for a cycle of waits: one place for each wait."""
    places, cycle = [], []
    for wait in waits:
        node, other = graph[wait.node], graph[wait.other]
        location = node.location
        if location is not None:
            cycle.append(location)
            role = f"rank {node.rank}: {node.op} waits for {other.op} of rank {other.rank} ({wait.cause})"
            places.append((role, location))
    full = any(wait.cause == Reason.CREDIT.label for wait in waits)
    return DeadlockError(
        f"deadlock under {policy}: {len(waits)} commands wait for each other in a cycle",
        help=_FULL if full else _EMPTY,
        places=places,
        cycle=cycle,
        nodes=[wait.node for wait in waits],
    )
