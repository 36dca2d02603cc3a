"""What a violation of a schedule is, and what the checker needs to know of a schedule."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Protocol

import attrs
import numpy as np

from ..ir.graph import Graph, Node
from ..ir.tables import IntArray
from ..machine.description import Machine

__all__ = ["RULES", "CheckableSchedule", "Violation", "describe", "pairs"]

#: Every rule, in the order in which violations are reported.
RULES = (
    "target",  # the machine has the target that the graph was traced for
    "shape",  # one finite whole number per node and column
    "range",  # no time is negative
    "duration",  # end - start is what the machine's numbers say
    "engine",  # a node runs on its own rank's engine for its operation, which has the machine's channels
    "lane",  # a node runs on a lane that its engine has
    "overlap",  # a lane runs one node at a time
    "memory",  # accesses to the same bytes, one of them writing, keep program order
    "message",  # a receive ends no earlier than its send
    "credit",  # a send starts no earlier than the end of the receive that freed its slot
    "fifo",  # the sends, and the receives, of a channel keep their order
    "order",  # HBM accesses before a notification end before it, those after a wait for one begin after it
    "control",  # what follows a decision starts no earlier than its end
    "issue",  # a rank issues one command at a time, in program order; none starts before it is issued
    "policy",  # what the policy lets the CPU wait for, and the order of starts on an engine
)


class PolicyRules(Protocol):
    """What the checker reads of a policy: which commands hold the CPU until their end (``"none"``, ``"synchronous"``,
    ``"all"``), for the ends of which edges it waits before a command, and whether engines keep program order."""

    @property
    def holds(self) -> str: ...
    @property
    def waits_for(self) -> Collection[int]: ...
    @property
    def in_order(self) -> bool: ...


class EngineInstance(Protocol):
    """One engine of one rank."""

    @property
    def rank(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def channels(self) -> int: ...


class CheckableSchedule(Protocol):
    """The columns of a schedule, one entry per node: the end of its command's issue, start and end (picoseconds), its
    engine (an index into ``engines``, -1: none) and the lane of it."""

    @property
    def graph(self) -> Graph: ...

    @property
    def machine(self) -> Machine: ...

    @property
    def policy(self) -> str: ...
    @property
    def rules(self) -> PolicyRules: ...

    @property
    def issue_ps(self) -> IntArray: ...

    @property
    def start_ps(self) -> IntArray: ...

    @property
    def end_ps(self) -> IntArray: ...

    @property
    def engine(self) -> IntArray: ...

    @property
    def lane(self) -> IntArray: ...

    @property
    def engines(self) -> tuple[Any, ...]: ...


@attrs.frozen
class Violation:
    """A broken rule: its name (one of :data:`RULES`), the nodes involved (the later or offending one last) and one
    line with the values."""

    rule: str
    nodes: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


def describe(graph: Graph, node: int) -> str:
    """A node for a reader: ``%12 exp (flash.py:14)``."""
    view = Node(graph, node)
    place = view.location
    return f"%{node} {view.op} ({place.short})" if place else f"%{node} {view.op}"


def pairs(
    schedule: CheckableSchedule, rule: str, before: IntArray, after: IntArray, limit: IntArray, at: IntArray, words: str
) -> Iterator[Violation]:
    """A violation for each pair whose time ``at`` lies before its ``limit``. ``words`` says, with ``{a}`` and ``{b}``
    for the two nodes and ``{limit}`` and ``{at}`` for the times, what is wrong."""
    graph = schedule.graph
    for i in np.flatnonzero(at < limit).tolist():
        a, b = int(before[i]), int(after[i])
        text = words.format(a=describe(graph, a), b=describe(graph, b), limit=int(limit[i]), at=int(at[i]))
        yield Violation(rule, (a, b), text)
