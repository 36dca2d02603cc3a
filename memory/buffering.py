"""Several buffers for a graph's scopes, where its use of scratch allows that."""

from __future__ import annotations

from collections import Counter

from ..ir.columns import expect_graph
from ..ir.errors import LifetimeError
from ..ir.graph import Graph
from ..ir.rebuffer import check_buffers, rebuffered
from .liveness import Violation, ViolationKind, liveness

__all__ = ["rebuffer"]

#: The linter's rule for each fault of a lifetime.
_RULES = {
    ViolationKind.USE_AFTER_SCOPE: "KS201 use-after-scope",
    ViolationKind.WRITE_AFTER_SCOPE: "KS202 write-after-scope",
    ViolationKind.READ_BEFORE_WRITE: "KS204 read-before-write",
}
_PLACES_SHOWN = 5


def rebuffer(graph: Graph, buffers: int) -> Graph:
    """The graph with ``buffers`` rotating copies of its scopes' bytes, so that iterations overlap.

    A scope's n-th child scope starts at the scope's base + (n mod ``buffers``) x the largest child; the scope's later
    allocations follow all copies (:mod:`kernscope.ir.rebuffer` states the rule in full). A new graph: addresses and
    scope bases change, and with them the edges between recycled bytes; all else is equal, outputs bit for bit. Nested
    scopes multiply their copies. The peak may pass the budget, which :func:`kernscope.liveness` and the linter report.
    A graph that was rebuffered already is laid out anew: only the last number counts.

    Raises ``LifetimeError`` for a graph with findings of the rules KS201, KS202 or KS204, which would compute something
    else, ``NoScopesError`` for a graph without scopes, ``OptionError`` for a number below 1, ``InfeasibleError`` where
    no memory could hold the copies.
    """
    expect_graph(graph, "rebuffer")
    check_buffers(buffers)
    faults = [violation for violation in liveness(graph).violations if violation.kind in _RULES]
    if faults:
        raise _lifetime_error(graph, faults)
    return rebuffered(graph, buffers)


def _lifetime_error(graph: Graph, faults: list[Violation]) -> LifetimeError:
    counts = Counter(_RULES[fault.kind] for fault in faults)
    listed = ", ".join(f"{rule} ({count:,} x)" for rule, count in sorted(counts.items()))
    error = LifetimeError(
        f"{graph.kernel} uses scratch outside its lifetime, so its scopes cannot have other bytes: {listed}",
        help="kernscope lint says how to mend each; suppressing a finding does not help here",
    )
    shown: set[tuple[str, object]] = set()
    for fault in faults:
        place = graph[fault.node].location if fault.node is not None else None
        if place is not None and (_RULES[fault.kind], place) not in shown and len(shown) < _PLACES_SHOWN:
            shown.add((_RULES[fault.kind], place))
            error.places.append((_RULES[fault.kind], place))
    return error
