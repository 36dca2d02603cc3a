"""A deadlock as data, and as the error that names its source lines."""

from __future__ import annotations

import attrs

from ...ir.errors import DeadlockError
from ...ir.graph import Graph
from ...ir.tables import Reason
from ..search.dag import find_cycle
from .constraints import ArcKind, Constraints
from .problem import Problem
from .registry import Holds, Policy

__all__ = ["Wait", "deadlock_error", "edge_cycle", "waiting_cycle"]


@attrs.frozen
class Wait:
    """``node`` waits for ``other``: ``cause`` is an edge's reason, ``"engine"`` or ``"program order"``; ``through`` so
    many nodes of the same rank in between, each of which waits for the next for the same cause."""

    node: int
    cause: str
    other: int
    through: int = 0


def edge_cycle(problem: Problem) -> tuple[Wait, ...]:
    """The cycle that the graph's own edges close: no policy can run it."""
    dag = problem.dag
    arcs = find_cycle(len(dag), dag.order, dag.source, dag.target)
    waits = [Wait(int(dag.target[a]), Reason(problem.reason[a]).label, int(dag.source[a])) for a in arcs]
    return _condensed(problem, waits)


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
    return _condensed(problem, waits)


def _condensed(problem: Problem, waits: list[Wait]) -> tuple[Wait, ...]:
    """The same cycle from the smallest receive or send on, runs of one cause within a rank as one wait: a long chain of
    arithmetic between two messages is one line to a reader."""
    rank = problem.command_rank[problem.command[[wait.node for wait in waits]]].tolist()
    # Only a message or its credit leads to another rank: behind one the ranks change, and the cycle can be cut.
    cut = min((i for i in range(len(waits)) if rank[i - 1] != rank[i]), key=lambda i: waits[i].node, default=0)
    turned = waits[cut:] + waits[:cut]
    ranks = rank[cut:] + rank[:cut]
    found = [turned[0]]
    for place, wait in enumerate(turned[1:], start=1):
        last = found[-1]
        if wait.cause == last.cause and ranks[place] == ranks[place - 1] == ranks[(place + 1) % len(ranks)]:
            found[-1] = attrs.evolve(last, other=wait.other, through=last.through + 1)
        else:
            found.append(wait)
    return tuple(found)


_FULL = "let one rank receive before it sends, or give the link more slots"
_EMPTY = "let one rank send before it receives, or post the receive with tl.recv_async and wait for it later"
_POSTED = "under blocking a posted receive blocks like any other: let one rank send before it receives"


def deadlock_error(graph: Graph, policy: Policy, waits: tuple[Wait, ...]) -> DeadlockError:
    """The error for a cycle of waits: one place for each wait."""
    places, cycle = [], []
    for wait in waits:
        node, other = graph[wait.node], graph[wait.other]
        location = node.location
        if location is not None:
            cycle.append(location)
            cause = f"{wait.cause}, through {wait.through} more" if wait.through else wait.cause
            role = f"rank {node.rank}: {node.op} waits for {other.op} of rank {other.rank} ({cause})"
            places.append((role, location))
    full = any(wait.cause == Reason.CREDIT.label for wait in waits)
    posted = policy.holds is Holds.ALL and any(graph[wait.node].op == "recv_async" for wait in waits)
    return DeadlockError(
        f"deadlock under {policy}: {len(waits)} commands wait for each other in a cycle",
        help=_FULL if full else _POSTED if posted else _EMPTY,
        places=places,
        cycle=cycle,
        nodes=[wait.node for wait in waits],
    )
