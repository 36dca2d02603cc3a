"""Violations of scratch reuse, one for each line at fault."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...ir.arrays.distinct import distinct_rows
from ...ir.graph import Graph
from ...memory.liveness import Liveness, Violation, ViolationKind

__all__ = ["violations_by_line"]


def violations_by_line(
    graph: Graph, live: Liveness, kind: ViolationKind
) -> Iterator[tuple[Violation, tuple[int, ...]]]:
    """For each faulty line and line that made the allocation: the first violation of the kind, and the nodes of all.
    Grouped in columns: one line can be at fault a hundred thousand times."""
    columns = live.violation_columns.of(kind)
    if kind is ViolationKind.WRITE_AFTER_SCOPE:
        # What a command both reads and writes (`dot(acc=)`) is one fault: the read.
        reads = live.violation_columns.of(ViolationKind.USE_AFTER_SCOPE)
        width = len(graph.storages) + 1
        both = np.isin(columns.node * width + columns.allocation, reads.node * width + reads.allocation)
        columns = columns.take(np.flatnonzero(~both))
    groups = distinct_rows(graph.nodes.stack[columns.node], graph.storages.stack[columns.allocation]).in_order_met()
    if not groups:
        return
    firsts = columns.take(np.array([group[0] for group in groups]))
    for fault, group in zip(firsts.records(), groups, strict=True):
        yield fault, tuple(np.unique(columns.node[group]).tolist())
