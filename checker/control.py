"""The rule on decisions: what a program does after one waits for what it read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir.ops import OPERATIONS
from .violation import CheckableSchedule, Violation, pairs

__all__ = ["check_control"]


def check_control(schedule: CheckableSchedule) -> Iterator[Violation]:
    """The violations of the rule ``control``. A decision waits for the one before it: the last one speaks for all."""
    nodes = schedule.graph.nodes
    decisions = np.flatnonzero(nodes.op == OPERATIONS.code("decide"))
    if not len(decisions):
        return
    node = np.arange(len(nodes))
    before = decisions[np.maximum(np.searchsorted(decisions, node) - 1, 0)]
    follows = np.flatnonzero((before < node) & (nodes.rank[before] == nodes.rank))
    before = before[follows]
    yield from pairs(
        schedule,
        "control",
        before,
        follows,
        schedule.end_ps[before],
        schedule.start_ps[follows],
        "{b} starts at {at} ps, before {a}, which it depends on, ends at {limit} ps",
    )
